package plan

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/note"
	"planner/sweep/measure"
)

// Infeasible says that no plan exists: the objective cannot be met, or every
// fleet that meets it breaks a limit of the demand.
type Infeasible struct {
	// Cheapest is the best fleet that meets the objective and breaks a limit,
	// which Limit names; nil if the objective cannot be met at all.
	Cheapest *Alternative
	Limit    string
	// Alternatives are the offers and Rejected the configurations that cannot
	// run, each with its reason.
	Alternatives []Alternative
	Rejected     []measure.Rejection
}

func infeasible(ranked []Alternative, rejected []measure.Rejection) *Infeasible {
	e := &Infeasible{Alternatives: ranked, Rejected: rejected}
	i := slices.IndexFunc(ranked, func(a Alternative) bool { return a.Fleet.GPUs > 0 })
	if i >= 0 {
		e.Cheapest, e.Limit = &ranked[i], ranked[i].Reason.Text
	}
	return e
}

// Error names the cheapest fleet and the limit it breaks, or why no
// configuration meets the objective.
func (e *Infeasible) Error() string {
	if c := e.Cheapest; c != nil {
		return fmt.Sprintf("no plan within the limits: the cheapest is %s: %s", c, e.Limit)
	}
	reasons := e.Reasons()
	if len(reasons) == 0 {
		return "no plan: there is no configuration to choose from"
	}
	return "no plan: no configuration meets the objective: " + strings.Join(reasons, "; ")
}

// Reasons lists the distinct reasons, those of offers first, in their order. Where a
// limit of the demand is what stands in the way, they are those of the offers alone,
// the cheapest first: which knobs an offer was chosen before has no part in it.
func (e *Infeasible) Reasons() []string {
	if e.Cheapest != nil {
		return reasonsOf(e.Alternatives, nil)
	}
	return reasonsOf(e.Alternatives, e.Rejected)
}

// Undecided says that there is no plan yet, and that there may be one: no offer is
// feasible, and of some it is not known what rate they carry.
type Undecided struct {
	// Alternatives are the offers and Rejected the configurations that were left
	// out, each with its reason.
	Alternatives []Alternative
	Rejected     []measure.Rejection
}

// Error names why the undecided offers are so.
func (e *Undecided) Error() string {
	return "undecided: " + strings.Join(e.Doubts(), "; ")
}

// Doubts lists the distinct reasons for which nothing is known of the undecided
// offers.
func (e *Undecided) Doubts() []string { return reasonsOf(e.undecided(), nil) }

// Reasons lists the distinct reasons of the offers: of the undecided ones first.
func (e *Undecided) Reasons() []string {
	return reasonsOf(slices.Concat(e.undecided(), e.Alternatives), nil)
}

func (e *Undecided) undecided() []Alternative {
	return slices.DeleteFunc(slices.Clone(e.Alternatives), func(a Alternative) bool { return !a.Undecided })
}

// reasonsOf lists the reasons of offers and of rejections, each once. Rejections that differ
// in figures alone are told by one of them.
func reasonsOf(alternatives []Alternative, rejected []measure.Rejection) []string {
	var reasons []string
	for _, a := range alternatives {
		reasons = append(reasons, a.Reason.Text)
	}
	for _, g := range note.GroupsOf(rejected, func(r measure.Rejection) note.Note { return r.Reason.Read() }) {
		reasons = append(reasons, measure.MostMemory(g).Reason.Text)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(reasons, func(r string) bool {
		known := seen[r]
		seen[r] = true
		return known
	})
}

// All are the chosen offer and the others, in their order.
func (p *Plan) All() []Alternative {
	chosen := Alternative{Offer: p.Offer, Fleet: p.Fleet, Cost: p.Cost.Cost, Feasible: true, Reason: note.Because(note.Chosen)}
	return append([]Alternative{chosen}, p.Alternatives...)
}

// String sums a sized alternative up: its GPUs, instances and cost.
func (a *Alternative) String() string {
	s := fmt.Sprintf("%d x %s (%s of %s)", a.Fleet.GPUs, a.Offer.GPU, note.Count(a.Fleet.Instances, "instance"), note.Count(a.Offer.GPUs, "GPU"))
	if a.Cost.PerHour != nil {
		s += fmt.Sprintf(" at %.2f USD per hour", *a.Cost.PerHour)
	}
	return s
}

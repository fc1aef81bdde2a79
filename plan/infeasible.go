package plan

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// Unsolved says that there is no plan: the objective cannot be met, or every fleet that meets it breaks a limit
// of the demand.
type Unsolved struct {
	// Undecided says that there may still be a plan: the rates of some offers are unknown.
	Undecided bool
	// Cheapest is the best fleet that meets the objective and breaks a limit, which Limit names; nil if the
	// objective cannot be met at all, or if that is undecided.
	Cheapest *Alternative
	Limit    string
	// Alternatives are the offers and Rejected the configurations that cannot run, each with its reason.
	Alternatives []Alternative
	Rejected     []measure.Rejection
}

func unsolved(ranked []Alternative, rejected []measure.Rejection) *Unsolved {
	e := &Unsolved{Alternatives: ranked, Rejected: rejected, Undecided: slices.ContainsFunc(ranked, func(a Alternative) bool { return a.Undecided })}
	if i := slices.IndexFunc(ranked, func(a Alternative) bool { return a.Fleet.GPUs > 0 }); i >= 0 && !e.Undecided {
		e.Cheapest, e.Limit = &ranked[i], ranked[i].Reason.Text
	}
	return e
}

// Error names the cheapest fleet and the limit that it breaks, or why no configuration meets the objective, or
// why that is undecided.
func (e *Unsolved) Error() string {
	if e.Undecided {
		return "undecided: " + strings.Join(e.Doubts(), "; ")
	}
	if c := e.Cheapest; c != nil {
		return fmt.Sprintf("no plan within the limits: the cheapest is %s: %s", c, e.Limit)
	}
	reasons := e.Reasons()
	if len(reasons) == 0 {
		return "no plan: there is no configuration to choose from"
	}
	return "no plan: no configuration meets the objective: " + strings.Join(reasons, "; ")
}

// Reasons lists the distinct reasons, those of offers first, in their order. If a limit of the demand is in the
// way, or if there is no decision, they are those of the offers alone, undecided ones first and then by cost:
// which knobs an offer was preferred to does not matter then.
func (e *Unsolved) Reasons() []string {
	if e.Cheapest != nil || e.Undecided {
		return reasonsOf(slices.Concat(e.undecided(), e.Alternatives), nil)
	}
	return reasonsOf(e.Alternatives, e.Rejected)
}

// Doubts lists the distinct reasons why nothing is known of the undecided offers.
func (e *Unsolved) Doubts() []string { return reasonsOf(e.undecided(), nil) }

func (e *Unsolved) undecided() []Alternative {
	return list.Filter(e.Alternatives, func(a Alternative) bool { return a.Undecided })
}

// reasonsOf lists the reasons of offers and of rejections, each once. One rejection stands for all that differ
// only in figures.
func reasonsOf(alternatives []Alternative, rejected []measure.Rejection) []string {
	reasons := list.Map(alternatives, func(a Alternative) string { return a.Reason.Text })
	groups := list.Groups(rejected, func(r measure.Rejection) string { return r.Reason.Read().Likeness() })
	most := list.Map(groups, func(g []measure.Rejection) string { return measure.MostMemory(g).Reason.Text })
	return list.Distinct(append(reasons, most...))
}

// All returns the chosen offer and the others, in their order.
func (p *Plan) All() []Alternative {
	chosen := Alternative{Offer: p.Offer, Fleet: p.Fleet, Cost: p.Cost.Cost, Feasible: true, Reason: note.Because(note.Chosen)}
	return append([]Alternative{chosen}, p.Alternatives...)
}

// String summarises a sized alternative: its GPUs, instances and cost.
func (a *Alternative) String() string {
	s := fmt.Sprintf("%d x %s (%s of %s)", a.Fleet.GPUs, a.Offer.GPU, note.Count(a.Fleet.Instances, "instance"), note.Count(a.Offer.GPUs, "GPU"))
	if a.Cost.PerHour != nil {
		s += fmt.Sprintf(" at %.2f USD per hour", *a.Cost.PerHour)
	}
	return s
}

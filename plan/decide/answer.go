package decide

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/plan"
	"planner/plan/diagnose"
	"planner/plan/effects"
	"planner/plan/trust"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// Background is what an answer rests on, for its report.
type Background struct {
	// Subject says what is served: "llama-3.1-70b in fp8, chat".
	Subject string
	// Knobs are those that the answer is about, Search the search for their maximum rate; nil if there was
	// none.
	Knobs  measure.Knobs
	Search *search.Result
	// Trials are those of the run, with all settings. Diagnosis is what those of Knobs show about the server,
	// and Trust how far they can be relied on.
	Trials    []measure.Measurement
	Diagnosis []diagnose.Finding
	Trust     []trust.Item
}

// Planned is the answer of a decision that found a plan. Its JSON is the plan's.
type Planned struct {
	*plan.Plan
	Background Background
	// Class names the class of a mix that it is for, "" for all. Each are the answers for the classes that may
	// have pools of their own.
	Class string
	Each  []*Planned
}

// Files are what a run folder keeps of it, by name: the plan and its curves, the binding metric's first.
func (p *Planned) Files() map[string]any {
	return map[string]any{"plan.json": p, "curves.json": p.Evidence.AllCurves()}
}

// SetRun adds what depends on the clock, the host or a path.
func (p *Planned) SetRun(facts map[string]any) { p.Run = facts }

// NoPlan is the answer of a decision that finds no plan.
type NoPlan struct {
	// Outcome is infeasible, undecided, or, if every engine failed, not_measured, which says nothing about what
	// the engine could meet.
	Outcome string `json:"outcome"`
	// Idle is set if even an idle engine misses the objective.
	Idle     *plan.IdleLatency   `json:"idle"`
	Reasons  []string            `json:"reasons"`  // why there is no plan, in words
	Rejected []measure.Rejection `json:"rejected"` // the knob sets that cannot run
	// Trials counts the trials run, Invalid those that could not be trusted, and Doubts gives their reasons,
	// the commonest first.
	Trials  int      `json:"trials"`
	Invalid int      `json:"invalid_trials"`
	Doubts  []string `json:"doubts"`
	// Notes are the doubts as values.
	Notes note.Notes `json:"notes"`

	Demand    plan.Demand `json:"demand"`
	Objective measure.SLO `json:"slo"`
	// Diagnosis lists what is wrong with the server.
	Diagnosis []diagnose.Finding `json:"diagnosis"`
	// Run is what depends on the clock, the host or a path.
	Run any `json:"run,omitempty"`

	Why        *plan.Unsolved `json:"-"`
	Background Background     `json:"-"`
}

// NotMeasured is the outcome if every engine failed, Undecided the outcome if it is not known whether there is
// a plan.
const NotMeasured, Undecided = "not_measured", "undecided"

// SetRun adds what depends on the clock, the host or a path.
func (n *NoPlan) SetRun(facts map[string]any) { n.Run = facts }

// Answer is the plan, or why there is none; while searches are running, the plan from what they have found so
// far, if any.
func (d *Decision) Answer() (sweep.Answer, error) {
	switch p, why := d.plan, d.solved; {
	case d.failed != nil:
		return sweep.Answer{State: sweep.Failed}, d.failed
	case p != nil:
		return d.planned(p)
	case why != nil:
		return d.without(why)
	case len(d.Seen) == 0, slices.ContainsFunc(d.instances, func(i *instance) bool { return i.race == nil }):
		return sweep.Answer{}, nil // or the coarse pass is running, which gives no rate of its own
	}
	p, err := d.solve()
	if err != nil {
		return sweep.Answer{}, nil // nothing is known yet that could be reported
	}
	p.Warnings = slices.Concat(configured(d.cfg), p.Warnings, note.Notes{note.New(note.SearchInterrupted)})
	d.doubtTrials(p)
	d.fitCurves(p)
	return sweep.Answer{Value: judged(p, d.background())}, nil
}

// judged returns a plan with its background's findings about server and data.
func judged(p *plan.Plan, b Background) *Planned {
	p.Evidence.Diagnosis, p.Evidence.Trust = b.Diagnosis, b.Trust
	p.Evidence.Effects = effects.Of(Settings(p, b.Trials))
	return &Planned{Plan: p, Background: b}
}

// certifiedAsIs is what a certificate in virtual time rests on.
const certifiedAsIs = "the certificate is of the simulated engine with its constants as they are"

// planned adds the evidence to the plan after the searches have ended.
func (d *Decision) planned(solved *plan.Plan) (sweep.Answer, error) {
	p := *solved
	p.Warnings = append(slices.Clone(p.Warnings), d.unsearched...)
	if d.addEvidence(&p); d.failed != nil {
		return sweep.Answer{State: sweep.Failed}, d.failed
	}
	state := sweep.Done
	if d.certificate != nil {
		certified := d.certificate()
		p.Certificate = &certified
		switch {
		case !d.Ended:
			state, p.Certificate = sweep.Unfinished, nil
			p.Warnings = append(p.Warnings, note.New(note.CertificateInterrupted))
		case certified.State != measure.Met:
			state = sweep.Undecided
			p.Warnings = append(p.Warnings, note.New(note.Uncertified, certified.Rate, certified.Reason.Text))
		case d.ground.Virtual:
			p.Assumptions = append(p.Assumptions, certifiedAsIs)
		}
	}
	return sweep.Answer{State: state, Value: judged(&p, d.background())}, nil
}

// without is the answer if there is no plan. A reason other than [plan.Unsolved] is an error.
func without(cfg *config.Config, why error, b Background) (sweep.Answer, error) {
	unsolved, ok := errors.AsType[*plan.Unsolved](why)
	if !ok {
		return sweep.Answer{State: sweep.Failed}, why
	}
	state, outcome := sweep.Infeasible, "infeasible"
	if unsolved.Undecided {
		state, outcome = sweep.Undecided, Undecided
	}
	seen := measure.OverviewOf(b.Trials)
	return sweep.Answer{State: state, Value: &NoPlan{
		Outcome: outcome, Reasons: unsolved.Reasons(), Rejected: unsolved.Rejected, Demand: cfg.Demand, Objective: cfg.Objective, Why: unsolved, Background: b,
		Trials: seen.Trials, Invalid: seen.Invalid, Doubts: seen.Doubts.Texts(), Notes: slices.Concat(configured(cfg), seen.Doubts),
	}}, nil
}

// without is the answer of a decision that ended without a plan.
func (d *Decision) without(why error) (sweep.Answer, error) {
	answer, err := without(d.cfg, why, d.background())
	if err != nil {
		return answer, err
	}
	n := answer.Value.(*NoPlan)
	failures := d.failures()
	if lost := lostWith(d.Seen, n.Background.Knobs); answer.State == sweep.Undecided && lost != "" {
		failures = append([]string{lost}, n.Reasons...)
	}
	if len(failures) > 0 {
		answer.State, n.Outcome, n.Reasons = sweep.Failed, NotMeasured, failures
		return answer, nil
	}
	if c := n.Why.Cheapest; c != nil {
		n.Notes = append(n.Notes, d.busyFrontEnd(c.Offer.Knobs, c.Offer.Rate.Value)...)
	}
	if n.Diagnosis = n.Background.Diagnosis; d.chosen != nil {
		n.Idle = idleLatency(d.chosen.race().Best.Floor)
	}
	return answer, nil
}

// lostWith says how the engine with some knobs failed for good, "" if it did not.
func lostWith(trials []measure.Measurement, k measure.Knobs) string {
	lost, _ := list.Find(trials, func(m measure.Measurement) bool { return m.Trial.Knobs == k && measure.Broke(m.Rejected) })
	return lost.Rejected.Text
}

// failures lists the distinct reasons for which the engines of all kinds of instances failed; none if any of
// them was measured.
func (d *Decision) failures() []string {
	var reasons []string
	for _, i := range d.instances {
		why := i.selected.found.Reason
		switch {
		case i.selected.found.Outcome != search.Unmeasured:
			return nil
		case why.Note.Kind == note.FailsIdle:
			reasons = append(reasons, why.Text)
		}
	}
	for i := range d.Seen {
		if why := d.Seen[i].Rejected; why.Note.Kind == note.EngineFailed || why.Note.Kind == note.NotPlaced {
			reasons = append(reasons, why.Text)
		}
	}
	return list.Distinct(reasons)
}

// idleLatency is the latency of an idle engine that misses the objective; nil if it does not.
func idleLatency(f *search.Floor) *plan.IdleLatency {
	if f == nil || f.Value <= 0 {
		return nil
	}
	ms := func(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }
	return &plan.IdleLatency{Bound: f.Bound, Stat: f.Stat, Latency: ms(f.Value), Limit: ms(f.Limit), Feasible: math.Ceil(ms(f.Value))}
}

func (d *Decision) background() Background {
	b := Background{Subject: subject(d.cfg, measure.Knobs{}), Trials: d.Seen}
	if d.chosen != nil {
		k, r := d.chosen.settled()
		b.Knobs, b.Search, b.Subject = k, &r, subject(d.cfg, k)
		b.Diagnosis, b.Trust = d.judge(k, d.chosen.gpu.Hardware.Name, r.Estimate.Value)
	}
	return b
}

func subject(cfg *config.Config, k measure.Knobs) string {
	if m := cfg.Model; m.Known {
		return fmt.Sprintf("%s in %s, %s", m.Name, cfg.Precision(k).Weights, cfg.Workload.Words())
	}
	return cfg.Workload.Words()
}

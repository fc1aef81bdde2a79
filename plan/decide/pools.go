package decide

import (
	"context"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/internal/note"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// PoolStudy is the study of a mix whose classes have their own limits: the decision on one pool of instances
// for all classes, and those on a pool per class, side by side in virtual time and one after the other on real
// engines.
type PoolStudy struct {
	sweep.Chain

	cfg     *config.Config
	one     *Decision
	classes []string
	each    []*Decision
}

// PoolsPlanned is the answer if each class has a plan of its own and one pool for all has none.
type PoolsPlanned struct {
	Outcome string      `json:"outcome"`
	Pools   *plan.Pools `json:"pools"`
	OnePool *NoPlan     `json:"one_pool"`
	// Run is what depends on the clock, the host or a path.
	Run any `json:"run,omitempty"`
	// Each are the answers that the pools are made from.
	Each []*Planned `json:"-"`
}

// SetRun adds what depends on the clock, the host or a path.
func (p *PoolsPlanned) SetRun(facts map[string]any) { p.Run = facts }

// Files are what a run folder keeps of it, by name.
func (p *PoolsPlanned) Files() map[string]any { return map[string]any{"plan.json": p} }

// NewPlan prepares the study of a plan: one decision, or also those on a pool per class.
func NewPlan(cfg *config.Config, g sweep.Ground) (PlanStudy, error) {
	one, err := New(cfg, g)
	p := &PoolStudy{cfg: cfg, one: one, classes: cfg.Pools()}
	if err != nil || len(p.classes) == 0 {
		return one, err
	}
	all := []sweep.Source{one}
	for _, class := range p.classes {
		own, err := New(cfg.Pool(class), g)
		if err != nil {
			return nil, err
		}
		p.each, all = append(p.each, own), append(all, own)
	}
	p.Stages = []func() sweep.Source{func() sweep.Source { return &sweep.Together{Sources: all} }}
	if !g.Virtual {
		p.Stages = nil
		for _, source := range all {
			p.Stages = append(p.Stages, func() sweep.Source { return source })
		}
	}
	return p, nil
}

// decisions returns all decisions, that on one pool first.
func (p *PoolStudy) decisions() []*Decision { return append([]*Decision{p.one}, p.each...) }

// Rejected lists the configurations that cannot run for any class.
func (p *PoolStudy) Rejected() []measure.Rejection { return p.one.Rejected() }

// Searches is the number of searches that the budget applies to.
func (p *PoolStudy) Searches() (n int) {
	for _, d := range p.decisions() {
		n += d.Searches()
	}
	return n
}

// Forecast says in words what the searches would take on real engines.
func (p *PoolStudy) Forecast(ctx context.Context) (string, error) {
	var parts []string
	for i, d := range p.decisions() {
		text, err := d.Forecast(ctx)
		if err != nil || text == "" {
			return "", err
		}
		if i > 0 {
			text = p.classes[i-1] + " alone: " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; "), nil
}

// Best is the best result so far of the running decision.
func (p *PoolStudy) Best() (best search.Result, of string) {
	for i, d := range p.decisions() {
		if best, of = d.Best(); of != "" && i > 0 {
			return best, p.classes[i-1] + " alone, " + of
		} else if of != "" {
			return best, of
		}
	}
	return best, of
}

// Stage returns how many kinds of instances are done over all decisions.
func (p *PoolStudy) Stage() (done, of int, what string) {
	for _, d := range p.decisions() {
		if n, all, word := d.Stage(); all > 0 {
			done, of, what = done+n, of+all, word
		}
	}
	return done, of, what
}

// Answer is the plan for one pool with those of the classes beside it, or the classes' plans if one pool has
// none. If these are undecided, so is the answer.
func (p *PoolStudy) Answer() (sweep.Answer, error) {
	answer, err := p.one.Answer()
	if err != nil || !p.Ended {
		if answer.State == sweep.Done {
			answer.State = sweep.Unfinished // the pools are not decided yet
		}
		return answer, err
	}
	var each []plan.Pool
	var planned []*Planned
	never, state := false, sweep.Done // of the pools together
	for i, class := range p.classes {
		own, err := p.each[i].Answer()
		if err != nil {
			return own, err
		}
		if never = never || own.State == sweep.Infeasible; own.State == sweep.Undecided {
			state = own.State
		}
		pool := plan.Pool{Class: class, Share: p.cfg.Workload.Share(class)}
		switch v := own.Value.(type) {
		case *Planned:
			v.Class = class
			pool.Plan, planned = v.Plan, append(planned, v)
		case *NoPlan:
			pool.Why = v.Why.Error()
		}
		each = append(each, pool)
	}
	switch one := answer.Value.(type) {
	case *Planned:
		one.Handover.Pools = plan.NewPools(p.cfg.Demand, each, one.Plan)
		one.Each = planned
	case *NoPlan:
		pools := plan.NewPools(p.cfg.Demand, each, nil)
		if pools.Recommended == plan.PoolEach {
			return sweep.Answer{State: state, Value: &PoolsPlanned{Outcome: "pools", Pools: pools, OnePool: one, Each: planned}}, nil
		}
		one.Reasons = append(slices.Clone(one.Reasons), note.Because(note.PoolsNeither, pools.Reason.Text).Text)
		if answer.State == sweep.Infeasible && state == sweep.Undecided && !never {
			answer.State, one.Outcome = state, Undecided
		}
	}
	return answer, nil
}

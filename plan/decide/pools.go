package decide

import (
	"context"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/plan"
	"planner/search"
	"planner/sweep"
)

// PoolStudy is the study of a mix whose classes have their own limits: the decision on one pool of instances
// for all classes, and those on a pool per class, side by side in virtual time and one after the other on real
// engines.
type PoolStudy struct {
	sweep.Chain

	cfg *config.Config
	// all are the decisions, that on one pool first.
	all []*Decision
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
	if err != nil || len(cfg.Pools()) == 0 {
		return one, err
	}
	p := &PoolStudy{cfg: cfg, all: []*Decision{one}}
	p.Unable = one.Unable
	for _, class := range cfg.Pools() {
		own, err := New(cfg.Pool(class), g)
		if err != nil {
			return nil, err
		}
		own.class = class
		p.all = append(p.all, own)
	}
	if g.Virtual {
		together := list.Map(p.all, func(d *Decision) sweep.Source { return d })
		p.Stages = []func() sweep.Source{func() sweep.Source { return &sweep.Together{Sources: together} }}
	} else {
		p.Stages = list.Map(p.all, func(d *Decision) func() sweep.Source { return func() sweep.Source { return d } })
	}
	return p, nil
}

// Searches is the number of searches that the budget applies to.
func (p *PoolStudy) Searches() int { return list.Sum(p.all, (*Decision).Searches) }

// Forecast says in words what the searches would take on real engines.
func (p *PoolStudy) Forecast(ctx context.Context) (string, error) {
	var parts []string
	for _, d := range p.all {
		text, err := d.Forecast(ctx)
		if err != nil || text == "" {
			return "", err
		}
		if d.class != "" {
			text = d.class + " alone: " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; "), nil
}

// Best is the best result so far of the running decision.
func (p *PoolStudy) Best() (best search.Result, of string) {
	for _, d := range p.all {
		if best, of = d.Best(); of != "" {
			break
		}
	}
	return best, of
}

// Stage returns how many kinds of instances are done over all decisions.
func (p *PoolStudy) Stage() (done, of int, what string) {
	for _, d := range p.all {
		if n, all, word := d.Stage(); all > 0 {
			done, of, what = done+n, of+all, word
		}
	}
	return done, of, what
}

// Answer is the plan for one pool with those of the classes beside it, or the classes' plans if one pool has
// none. If these are undecided, so is the answer.
func (p *PoolStudy) Answer() (sweep.Answer, error) {
	answer, err := p.all[0].Answer()
	if err != nil || !p.Ended {
		if answer.State == sweep.Done {
			answer.State = sweep.Unfinished // the pools are not decided yet
		}
		return answer, err
	}
	var each []plan.Pool
	var planned []*Planned
	never, state := false, sweep.Done // of the pools together
	for _, d := range p.all[1:] {
		own, err := d.Answer()
		if err != nil {
			return own, err
		}
		if never = never || own.State == sweep.Infeasible; own.State == sweep.Undecided {
			state = own.State
		}
		pool := plan.Pool{Class: d.class, Share: p.cfg.Workload.Share(d.class)}
		switch v := own.Value.(type) {
		case *Planned:
			v.Class = d.class
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

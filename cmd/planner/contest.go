package main

import (
	"planner/internal/config"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// contest is a search over the knob sets of one group.
type contest interface {
	sweep.Source
	best() (measure.Knobs, search.Result)
	rejected() []plan.Rejected
	defaults() (*measure.Knobs, *search.Estimate)
}

type gridContest struct {
	sweep.Together
	all   []*search.MaxRate
	knobs []measure.Knobs
}

func newContest(cfg *config.Config, g *group) contest {
	c := &gridContest{}
	for _, p := range g.priors {
		s := search.NewMaxRate(maxRateConfig(cfg, p))
		c.all = append(c.all, s)
		c.knobs = append(c.knobs, p.Knobs)
		c.Sources = append(c.Sources, s)
	}
	return c
}

func (c *gridContest) best() (measure.Knobs, search.Result) {
	at := 0
	for i, s := range c.all {
		if s.Result().Estimate.Safe > c.all[at].Result().Estimate.Safe {
			at = i
		}
	}
	return c.knobs[at], c.all[at].Result()
}

func (c *gridContest) rejected() []plan.Rejected                    { return nil }
func (c *gridContest) defaults() (*measure.Knobs, *search.Estimate) { return nil, nil }

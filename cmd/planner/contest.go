package main

import (
	"planner/internal/config"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// contest is a search over the knob sets of one group.
type contest interface {
	sweep.Source
	Result() search.RaceResult
}

// newContest starts the search over knob sets that the configuration's strategy
// names.
func newContest(cfg *config.Config, g *group, sim *sweep.Simulated) contest {
	c := search.RaceConfig{Search: maxRateConfig(cfg, search.Prior{}), Candidates: g.priors, Default: g.standard}
	if cfg.Simulated() {
		if !cfg.Search.BudgetGiven {
			c.FinalPrecision = finalPrecision(cfg.Search.Precision)
		}
		// There the prediction and the engine share their physics, so what is
		// predicted to be worse needs fewer second looks than on a real one.
		c.Explore = simulatedExplore
		c.Further = func(r search.RaceResult) []search.Prior { return pastEnds(cfg, sim, r) }
	}
	c.OneEngine = !cfg.Simulated() && cfg.Engine.Kind != "attach"
	switch cfg.Search.Strategy {
	case "grid":
		return search.NewGrid(c)
	case "one-at-a-time":
		return search.NewOneAtATime(c)
	}
	return search.NewRace(c)
}

// finalPrecision is that of the last searches in virtual time, where requests cost
// little: fine enough that chance neither sizes the fleet nor tells winner from
// default, and no finer than trials can be told apart.
func finalPrecision(asked float64) float64 {
	const share, finest = 0.4, 0.03
	return min(asked, max(share*asked, finest))
}

// simulatedExplore is the share of the knob sets with a poor prediction that
// are tried all the same on the simulated engine.
const simulatedExplore = 0.2

// losers lists the knob sets that were not chosen, with their reasons.
func losers(r search.RaceResult) []measure.Rejection {
	var list []measure.Rejection
	for _, c := range r.Contestants {
		reason := c.Reason
		if reason == "" {
			reason = c.Status.String()
		}
		list = append(list, measure.Rejection{Knobs: c.Knobs, Reason: reason})
	}
	return list
}

// knobsOf is the best knob set of a contest, with what is known of its rate.
func knobsOf(c contest) (measure.Knobs, search.Result) {
	r := c.Result()
	return r.Knobs, r.Best
}

package decide

import (
	"planner/internal/config"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// newRace starts the search over knob sets that the configuration's strategy
// names.
func newRace(cfg *config.Config, g sweep.Ground, i *instance) *search.Race {
	c := search.RaceConfig{Search: maxRateConfig(cfg, search.Prior{}), Candidates: i.priors, Default: i.standard}
	if g.Virtual {
		if !cfg.Search.BudgetGiven {
			c.FinalPrecision = finalPrecision(cfg.Search.Precision)
		}
		// There the prediction and the engine share their physics, so what is
		// predicted to be worse needs fewer second looks than on a real one.
		c.Explore = simulatedExplore
		c.Further = func(r search.RaceResult) []search.Prior { return pastEnds(cfg, g.Predict, r) }
	}
	c.OneEngine = !g.Virtual && g.Owned
	switch cfg.Search.Strategy {
	case "grid":
		c.Strategy = search.Grid
	case "one-at-a-time":
		c.Strategy = search.OneAtATime
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

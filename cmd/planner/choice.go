package main

import (
	"fmt"
	"slices"

	"planner/internal/config"
	"planner/plan"
	"planner/search"
	"planner/sweep/measure"
)

// choice is what a group takes of its race: the best set, or the engine's own
// settings where the best set is not shown to carry more.
type choice struct {
	knobs measure.Knobs
	// found is what is known of the maximum rate of these knobs by its search alone,
	// rate the same with the doubt about the engine's constants.
	found search.Result
	rate  search.Estimate
	doubt doubt
	// comparison is nil where the default was not tried.
	comparison *plan.Comparison
	rejected   []measure.Rejection
	warnings   []string
}

// choose decides between the best set of a race and the engine's own settings, by
// what their last searches, on requests that no choice was made by, found.
func (d *decision) choose(g *group) (*choice, error) {
	race := g.race.Result()
	c := &choice{knobs: race.Knobs, found: race.Best, rejected: losers(race), warnings: slices.Concat(race.Best.Warnings, edgeWarnings(race))}
	var err error
	if c.doubt, err = d.doubtOf(race.Knobs, race.Best.Estimate); err != nil {
		return nil, err
	}
	c.rate = c.doubt.widen(race.Best.Estimate)
	if g.standard == nil || race.Default == nil {
		return c, nil
	}
	best := setting(race.Knobs, c.rate)
	if g.standard.Knobs == race.Knobs {
		c.comparison = &plan.Comparison{Default: best, Tuned: best}
		return c, nil
	}
	doubt, err := d.doubtOf(g.standard.Knobs, race.Default.Estimate)
	if err != nil {
		return nil, err
	}
	rate := doubt.widen(race.Default.Estimate)
	c.comparison = &plan.Comparison{Default: setting(g.standard.Knobs, rate), Tuned: best}
	gain := search.Estimate{}
	if race.Gain != nil {
		gain = c.doubt.over(doubt).widenGain(*race.Gain)
		c.comparison.Gain = &plan.Gain{Value: gain.Value, Low: gain.Low, High: gain.High, Confidence: gain.Confidence}
	}
	if !allowed(d.cfg, g.standard.Knobs) || !race.PrefersDefault(c.rate, rate, gain) {
		return c, nil
	}
	c.knobs, c.found, c.rate, c.doubt, c.warnings = g.standard.Knobs, *race.Default, rate, doubt, race.Default.Warnings
	c.rejected = slices.DeleteFunc(c.rejected, func(r measure.Rejection) bool { return r.Knobs == c.knobs })
	c.rejected = append(c.rejected, measure.Rejection{Knobs: race.Knobs,
		Reason: fmt.Sprintf("carries %v, and the engine's own settings %v: not shown to be better", race.Best.Estimate, race.Default.Estimate)})
	return c, nil
}

// setting is a knob set with its rate, if it has one.
func setting(k measure.Knobs, e search.Estimate) plan.Setting {
	if !(e.Value > 0) {
		return plan.Setting{Knobs: k}
	}
	return plan.Setting{Knobs: k, Rate: &e}
}

// allowed reports whether the engine's own settings are among what may be chosen:
// each knob has a value that the configuration lists, or one that nobody gave a
// list of their own for.
func allowed(cfg *config.Config, k measure.Knobs) bool {
	return !slices.ContainsFunc(measure.Searched(), func(n measure.Knob) bool {
		return !cfg.Open(n) && !slices.Contains(cfg.Space[n.Name], n.Get(k))
	})
}

// settled is what a group is reported with: its choice, or what its race knows
// while there is none.
func (g *group) settled() (measure.Knobs, search.Result) {
	if g.choice != nil {
		return g.choice.knobs, g.choice.found
	}
	return knobsOf(g.race)
}

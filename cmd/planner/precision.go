package main

import (
	"fmt"
	"math"

	"planner/plan"
	"planner/search"
)

// wideFactor is by how much an interval must be wider than asked for until a plan
// warns of it.
const wideFactor = 1.5

// impreciseWarning tells that the maximum rate is known much less well than the
// configuration asks for, why, what that costs and what helps.
func (d *decision) impreciseWarning(p *plan.Plan) []string {
	e, asked := p.Offer.Rate, d.cfg.Search.Precision
	half := (e.High - e.Low) / 2 / e.Value
	if !(e.Value > 0) || !(half > wideFactor*asked) {
		return nil
	}
	s := fmt.Sprintf("precision: the maximum rate is known to %+.0f to %+.0f %%, and +-%.3g %% were asked for", 100*(e.Low/e.Value-1), 100*(e.High/e.Value-1), 100*asked)
	found := d.chosen.choice.found
	low, high := d.chosen.choice.doubt.ends()
	switch alone := found.Estimate; {
	case (math.Exp(high)-math.Exp(low))/2 > (alone.High-alone.Low)/2/alone.Value:
		s += "; most of that is what is not known of the engine's constants on this GPU and model, which more trials do not tell"
		return []string{s + atCentralRate(p) + "; a measurement narrows it: a short bench of two loads on such a GPU, `planner calibrate`, and engine.calibration"}
	case found.Outcome != search.Found:
		return []string{s + ": " + found.Reason + atCentralRate(p) + "; a larger search.budget narrows it"}
	}
	return []string{s + ": one curve does not describe all trials" + atCentralRate(p)}
}

// atCentralRate says what the width of the interval costs: the fleet is that of its
// lower end.
func atCentralRate(p *plan.Plan) string {
	f, err := p.FleetAt(p.Offer.Rate.Value)
	if err != nil || f.GPUs >= p.Fleet.GPUs {
		return ""
	}
	return fmt.Sprintf("; the fleet is sized by the safe rate and takes %d GPUs, where the central %.3g requests/s would take %d",
		p.Fleet.GPUs, p.Offer.Rate.Value, f.GPUs)
}

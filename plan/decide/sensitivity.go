package decide

import (
	"math"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/note"
	"planner/model/calibrate"
	"planner/plan"
	"planner/sweep/measure"
)

// limitStep is by how much the limits of the objective are varied. Other limits do not
// meet the same luck as the known ones, so that more requests are needed than to tell
// constants apart.
const (
	limitStep        = 0.20
	scenarioRequests = 4 * probeTrialRequests
)

// scenario is something that may turn out other than planned and moves the rate of an
// instance.
type scenario struct {
	what string
	vary func(cfg *config.Config, k *measure.Knobs)
}

func scenarios() []scenario {
	longer := func(prompts, answers float64) func(*config.Config, *measure.Knobs) {
		return func(cfg *config.Config, k *measure.Knobs) {
			cfg.Workload = *cfg.Workload.Longer(prompts, answers)
			k.MaxModelLen = int(math.Round(float64(k.MaxModelLen) * max(prompts, answers)))
		}
	}
	limits := func(by float64) func(*config.Config, *measure.Knobs) {
		return func(cfg *config.Config, _ *measure.Knobs) { cfg.Objective = loosened(cfg.Objective, by) }
	}
	return []scenario{
		{"prompts twice as long", longer(2, 1)},
		{"answers twice as long", longer(1, 2)},
		{"latency limits +20 %", limits(1 + limitStep)},
		{"latency limits -20 %", limits(1 - limitStep)},
	}
}

// loosened is an objective with all latency limits longer by a factor.
func loosened(o measure.SLO, by float64) measure.SLO {
	scale := func(d *time.Duration) { *d = time.Duration(float64(*d) * by) }
	o.Bounds = slices.Clone(o.Bounds)
	for i := range o.Bounds {
		b := &o.Bounds[i]
		scale(&b.Limit)
		scale(&b.Limits.TTFT)
		scale(&b.Limits.TPOT)
		scale(&b.Limits.E2E)
	}
	return o
}

// addSensitivity adds to a plan what the simulated engine says of other requests and
// other limits: how far they move the maximum rate of the chosen instance. On a real
// engine that ratio is applied to what was measured.
func (d *Decision) addSensitivity(p *plan.Plan) {
	if d.ground.Predict == nil || p.Offer.Rate.Value <= 0 {
		return
	}
	var asked []string
	var situations []calibrate.Situation
	for _, s := range scenarios() {
		other, k, cfg := *d, p.Offer.Knobs, *d.cfg
		s.vary(&cfg, &k)
		other.cfg = &cfg
		if own := cfg.Model.Arch.MaxPosition; own > 0 && k.MaxModelLen > own {
			p.AddChanges(plan.Change{What: s.what, Reason: note.Because(note.BeyondModel, k.MaxModelLen, own)})
			continue
		}
		asked, situations = append(asked, s.what), append(situations, other.situation(k))
	}
	moves, err := calibrate.Moves(p.Offer.Rate.Value, d.situation(p.Offer.Knobs), situations)
	if err != nil {
		return // the simulated engine does not carry what was measured, and says nothing here
	}
	for i, m := range moves {
		switch r, rejected := measure.IsRejection(m.Err); {
		case rejected:
			p.AddChanges(plan.Change{What: asked[i], Reason: r.Reason})
		case m.Err != nil:
		case m.By <= -calibrate.WidestShift:
			p.AddChanges(plan.Change{What: asked[i], Reason: note.Because(note.MovedFar, 100*math.Exp(m.By))})
		default:
			p.AddChanges(p.Moved(asked[i], math.Exp(m.By)))
		}
	}
}

// situation is that of the configuration on the simulated engine with given knobs.
func (d *Decision) situation(k measure.Knobs) calibrate.Situation {
	w := probed(&d.cfg.Workload)
	return calibrate.Situation{Objective: d.cfg.Objective, Run: func(rate float64) (measure.Trial, measure.Observation, error) {
		return d.probe(measure.Trial{Knobs: k, Workload: w, Rate: rate, Seed: d.cfg.Workload.Seed}, scenarioRequests, d.ground.Predict)
	}}
}

package decide

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/model"
	"planner/model/calibrate"
	"planner/plan"
	"planner/plan/effects"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// limitStep is the share by which the objective's limits are varied, scenarioRequests the number of requests of
// a run that finds where limits are just met.
const (
	limitStep        = 0.20
	scenarioRequests = 8 * probeTrialRequests
)

// mostCrossed is the largest number of differently behaving knob sets that are run for [Decision.crossed].
const mostCrossed = 16

// perturbation is a deviation from the plan that moves an instance's rate: factors on the limits, prompts and
// answers.
type perturbation struct {
	what                     string
	limits, prompts, answers float64
}

// bounded returns a move that was found for it, which is not that tighter limits raise the rate or looser ones lower it:
// short runs tell moves to a few per cent.
func (p *perturbation) bounded(move float64) float64 {
	switch {
	case p.limits < 1:
		return min(move, 0)
	case p.limits > 1:
		return max(move, 0)
	}
	return move
}

func scenarios() []perturbation {
	return []perturbation{
		{"prompts twice as long", 1, 2, 1},
		{"answers twice as long", 1, 1, 2},
		{"latency limits +20 %", 1 + limitStep, 1, 1},
		{"latency limits -20 %", 1 - limitStep, 1, 1},
	}
}

// loosened returns an objective with all latency limits multiplied by a factor.
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

// moved is the factor by which a scenario moves the maximum rate, or why it does not run.
type moved struct {
	What   string      `json:"what"`
	By     float64     `json:"by"`
	Reason note.Reason `json:",embed"`
}

// of returns what the scenario does to a plan.
func (m moved) of(p *plan.Plan) plan.Change {
	if m.Reason.Text != "" {
		return plan.Change{What: m.What, Reason: m.Reason}
	}
	return p.Moved(m.What, m.By)
}

// moves returns how far other requests and other limits move the maximum rate of the chosen instance on the
// simulated engine. For a real engine the factors are applied to what was measured.
func (d *Decision) moves(o plan.Offer, known calibrate.Situation) (all []moved) {
	if d.ground.Predict == nil || o.Rate.Value <= 0 {
		return nil
	}
	var asked []perturbation
	var situations []calibrate.Situation
	for _, s := range scenarios() {
		if s.limits != 1 && len(d.cfg.Objective.Bounds) == 0 {
			continue // there is none
		}
		in, err := d.inScenario(&s, known, o.Knobs)
		if r, rejected := errors.AsType[*measure.Rejection](err); rejected {
			all = append(all, moved{What: s.what, Reason: r.Reason})
		} else if err == nil {
			asked, situations = append(asked, s), append(situations, in)
		}
	}
	moves, err := calibrate.Moves(o.Rate.Value, known, situations)
	if err != nil {
		return all // the simulated engine does not carry the measured rate, so it says nothing here
	}
	for i, m := range moves {
		one := moved{What: asked[i].what, By: math.Exp(asked[i].bounded(m.By))}
		if m.By <= -calibrate.WidestMove {
			one.Reason = note.Because(note.MovedFar, 100*one.By)
		}
		if m.Err == nil {
			all = append(all, one)
		}
	}
	return all
}

// inScenario returns the situation of the chosen knobs in a scenario, with arithmetic's rate as the first
// guess. The error is a [*measure.Rejection] if they do not run in it.
func (d *Decision) inScenario(s *perturbation, known calibrate.Situation, k measure.Knobs) (calibrate.Situation, error) {
	if s.limits != 1 {
		return calibrate.Situation{Objective: loosened(d.cfg.Objective, s.limits), Run: known.Run}, nil
	}
	other, cfg := *d, *d.cfg
	cfg.Workload = *cfg.Workload.Longer(s.prompts, s.answers)
	other.cfg = &cfg
	before, err := d.ground.Predict.Capacity(k, sweep.MeanRequest(&d.cfg.Workload), cfg.Objective)
	if err != nil {
		return calibrate.Situation{}, err
	}
	grown := cfg.Workload.MaxLen
	if longest := cfg.Workload.Longest(); longest > 0 {
		grown = min(grown, longest)
	}
	k.MaxModelLen = max(k.MaxModelLen, grown)
	if own := cfg.Model.Arch.MaxPosition; own > 0 && k.MaxModelLen > own {
		return calibrate.Situation{}, &measure.Rejection{Knobs: k, Reason: note.Because(note.BeyondModel, k.MaxModelLen, own)}
	}
	in := other.situation(k)
	after, err := d.ground.Predict.Capacity(k, sweep.MeanRequest(&cfg.Workload), cfg.Objective)
	if before.Rate > 0 && after.Rate > 0 {
		in.Guess = min(max(math.Log(after.Rate/before.Rate), -calibrate.WidestMove), calibrate.WidestMove)
	}
	return in, err
}

// searched returns the sets of the chosen kind of instance that were searched, except one, with the rates
// found.
func (d *Decision) searched(but measure.Knobs) (out []effects.Setting) {
	race := d.chosen.race()
	add := func(k measure.Knobs, found *search.Result) {
		if found != nil && found.Estimate.Value > 0 && k != but {
			out = append(out, effects.Setting{Knobs: k, Rate: found.Estimate.Value})
		}
	}
	add(race.Knobs, &race.Best)
	if s := d.chosen.standard; s != nil && s.Knobs != race.Knobs {
		add(s.Knobs, race.Default)
	}
	for _, c := range race.Contestants {
		if s := d.chosen.standard; s == nil || s.Knobs != c.Knobs {
			add(c.Knobs, c.Found)
		}
	}
	return out
}

// crossed returns the sets of the chosen kind of instance that were searched, with the rates found, and those
// that its race dropped before a full trial, with approximate rates, so that effects can be compared over all
// listed sets. The latter come from short runs of one set for all that neither a trial nor arithmetic
// distinguishes, and are left out if there are too many.
func (d *Decision) crossed(p *plan.Plan, known calibrate.Situation) []effects.Setting {
	if p.Offer.Rate.Value <= 0 {
		return nil
	}
	out := d.searched(p.Offer.Knobs)
	if !d.ground.Virtual || d.cfg.Objective.Throughput {
		return out
	}
	type outcome struct {
		rate, achieved float64
		mean           time.Duration
	}
	seen := map[measure.Knobs][]measure.Measurement{}
	for _, m := range d.Seen {
		seen[m.Trial.Knobs] = append(seen[m.Trial.Knobs], m)
	}
	placed := map[measure.Knobs]bool{}
	for _, s := range Settings(p, d.Seen) {
		placed[s.Knobs] = true
	}
	open := list.Filter(d.chosen.priors, func(prior search.Prior) bool {
		mine := seen[prior.Knobs]
		return len(mine) == 0 || len(mine) == 1 && (mine[0].Aborted.Text != "" || !placed[prior.Knobs])
	})
	sets := list.Groups(open, func(prior search.Prior) outcome {
		if mine := seen[prior.Knobs]; len(mine) == 1 {
			return outcome{mine[0].Trial.Rate, mine[0].Achieved, mine[0].TTFT.Mean}
		}
		return outcome{rate: prior.Rate}
	})
	if len(sets) > mostCrossed {
		return out
	}
	chosen := d.chosen.prior(p.Offer.Knobs)
	situations := list.Map(sets, func(alike []search.Prior) calibrate.Situation {
		in := d.situation(alike[0].Knobs)
		if chosen.Rate > 0 && alike[0].Rate > 0 {
			in.Guess = math.Log(alike[0].Rate / chosen.Rate)
		}
		return in
	})
	moves, err := calibrate.Moves(p.Offer.Rate.Value, known, situations)
	for i, m := range moves {
		for _, prior := range sets[i] {
			if err == nil && m.Err == nil && math.Abs(m.By) < calibrate.WidestMove {
				out = append(out, effects.Setting{Knobs: prior.Knobs, Rate: p.Offer.Rate.Value * math.Exp(m.By)})
			}
		}
	}
	return out
}

// unset are kernels that an engine uses only if told to.
type unset struct {
	kind    note.Kind
	backend string
	set     func(*model.EngineFeatures)
}

// others lists kernels for a deployment beside the engine's default ones: ways to the experts, where tokens travel, and
// FlashInfer's for 4-bit integers.
func others(dep model.Deployment, args model.EngineArgs) (out []unset) {
	if dep.EP && dep.DP > 1 && args.Exchange.Backend == model.All2AllByDefault {
		for _, x := range model.Exchanges() {
			if x > model.All2AllGather {
				out = append(out, unset{note.SlowExchange, x.String(), func(f *model.EngineFeatures) { f.Exchange.Backend = x }})
			}
		}
	}
	if x := model.ExpertsFlashInfer; args.IntegersByMarlin(dep) && args.Kernels.Experts == model.ExpertsByDefault {
		out = append(out, unset{note.SlowExperts, x.String(), func(f *model.EngineFeatures) { f.Kernels.Experts = x }})
	}
	return out
}

// faster names the kernels with which the chosen instance carries most on the simulated engine, if that is a fifth more
// than with the engine's default and none are configured.
func (d *Decision) faster(o plan.Offer, known calibrate.Situation) (best note.Notes) {
	if !d.ground.Virtual || d.ground.Predict == nil || o.Rate.Value <= 0 {
		return nil
	}
	var kernels []unset
	var situations []calibrate.Situation
	for _, x := range others(d.ground.Predict.Deployment(o.Knobs), d.ground.Predict.Args(o.Knobs)) {
		other, engine := *d, *d.ground.Predict
		x.set(&engine.Settings)
		other.ground.Predict = &engine
		if _, err := engine.Fit(o.Knobs); err == nil {
			kernels, situations = append(kernels, x), append(situations, other.situation(o.Knobs))
		}
	}
	if len(kernels) == 0 {
		return nil
	}
	moves, err := calibrate.Moves(o.Rate.Value, known, situations)
	if err != nil {
		return nil // as in moves
	}
	most := 1.2
	for i, m := range moves {
		if by := math.Exp(m.By); m.Err == nil && by > most {
			most, best = by, note.Notes{note.New(kernels[i].kind, kernels[i].backend, 100*(by-1))}
		}
	}
	return best
}

// situation returns the configuration on the simulated engine with given knobs. Each run is made only once.
func (d *Decision) situation(k measure.Knobs) calibrate.Situation {
	type outcome struct {
		trial measure.Trial
		seen  measure.Observation
		err   error
	}
	var lock sync.Mutex
	w, runs := probed(&d.cfg.Workload), map[[2]float64]func() outcome{}
	return calibrate.Situation{Objective: d.cfg.Objective, Run: func(rate, times float64) (measure.Trial, measure.Observation, error) {
		lock.Lock()
		run, known := runs[[2]float64{rate, times}]
		if !known {
			run = sync.OnceValue(func() (o outcome) {
				t := measure.Trial{Knobs: k, Workload: w, Rate: rate, Seed: d.cfg.Workload.Seed}
				o.trial, o.seen, o.err = d.probe(t, int(times*scenarioRequests), d.ground.Predict)
				return o
			})
			runs[[2]float64{rate, times}] = run
		}
		lock.Unlock()
		o := run()
		return o.trial, o.seen, o.err
	}}
}

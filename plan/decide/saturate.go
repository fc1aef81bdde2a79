package decide

import (
	"cmp"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/note"
	"planner/internal/parallel"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Without latency limits, knob sets differ in what they complete under more load than they can take, which one
// overloaded trial shows. The best screenKept of each kind of instance are then searched in full, since
// differences of a per cent are chance.
const screenKept = 2

// screen keeps, for each kind of instance, the sets that complete most on the simulated engine, in that order,
// and rejects the others.
func (d *Decision) screen() error {
	if !d.cfg.Objective.Throughput || d.ground.Predict == nil {
		return nil
	}
	for _, i := range d.instances {
		if err := parallel.Do(len(i.priors), func(n int) (err error) {
			i.priors[n].Rate, err = saturated(d.cfg, d.ground.Predict, &i.priors[n])
			return err
		}); err != nil {
			return err
		}
		slices.SortStableFunc(i.priors, func(a, b search.Prior) int { return cmp.Compare(b.Rate, a.Rate) })
		for len(i.priors) > screenKept {
			last := len(i.priors) - 1
			d.Unable = append(d.Unable, measure.Rejection{Knobs: i.priors[last].Knobs,
				Reason: note.Because(note.CompletesLess, i.priors[last].Rate, i.priors[0].Rate)})
			i.priors = i.priors[:last]
		}
	}
	return nil
}

// The overloaded trial of a screen offers screenOverload times the predicted rate. It warms up until every slot
// is taken and completions have become even, then runs as long again or for screenRequests requests.
const (
	screenOverload = 3
	screenRequests = 600
)

// saturated returns the requests per second that a knob set completes when overloaded.
func saturated(cfg *config.Config, engine *sweep.Simulated, p *search.Prior) (float64, error) {
	w := *cfg.Workload.Anywhere()
	w.Timeout = 0 // the trial itself causes the queue
	seats := p.Knobs.MaxNumSeqs + p.Knobs.MaxNumSeqs/2
	t := measure.Trial{
		Knobs: p.Knobs, Workload: &w, Rate: screenOverload * p.Rate, Seed: cfg.Workload.Seed, Whole: true,
		Warmup: workload.Span(float64(seats), p.Rate), Window: workload.Span(float64(max(seats, screenRequests)), p.Rate),
	}
	t.Warmup = max(t.Warmup, min(3*p.Latency, time.Hour))
	o, err := engine.Observe(t)
	if err != nil {
		return 0, err
	}
	m := measure.Reduce(t, o)
	return m.Achieved, nil
}

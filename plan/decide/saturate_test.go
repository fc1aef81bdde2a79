package decide

import (
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// TestThroughputIsWhatAFullEngineCompletes compares the plan of a job with a long run of an
// engine of which far more is asked than it can do.
func TestThroughputIsWhatAFullEngineCompletes(t *testing.T) {
	const job = `
[demand]
requests = 1e6
deadline = "24h"
[slo]
objective = "throughput"
[workload]
class = "summarization"
`
	cfg, g := onInstance(t, "plan", job)
	d := must.Get(New(cfg, g))
	p := must.Get(sweep.Drive(t.Context(), nil, g, d, nil, nil)).Value.(*Planned)
	rate := p.Offer.Rate
	patient := cfg.Workload
	patient.Timeout = 0
	trial := measure.Trial{Knobs: p.Offer.Knobs, Workload: &patient, Rate: 5 * rate.Value, Seed: 77, Whole: true,
		Warmup: 10 * time.Minute, Window: 2 * time.Hour}
	m := measure.Reduce(trial, must.Get(g.Predict.Observe(trial)))
	if m.Achieved < rate.Low || m.Achieved > rate.High || m.Achieved < rate.Safe || rate.High > 2*rate.Low {
		t.Errorf("the plan has %v, safe %.3g; a full engine completes %.4g/s", rate, rate.Safe, m.Achieved)
	}
	screened, err := saturated(cfg, g.Predict, &search.Prior{Knobs: p.Offer.Knobs, Rate: rate.Value, Latency: time.Minute})
	if err != nil || screened < 0.9*m.Achieved || screened > 1.1*m.Achieved {
		t.Errorf("the screen has %.4g/s (%v), a long run %.4g/s", screened, err, m.Achieved)
	}
	if j := p.Cost.Job; p.Offer.Binding != measure.ThroughputBound || j == nil || j.Duration > 24*time.Hour || j.USD == nil {
		t.Errorf("bound by %s, job %+v", p.Offer.Binding, j)
	}
	if a := p.Handover.Autoscaling; a != nil {
		t.Errorf("engines that are full by design are scaled: %+v", a)
	}
}

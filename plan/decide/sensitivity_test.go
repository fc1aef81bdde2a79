package decide

import (
	"math"
	"testing"

	"planner/internal/config"
)

// planned is the plan of a small instance, with some keys set otherwise.
func planned(t *testing.T, other ...config.Override) *Planned {
	t.Helper()
	over := []config.Override{
		{Key: "model.name", Value: "qwen3-8b"}, {Key: "hardware.gpu", Value: "L40S"}, {Key: "engine.tensor_parallel", Value: "1"},
		{Key: "knobs.max_num_seqs", Value: "256"}, {Key: "knobs.max_num_batched_tokens", Value: "8192"}, {Key: "knobs.gpu_memory_utilization", Value: "0.9"},
		{Key: "workload.prompt", Value: `{ dist = "lognormal", median = 400, sigma = 0.8, min = 20, max = 3000 }`},
		{Key: "workload.output", Value: `{ dist = "lognormal", median = 200, sigma = 0.6, min = 10, max = 1000 }`},
		{Key: "demand.rate", Value: "100"}, {Key: "slo.ttft.p99", Value: "500ms"}, {Key: "slo.tpot.p99", Value: "50ms"},
	}
	return estimated(t, append(over, other...))
}

// What short runs say of other limits and other lengths is what a search of its own finds,
// within 8 %.
func TestSensitivityAgainstSearches(t *testing.T) {
	if testing.Short() {
		t.Skip("searches four instances")
	}
	p := planned(t)
	said := map[string]float64{}
	for _, c := range p.Sensitivity {
		said[c.What] = c.SafeRate / p.Offer.Rate.Safe
	}
	for what, other := range map[string][]config.Override{
		"latency limits -20 %":  {{Key: "slo.ttft.p99", Value: "400ms"}, {Key: "slo.tpot.p99", Value: "40ms"}},
		"latency limits +20 %":  {{Key: "slo.ttft.p99", Value: "600ms"}, {Key: "slo.tpot.p99", Value: "60ms"}},
		"answers twice as long": {{Key: "workload.output", Value: `{ dist = "lognormal", median = 400, sigma = 0.6, min = 20, max = 2000 }`}},
	} {
		searched := planned(t, other...).Offer.Rate.Value / p.Offer.Rate.Value
		if got := said[what]; got == 0 || math.Abs(math.Log(got/searched)) > 0.08 {
			t.Errorf("%s: times %.3g, searched %.3g", what, got, searched)
		} else {
			t.Logf("%s: times %.3g, searched %.3g", what, got, searched)
		}
	}
}

package measure

import (
	"testing"
	"time"
)

// Far below the limit the tail decides what the count alone would leave open for thousands of
// requests more: 1,000 requests at about a third of the rate that M/M/1 carries.
func TestFarBelowTheLimit(t *testing.T) {
	const runs = 100
	met, without := 0, 0
	for seed := range uint64(runs) {
		trial := boundaryTrial(0.3, 120*time.Second, 3000+seed)
		c := Reduce(trial, queue(&trial, 1, 35, time.Hour)).Counts[0]
		if c.High <= 0.01 {
			met++
		}
		if (judged{allowed: 0.01, Count: Count{N: c.N, K: c.K, Cluster: 1}}).share(c.Phi, 1).High <= 0.01 {
			without++
		}
	}
	if met < 90 || without > 40 {
		t.Errorf("met in %d of %d trials, without the tail in %d", met, runs, without)
	}
}

// Exceedances with a cause of their own are not the tail of the rest: 6 in 1,000 requests stall,
// and the others say nothing about them.
func TestTailIsContradicted(t *testing.T) {
	trial, o := even(3000, func(i int) time.Duration { return time.Duration(50+i*37%101) * ms })
	for i := range 18 {
		o.Records[50+i*150].First += 500 * ms
		o.Records[50+i*150].Last += 500 * ms
	}
	trial.Objective = SLO{Bounds: []Bound{{Metric: TTFT, Quantile: 0.99, Limit: 500 * ms}}, Errors: -1}
	if c := Reduce(trial, o).Counts[0]; c.High <= 1.5*c.Value {
		t.Errorf("%d of %d leave no more than %g", c.K, c.N, c.High)
	}
}

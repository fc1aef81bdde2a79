package decide

import (
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/plan"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// More trials are asked for where they help, and not where no curve can be fitted
// to what the objective bounds.
func TestFitAsksForTrialsThatHelp(t *testing.T) {
	trials := []measure.Measurement{{Trial: measure.Trial{Rate: 1}, Latencies: measure.Latencies{TTFT: measure.Summary{Mean: time.Second, N: 1}}}}
	for _, c := range []struct {
		bound measure.Bound
		helps bool
	}{
		{measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}, true},
		{measure.Bound{Metric: measure.E2E, Quantile: 0.99, Limit: time.Second}, false},
		{measure.Bound{Metric: measure.Goodput, Quantile: 0.95, Limits: measure.Limits{TTFT: time.Second}}, false},
	} {
		cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{c.bound}}}
		_, err := fitted(cfg, trials)
		if err == nil || strings.Contains(err.Error(), "longer trials") != c.helps {
			t.Errorf("%v: %v", c.bound, err)
		}
	}
}

// A set that did not fit its GPU is no trial of other traffic.
func TestFitLeavesOutWhatDidNotRun(t *testing.T) {
	cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}}}
	broken := measure.Measurement{Trial: measure.Trial{Knobs: measure.Knobs{GPU: "L4"}}, Rejected: note.Text("it does not fit").Reason()}
	trials := []measure.Measurement{broken, {Trial: measure.Trial{Rate: 1, Workload: &workload.Workload{Class: "chat"}}}}
	if _, _, rejected, err := fitSets(cfg, trials); len(rejected) != 2 || rejected[0].Knobs.GPU != "L4" || err == nil || strings.Contains(err.Error(), "workloads") {
		t.Errorf("%v, %v", rejected, err)
	}
}

// Latencies are those of the requests that did not fail: a rate at which more fail than may is missed, however fast the
// others are.
func TestFitHoldsTheErrors(t *testing.T) {
	bound := measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}
	cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{bound}, Errors: 0.001}}
	for _, c := range []struct {
		failed  [4]int
		rate    float64
		binding string
		unknown bool
	}{
		{[4]int{0, 1, 0, 1}, 8, "ttft.p99", false}, // as many as chance lets fail
		{[4]int{0, 0, 0, 500}, 6, measure.ErrorsBound, false},
		{[4]int{1, 0, 250, 500}, 4, measure.ErrorsBound, false},
		{[4]int{40, 40, 40, 40}, 0, measure.ErrorsBound, true}, // lower rates may do
	} {
		var trials []measure.Measurement
		for i, failed := range c.failed {
			trials = append(trials, measure.Measurement{
				Trial: measure.Trial{Rate: float64(2 * (i + 1))}, Valid: true, Tally: measure.Tally{Requests: 1500, Failed: failed},
				Latencies: measure.Latencies{TTFT: measure.Summary{P50: 60 * time.Millisecond, P99: time.Duration(150+i) * time.Millisecond, N: 1500}},
			})
		}
		o := must.Get(fitted(cfg, trials))
		if c.unknown != (o.Unknown != "") || o.Obstacle.Text != "" || o.Rate.Value != c.rate || o.Rate.Safe > c.rate || o.Binding != c.binding ||
			o.Unreached != (c.binding != measure.ErrorsBound) {
			t.Errorf("failed %v: %+v limited by %s, %q, %q", c.failed, o.Rate, o.Binding, o.Obstacle.Text, o.Unknown)
		}
	}
}

// Two measurements at one rate are two: where one keeps the limit and the other misses it, no curve between them is safe.
func TestFitTwoMeasurementsAtOneRate(t *testing.T) {
	cfg := &config.Config{Objective: measure.SLO{Errors: -1, Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}}}}
	for _, c := range []struct {
		rates     []float64
		p99       []time.Duration
		valid     bool // the last one
		disagrees bool
		safe      float64 // at most
	}{
		{[]float64{2, 4, 8, 8}, []time.Duration{150, 190, 300, 900}, true, true, 4},
		{[]float64{2, 4, 8, 8}, []time.Duration{150, 190, 800, 900}, true, false, 8},
		{[]float64{2, 4, 8, 16, 8}, []time.Duration{150, 190, 300, 400, 900}, false, false, 16},
		{[]float64{8, 8, 16, 32}, []time.Duration{150, 700, 1200, 1500}, true, true, 0}, // lower rates may do
	} {
		var trials []measure.Measurement
		for i, rate := range c.rates {
			trials = append(trials, measure.Measurement{Trial: measure.Trial{Rate: rate}, Valid: c.valid || i+1 < len(c.rates), Latencies: measure.Latencies{TTFT: measure.Summary{P99: c.p99[i] * time.Millisecond}}})
		}
		o := must.Get(fitted(cfg, trials))
		if o.Warnings.Has(note.RepeatsDisagree) != c.disagrees || o.Rate.Safe > c.safe || (c.safe == 0) != (o.Unknown != "") || c.safe > 0 && o.Rate.Value < 4 {
			t.Errorf("%v: %+v, %v, %q", c.p99, o.Rate, o.Warnings.Texts(), o.Unknown)
		}
	}
}

// A limit of a class is held by the curve of its own requests, not of all.
func TestFitHoldsTheLimitOfAClass(t *testing.T) {
	limit := func(class string) measure.Bound {
		return measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: 300 * time.Millisecond, Class: class}
	}
	cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{limit("chat"), limit("rag")}}}
	var trials []measure.Measurement
	for i := range 5 {
		of := func(p99 int) measure.Latencies {
			return measure.Latencies{TTFT: measure.Summary{P50: 60 * time.Millisecond, P99: time.Duration(p99) * time.Millisecond, N: 1500}}
		}
		trials = append(trials, measure.Measurement{
			Trial: measure.Trial{Rate: float64(2 * (i + 1))}, Valid: true, Tally: measure.Tally{Requests: 1500}, Latencies: of(100 + i),
			Classes: map[string]measure.ClassSummary{"chat": {Latencies: of(100 + i)}, "rag": {Latencies: of(150 + 60*i)}},
		})
	}
	o, curves, err := fitSet(cfg, trials)
	must.OK(err)
	if o.Binding != "ttft.p99 of rag" || o.Rate.Value < 6 || o.Rate.Value > 8 || len(curves) != 2 || curves[0].Class != "rag" || curves[1].Class != "chat" {
		t.Errorf("%+v limited by %s, curves %+v", o.Rate, o.Binding, curves)
	}
}

// A short sweep in which nothing resolves the quantile tells by what it counted, two trials that missed while they were
// not stationary included, and no rate above all that was tried.
func TestFitCountsTrialsThatMissed(t *testing.T) {
	bound := measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}
	cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{bound}, Errors: -1}}
	cfg.Search.Precision, cfg.Search.Confidence = 0.1, 0.9
	trial := func(rate float64, late, n int, state measure.State) measure.Measurement {
		return measure.Measurement{
			Trial: measure.Trial{Rate: rate, Window: time.Minute, Objective: cfg.Objective}, Duration: time.Minute, Tally: measure.Tally{Requests: n},
			Counts: []measure.Count{{Bound: bound.String(), K: late, N: n, Cluster: 1}, {Bound: measure.ThroughputBound, N: n / 2, High: 0.1, Low: -0.1, Cluster: 1}},
			Valid:  state == measure.Met, Verdict: &measure.Verdict{State: state},
		}
	}
	f, err := fitted(cfg, []measure.Measurement{trial(8, 0, 480, measure.Met), trial(10, 0, 600, measure.Met), trial(14, 400, 840, measure.Missed), trial(16, 700, 960, measure.Missed)})
	if r := f.Rate; err != nil || r.Safe < 4 || r.Value < 9 || r.Value > 14 || r.High > 16 {
		t.Errorf("between 10 and 14 requests/s: %+v, %v", r, err)
	}
}

// What a table without a duration says of a completed rate counts, and failures that may be are no lack of it. A limit
// on a quantile above all that are known is not read from these.
func TestReadCounts(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Second}}, Errors: -1}
	m := measure.Measurement{Trial: measure.Trial{Rate: 100}, Duration: measure.Unresolved, Tally: measure.Tally{Requests: 3000}}
	m.Achieved, m.TTFT = 50, measure.Summary{P50: 200 * time.Millisecond, N: 3000}
	if _, ok := readCounts(&m, slo, 0); ok {
		t.Error("a p50 of 0.2 s tells whether a p99 is within 1 s")
	}
	m.TTFT.P99 = 400 * time.Millisecond
	c, ok := readCounts(&m, slo, 200*time.Millisecond)
	flow, _ := c.Count(measure.ThroughputBound)
	if !ok || flow.Value != 0.5 || !c.Grew() {
		t.Errorf("%v: half of the load was completed, and %+v counted", ok, flow)
	}
	m.Duration, m.E2E.Mean = 10*time.Second, 5200*time.Millisecond
	m.TTFT.Mean = 200 * time.Millisecond
	if c, _ = readCounts(&m, slo, 200*time.Millisecond); c.Grew() {
		t.Error("requests of 5.2 s that are under way after 10 s are taken for a backlog")
	}
}

// fitted is the offer of one knob set's trials.
func fitted(cfg *config.Config, trials []measure.Measurement) (plan.Offer, error) {
	o, _, err := fitSet(cfg, trials)
	return o, err
}

package search_test

import (
	"testing"
	"time"

	"planner/search"
	"planner/sweep/measure"
)

func goodput(share float64, l measure.Limits) measure.SLO {
	return measure.SLO{Bounds: []measure.Bound{{Metric: measure.Goodput, Quantile: share, Limits: l}}, Errors: 0.001}
}

// A goodput of 99 % within a single limit is the p99 of that latency: the search finds the same, bit for bit.
func TestGoodputOfOneLimitIsAQuantile(t *testing.T) {
	found := func(slo measure.SLO) search.Result {
		cfg := config(search.Prior{Rate: 24}, 3)
		cfg.SLO, cfg.Budget, cfg.Precision = slo, 0, 0.15
		return searched(cfg, single)
	}
	one, other := found(ttft(half, 0.99)), found(goodput(0.99, measure.Limits{TTFT: half}))
	if one.Estimate != other.Estimate || one.Trials != other.Trials {
		t.Errorf("p99 gives %v in %d trials, goodput %v in %d", one.Estimate, one.Trials, other.Estimate, other.Trials)
	}
	if other.Binding != "goodput" || other.Outcome != search.Found {
		t.Errorf("%+v", other)
	}
}

// A limit that even an idle engine breaks is named, with the latency that it has there.
func TestGoodputThatNoRateMeets(t *testing.T) {
	cfg := config(search.Prior{}, 1)
	cfg.SLO = goodput(0.90, measure.Limits{E2E: time.Second, TTFT: 5 * time.Millisecond})
	r := searched(cfg, single)
	if r.Outcome != search.Infeasible || r.Binding != "goodput" || r.Floor == nil || r.Floor.Bound != "ttft.p90" || r.Floor.Value <= 5*time.Millisecond {
		t.Errorf("%+v %+v", r, r.Floor)
	}
}

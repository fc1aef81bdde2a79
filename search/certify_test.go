package search_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/evidence/search/virtual"
	"planner/internal/wire"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// found is a possible search result for the queue single.
var found = search.Result{Estimate: search.Estimate{Value: 25.8, Low: 24, High: 27, Safe: 24, Confidence: 0.9}, EngineTime: 1000 * time.Second}

// What cannot be certified costs no trial and says why.
func TestCertificateThatIsNotSought(t *testing.T) {
	mean := config(search.Prior{}, 1)
	mean.Budget, mean.SLO = 0, measure.SLO{Errors: -1, Bounds: []measure.Bound{{Metric: measure.TTFT, Limit: half}}}
	short := config(search.Prior{}, 1)
	short.Budget = 1100 * time.Second
	for _, c := range []struct {
		name string
		cfg  search.MaxRateConfig
		of   search.Result
		want string
	}{
		{"a mean", mean, found, "ttft.mean bounds a mean"},
		{"nothing found", config(search.Prior{}, 1), search.Result{}, "found no rate"},
		{"no budget left", short, found, "the budget has"},
	} {
		s := search.Certify(c.cfg, c.of)
		if batch := s.Next(); len(batch) > 0 {
			t.Errorf("%s: proposes %+v", c.name, batch)
		}
		if r := s.Result(); r.State != measure.Unsure || !strings.Contains(r.Reason.Text, c.want) {
			t.Errorf("%s: %+v, want %q", c.name, r, c.want)
		}
	}
}

// A window that is too short for any certificate is lengthened, and the budget is blamed only where it has no room for
// that.
func TestCertificateInAShortWindow(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget time.Duration
		sought bool
	}{
		{"without a budget", 0, true},
		{"with room in the budget", 10_000 * time.Second, true},
		{"without room in it", 1060 * time.Second, false},
	} {
		cfg := config(search.Prior{}, 1)
		cfg.Budget = c.budget
		cfg.Window = time.Second
		s := search.Certify(cfg, found)
		batch := s.Next()
		if (len(batch) > 0) != c.sought || c.sought && batch[0].Window < 5*time.Second {
			t.Errorf("%s: proposes %+v", c.name, batch)
		}
		if r := s.Result(); strings.Contains(r.Reason.Text, "budget") == c.sought {
			t.Errorf("%s: %q", c.name, r.Reason.Text)
		}
	}
}

// The rate tested is the median less the precision if the safe rate is not lower, the looks are long enough for it, and
// the result survives a file.
func TestCertificateOfASearch(t *testing.T) {
	cfg := config(search.Prior{}, 4)
	cfg.Budget = 0
	cfg.Precision = 0.1
	c := search.Certify(cfg, found)
	for batch := c.Next(); len(batch) > 0; batch = c.Next() {
		if math.Abs(batch[0].Rate-(1-cfg.Precision)*25.8) > 1e-9 {
			t.Errorf("look at %g/s for %v", batch[0].Rate, batch[0].Window)
		}
		c.Observe(virtual.Bench{Server: single}.Run(batch[0]))
	}
	r := c.Result()
	if r.Looks < 1 || r.Requests < 6000 || r.EngineTime < 300*time.Second || (r.State == measure.Met) != (r.Reason.Text == "") {
		t.Errorf("%+v", r)
	}
	if r.State == measure.Met && r.Probability > 0.03 {
		t.Errorf("certified with a probability of %g", r.Probability)
	}
	data := must.Get(wire.Marshal(r))
	var back search.Certified
	if err := wire.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%s reads back as %+v, %v", data, back, err)
	}
}

// TestCertificate certifies 15 % below the maximum rate of M/M/1 and counts how often the maximum rate itself is
// certified: at most twice 2.5 % of 16, with allowance for chance.
func TestCertificate(t *testing.T) {
	truth := single.MaxRate(half, 0.01)
	certified := func(rate float64) (n int) {
		for seed := range uint64(16) {
			found := search.Result{Estimate: search.Estimate{Value: rate / 0.9, Safe: rate}}
			cfg := config(search.Prior{Phi: 44}, seed)
			cfg.Window = 600 * time.Second
			c := search.Certify(cfg, found)
			virtual.Drive(c, virtual.Bench{Server: single, NoAbort: true}.Run)
			if c.Result().State == measure.Met {
				n++
			}
		}
		return n
	}
	if n := certified(truth); n > 3 {
		t.Errorf("the maximum rate was certified %d times of 16", n)
	}
	if n := certified(0.85 * truth); n < 12 {
		t.Errorf("85 %% of the maximum rate was certified %d times of 16", n)
	}
}

// A limit on a class is certified by requests of that class: for a tenth of all requests it takes ten times as long.
func TestCertificateOfAClass(t *testing.T) {
	window := func(class string) time.Duration {
		cfg := config(search.Prior{}, 1)
		one := workload.Lengths{Dist: workload.Fixed, Value: 1}
		cfg.Workload = &workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{
			{Name: "rare", Weight: 1, Prompt: one, Output: one}, {Name: "usual", Weight: 9, Prompt: one, Output: one}}}
		cfg.Budget, cfg.Window = 0, time.Second
		cfg.SLO.Bounds = []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: half, Class: class}}
		return search.Certify(cfg, found).Next()[0].Window
	}
	if all, rare := window(""), window("rare"); rare < 9*all || rare > 11*all {
		t.Errorf("%v for a class that is a tenth of all requests, %v for all", rare, all)
	}
}

package measure

import (
	"testing"
	"time"

	"planner/sweep/workload"
)

// A trial that saw a part of a trace offered what came in it, by the definition of its
// rate; one that saw a lap, and one without a trace, what was asked.
func TestOfferedRate(t *testing.T) {
	trace := &workload.Workload{Arrivals: workload.Trace,
		Rates: &workload.Rates{Of: workload.RateOfBusiestHour, Mean: 0.5, BusiestHour: 2, BusiestMinute: 3}}
	for _, c := range []struct {
		name     string
		workload *workload.Workload
		requests int
		want     float64
	}{
		{"night", trace, 50, 2},
		{"a lap, in nanoseconds", trace, 200, 8},
		{"Poisson", &workload.Workload{Arrivals: workload.Poisson}, 50, 8},
		{"no workload", nil, 50, 8},
		{"nothing seen", trace, 0, 8},
	} {
		m := Measurement{Trial: Trial{Rate: 8, Workload: c.workload}, Duration: 100*time.Second - 1, Tally: Tally{Requests: c.requests}}
		if got := m.Offered(); got < c.want*(1-1e-9) || got > c.want*(1+1e-9) || c.want == 8 && got != 8 {
			t.Errorf("%s: offered %g, want %g", c.name, got, c.want)
		}
	}
}

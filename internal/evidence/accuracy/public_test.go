package main

import (
	"math"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/workload"
)

// Every public server runs as it is described, and every load was measured or goes before one that was.
func TestPublicServersRun(t *testing.T) {
	servers := must.Get(readPublic(data, 1))
	if len(servers) < 140 {
		t.Errorf("only %d public servers", len(servers))
	}
	for i := range servers {
		s := &servers[i]
		if _, err := s.engine(defaults(s)); err != nil {
			t.Errorf("%s: %v", s.deployment(), err)
		}
		for k, l := range s.loads {
			if l.measured == (figures{}) && k > 0 {
				t.Errorf("%s %s: nothing was measured", s.deployment(), l.label)
			}
		}
	}
}

// Durations and tokens/s become requests/s.
func TestPublicFiguresAreRequests(t *testing.T) {
	requests := []workload.Request{{Prompt: 100, Output: 10}, {Prompt: 200, Output: 30}}
	for _, c := range []struct {
		load publicLoad
		want float64 // requests/s
	}{{publicLoad{Duration: 4}, 0.5}, {publicLoad{OutputRate: 40}, 2}, {publicLoad{TokenRate: 340}, 2}, {publicLoad{RequestRate: 3}, 3}, {publicLoad{TTFT: 1}, 0}} {
		if got := c.load.figures(requests)[metricCompleted]; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %g requests/s, want %g", c.load, got, c.want)
		}
	}
}

// With a ramp, slots start evenly over it and go on when their request ends.
func TestStaggeredSlots(t *testing.T) {
	got := staggered(make([]workload.Request, 5), 2, 3)
	if got[1].Due != 1500*time.Millisecond || got[1].Parent != 0 || got[2].Parent != 1 || got[4].Parent != 3 {
		t.Errorf("%+v", got)
	}
}

// The sides of an interval are told apart.
func TestCoveredCountsSides(t *testing.T) {
	drawn := make([]float64, publicSamples)
	for i := range drawn {
		drawn[i] = 1 + float64(i)/100
	}
	var c, total covered
	for _, measured := range []float64{0.5, 1.1, 1.2, 2, 0} {
		c.add(measured, 1, drawn)
	}
	total.join(&c)
	if total.slower != 1 || total.faster != 1 || len(total.logs) != 4 || total.within() != 0.5 {
		t.Errorf("%+v", total)
	}
}

package search

import (
	"testing"
	"time"

	"planner/sweep/measure"
)

// A server that completes less under a backlog than it carried without one has collapsed. One that completed all of a
// smaller load, without it being known whether the limits were met, has not.
func TestCollapse(t *testing.T) {
	for name, c := range map[string]struct {
		pressed likelihood
		found   bool
	}{
		"a backlog grew":  {likelihood{rate: 12, value: 0.5, spread: 0.01}, true},
		"a smaller load":  {likelihood{rate: 5, value: 0, spread: 0.01}, false},
		"all that it had": {likelihood{rate: 12, value: 0.15, spread: 0.01}, false},
	} {
		s, long := &MaxRate{latency: time.Second, bounds: make([]assumed, 1)}, &measure.Measurement{Duration: time.Hour}
		s.tried = []attempt{
			{Measurement: long, rate: 10, shows: []likelihood{{rate: 10, spread: 0.01}}, met: true, measured: true},
			{Measurement: long, rate: c.pressed.rate, shows: []likelihood{c.pressed}, measured: true},
		}
		if pressed, carried := s.collapse(); (pressed > 0) != c.found || carried != 10 {
			t.Errorf("%s: %g of %g requests/s, want a collapse: %v", name, pressed, carried, c.found)
		}
	}
}

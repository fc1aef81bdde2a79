package workload

import (
	"testing"
	"time"
)

// However small a rate is, a trial has a length, and however large, it has one too.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		requests, rate float64
		want           time.Duration
	}{
		{1500, 1000, time.Minute}, {1500, 1, 1500 * time.Second}, {4000, 1e-9, longestWindow}, {4000, 5e-324, longestWindow}, {4000, 4e-6, 1_000_000_000 * time.Second},
	} {
		if got := Window(c.requests, c.rate); got != c.want {
			t.Errorf("%g requests at %g/s: %v, want %v", c.requests, c.rate, got, c.want)
		}
	}
	if got := WholeWindow(100, 1.3); got != 77*time.Second {
		t.Errorf("%v is no number of whole seconds", got)
	}
}

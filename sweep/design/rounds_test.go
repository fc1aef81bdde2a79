package design

import (
	"testing"

	"planner/internal/config"
	"planner/internal/note"
	"planner/sweep/measure"
)

// A rate at which a backlog grew comes with one that both sides carry: 80 % of what the slower
// one completed.
func TestRateThatBothCarry(t *testing.T) {
	at := func(rate float64, overloaded bool) *measure.Measurement {
		return &measure.Measurement{Valid: true, Overloaded: overloaded, Throughput: measure.Throughput{Achieved: rate}}
	}
	r := Rounds{Rate: 10, Sides: [2]Side{{Config: &config.Config{}}, {Config: &config.Config{}}}}
	if got := r.slower([]pairing{{at(10, false), at(9.9, false)}}); len(got) != 0 {
		t.Errorf("%q where both kept up", got)
	}
	for _, pairs := range [][]pairing{{{at(10, false), at(7.5, true)}, {at(10, false), at(8, true)}}, {{at(7.5, true), at(10, false)}}, {{at(7.5, true), at(7.6, true)}}} {
		got := r.slower(pairs)
		if len(got) != 1 || !got[0].Equal(note.New(note.RateTooHigh, 75.0, 10.0, 6.0)) {
			t.Errorf("%q, want --rate 6", got)
		}
	}
}

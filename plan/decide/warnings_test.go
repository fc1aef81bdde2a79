package decide

import (
	"testing"

	"planner/internal/note"
	"planner/sweep/measure"
)

// An answer that stands on trials which cannot be trusted says so.
func TestUntrusted(t *testing.T) {
	k := measure.Knobs{MaxNumSeqs: 8}
	trial := func(k measure.Knobs, valid bool) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Knobs: k}}
		if m.Valid = valid; !valid {
			m.Warnings = note.Notes{note.Text("the client was late")}
		}
		return m
	}
	other := trial(measure.Knobs{MaxNumSeqs: 16}, false)
	for _, c := range []struct {
		trials []measure.Measurement
		want   string
	}{
		{[]measure.Measurement{trial(k, true), other}, ""},
		{[]measure.Measurement{trial(k, true), trial(k, false), other}, "1 of the 2 trials of the chosen settings could not be trusted, first the client was late"},
		{[]measure.Measurement{trial(k, false), other}, "the only trial of the chosen settings could not be trusted, first the client was late: the rate is a guess"},
		{[]measure.Measurement{trial(k, false), trial(k, false)}, "none of the 2 trials of the chosen settings could be trusted, first the client was late: the rate is a guess"},
	} {
		if got := untrusted(c.trials, k).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

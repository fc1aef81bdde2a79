package decide

import (
	"math"
	"testing"

	"planner/internal/note"
	"planner/model/calibrate"
	"planner/plan"
	"planner/search"
)

// What moves two rates alike does not move their ratio, and what moves one of them
// alone moves the ratio as much.
func TestDoubtOfARatio(t *testing.T) {
	common := calibrate.Shifts{-0.3, -0.1, 0, 0.1, 0.3}
	if low, high := common.Over(common).Ends(); low != 0 || high != 0 {
		t.Errorf("a ratio of rates that move together moves by %g to %g", low, high)
	}
	gain := search.Estimate{Value: 1.1, Low: 1.05, High: 1.15, Safe: 1.05, Confidence: 0.9}
	if got := widen(gain, common.Over(common)); math.Abs(got.Low-gain.Low) > 1e-12 || math.Abs(got.High-gain.High) > 1e-12 {
		t.Errorf("%+v, want %+v", got, gain)
	}
	still := make(calibrate.Shifts, 5)
	low, high := common.Ends()
	if l, h := common.Over(still).Ends(); l != low || h != high {
		t.Errorf("%g to %g, want %g to %g", l, h, low, high)
	}
	got := widen(gain, common.Over(still))
	// Errors of the logarithm add in squares.
	want := 1.1 * math.Exp(-math.Hypot(math.Log(1.1/1.05), low))
	if math.Abs(got.Low-want) > 1e-12 || !(got.High > gain.High) {
		t.Errorf("%+v, want a lower end of %g", got, want)
	}
	if widen(gain, nil).High-gain.High > 1e-12 {
		t.Error("no doubt widens")
	}
}

// An interval of another confidence holds as much more or less of what is not known of the constants; the safe
// rate stays that of 95 %.
func TestDoubtAtAConfidence(t *testing.T) {
	doubt := calibrate.Shifts{-0.6, -0.3, 0, 0.2, 0.4}
	low, high := doubt.Ends()
	for confidence, times := range map[float64]float64{0: 1, 0.80: 0.779, 0.90: 1, 0.95: 1.192, 0.99: 1.566} {
		got := widen(search.Estimate{Value: 1, Low: 1, High: 1, Safe: 1, Confidence: confidence}, doubt)
		for _, c := range []struct{ got, want float64 }{{got.Low, times * low}, {got.High, times * high}, {got.Safe, low}} {
			if math.Abs(math.Log(c.got)-c.want) > 1e-3 {
				t.Errorf("confidence %g: %+v", confidence, got)
			}
		}
	}
}

// No fleet is sized where the limits are met at no rate at the low end of what is known of the constants, or at less than
// a tenth of the likely one.
func TestLimitsThatMayNotBeMet(t *testing.T) {
	const never = -calibrate.WidestMove
	shifts := make(calibrate.Shifts, 32)
	for _, c := range []struct {
		shifts calibrate.Shifts
		loose  note.Kind
	}{{nil, ""}, {shifts, ""}, {append(calibrate.Shifts{never}, shifts[1:]...), ""}, {append(calibrate.Shifts{never, never}, shifts[2:]...), note.RateDoubted},
		{append(calibrate.Shifts{-2.5, -2.5}, shifts[2:]...), note.RateWide}, {append(calibrate.Shifts{never, -2.5, -2.5}, shifts[3:]...), note.RateDoubted}} {
		var o plan.Offer
		loosen(&o, c.shifts)
		if low, _ := c.shifts.Ends(); c.loose == "" && low != 0 {
			t.Errorf("%v: a low end of %g, want that of the sets with a rate", c.shifts, low)
		}
		if got := o.Loose.Note.Kind; got != c.loose {
			t.Errorf("%v: %v, want %v: %s", c.shifts, got, c.loose, o.Loose.Text)
		}
	}
}

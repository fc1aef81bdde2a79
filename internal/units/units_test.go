package units

import (
	"math"
	"testing"
	"time"
)

func TestUnknownFigures(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if Finite(x) != nil || Known(x) != nil {
			t.Errorf("%g is written", x)
		}
	}
	if Known(-1) != nil || Known(0) == nil || *Finite(-1) != -1 || *Known(2.5) != 2.5 {
		t.Error("a negative figure is known, or another is not")
	}
	if Millis(-1) != nil || FromMillis(nil) != -1 || *Millis(0) != 0 {
		t.Error("a negative time is known, or none is not")
	}
}

// Times below 26 days come back to the nanosecond; far ones stay within what a
// Duration holds.
func TestTimesComeBack(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 999, 123456789, time.Hour + 1, 26*24*time.Hour - 1} {
		if got := FromMillis(Millis(d)); got != d {
			t.Errorf("%v comes back as %v", d, got)
		}
	}
	if far := Duration(1e300, time.Second); far <= 0 {
		t.Errorf("a long time is %v", far)
	}
	if far := Duration(-1e300, time.Second); far >= 0 {
		t.Errorf("a long time ago is %v", far)
	}
}

func TestMillisecondsAreStable(t *testing.T) {
	for _, s := range []float64{0, 0.1, 1.0 / 3, 0.0123456789012345, 987.654321} {
		once := Milliseconds(s)
		if again := Milliseconds(Seconds(once)); again != once {
			t.Errorf("%g s: %v ms, written again %v", s, once, again)
		}
	}
}

package curve

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/wire"
	"planner/sweep/measure"
)

func ttft(quantile float64, limit time.Duration) measure.Bound {
	return measure.Bound{Metric: measure.TTFT, Quantile: quantile, Limit: limit}
}

// The table's crossing, overload and saturation were worked out independently,
// with other fits than the ones used here.
func TestTable(t *testing.T) {
	c := must.Get(Fit(measure.TTFT, table(), 1))
	var overload []float64
	for _, p := range c.Points {
		if p.Regime == Overload {
			overload = append(overload, p.Rate)
		}
	}
	if !slices.Equal(overload, []float64{35, 40}) {
		t.Errorf("overload at %v, want 35 and 40", overload)
	}
	x := must.Get(c.Crossing(ttft(0.99, 500*time.Millisecond)))
	if x.Outcome != Found || x.Value < 20.4 || x.Value > 21.7 {
		t.Errorf("crossing %v at %.3f, want within 20.4..21.7", x.Outcome, x.Value)
	}
	if x.Low > x.Value || x.High < x.Value {
		t.Errorf("crossing %.3f [%.3f, %.3f]", x.Value, x.Low, x.High)
	}
	s := c.Saturation
	if s == nil || math.Abs(s.Value-33) > 1 || s.High > 36 || s.Low < 30 {
		t.Errorf("saturation %+v, want near 33 and not above 36", s)
	}
	// Least squares of another implementation: joint form on the seven lowest
	// rates, mu 32.7, root mean square error 0.056, AICc -68.3.
	if math.Abs(c.Model.Mu-32.7) > 0.1 || math.Abs(c.Quality.RMSE-0.056) > 0.001 || math.Abs(c.Quality.AICc+68.3) > 0.1 {
		t.Errorf("mu %.2f, rmse %.4f, AICc %.1f", c.Model.Mu, c.Quality.RMSE, c.Quality.AICc)
	}
	if c.Low != 1 || c.High != 30 {
		t.Errorf("valid over %g..%g, want 1..30", c.Low, c.High)
	}
	if !slices.ContainsFunc(c.Warnings.Texts(), func(w string) bool { return strings.Contains(w, "latencies alone") }) {
		t.Errorf("nothing warns that overload is inferred: %q", c.Warnings)
	}
	if len(c.Band) != 0 {
		t.Error("a band without numbers of requests")
	}
}

// The same seed gives the same bytes.
func TestJSON(t *testing.T) {
	points := table()
	for i := range points {
		points[i].Requests, points[i].Window = 5000, time.Minute
	}
	c := must.Get(Fit(measure.TTFT, points, 7))
	again := must.Get(Fit(measure.TTFT, points, 7))
	a, b := encode(c), encode(again)
	if !bytes.Equal(a, b) {
		t.Error("the same points and seed give two curves")
	}
	if len(c.Band) == 0 {
		t.Error("no band")
	}
}

func encode(c *Curve) []byte {
	return must.Get(wire.Marshal(c))
}

func TestFewPoints(t *testing.T) {
	points := stationaryLaw(0).draw(1, 5, 20)
	c := must.Get(Fit(measure.TTFT, points, 0))
	if c.Model.Form != Interpolated || c.Saturation != nil || c.Knee != 0 {
		t.Errorf("two points gave %v", c)
	}
	if _, ok := c.At(0.99, 12); !ok {
		t.Error("no latency between two points")
	}
	if _, ok := c.At(0.99, 21); ok {
		t.Error("a latency outside two points")
	}
	if _, err := Fit(measure.TTFT, points[:1], 0); err == nil {
		t.Error("a curve through one point")
	}
	if _, err := wire.Marshal(c); err != nil {
		t.Errorf("encode: %v", err)
	}
}

func TestReach(t *testing.T) {
	c := must.Get(Fit(measure.TTFT, stationaryLaw(0).draw(1, 2, 6, 10, 14, 18, 22), 0))
	for _, tc := range []struct {
		rate float64
		want bool
	}{{2, true}, {22, true}, {1, true}, {22.1, true}, {0.94 * 33, true}, {0.96 * 33, false}, {-1, false}} {
		if _, got := c.At(0.99, tc.rate); got != tc.want {
			t.Errorf("at %g: %v, want %v", tc.rate, got, tc.want)
		}
	}
}

// Random starts find the same optimum whatever the seed.
func TestSeedsAgree(t *testing.T) {
	for seed := range uint64(6) {
		c := must.Get(Fit(measure.TTFT, table(), seed))
		if math.Abs(c.Model.Mu-32.738) > 0.005 || math.Abs(c.Whole.Mu-34.257) > 0.01 {
			t.Errorf("seed %d: mu %.4f and %.4f", seed, c.Model.Mu, c.Whole.Mu)
		}
	}
}

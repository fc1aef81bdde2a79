package curve

import (
	"math"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/measure"
)

// served gives points of a law the rates that a server of saturation mu
// completes.
func served(points []Point, mu float64) []Point {
	for i := range points {
		p := &points[i]
		p.Sent, p.Achieved, p.Window = p.Rate, min(p.Rate, mu), 10*time.Minute
	}
	return points
}

func TestCrossingOutcomes(t *testing.T) {
	l := stationaryLaw(0)
	low := l.draw(1, 2, 6, 10, 14, 18, 22)
	whole := served(timeDependentLaw(0).draw(1, 1, 5, 10, 15, 20, 25, 28, 36, 40), 33)
	for _, tc := range []struct {
		name    string
		points  []Point
		limit   time.Duration
		outcome CrossingOutcome
		low     float64
		high    float64
	}{
		{"between two rates", low, 250 * time.Millisecond, Found, 16, 18},
		{"kept everywhere", low, 5 * time.Second, NotReached, 22, 22},
		{"exceeded at the lowest rate, not idle", low, 85 * time.Millisecond, Below, 0.5, 2},
		{"exceeded by an idle server", low, 70 * time.Millisecond, Below, 0, 0},
		{"crossed in overload only", whole, 25 * time.Second, AtSaturation, 32, 34},
		{"kept in overload", whole, 5 * time.Minute, AtSaturation, 32, 34},
		{"with overload above", whole, 500 * time.Millisecond, Found, 23, 25},
	} {
		c := must.Get(Fit(measure.TTFT, tc.points, 1))
		x := must.Get(c.Crossing(ttft(0.99, tc.limit)))
		if x.Outcome != tc.outcome || x.Value < tc.low || x.Value > tc.high {
			t.Errorf("%s: %v at %.3f, want %v within %g..%g", tc.name, x.Outcome, x.Value, tc.outcome, tc.low, tc.high)
		}
		if (x.Outcome == Below) != (x.Note != "") {
			t.Errorf("%s: note %q", tc.name, x.Note)
		}
	}
	c := must.Get(Fit(measure.TTFT, low, 0))
	if _, err := c.Crossing(measure.Bound{Metric: measure.TPOT, Quantile: 0.99, Limit: time.Second}); err == nil {
		t.Error("a TTFT curve crosses a TPOT limit")
	}
	if x, err := c.Crossing(ttft(0.9, time.Second)); err == nil || x.Outcome != Undetermined {
		t.Errorf("a statistic that was never measured: %v, %v", x, err)
	}
}

// Noise that makes latency fall with the rate does not make two crossings.
func TestCrossingOfNoise(t *testing.T) {
	points := []Point{}
	for i, ms := range []float64{100, 90, 300, 260, 700, 900} {
		points = append(points, Point{Rate: float64(2 + 2*i), Values: []Value{{0.99, millis(ms)}}})
	}
	c := must.Get(Fit(measure.TTFT, points, 0))
	x, err := c.Crossing(ttft(0.99, 280*time.Millisecond))
	if err != nil || x.Outcome != Found || x.Value < 8 || x.Value > 8.5 {
		t.Errorf("%v at %.2f, %v", x.Outcome, x.Value, err)
	}
}

// A first run on a cold server is told as it was measured, and that those behind it contradict it.
func TestCrossingOfColdStart(t *testing.T) {
	points := []Point{}
	for i, ms := range []float64{5000, 200, 210, 300, 900} {
		points = append(points, Point{Rate: float64(1 + i), Values: []Value{{0.99, millis(ms)}}})
	}
	c := must.Get(Fit(measure.TTFT, points, 0))
	x, err := c.Crossing(ttft(0.99, 500*time.Millisecond))
	if err != nil || x.Outcome != Below || x.Idle != 5*time.Second || !strings.Contains(x.Note, "is 5s there; it is kept at 4 requests/s") {
		t.Errorf("%v, %v, %q, %v", x.Outcome, x.Idle, x.Note, err)
	}
}

func TestLowest(t *testing.T) {
	if _, ok := Lowest(nil); ok {
		t.Error("the lowest of none")
	}
	a, b, unknown := Crossing{Value: 3, Low: 1, High: 4, Outcome: Found}, Crossing{Value: 2, Low: 1.5, High: 3, Outcome: Found}, Crossing{Value: 9}
	if x, _ := Lowest([]Crossing{a, b}); x.Value != 2 || x.Low != 1 || x.High != 3 {
		t.Errorf("lowest %v", x)
	}
	if x, _ := Lowest([]Crossing{a, unknown, b}); x.Value != unknown.Value {
		t.Errorf("an undetermined bound was taken for met: %v", x)
	}
}

// Completed rates settle what is overload, whatever the latencies look like.
func TestRegimeFromRates(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    Point
		want Regime
	}{
		{"kept up", Point{Rate: 10, Achieved: 9.8, Window: time.Minute}, Stable},
		{"fell behind", Point{Rate: 35, Sent: 35, Achieved: 33, Window: time.Minute}, Overload},
		{"few arrivals by chance", Point{Rate: 1, Achieved: 0.85, Window: time.Minute}, Stable},
		{"the client sent less", Point{Rate: 10, Sent: 8, Achieved: 7.9, Window: time.Hour}, Stable},
		{"whoever measured says so", Point{Rate: 10, Achieved: 10, Overloaded: true}, Overload},
		{"nothing is known", Point{Rate: 10}, Unknown},
	} {
		if got, why := fromRates(&tc.p); got != tc.want || (got != Unknown) != (why != "") {
			t.Errorf("%s: %v (%s)", tc.name, got, why)
		}
	}
	points := stationaryLaw(0).draw(1, 5, 10, 15, 20, 25)
	points[1].Achieved, points[1].Window = 10, time.Hour
	points[3].Overloaded = true
	c := must.Get(Fit(measure.TTFT, points, 0))
	for i, want := range []Regime{Stable, Stable, Unknown, Overload, Overload} {
		if c.Points[i].Regime != want {
			t.Errorf("%g requests/s is %v, want %v", c.Points[i].Rate, c.Points[i].Regime, want)
		}
	}
}

func TestSaturationRoutes(t *testing.T) {
	c := must.Get(Fit(measure.TTFT, served(timeDependentLaw(0).draw(1, 1, 5, 10, 15, 20, 25, 28, 36, 40), 33), 1))
	s := c.Saturation
	if len(s.Routes) != 3 || s.Routes[0].Name != "served_in_overload" || s.Routes[0].Rate != 33 || !s.Agree || math.Abs(s.Value-33) > 0.5 {
		t.Errorf("saturation %+v", s)
	}
	c = must.Get(Fit(measure.TTFT, stationaryLaw(0).draw(1, 2, 6, 10, 14), 1))
	if s := c.Saturation; s.Agree || len(s.Routes) != 1 || math.Abs(s.Value-33) > 0.5 {
		t.Errorf("extrapolated saturation %+v", s)
	}
	disagreeing := served(timeDependentLaw(0).draw(1, 1, 5, 10, 15, 20, 25, 28, 36, 40), 30)
	c = must.Get(Fit(measure.TTFT, disagreeing, 1))
	if s := c.Saturation; s.Agree || s.Low > 30.1 || s.High < 32.5 {
		t.Errorf("routes that differ by a tenth: %+v", s)
	}
}

// Latencies that grow without bending tell of no saturation, and of no knee: a
// form fitted to them has one a thousand times beyond what was measured.
func TestNoBendNoSaturation(t *testing.T) {
	var points []Point
	for i := range 10 {
		rate := float64(2 + 2*i)
		p50 := time.Duration((6 + 0.3*rate) * float64(time.Millisecond))
		points = append(points, Point{Rate: rate, Requests: 4000, Values: []Value{{0.5, p50}, {0.99, 2 * p50}}})
	}
	c := must.Get(Fit(measure.ITL, points, 1))
	if c.Saturation != nil || c.Knee != 0 || c.End() != 20 || len(c.Warnings) == 0 {
		t.Errorf("saturation %+v, knee %g, end %g, warnings %q", c.Saturation, c.Knee, c.End(), c.Warnings)
	}
	points = append(points, Point{Rate: 30, Requests: 4000, Achieved: 25, Overloaded: true, Values: []Value{{0.5, 40 * time.Millisecond}, {0.99, 90 * time.Millisecond}}})
	c = must.Get(Fit(measure.ITL, points, 1))
	if s := c.Saturation; s == nil || s.Routes[0].Name != "served_in_overload" || s.High > 4*20 {
		t.Errorf("with a point in overload %+v", s)
	}
}

// The knee solves a quadratic for the stationary form, and does not move with
// the range of the sweep.
func TestKnee(t *testing.T) {
	l := stationaryLaw(0)
	r := l.Floors[1] / l.Scales[1]
	// rho = 3 r (1-rho)^2 + 3 rho (1-rho), with r the floor over the scale.
	a, b, c := 3*r-3, 2-6*r, 3*r
	root := math.Sqrt(b*b - 4*a*c)
	want := math.NaN()
	for _, rho := range []float64{(-b + root) / (2 * a), (-b - root) / (2 * a)} {
		if rho > 0 && rho < 1 {
			want = rho * 33
		}
	}
	for _, rates := range [][]float64{{1, 5, 10, 15, 20, 25, 30}, {1, 5, 10, 15}, {2, 4, 6, 8, 10}} {
		c := must.Get(Fit(measure.TTFT, l.draw(1, rates...), 0))
		if math.Abs(c.Knee/want-1) > 0.01 {
			t.Errorf("knee %.3f from rates to %g, want %.3f", c.Knee, rates[len(rates)-1], want)
		}
	}
}

// Where other routes put saturation below the knee of the form, there is none: at
// that rate the server has no steady latency.
func TestNoKneeBeyondSaturation(t *testing.T) {
	c := must.Get(Fit(measure.TTFT, stationaryLaw(0).draw(1, 1, 5, 10, 15, 20, 25, 30), 0))
	knee := c.Knee
	for _, at := range []struct{ saturation, want float64 }{{1.01 * knee, knee}, {0.99 * knee, 0}} {
		c.Saturation, c.Knee = &Saturation{Value: at.saturation}, 0
		if c.findKnee(); c.Knee != at.want {
			t.Errorf("saturation at %.3f, knee %.3f, want %.3f", at.saturation, c.Knee, at.want)
		}
	}
}

// What the hardware cannot carry is doubted, and what it can is not.
func TestDoubt(t *testing.T) {
	for _, at := range []struct {
		ceiling    float64
		knee, said bool
	}{{40, true, false}, {32, true, true}, {20, false, true}, {0, true, false}} {
		c := must.Get(Fit(measure.TTFT, stationaryLaw(0).draw(1, 2, 6, 10, 14), 1))
		c.Doubt(at.ceiling)
		if said := strings.Contains(c.Saturation.Reason, "data sheets"); said != at.said || (c.Knee > 0) != at.knee {
			t.Errorf("ceiling %g: knee %.3g, saturation %+v", at.ceiling, c.Knee, c.Saturation)
		}
	}
}

// More requests make a narrower band around the same curve.
func TestBand(t *testing.T) {
	width := func(requests int) float64 {
		points := stationaryLaw(0).draw(1, 5, 10, 15, 20, 25, 28)
		for i := range points {
			points[i].Requests = requests
		}
		c := must.Get(Fit(measure.TTFT, points, 1))
		sum := 0.0
		for _, b := range c.Band {
			y, ok := c.Model.At(b.Quantile, b.Rate)
			if !ok || y < b.Low*0.98 || y > b.High*1.02 {
				t.Errorf("%d requests: %.4f s at %.1f, band %.4f..%.4f", requests, y, b.Rate, b.Low, b.High)
			}
			sum += math.Log(b.High / b.Low)
		}
		return sum / float64(len(c.Band))
	}
	few, many := width(3000), width(48000)
	if ratio := few / many; ratio < 2.5 || ratio > 6 {
		t.Errorf("widths %.3f and %.3f: 16 times the requests should narrow it about fourfold", few, many)
	}
}

func TestFromMeasurements(t *testing.T) {
	m := func(change func(*measure.Measurement)) measure.Measurement {
		var m measure.Measurement
		m.Valid, m.Trial.Rate, m.Achieved, m.Requests = true, 5, 4.9, 1000
		m.TTFT = measure.Summary{P50: time.Second, P99: 2 * time.Second, P999: measure.Unresolved}
		change(&m)
		return m
	}
	points := FromMeasurements([]measure.Measurement{
		m(func(m *measure.Measurement) { m.Trial.Rate = 9 }),
		m(func(m *measure.Measurement) {}),
		m(func(m *measure.Measurement) { m.Valid = false }),
		m(func(m *measure.Measurement) { m.Rejected = note.Text("does not fit").Reason() }),
		m(func(m *measure.Measurement) { m.Trial.Rate, m.Trial.Concurrency = 0, 4 }),
		m(func(m *measure.Measurement) { m.TTFT = measure.Summary{P99: measure.Unresolved} }),
	}, measure.TTFT)
	if len(points) != 2 || points[0].Rate != 5 || points[1].Rate != 9 || len(points[0].Values) != 2 || points[0].Achieved != 4.9 || points[0].Requests != 1000 {
		t.Errorf("points %+v", points)
	}
	if len(FromMeasurements([]measure.Measurement{m(func(*measure.Measurement) {})}, measure.E2E)) != 0 {
		t.Error("a point of a latency that was not measured")
	}
}

package report

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// Chart is a plot of quantities that are not negative: measured points, fitted lines,
// bands around them and marked values on either axis. Unless it says otherwise the
// horizontal axis is linear, from 0, and the vertical one logarithmic.
type Chart struct {
	Title string
	// Name is the base name of the chart's image files: "latency".
	Name string
	// XLabel and YLabel name the quantities with their units.
	XLabel, YLabel string
	Series         []Line
	// Limits are marked heights, Rates marked places on the horizontal axis.
	Limits, Rates []Reference
	// LogX makes the horizontal axis logarithmic, LinearY the vertical one linear, from 0.
	LogX    bool `json:",omitempty"`
	LinearY bool `json:",omitempty"`
	// Low asks for a lower picture where it is drawn with characters.
	Low bool `json:",omitempty"`
}

// Line is what belongs to one quantity and shares its colour.
type Line struct {
	Name   string
	Points []ChartPoint
	// Fit is the fitted line where there were measurements, Beyond what continues it.
	Fit, Beyond plotter.XYs
	// Lower and Upper are the edges of the band around the fit, at the same rates.
	Lower, Upper plotter.XYs
}

// ChartPoint is a measured point; Low and High enclose Y, and are Y where its error is not known.
type ChartPoint struct {
	X, Y, Low, High float64
	// Overload marks a point at which the load outgrew the server.
	Overload bool
	// Trial is the number of the trial that the point is of, 0 where it is of none, and Note
	// what else is to be said of it.
	Trial int    `json:",omitempty"`
	Note  string `json:",omitempty"`
}

// Reference is a value worth naming. Label includes the value.
type Reference struct {
	At    float64 `json:"at"`
	Label string  `json:"label"`
}

// sampleSteps is the number of stretches of which a drawn curve consists.
const sampleSteps = 160

// sample is the line through f from lo to hi, without the places where f is false.
func sample(lo, hi float64, f func(x float64) (float64, bool)) plotter.XYs {
	var line plotter.XYs
	for i := range sampleSteps + 1 {
		x := lo + (hi-lo)*float64(i)/sampleSteps
		if y, ok := f(x); ok {
			line = append(line, plotter.XY{X: x, Y: y})
		}
	}
	return line
}

// course is a line through the figures of moments but for those not known: NaN or below 0.
func course[T any](name string, moments []T, x, y func(*T) float64) Line {
	l := Line{Name: name}
	for i := range moments {
		if v := y(&moments[i]); v >= 0 {
			l.Fit = append(l.Fit, plotter.XY{X: x(&moments[i]), Y: v})
		}
	}
	return l
}

func (l Line) overloaded() bool {
	return slices.ContainsFunc(l.Points, func(p ChartPoint) bool { return p.Overload })
}

// drawable reports whether there is a place for x and y: none below 0, on a logarithmic axis none at 0.
func (c *Chart) drawable(x, y float64) bool {
	return finite(x) && finite(y) && x >= 0 && y >= 0 && (x > 0 || !c.LogX) && (y > 0 || c.LinearY)
}

// values are the drawable places of points, lines and bands.
func (c *Chart) values() iter.Seq2[float64, float64] {
	return func(yield func(x, y float64) bool) {
		for _, s := range c.Series {
			places := slices.Concat(s.Fit, s.Beyond, s.Lower, s.Upper)
			for _, p := range s.Points {
				places = append(places, plotter.XY{X: p.X, Y: p.Y}, plotter.XY{X: p.X, Y: p.Low}, plotter.XY{X: p.X, Y: p.High})
			}
			for _, p := range places {
				if c.drawable(p.X, p.Y) && !yield(p.X, p.Y) {
					return
				}
			}
		}
	}
}

// Empty reports whether there is nothing to draw.
func (c *Chart) Empty() bool {
	for range c.values() {
		return false
	}
	return true
}

// axis is the visible part of one direction.
type axis struct {
	low, high float64
	log       bool
}

func (a axis) share(v float64) float64 {
	if a.log {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// at is the value at a share of the axis.
func (a axis) at(share float64) float64 {
	if a.log {
		return a.low * math.Pow(a.high/a.low, share)
	}
	return a.low + share*(a.high-a.low)
}

// holds reports whether a value is on the axis.
func (a axis) holds(v float64) bool { return v >= a.low*(1-1e-9) && v <= a.high*(1+1e-9) }

// ticks are the marked values, of a linear axis at most n and 0.
func (a axis) ticks(n int) []float64 {
	if a.log {
		return logTicks(a.low, a.high)
	}
	return linearTicks(a.high, n)
}

// frame is the visible part of the plane with the references in it, the rates ascending.
type frame struct {
	x, y          axis
	limits, rates []Reference
}

// frame encloses everything drawn: a logarithmic axis spans the data, in the 1-2-5 steps
// of decades, and the limits. An extrapolated line and a band are cut at ten times what
// was measured, so that a pole does not flatten the rest.
func (c *Chart) frame() frame {
	var f frame
	f.limits = slices.DeleteFunc(slices.Clone(c.Limits), func(r Reference) bool { return !c.drawable(1, r.At) })
	f.rates = slices.DeleteFunc(slices.Clone(c.Rates), func(r Reference) bool { return !c.drawable(r.At, 1) })
	slices.SortStableFunc(f.rates, func(a, b Reference) int { return cmp.Compare(a.At, b.At) })

	highest := 0.0
	for _, s := range c.Series {
		for _, p := range s.Points {
			if c.drawable(p.X, p.Y) {
				highest = max(highest, p.Y)
			}
		}
	}
	var xs, ys []float64
	for _, r := range f.limits {
		highest = max(highest, r.At)
		ys = append(ys, r.At)
	}
	for _, r := range f.rates {
		xs = append(xs, r.At)
	}
	for x, y := range c.values() {
		xs = append(xs, x)
		if highest == 0 || y <= 10*highest {
			ys = append(ys, y)
		}
	}
	f.x, f.y = axisOver(xs, c.LogX), axisOver(ys, !c.LinearY)
	return f
}

func axisOver(values []float64, log bool) axis {
	switch {
	case len(values) == 0 && log:
		return axis{1, 10, log}
	case len(values) == 0:
		return axis{0, 1.04, log}
	case !log:
		return axis{0, 1.04 * cmp.Or(slices.Max(values), 1), log}
	}
	a := axis{step(stepBelow(slices.Min(values))), stepAbove(slices.Max(values)), log}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

// holds reports whether a place is in the frame.
func (f frame) holds(x, y float64) bool { return f.x.holds(x) && f.y.holds(y) }

// stretches splits a line where it leaves the frame.
func (f frame) stretches(line plotter.XYs) []plotter.XYs {
	var parts []plotter.XYs
	begin := 0
	for i := range len(line) + 1 {
		if i < len(line) && f.holds(line[i].X, line[i].Y) {
			continue
		}
		if i-begin > 1 {
			parts = append(parts, line[begin:i])
		}
		begin = i + 1
	}
	return parts
}

// band is what is visible of the band of a line.
func (f frame) band(s Line) (lower, upper plotter.XYs) {
	for i, low := range s.Lower {
		if high := s.Upper[i]; f.holds(low.X, low.Y) && high.Y >= low.Y {
			lower, upper = append(lower, low), append(upper, plotter.XY{X: low.X, Y: min(high.Y, f.y.high)})
		}
	}
	return lower, upper
}

// step is the k-th of the values 1, 2 and 5 times a power of ten, from 1 at 0.
func step(k int) float64 {
	decade := math.Floor(float64(k) / 3)
	return []float64{1, 2, 5}[k-3*int(decade)] * math.Pow(10, decade)
}

// stepBelow is the index of the largest step that is not above v.
func stepBelow(v float64) int {
	k := 3 * int(math.Floor(math.Log10(v)))
	for step(k+1) <= v*(1+1e-12) {
		k++
	}
	return k
}

func stepAbove(v float64) float64 {
	k := stepBelow(v)
	if step(k) < v*(1-1e-12) {
		k++
	}
	return step(k)
}

// logTicks are the powers of ten on a logarithmic axis, with 2 and 5 between if there are few.
func logTicks(low, high float64) []float64 {
	k, stride := stepBelow(low), 1
	if decades := math.Log10(high) - math.Log10(low); decades > 3.7 {
		k, stride = 3*int(math.Floor(math.Log10(low))), 3*int(math.Ceil(decades/8))
	}
	var ticks []float64
	for ; step(k) <= high*(1+1e-9); k += stride {
		if step(k) >= low*(1-1e-9) {
			ticks = append(ticks, step(k))
		}
	}
	return ticks
}

// linearTicks are at most n round values above 0, up to hi, and 0.
func linearTicks(hi float64, n int) []float64 {
	stride := stepAbove(hi / float64(n))
	var ticks []float64
	for i := 0.0; i*stride <= hi*(1+1e-12); i++ {
		ticks = append(ticks, i*stride)
	}
	return ticks
}

// lane is where the label of a marked rate goes: the line above the axes, and where it begins.
type lane struct {
	Reference
	number int
	begin  float64
}

// lanes spreads the labels of marked rates, which ascend, over lines. Span says
// where a label begins and ends; one that reaches over the beginning of a label to
// its right is put above that, so that no upright line runs through a text. It
// also says how many lines they take.
func lanes(rates []Reference, span func(Reference) (begin, end float64)) ([]lane, int) {
	out := make([]lane, len(rates))
	lines := 0
	for i, r := range slices.Backward(rates) {
		begin, end := span(r)
		out[i] = lane{Reference: r, begin: begin}
		for _, next := range out[i+1:] {
			if end > next.begin {
				out[i].number = max(out[i].number, next.number+1)
			}
		}
		lines = max(lines, out[i].number+1)
	}
	return out, lines
}

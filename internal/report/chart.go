package report

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// Chart is a plot of positive quantities, on a logarithmic axis, against a rate:
// measured points, fitted lines, bands around them and marked values on either axis.
type Chart struct {
	Title string
	// Name is the base name of the chart's image files: "latency".
	Name string
	// XLabel and YLabel name the quantities with their units.
	XLabel, YLabel string
	Series         []Line
	// Limits are marked heights, Rates marked places on the horizontal axis.
	Limits, Rates []Reference
}

// Line is what belongs to one quantity and shares its colour.
type Line struct {
	Name   string
	Points []ChartPoint
	// Fit is the fitted line where there were measurements, Beyond its
	// continuation on either side.
	Fit, Beyond plotter.XYs
	// Lower and Upper are the edges of the band that encloses the fit, at the
	// same rates.
	Lower, Upper plotter.XYs
}

// ChartPoint is a measured point; Low and High enclose Y and are equal to it where
// nothing is known of its error.
type ChartPoint struct {
	X, Y, Low, High float64
	// Overload marks a point at which the load outgrew the server.
	Overload bool
}

// Reference is a value worth naming. Label includes the value.
type Reference struct {
	At    float64
	Label string
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

// overloaded reports whether the load outgrew the server at a point of the line.
func (l Line) overloaded() bool {
	return slices.ContainsFunc(l.Points, func(p ChartPoint) bool { return p.Overload })
}

// drawable reports whether a chart has a place for x and y: there are no rates
// below 0, and only what is above 0 has a logarithm.
func drawable(x, y float64) bool { return finite(x) && x >= 0 && finite(y) && y > 0 }

// values are the drawable places of points, lines and bands.
func (c *Chart) values() iter.Seq2[float64, float64] {
	return func(yield func(x, y float64) bool) {
		for _, s := range c.Series {
			places := slices.Concat(s.Fit, s.Beyond, s.Lower, s.Upper)
			for _, p := range s.Points {
				places = append(places, plotter.XY{X: p.X, Y: p.Y}, plotter.XY{X: p.X, Y: p.Low}, plotter.XY{X: p.X, Y: p.High})
			}
			for _, p := range places {
				if drawable(p.X, p.Y) && !yield(p.X, p.Y) {
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

// frame is the visible part of the plane, from 0 to right and from bottom to top,
// with the references in it, those on the horizontal axis by rate.
type frame struct {
	right, bottom, top float64
	limits, rates      []Reference
}

// frame encloses everything drawn: the vertical axis spans the data, in the 1-2-5 steps
// of decades, and the limits. An extrapolated
// line and a band are cut at ten times what was measured, so that a pole does not
// flatten the rest.
func (c *Chart) frame() frame {
	f := frame{bottom: math.Inf(1), top: math.Inf(-1)}
	f.limits = slices.DeleteFunc(slices.Clone(c.Limits), func(r Reference) bool { return !drawable(0, r.At) })
	f.rates = slices.DeleteFunc(slices.Clone(c.Rates), func(r Reference) bool { return !drawable(r.At, 1) })
	slices.SortStableFunc(f.rates, func(a, b Reference) int { return cmp.Compare(a.At, b.At) })

	highest := 0.0
	for _, s := range c.Series {
		for _, p := range s.Points {
			if drawable(p.X, p.Y) {
				highest = max(highest, p.Y)
			}
		}
	}
	for _, r := range f.limits {
		highest = max(highest, r.At)
		f.bottom, f.top = min(f.bottom, r.At), max(f.top, r.At)
	}
	for x, y := range c.values() {
		f.right = max(f.right, x)
		if highest == 0 || y <= 10*highest {
			f.bottom, f.top = min(f.bottom, y), max(f.top, y)
		}
	}
	for _, r := range f.rates {
		f.right = max(f.right, r.At)
	}
	f.right = 1.04 * cmp.Or(f.right, 1)
	if f.bottom > f.top {
		f.bottom, f.top = 1, 10
	}
	f.bottom, f.top = step(stepBelow(f.bottom)), stepAbove(f.top)
	if f.top <= f.bottom {
		f.top = f.bottom + 1
	}
	return f
}

// height maps y to 0..1 of the frame.
func (f frame) height(y float64) float64 { return math.Log(y/f.bottom) / math.Log(f.top/f.bottom) }

// holds reports whether a place is in the frame.
func (f frame) holds(x, y float64) bool {
	return x >= 0 && x <= f.right && y >= f.bottom*(1-1e-9) && y <= f.top*(1+1e-9)
}

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

// stepAbove is the smallest step that is not below v.
func stepAbove(v float64) float64 {
	k := stepBelow(v)
	if step(k) < v*(1-1e-12) {
		k++
	}
	return step(k)
}

// ticks are the marked heights: the powers of ten, with 2 and 5 between them if there
// are few.
func (f frame) ticks() []float64 {
	k, stride := stepBelow(f.bottom), 1
	if decades := math.Log10(f.top) - math.Log10(f.bottom); decades > 3.7 {
		k, stride = 3*int(math.Floor(math.Log10(f.bottom))), 3*int(math.Ceil(decades/8))
	}
	var ticks []float64
	for ; step(k) <= f.top*(1+1e-9); k += stride {
		if step(k) >= f.bottom*(1-1e-9) {
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

// lane is where the label of a marked rate goes: how many lines above the axes,
// and where it begins.
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

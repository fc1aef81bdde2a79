package report

import (
	"cmp"
	"math"
	"slices"
)

// Chart is a plot of positive quantities against a rate: measured points, fitted
// lines, bands around them and marked values on either axis.
type Chart struct {
	Title string
	// Name is the base name of the chart's image files: "latency".
	Name string
	// XLabel and YLabel name the quantities with their units.
	XLabel, YLabel string
	// LogY makes the vertical axis logarithmic. Values that are not above 0 are
	// left out then.
	LogY   bool
	Series []Line
	// Limits are marked heights, Rates marked places on the horizontal axis.
	Limits, Rates []Reference
}

// Line is what belongs to one quantity and shares its colour.
type Line struct {
	Name   string
	Points []ChartPoint
	// Fit is the fitted line where there were measurements, Beyond its
	// continuation on either side.
	Fit, Beyond []XY
	// Band encloses the fit.
	Band []BandHeight
}

// XY is a point of a line.
type XY struct{ X, Y float64 }

// ChartPoint is a measured point; Low and High enclose Y and are equal to it where
// nothing is known of its error.
type ChartPoint struct {
	X, Y, Low, High float64
	// Overload marks a point at which the load outgrew the server.
	Overload bool
}

// BandHeight is the height of a band at X.
type BandHeight struct{ X, Low, High float64 }

// Reference is a value worth naming. Label includes the value.
type Reference struct {
	At    float64
	Label string
}

// each calls f with every height that the chart draws, and where it is.
func (c *Chart) each(f func(x, y float64)) {
	for _, s := range c.Series {
		for _, p := range s.Points {
			f(p.X, p.Y)
			f(p.X, p.Low)
			f(p.X, p.High)
		}
		for _, line := range [][]XY{s.Fit, s.Beyond} {
			for _, p := range line {
				f(p.X, p.Y)
			}
		}
		for _, b := range s.Band {
			f(b.X, b.Low)
			f(b.X, b.High)
		}
	}
}

// Empty reports whether there is nothing to draw.
func (c *Chart) Empty() bool {
	empty := true
	c.each(func(_, y float64) { empty = empty && !c.usable(y) })
	return empty
}

// frame is the visible part of the plane.
type frame struct{ x0, x1, y0, y1 float64 }

// frame encloses everything drawn: the horizontal axis begins at 0, the vertical
// one spans the data (in whole decades' 1-2-5 steps when it is logarithmic) and
// the limits. An extrapolated line and a band are cut at ten times what was
// measured, so that a pole does not flatten the rest.
func (c *Chart) frame() frame {
	f := frame{y0: math.Inf(1), y1: math.Inf(-1)}
	top := math.Inf(-1)
	for _, s := range c.Series {
		for _, p := range s.Points {
			top = max(top, p.Y)
		}
	}
	for _, m := range c.Limits {
		top = max(top, m.At)
	}
	if math.IsInf(top, -1) {
		top = math.Inf(1)
	}
	see := func(x, y float64) {
		f.x1 = max(f.x1, x)
		if c.usable(y) && y <= 10*top {
			f.y0, f.y1 = min(f.y0, y), max(f.y1, y)
		}
	}
	c.each(see)
	for _, m := range c.Limits {
		see(0, m.At)
	}
	for _, m := range c.Rates {
		f.x1 = max(f.x1, m.At)
	}
	if f.x1 <= 0 {
		f.x1 = 1
	}
	f.x1 *= 1.04
	if f.y0 > f.y1 {
		f.y0, f.y1 = 1, 10
	}
	if c.LogY {
		f.y0, f.y1 = stepDown(f.y0), stepUp(f.y1)
	} else {
		f.y0, f.y1 = 0, f.y1*1.05
	}
	if f.y1 <= f.y0 {
		f.y1 = f.y0 + 1
	}
	return f
}

// height maps y to 0..1 of the frame.
func (c *Chart) height(f frame, y float64) float64 {
	if c.LogY {
		return math.Log(y/f.y0) / math.Log(f.y1/f.y0)
	}
	return (y - f.y0) / (f.y1 - f.y0)
}

// stepDown is the largest of 1, 2, 5 times a power of ten that is not above v.
func stepDown(v float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*e <= v*(1+1e-12) {
			return m * e
		}
	}
	return e
}

// stepUp is the smallest of 1, 2, 5 times a power of ten that is not below v.
func stepUp(v float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*e >= v*(1-1e-12) {
			return m * e
		}
	}
	return 10 * e
}

// ticksY are the marked heights: on a logarithmic axis the powers of ten, with 2
// and 5 between them if there are few.
func (c *Chart) ticksY(f frame) []float64 {
	if !c.LogY {
		return linearTicks(f.y0, f.y1, 6)
	}
	steps, stride := []float64{1, 2, 5}, 1.0
	if decades := math.Log10(f.y1 / f.y0); decades > 3.7 {
		steps, stride = []float64{1}, math.Ceil(decades/8)
	}
	var ticks []float64
	for e := math.Floor(math.Log10(f.y0)); e <= math.Ceil(math.Log10(f.y1)); e += stride {
		for _, m := range steps {
			v := m * math.Pow(10, e)
			if v >= f.y0*(1-1e-9) && v <= f.y1*(1+1e-9) {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// linearTicks are at most n round values from lo to hi.
func linearTicks(lo, hi float64, n int) []float64 {
	step := stepUp((hi - lo) / float64(n))
	var ticks []float64
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi*(1+1e-12); i++ {
		ticks = append(ticks, i*step+0) // + 0 turns a negative zero
	}
	return ticks
}

// lane is where the label of a marked rate goes: how many lines above the axes,
// and where it begins.
type lane struct {
	mark   Reference
	number int
	begin  float64
}

// lanes spreads the labels of the marked rates over lines. Span says where the
// label of a mark begins and ends; one that reaches over the beginning of a label
// to its right is put above that, so that no upright line runs through a text. It
// gives the lanes by rate, and how many lines they take.
func (c *Chart) lanes(span func(Reference) (begin, end float64)) ([]lane, int) {
	marks := sortMarks(c.Rates)
	out := make([]lane, len(marks))
	lines := 0
	for i := len(marks) - 1; i >= 0; i-- {
		begin, end := span(marks[i])
		out[i] = lane{mark: marks[i], begin: begin}
		for _, next := range out[i+1:] {
			if end > next.begin {
				out[i].number = max(out[i].number, next.number+1)
			}
		}
		lines = max(lines, out[i].number+1)
	}
	return out, lines
}

// sortMarks returns the marks by place.
func sortMarks(marks []Reference) []Reference {
	marks = slices.Clone(marks)
	slices.SortStableFunc(marks, func(a, b Reference) int { return cmp.Compare(a.At, b.At) })
	return marks
}

// table lists the points of a chart.
func (c *Chart) table() Table {
	tab := Table{Columns: []Column{{Name: "Series"}, {Name: c.XLabel, Right: true}, {Name: c.YLabel, Right: true}, {Name: "Note"}}}
	for _, s := range c.Series {
		for _, p := range s.Points {
			note := Cell{}
			if p.Overload {
				note = Cell{Text: "overloaded", Tone: Bad}
			}
			tab.Rows = append(tab.Rows, []Cell{{Text: s.Name}, {Text: number(p.X, 3)}, {Text: number(p.Y, 3)}, note})
		}
	}
	for _, m := range append(append([]Reference(nil), c.Limits...), c.Rates...) {
		tab.Rows = append(tab.Rows, []Cell{{Text: m.Label}, {Text: ""}, {Text: ""}, {Text: "marked"}})
	}
	return tab
}

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"planner/internal/list"
	"planner/internal/stat"

	"gonum.org/v1/plot/plotter"
)

// Chart is a plot of non-negative quantities: measured points, fitted lines with bands, and marked values on
// either axis. By default the horizontal axis is linear, from 0, and the vertical one logarithmic.
type Chart struct {
	Title string
	// Name is the base name of the chart's image files: "latency".
	Name string
	// XLabel and YLabel name the quantities with their units.
	XLabel, YLabel string
	Series         []Line
	// Limits are marks on the vertical axis, Rates marks on the horizontal one.
	Limits, Rates []Reference
	// LogX makes the horizontal axis logarithmic, LinearY the vertical one linear, from 0.
	LogX    bool `json:",omitempty"`
	LinearY bool `json:",omitempty"`
	// Low makes a text chart lower, without rate labels; such a chart has no image file.
	Low bool `json:",omitempty"`
}

// Line is the points, fit and band of one quantity, in one colour.
type Line struct {
	Name   string
	Points []ChartPoint
	// Fit is the fitted line over the measured range, Beyond its extrapolation.
	Fit, Beyond plotter.XYs
	// Lower and Upper are the edges of the band around the fit, at the same rates.
	Lower, Upper plotter.XYs
}

// ChartPoint is a measured point; Low and High enclose Y, and equal it if its error is unknown.
type ChartPoint struct {
	X, Y, Low, High float64
	// Overload marks a point at which the load outgrew the server.
	Overload bool `json:",omitempty"`
	// Trial is the number of the point's trial, 0 if there is none; Note is a remark.
	Trial int    `json:",omitempty"`
	Note  string `json:",omitempty"`
}

// Reference is a marked value. Label includes the value.
type Reference struct {
	At    float64 `json:"at"`
	Label string  `json:"label"`
}

// sampleSteps is the number of segments of a drawn curve.
const sampleSteps = 160

// sample returns the line of f from lo to hi, without places where f returns false.
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

// course returns a line through a figure over time, without unknown values: NaN or below 0.
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

// drawable reports whether x and y have a place on the axes: none below 0, and on a logarithmic axis none at 0.
func (c *Chart) drawable(x, y float64) bool {
	return finite(x) && finite(y) && x >= 0 && y >= 0 && (x > 0 || !c.LogX) && (y > 0 || c.LinearY)
}

// values returns the drawable coordinates of points, lines and bands.
func (c *Chart) values() (all plotter.XYs) {
	for _, s := range c.Series {
		all = slices.Concat(all, s.Fit, s.Beyond, s.Lower, s.Upper)
		for _, p := range s.Points {
			all = append(all, plotter.XY{X: p.X, Y: p.Y}, plotter.XY{X: p.X, Y: p.Low}, plotter.XY{X: p.X, Y: p.High})
		}
	}
	return slices.DeleteFunc(all, func(p plotter.XY) bool { return !c.drawable(p.X, p.Y) })
}

// Empty reports whether there is nothing to draw.
func (c *Chart) Empty() bool { return len(c.values()) == 0 }

// axis is the visible range of one direction.
type axis struct {
	Label string    `json:"label"`
	Low   float64   `json:"low"`
	High  float64   `json:"high"`
	Log   bool      `json:"log,omitempty"`
	Ticks []float64 `json:"ticks"`
}

func (a axis) share(v float64) float64 {
	if a.Log {
		return math.Log(v/a.Low) / math.Log(a.High/a.Low)
	}
	return (v - a.Low) / (a.High - a.Low)
}

// at returns the value at a share of the axis.
func (a axis) at(share float64) float64 {
	if a.Log {
		return a.Low * math.Pow(a.High/a.Low, share)
	}
	return a.Low + share*(a.High-a.Low)
}

// holds reports whether a value is on the axis.
func (a axis) holds(v float64) bool { return v >= a.Low*(1-1e-9) && v <= a.High*(1+1e-9) }

// ticks returns the marked values; of a linear axis 0 and at most n others.
func (a axis) ticks(n int) []float64 {
	if a.Log {
		return logTicks(a.Low, a.High)
	}
	return linearTicks(a.High, n)
}

// drawing is the visible part of a chart, as drawn in images, in text and by a page's script, rounded to five
// digits. The rates ascend.
type drawing struct {
	Title  string      `json:"title"`
	X      axis        `json:"x"`
	Y      axis        `json:"y"`
	Series []drawnLine `json:"series"`
	Limits []Reference `json:"limits,omitempty"`
	Rates  []Reference `json:"rates,omitempty"`
}

// drawnLine is the visible part of a [Line], split where it leaves the axes.
type drawnLine struct {
	Name   string        `json:"name"`
	Color  string        `json:"color"` // name in the style sheet
	Points []ChartPoint  `json:"points,omitempty"`
	Fit    []plotter.XYs `json:"fit,omitempty"`
	Beyond []plotter.XYs `json:"beyond,omitempty"`
	Lower  plotter.XYs   `json:"lower,omitempty"`
	Upper  plotter.XYs   `json:"upper,omitempty"`
}

// drawing returns the chart with axes that enclose what is drawn: a logarithmic one spans the data and the
// limits in 1-2-5 steps. Extrapolated lines and bands are cut at ten times the highest point or limit, so that
// a pole does not flatten the rest.
func (c *Chart) drawing() drawing {
	d := drawing{Title: c.Title, Series: []drawnLine{}}
	d.Limits = list.Filter(c.Limits, func(r Reference) bool { return c.drawable(1, r.At) })
	d.Rates = list.Filter(c.Rates, func(r Reference) bool { return c.drawable(r.At, 1) })
	slices.SortStableFunc(d.Rates, func(a, b Reference) int { return cmp.Compare(a.At, b.At) })

	at := func(r Reference) float64 { return r.At }
	xs, ys := list.Map(d.Rates, at), list.Map(d.Limits, at)
	highest := slices.Max(append(ys, 0))
	for _, s := range c.Series {
		for _, p := range s.Points {
			if c.drawable(p.X, p.Y) {
				highest = max(highest, p.Y)
			}
		}
	}
	for _, p := range c.values() {
		xs = append(xs, p.X)
		if highest == 0 || p.Y <= 10*highest {
			ys = append(ys, p.Y)
		}
	}
	d.X, d.Y = axisOver(c.XLabel, xs, c.LogX), axisOver(c.YLabel, ys, !c.LinearY)
	for i, s := range c.Series {
		d.Series = append(d.Series, d.line(s, c.color(i)))
	}
	return d
}

// color returns the colour of a series. A line without points among series with points concerns all of them and
// has the text's colour.
func (c *Chart) color(series int) string {
	if len(c.Series[series].Points) == 0 && slices.ContainsFunc(c.Series, func(l Line) bool { return len(l.Points) > 0 }) {
		return "ink"
	}
	return fmt.Sprintf("s%d", series%len(inks))
}

func (d *drawing) line(s Line, color string) drawnLine {
	l := drawnLine{Name: s.Name, Color: color, Fit: d.stretches(s.Fit), Beyond: d.stretches(s.Beyond)}
	for i, low := range s.Lower {
		if high := s.Upper[i]; d.holds(low.X, low.Y) && high.Y >= low.Y {
			l.Lower, l.Upper = append(l.Lower, rounded(low.X, low.Y)), append(l.Upper, rounded(low.X, min(high.Y, d.Y.High)))
		}
	}
	for _, p := range s.Points {
		if d.holds(p.X, p.Y) {
			l.Points = append(l.Points, d.point(s.Name, p))
		}
	}
	return l
}

// point returns a point with its description and the visible part of its error bar. An end of the bar that does
// not enclose the point is dropped, and so is the bar of an overload, whose latency has no steady state.
func (d *drawing) point(series string, p ChartPoint) ChartPoint {
	at := rounded(p.X, p.Y)
	low, high := at.Y, at.Y
	if d.holds(p.X, p.Low) && !p.Overload {
		// gonum takes the difference and subtracts it again, which for a far
		// smaller end leaves 0, and 0 has no logarithm.
		low = min(stat.Rounded(max(p.Low, 1e-6*p.Y), 5), at.Y)
	}
	if p.High > p.Y && !p.Overload {
		high = stat.Rounded(min(p.High, d.Y.High), 5)
	}
	return ChartPoint{at.X, at.Y, low, high, p.Overload, p.Trial, p.told(series)}
}

// told describes a point of a series in words.
func (p *ChartPoint) told(series string) string {
	return fmt.Sprintf("%s: %s at %s", series, number(p.Y, 3), number(p.X, 3)) +
		where(p.Low < p.Y || p.High > p.Y, fmt.Sprintf(" (%s to %s)", number(p.Low, 3), number(p.High, 3))) +
		where(p.Trial > 0, fmt.Sprintf(", trial %d", p.Trial)) + behind("; ", p.Note) + where(p.Overload, "; overloaded")
}

func rounded(x, y float64) plotter.XY {
	return plotter.XY{X: stat.Rounded(x, 5), Y: stat.Rounded(y, 5)}
}

func axisOver(label string, values []float64, log bool) axis {
	a := axis{Label: label, Log: log}
	switch {
	case len(values) == 0 && log:
		a.Low, a.High = 1, 10
	case !log:
		a.High = 1.04 * cmp.Or(slices.Max(append(values, 0)), 1)
	default:
		a.Low, a.High = step(stepBelow(slices.Min(values))), stepAbove(slices.Max(values))
		if a.High <= a.Low {
			a.High = a.Low + 1
		}
	}
	return a
}

// holds reports whether a place is within the axes.
func (d *drawing) holds(x, y float64) bool { return d.X.holds(x) && d.Y.holds(y) }

// stretches splits a line where it leaves the axes.
func (d *drawing) stretches(line plotter.XYs) []plotter.XYs {
	parts := []plotter.XYs{nil}
	for _, p := range line {
		if last := len(parts) - 1; d.holds(p.X, p.Y) {
			parts[last] = append(parts[last], rounded(p.X, p.Y))
		} else {
			parts = append(parts, nil)
		}
	}
	return slices.DeleteFunc(parts, func(part plotter.XYs) bool { return len(part) < 2 })
}

// step returns the k-th of the values 1, 2 and 5 times powers of ten, with step(0) = 1.
func step(k int) float64 {
	decade := math.Floor(float64(k) / 3)
	return []float64{1, 2, 5}[k-3*int(decade)] * math.Pow(10, decade)
}

// stepBelow returns the index of the largest step that is not above v.
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

// logTicks returns the powers of ten on a logarithmic axis, with 2 and 5 times them if the axis is short.
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

// linearTicks returns 0 and at most n round values above it, up to hi.
func linearTicks(hi float64, n int) []float64 {
	stride := stepAbove(hi / float64(n))
	var ticks []float64
	for i := 0.0; i*stride <= hi*(1+1e-12); i++ {
		ticks = append(ticks, i*stride)
	}
	return ticks
}

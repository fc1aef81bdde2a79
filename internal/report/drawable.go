package report

import (
	"math"
	"slices"
)

// drawable is the chart without what cannot be drawn: figures that are no numbers,
// rates below 0, and heights that have no logarithm. A line keeps a gap, a NaN,
// where such a figure was; an error bar that does not enclose its point is none.
func (c *Chart) drawable() *Chart {
	d := *c
	placed := func(x float64) bool { return finite(x) && x >= 0 }
	d.Series = make([]Line, len(c.Series))
	for i, s := range c.Series {
		out := Line{Name: s.Name, Fit: c.gaps(s.Fit), Beyond: c.gaps(s.Beyond)}
		for _, p := range s.Points {
			if !placed(p.X) || !c.usable(p.Y) {
				continue
			}
			if !c.usable(p.Low) || p.Low > p.Y {
				p.Low = p.Y
			}
			if !c.usable(p.High) || p.High < p.Y {
				p.High = p.Y
			}
			out.Points = append(out.Points, p)
		}
		for _, b := range s.Band {
			if placed(b.X) && c.usable(b.Low) && c.usable(b.High) && b.Low <= b.High {
				out.Band = append(out.Band, b)
			}
		}
		d.Series[i] = out
	}
	d.Limits = slices.DeleteFunc(slices.Clone(c.Limits), func(m Reference) bool { return !c.usable(m.At) })
	d.Rates = slices.DeleteFunc(slices.Clone(c.Rates), func(m Reference) bool { return !placed(m.At) })
	return &d
}

// gaps replaces the heights of a line that cannot be drawn by NaN.
func (c *Chart) gaps(line []XY) []XY {
	var out []XY
	for _, p := range line {
		if !finite(p.X) || p.X < 0 {
			continue
		}
		if !c.usable(p.Y) {
			p.Y = math.NaN()
		}
		out = append(out, p)
	}
	return out
}

// usable reports whether a height can be drawn.
func (c *Chart) usable(y float64) bool {
	return finite(y) && (y > 0 || !c.LogY && y >= 0)
}

// stretches splits a line at its gaps and where it leaves the frame.
func stretches(line []XY, f frame) [][]XY {
	var parts [][]XY
	var part []XY
	for _, p := range line {
		if finite(p.Y) && p.Y <= f.y1*(1+1e-9) && p.Y >= f.y0*(1-1e-9) {
			part = append(part, p)
			continue
		}
		if len(part) > 1 {
			parts = append(parts, part)
		}
		part = nil
	}
	if len(part) > 1 {
		parts = append(parts, part)
	}
	return parts
}

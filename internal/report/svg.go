package report

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// The drawing inside an HTML report, in user units: its size, and the margins
// that hold the legend and the figures of the axes.
const (
	svgWidth, svgHeight = 820.0, 440.0
	svgLeft, svgRight   = 64.0, 16.0
	svgHead, svgBottom  = 36.0, 46.0
	svgLane, svgLetter  = 16.0, 6.6 // a line of labels, a letter of one
)

// chart draws a chart as inline SVG, coloured by the style sheet, and puts its
// points into a table for those who do not see it.
func (h *htmlPrinter) chart(c *Chart) {
	c = c.drawable()
	fmt.Fprintf(h, "<figure>\n<figcaption>%s</figcaption>\n", html.EscapeString(c.Title))
	if c.Empty() {
		h.WriteString("<p>Nothing to draw.</p>\n</figure>\n")
		return
	}
	s := newSVG(c)
	fmt.Fprintf(h, "<svg viewBox=\"0 0 %s %s\" role=\"img\" aria-label=\"%s\">\n", coord(svgWidth), coord(svgHeight),
		html.EscapeString(c.Title+"; the points stand in the table below"))
	s.axes()
	s.limitsAndRates()
	for i, series := range c.Series {
		s.series(i%3, series)
	}
	s.legend()
	h.WriteString(s.String())
	h.WriteString("</svg>\n<details><summary>The points of the chart</summary>\n")
	h.table(c.table())
	h.WriteString("</details>\n</figure>\n")
}

// svgChart is a chart being drawn.
type svgChart struct {
	strings.Builder
	chart *Chart
	frame frame
	lanes []lane
	// top is the upper end of the axes, below the lanes of the marks.
	top float64
}

func newSVG(c *Chart) *svgChart {
	s := &svgChart{chart: c, frame: c.frame()}
	var lines int
	s.lanes, lines = c.lanes(func(m Mark) (begin, end float64) {
		w := svgLetter*float64(width(m.Label)) + 8
		begin = min(s.x(m.At), svgWidth-w)
		return begin, begin + w
	})
	s.top = svgHead + svgLane*float64(lines)
	return s
}

func (s *svgChart) x(v float64) float64 {
	return svgLeft + (v-s.frame.x0)/(s.frame.x1-s.frame.x0)*(svgWidth-svgLeft-svgRight)
}

func (s *svgChart) y(v float64) float64 {
	u := min(max(s.chart.height(s.frame, v), -0.02), 1.02)
	return svgHeight - svgBottom - u*(svgHeight-s.top-svgBottom)
}

// coord prints a coordinate.
func coord(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// at prints a coordinate to a hundredth of a unit.
func at(v float64) string { return coord(float64(int(v*100+0.5)) / 100) }

func (s *svgChart) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(s, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", at(x), at(y), anchor, class, html.EscapeString(text))
}

func (s *svgChart) rule(x0, y0, x1, y1 float64, class string) {
	fmt.Fprintf(s, "<path class=\"%s\" d=\"M%s %sL%s %s\"/>\n", class, at(x0), at(y0), at(x1), at(y1))
}

func (s *svgChart) axes() {
	bottom, right := svgHeight-svgBottom, svgWidth-svgRight
	for _, v := range s.chart.ticksY(s.frame) {
		s.rule(svgLeft, s.y(v), right, s.y(v), "grid")
		s.text(svgLeft-8, s.y(v)+4, "end", "soft", exact(v))
	}
	for _, v := range linearTicks(s.frame.x0, s.frame.x1, 10) {
		s.rule(s.x(v), bottom, s.x(v), bottom+5, "axis")
		s.text(s.x(v), bottom+19, "middle", "soft", exact(v))
	}
	s.rule(svgLeft, bottom, right, bottom, "axis")
	s.rule(svgLeft, s.top, svgLeft, bottom, "axis")
	s.text(4, 16, "start", "", s.chart.YLabel)
	s.text(right, bottom+36, "end", "", s.chart.XLabel)
}

func (s *svgChart) limitsAndRates() {
	bottom, right := svgHeight-svgBottom, svgWidth-svgRight
	for _, l := range s.lanes {
		y := s.top - 5 - svgLane*float64(l.number)
		top := y - 9
		if l.begin < s.x(l.mark.At) { // the label was moved over its own line
			top = y + 4
		}
		s.rule(s.x(l.mark.At), top, s.x(l.mark.At), bottom, "mark")
		s.text(l.begin+4, y, "start", "soft", l.mark.Label)
	}
	for _, m := range s.chart.Limits {
		s.rule(svgLeft, s.y(m.At), right, s.y(m.At), "limit")
		s.text(svgLeft+8, s.y(m.At)-5, "start", "limit-name", m.Label)
	}
}

// path is the data of a line, interrupted where the line leaves the frame.
func (s *svgChart) path(line []XY) string {
	var b strings.Builder
	for _, part := range stretches(line, s.frame) {
		pen := "M"
		for _, p := range part {
			b.WriteString(pen + at(s.x(p.X)) + " " + at(s.y(p.Y)))
			pen = "L"
		}
	}
	return b.String()
}

func (s *svgChart) series(i int, series Series) {
	if band := s.band(series.Band); band != "" {
		fmt.Fprintf(s, "<path class=\"band f%d\" d=\"%s\"/>\n", i, band)
	}
	if d := s.path(series.Beyond); d != "" {
		fmt.Fprintf(s, "<path class=\"beyond s%d\" d=\"%s\"/>\n", i, d)
	}
	if d := s.path(series.Fit); d != "" {
		fmt.Fprintf(s, "<path class=\"fit s%d\" d=\"%s\"/>\n", i, d)
	}
	for _, p := range series.Points {
		if p.Low < p.High {
			s.rule(s.x(p.X), s.y(p.Low), s.x(p.X), s.y(p.High), fmt.Sprintf("error s%d", i))
		}
		s.marker(i, p, fmt.Sprintf("%s: %s at %s", series.Name, number(p.Y, 3), number(p.X, 3)))
	}
}

// marker draws a point: a circle, open if the server was overloaded.
func (s *svgChart) marker(i int, p Point, title string) {
	class := fmt.Sprintf("f%d", i)
	if p.Overload {
		class = fmt.Sprintf("open s%d", i)
		title += " (overloaded)"
	}
	fmt.Fprintf(s, "<circle class=\"%s\" cx=\"%s\" cy=\"%s\" r=\"4\"><title>%s</title></circle>\n",
		class, at(s.x(p.X)), at(s.y(p.Y)), html.EscapeString(title))
}

func (s *svgChart) band(band []Interval) string {
	var upper, lower []XY
	for _, b := range band {
		upper = append(upper, XY{b.X, min(b.High, s.frame.y1)})
		lower = append(lower, XY{b.X, min(b.Low, s.frame.y1)})
	}
	if len(upper) < 2 {
		return ""
	}
	for i := len(lower) - 1; i >= 0; i-- {
		upper = append(upper, lower[i])
	}
	return s.path(upper) + "Z"
}

// legend stands above the drawing, at its right end.
func (s *svgChart) legend() {
	x, y := svgWidth-svgRight, 12.0
	overload := false
	for _, series := range s.chart.Series {
		for _, p := range series.Points {
			overload = overload || p.Overload
		}
	}
	if overload {
		s.text(x, y+4, "end", "soft", "overloaded")
		x -= svgLetter*10 + 14
		fmt.Fprintf(s, "<circle class=\"open s0\" cx=\"%s\" cy=\"%s\" r=\"4\"/>\n", at(x), at(y))
		x -= 20
	}
	for i := len(s.chart.Series) - 1; i >= 0; i-- {
		series := s.chart.Series[i]
		s.text(x, y+4, "end", "", series.Name)
		x -= svgLetter*float64(width(series.Name)) + 8
		s.rule(x-20, y, x, y, fmt.Sprintf("fit s%d", i%3))
		fmt.Fprintf(s, "<circle class=\"f%d\" cx=\"%s\" cy=\"%s\" r=\"4\"/>\n", i%3, at(x-10), at(y))
		x -= 36
	}
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
	for _, m := range append(append([]Mark(nil), c.Limits...), c.Rates...) {
		tab.Rows = append(tab.Rows, []Cell{{Text: m.Label}, {Text: ""}, {Text: ""}, {Text: "marked"}})
	}
	return tab
}

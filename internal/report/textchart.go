package report

import (
	"math"
	"slices"
	"strings"
)

// textChartHeight is the number of rows between the axes of a text chart.
const textChartHeight = 16

// stroke holds the characters of a line: level, upright, and the corners of a
// line that rises and falls, as they are met from left to right.
type stroke struct{ level, upright, riseTop, riseFoot, fallTop, fallFoot rune }

// strokes and markers tell the series of a text chart apart without colour.
var (
	strokes = []stroke{{'─', '│', '╭', '╯', '╮', '╰'}, {'━', '┃', '┏', '┛', '┓', '┗'}, {'═', '║', '╔', '╝', '╗', '╚'}}
	beyond  = stroke{'·', '·', '·', '·', '·', '·'}
	markers = []rune{'○', '●', '◆'}
)

// overloadMarker stands for a point at which the load outgrew the server.
const overloadMarker = '×'

// canvas is a chart being drawn with characters; row 0 is the top.
type canvas struct {
	chart *Chart
	frame frame
	cols  int
	cells [][]rune
	tones [][]Tone
}

// chart draws a chart with its axes, marks and legend.
func (t *textPrinter) chart(c *Chart) {
	c = c.drawable()
	t.lines(Plain, wrap(c.Title, t.width))
	if c.Empty() {
		t.WriteString(indent + "nothing to draw\n")
		return
	}
	f := c.frame()
	gutter := 0
	ticks := c.ticksY(f)
	for _, v := range ticks {
		gutter = max(gutter, width(exact(v)))
	}
	cv := newCanvas(c, f, t.width-len(indent)-gutter-2)
	cv.draw()
	labels := make([]string, textChartHeight)
	for _, v := range ticks {
		labels[cv.row(v)] = exact(v)
	}
	t.lines(Quiet, wrap(indent+c.YLabel, t.width))
	for r, line := range cv.cells {
		edge := "│"
		if labels[r] != "" {
			edge = "┤"
		}
		t.WriteString(indent + pad(labels[r], gutter, true) + " " + edge + t.paintRow(line, cv.tones[r]) + "\n")
	}
	left := strings.Repeat(" ", len(indent)+gutter+1)
	axis, below := cv.axis()
	t.WriteString(left + "└" + axis + "\n")
	t.WriteString(left + " " + below + "\n")
	for _, line := range cv.marks() {
		t.WriteString(left + " " + t.paint(Quiet, line) + "\n")
	}
	t.hanging(left+" ", wrap(c.XLabel+";  "+c.legend(), t.width-len(left)-1), Plain)
}

// paintRow joins the cells of a row, coloured in runs of one tone.
func (t *textPrinter) paintRow(row []rune, tones []Tone) string {
	end := len(row)
	for end > 0 && row[end-1] == ' ' {
		end--
	}
	var b strings.Builder
	for i := 0; i < end; {
		j := i + 1
		for j < end && tones[j] == tones[i] {
			j++
		}
		b.WriteString(t.paint(tones[i], string(row[i:j])))
		i = j
	}
	return b.String()
}

// legend explains the signs that the chart uses.
func (c *Chart) legend() string {
	var parts []string
	overload := false
	for i, s := range c.Series {
		sign := ""
		if len(s.Points) > 0 {
			sign += string(markers[i%len(markers)])
		}
		if len(s.Fit) > 0 {
			sign += string(strokes[i%len(strokes)].level)
		}
		if sign != "" {
			parts = append(parts, sign+" "+s.Name)
		}
		overload = overload || slices.ContainsFunc(s.Points, func(p ChartPoint) bool { return p.Overload })
	}
	if slices.ContainsFunc(c.Series, func(s Line) bool { return len(s.Beyond) > 0 }) {
		parts = append(parts, "··· not measured there")
	}
	if overload {
		parts = append(parts, string(overloadMarker)+" overloaded")
	}
	return strings.Join(parts, "  ")
}

func newCanvas(c *Chart, f frame, cols int) *canvas {
	cv := &canvas{chart: c, frame: f, cols: max(cols, 10)}
	cv.cells = make([][]rune, textChartHeight)
	cv.tones = make([][]Tone, textChartHeight)
	for r := range cv.cells {
		cv.cells[r] = []rune(strings.Repeat(" ", cv.cols))
		cv.tones[r] = make([]Tone, cv.cols)
	}
	return cv
}

// column maps a rate to a column, row a height to a row; both stay inside.
func (cv *canvas) column(x float64) int {
	u := (x - cv.frame.x0) / (cv.frame.x1 - cv.frame.x0)
	return min(max(int(u*float64(cv.cols)), 0), cv.cols-1)
}

func (cv *canvas) row(y float64) int {
	u := cv.chart.height(cv.frame, y)
	r := int(math.Round((1 - u) * (textChartHeight - 1)))
	return min(max(r, 0), textChartHeight-1)
}

func (cv *canvas) set(r, c int, sign rune, tone Tone) {
	cv.cells[r][c], cv.tones[r][c] = sign, tone
}

// draw puts the marks under the lines and the lines under the points.
func (cv *canvas) draw() {
	c := cv.chart
	for _, m := range c.Rates {
		for r := range cv.cells {
			cv.set(r, cv.column(m.At), '┊', Quiet)
		}
	}
	for _, m := range c.Limits {
		r := cv.row(m.At)
		for i := range cv.cols {
			cv.set(r, i, '┄', Bad)
		}
		for i, sign := range []rune(" " + m.Label + " ") {
			if i+2 < cv.cols {
				cv.set(r, i+2, sign, Bad)
			}
		}
	}
	for i, s := range c.Series {
		cv.line(s.Beyond, beyond, Quiet)
		cv.line(s.Fit, strokes[i%len(strokes)], Plain)
	}
	for i, s := range c.Series {
		for _, p := range s.Points {
			sign, tone := markers[i%len(markers)], Strong
			if p.Overload {
				sign, tone = overloadMarker, Bad
			}
			cv.set(cv.row(p.Y), cv.column(p.X), sign, tone)
		}
	}
}

// line draws a line column by column; where it jumps, or lies outside the frame,
// it is interrupted.
func (cv *canvas) line(points []XY, s stroke, tone Tone) {
	rows := make([]int, cv.cols+1)
	for i := range rows {
		x := cv.frame.x0 + (float64(i)+0.5)/float64(cv.cols)*(cv.frame.x1-cv.frame.x0)
		rows[i] = -1
		if y, ok := interpolate(points, x); ok {
			if u := cv.chart.height(cv.frame, y); u >= -0.02 && u <= 1.02 {
				rows[i] = cv.row(y)
			}
		}
	}
	for i := range cv.cols {
		a, b := rows[i], rows[i+1]
		if a < 0 {
			continue
		}
		if b < 0 || a == b {
			cv.set(a, i, s.level, tone)
			continue
		}
		foot, top := s.riseFoot, s.riseTop
		if b > a {
			foot, top = s.fallTop, s.fallFoot
		}
		cv.set(a, i, foot, tone)
		cv.set(b, i, top, tone)
		for r := min(a, b) + 1; r < max(a, b); r++ {
			cv.set(r, i, s.upright, tone)
		}
	}
}

// interpolate reads a line at x; the points ascend. A gap of the line between
// two of its points is bridged unless one of them is no number.
func interpolate(points []XY, x float64) (float64, bool) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if x < a.X || x > b.X || a.X == b.X {
			continue
		}
		y := a.Y + (b.Y-a.Y)*(x-a.X)/(b.X-a.X)
		return y, finite(y)
	}
	return 0, false
}

// axis draws the horizontal axis and the figures below it.
func (cv *canvas) axis() (line, figures string) {
	marks := []rune(strings.Repeat("─", cv.cols))
	below := []rune(strings.Repeat(" ", cv.cols))
	end := -1
	for _, v := range linearTicks(cv.frame.x0, cv.frame.x1, max(cv.cols/9, 2)) {
		col, text := cv.column(v), []rune(exact(v))
		at := min(max(col-len(text)/2, 0), cv.cols-len(text))
		if at <= end || at < 0 {
			continue
		}
		marks[col] = '┬'
		copy(below[at:], text)
		end = at + len(text)
	}
	return string(marks), strings.TrimRight(string(below), " ")
}

// marks writes the labels of marked rates below their columns, on as many lines
// as keep them apart, the rightmost in the first. A label with no room to the
// right of its arrow stands to the left.
func (cv *canvas) marks() []string {
	place := func(m Reference) (at int, text string) {
		col, text := cv.column(m.At), "↑ "+m.Label
		if col+width(text) <= cv.cols {
			return col, text
		}
		text = m.Label + " ↑"
		return max(col+1-width(text), 0), text
	}
	lanes, n := cv.chart.lanes(func(m Reference) (begin, end float64) {
		at, text := place(m)
		return float64(at), float64(at + width(text) + 1)
	})
	lines := make([][]rune, n)
	for i := range lines {
		lines[i] = []rune(strings.Repeat(" ", cv.cols))
	}
	for _, l := range lanes {
		at, text := place(l.mark)
		copy(lines[l.number][at:], []rune(text))
	}
	out := make([]string, n)
	for i, l := range lines {
		out[i] = strings.TrimRight(string(l), " ")
	}
	return out
}

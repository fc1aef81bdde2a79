package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
)

// The numbers of rows between the axes of a text chart and of a low one.
const textChartHeight, lowChartHeight = 16, 7

// stroke holds the characters of a line: horizontal, vertical, and the corners of rises and falls from left to
// right.
type stroke struct{ level, upright, riseTop, riseFoot, fallTop, fallFoot rune }

// strokes and markers distinguish the series of a text chart without colour.
var (
	strokes = []stroke{{'─', '│', '╭', '╯', '╮', '╰'}, {'━', '┃', '┏', '┛', '┓', '┗'}, {'═', '║', '╔', '╝', '╗', '╚'}}
	beyond  = stroke{'·', '·', '·', '·', '·', '·'}
	markers = []rune{'○', '●', '◆', '□', '▲', '◇', '■', '△'}
)

// overloadMarker marks a point at which the load outgrew the server.
const overloadMarker = '×'

// canvas is the inside of a text chart being drawn; row 0 is the top.
type canvas struct {
	drawing
	cols  int
	cells [][]rune
	tones [][]Tone
}

func (t *textPrinter) chart(c *Chart) {
	t.text(Plain, c.Title)
	if c.Empty() {
		t.WriteString(indent + "nothing to draw\n")
		return
	}
	height := either(c.Low, lowChartHeight, textChartHeight)
	cv := &canvas{drawing: c.drawing(), cells: make([][]rune, height), tones: make([][]Tone, height)}
	labels := make([]string, height)
	gutter := 0
	for _, v := range cv.Y.ticks(height / 2) {
		labels[cv.row(v)] = exact(v)
		gutter = max(gutter, width(exact(v)))
	}
	cv.cols = max(t.width-len(indent)-gutter-2, 10)
	cv.draw()
	t.text(Quiet, indent+c.YLabel)
	for r, label := range labels {
		t.WriteString(indent + fmt.Sprintf("%*s", gutter, label) + " " + either(label != "", "┤", "│") + t.paintRow(cv.cells[r], cv.tones[r]) + "\n")
	}
	left := strings.Repeat(" ", len(indent)+gutter+1)
	axis, below := cv.axis()
	t.WriteString(left + "└" + axis + "\n")
	t.WriteString(left + " " + below + "\n")
	if !c.Low {
		for _, line := range cv.labels() {
			t.WriteString(left + " " + t.paint(Quiet, line) + "\n")
		}
	}
	t.hanging(left+" ", wrap(c.XLabel+";  "+c.legend(), t.width-len(left)-1), Plain)
}

func (t *textPrinter) paintRow(row []rune, tones []Tone) string {
	row = []rune(strings.TrimRight(string(row), " "))
	var b strings.Builder
	for i := 0; i < len(row); {
		j := i + 1
		for j < len(row) && tones[j] == tones[i] {
			j++
		}
		b.WriteString(t.paint(tones[i], string(row[i:j])))
		i = j
	}
	return b.String()
}

func (c *Chart) legend() string {
	all := ""
	for i, s := range c.Series {
		sign := where(len(s.Points) > 0, string(markers[i%len(markers)])) + where(len(s.Fit) > 0, string(strokes[i%len(strokes)].level))
		all += where(sign != "", "  "+sign+" "+s.Name)
	}
	all += where(slices.ContainsFunc(c.Series, func(s Line) bool { return len(s.Beyond) > 0 }), "  ··· not measured there") +
		where(slices.ContainsFunc(c.Series, Line.overloaded), "  "+string(overloadMarker)+" overloaded")
	return strings.TrimPrefix(all, "  ")
}

// column and row map coordinates to cells, clipped to the canvas.
func (cv *canvas) column(x float64) int {
	return min(max(int(cv.X.share(x)*float64(cv.cols)), 0), cv.cols-1)
}

func (cv *canvas) row(y float64) int {
	r := int(math.Round((1 - cv.Y.share(y)) * float64(len(cv.cells)-1)))
	return min(max(r, 0), len(cv.cells)-1)
}

func (cv *canvas) set(r, c int, sign rune, tone Tone) {
	cv.cells[r][c], cv.tones[r][c] = sign, tone
}

func (cv *canvas) draw() {
	for r := range cv.cells {
		cv.cells[r], cv.tones[r] = blanks(cv.cols), make([]Tone, cv.cols)
		for _, m := range cv.Rates {
			cv.set(r, cv.column(m.At), '┊', Quiet)
		}
	}
	for _, m := range cv.Limits {
		r := cv.row(m.At)
		for i := range cv.cols {
			cv.set(r, i, '┄', Bad)
		}
		copy(cv.cells[r][2:], []rune(" "+m.Label+" "))
	}
	for i, s := range cv.Series {
		cv.line(s.Beyond, beyond, Quiet)
		cv.line(s.Fit, strokes[i%len(strokes)], Plain)
	}
	for i, s := range cv.Series {
		for _, p := range s.Points {
			sign := either(p.Overload, overloadMarker, markers[i%len(markers)])
			cv.set(cv.row(p.Y), cv.column(p.X), sign, either(p.Overload, Bad, Strong))
		}
	}
}

func blanks(n int) []rune { return []rune(strings.Repeat(" ", n)) }

// line draws a line column by column, with gaps between its parts.
func (cv *canvas) line(parts []plotter.XYs, s stroke, tone Tone) {
	rows := make([]int, cv.cols+1)
	for i := range rows {
		rows[i] = -1
		x := cv.X.at((float64(i) + 0.5) / float64(cv.cols))
		for _, part := range parts {
			if y, ok := interpolate(part, x); ok {
				rows[i] = cv.row(y)
			}
		}
	}
	for i, a := range rows[:cv.cols] {
		b := rows[i+1]
		if a < 0 {
			continue
		}
		if b < 0 || a == b {
			cv.set(a, i, s.level, tone)
			continue
		}
		cv.set(a, i, either(b > a, s.fallTop, s.riseFoot), tone)
		cv.set(b, i, either(b > a, s.fallFoot, s.riseTop), tone)
		for r := min(a, b) + 1; r < max(a, b); r++ {
			cv.set(r, i, s.upright, tone)
		}
	}
}

func interpolate(line plotter.XYs, x float64) (y float64, ok bool) {
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		if x >= a.X && x <= b.X && a.X < b.X {
			return a.Y + (b.Y-a.Y)*(x-a.X)/(b.X-a.X), true
		}
	}
	return 0, false
}

func (cv *canvas) axis() (line, figures string) {
	marks := []rune(strings.Repeat("─", cv.cols))
	below := blanks(cv.cols)
	end := -1
	for _, v := range cv.X.ticks(max(cv.cols/9, 2)) {
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

// labels writes the rate labels below their columns, the rightmost in the first line, so that no label is below
// another's mark. A label without room to the right of its arrow is to its left.
func (cv *canvas) labels() []string {
	var lines []string
	for _, r := range slices.Backward(cv.Rates) {
		at, text := cv.column(r.At), "↑ "+r.Label
		if at+width(text) > cv.cols {
			text = r.Label + " ↑"
			at = max(at+1-width(text), 0)
		}
		lines = append(lines, strings.Repeat(" ", at)+text)
	}
	return lines
}

package progress

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// line is a state in one line, with the time since the start.
func line(s State, elapsed time.Duration) string {
	parts := []string{clock(elapsed) + " " + effort(s)}
	if r := rate(s); r != "" {
		parts = append(parts, r)
	}
	if n := next(s); n != "" {
		parts = append(parts, n)
	}
	if s.Now != "" {
		parts = append(parts, s.Now)
	}
	return strings.Join(parts, "; ")
}

// lines are a state on a live display.
func (d *Display) lines(s State, elapsed time.Duration) []string {
	lines := []string{clock(elapsed) + "  " + effort(s)}
	if r := rate(s); r != "" {
		if b := bar(d.widest, s, barWidth); b != "" && d.width >= 2*barWidth+len(r) {
			r = b + "  " + r
		}
		lines = append(lines, r)
	}
	if n := next(s); n != "" {
		lines = append(lines, n)
	}
	if s.Now != "" {
		lines = append(lines, s.Now)
	}
	return lines
}

// effort is what was done and what is left.
func effort(s State) string {
	text := strconv.Itoa(s.Trials) + " trials"
	if s.Trials == 1 {
		text = "1 trial"
	}
	if s.Spent > 0 {
		text += ", " + span(s.Spent) + " of engine time"
	}
	if s.Cost != "" {
		text += ", " + s.Cost
	}
	if s.Left > 0 {
		text += ", at most " + span(s.Left) + " to go"
	}
	return text
}

// rate is the estimate with its interval.
func rate(s State) string {
	if !(s.Rate > 0) || math.IsInf(s.Rate, 0) {
		return ""
	}
	text := fmt.Sprintf("maximum rate %s requests/s", figure(s.Rate))
	if s.Low > 0 && s.High > s.Low && !math.IsInf(s.High, 0) {
		text += fmt.Sprintf(" (%s-%s)", figure(s.Low), figure(s.High))
	}
	if s.Subject != "" {
		text += ", " + s.Subject
	}
	return text
}

func next(s State) string {
	switch {
	case s.Next == "":
		return ""
	case s.Why == "":
		return "next: " + s.Next
	}
	return "next: " + s.Next + ": " + s.Why
}

// barWidth is the number of columns in which an interval narrows.
const barWidth = 24

// bar draws the interval within the first one that was shown, both on a
// logarithmic scale.
func bar(widest [2]float64, s State, columns int) string {
	lo, hi := widest[0], widest[1]
	if !(lo > 0) || !(hi > lo) || math.IsInf(hi, 0) || !(s.Low > 0) || !(s.High >= s.Low) || !(s.Rate > 0) {
		return ""
	}
	place := func(v float64) int {
		u := math.Log(v/lo) / math.Log(hi/lo)
		return int(math.Round(min(max(u, 0), 1) * float64(columns-1)))
	}
	cells := []rune(strings.Repeat("·", columns))
	for i := place(s.Low); i <= place(s.High); i++ {
		cells[i] = '━'
	}
	cells[place(s.Rate)] = '●'
	return string(cells)
}

// figure prints a rate with three significant digits, without an exponent where
// people would not write one.
func figure(v float64) string {
	if v >= 1e-4 && v < 1e9 {
		e := int(math.Floor(math.Log10(v)))
		return strconv.FormatFloat(v, 'f', max(2-e, 0), 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// clock prints a time since the start: 1:05, 1:02:03.
func clock(d time.Duration) string {
	s := int(d.Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// span prints a duration in words, to a tenth of its unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

package progress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/search"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

func (s *runState) line(elapsed time.Duration) string {
	return clock(elapsed) + " " + strings.Join(append([]string{s.effort()}, s.rest("")...), "; ")
}

func (d *Display) lines(elapsed time.Duration) []string {
	scale := ""
	if b := bar(d.widest, &d.state.best, barWidth); b != "" && d.Columns >= 2*barWidth+len(d.state.rate()) {
		scale = b + "  "
	}
	return append([]string{clock(elapsed) + "  " + d.state.effort()}, d.state.rest(scale)...)
}

// rest returns what is known besides the effort; scale precedes the rate.
func (s *runState) rest(scale string) []string {
	rate, next, now := s.rate(), "", s.now
	if rate != "" {
		rate = scale + rate
	}
	if s.next != "" {
		next = strings.TrimSuffix("next: "+s.next+": "+s.why, ": ")
	}
	if s.working {
		now = ""
	}
	parts := list.Filter([]string{rate, s.limits, next, now}, func(part string) bool { return part != "" })
	if s.jobs.Any() {
		parts = append(append(parts, s.jobs.String()), s.jobs.Lines...)
	}
	return parts
}

func (s *runState) effort() string {
	if s.working {
		return s.now
	}
	text := note.Count(s.trials, "trial")
	if s.of > 0 {
		text = fmt.Sprintf("%d of %d trials", s.trials, s.of)
	}
	if s.spent > 0 {
		text += ", " + span(s.spent) + " of engine time"
	}
	if s.cost != "" {
		text += ", " + s.cost
	}
	if s.parts > 1 {
		text += fmt.Sprintf(", %d of %d %s", s.done, s.parts, s.stage)
	}
	switch {
	case s.about > 0:
		text += ", about " + span(s.about) + " to go"
	case s.left > 0 && s.of > 0:
		text += ", " + span(s.left) + " of load to go"
	case s.left > 0:
		text += ", at most " + span(s.left) + " to go"
	}
	return text
}

func (s *runState) rate() string {
	e := &s.best
	if !(e.Value > 0) || math.IsInf(e.Value, 0) {
		return ""
	}
	text := fmt.Sprintf("maximum rate %s requests/s", figure(e.Value))
	if e.Low > 0 && e.High > e.Low && !math.IsInf(e.High, 0) {
		text += fmt.Sprintf(" (%s-%s)", figure(e.Low), figure(e.High))
	}
	if s.subject != "" {
		text += ", " + s.subject
	}
	return text
}

// rival is the probability from which on a second bound is shown as a possible limit.
const rival = 0.05

// limits says which bound limits the rate or, if two may, up to which rate each holds.
func limits(bounds []search.BoundResult) string {
	sorted := slices.SortedStableFunc(slices.Values(bounds), func(a, b search.BoundResult) int { return cmp.Compare(b.Probability, a.Probability) })
	switch {
	case len(sorted) == 0:
		return ""
	case len(sorted) < 2 || sorted[1].Probability < rival:
		return "limited by " + sorted[0].Bound
	}
	return "limited by " + strings.Join(list.Map(sorted[:2], func(b search.BoundResult) string {
		return fmt.Sprintf("%s at %s (%s-%s)", b.Bound, figure(b.Rate), figure(b.Low), figure(b.High))
	}), " or ")
}

// barWidth is the width of the bar in columns.
const barWidth = 24

// bar draws the interval within the first one shown, on a logarithmic scale.
func bar(widest [2]float64, e *search.Estimate, columns int) string {
	lo, hi := widest[0], widest[1]
	if !(lo > 0) || !(hi > lo) || math.IsInf(hi, 0) || !(e.Low > 0) || !(e.High >= e.Low) || !(e.Value > 0) {
		return ""
	}
	place := func(v float64) int {
		u := math.Log(v/lo) / math.Log(hi/lo)
		return int(math.Round(min(max(u, 0), 1) * float64(columns-1)))
	}
	cells := []rune(strings.Repeat("·", columns))
	for i := place(e.Low); i <= place(e.High); i++ {
		cells[i] = '━'
	}
	cells[place(e.Value)] = '●'
	return string(cells)
}

// figure prints a rate with three significant digits, and with an exponent only if very large or small.
func figure(v float64) string {
	if v >= 1e-4 && v < 1e9 {
		v = stat.Rounded(v, 3) // first: 9.996 is 10.0
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

func loadText(t *measure.Trial) string {
	if t.Closed() {
		return fmt.Sprintf("%d at a time", t.Concurrency)
	}
	return fmt.Sprintf("%.4g requests/s", t.Rate)
}

func trialLine(m *measure.Measurement) string {
	s := fmt.Sprintf("trial %d: %s: %s", m.Trial.Number, loadText(&m.Trial), m.Trial.Why)
	switch {
	case !m.Ran():
		return s + ": rejected: " + m.Rejected.Text
	case m.Verdict != nil:
		s += fmt.Sprintf(": %s (%s)", m.Verdict.State, m.Verdict.Binding)
	}
	if m.Aborted.Text != "" {
		s += ", ended early: " + m.Aborted.Text
	}
	return s
}

func testText(now load.Interim) string {
	s := fmt.Sprintf("%v  %.1f requests/s  %d in flight  %d done", now.Elapsed.Round(time.Second), now.Rate, now.InFlight, now.Done)
	if now.Failed > 0 {
		s += fmt.Sprintf("  %d failed", now.Failed)
	}
	if now.TTFT50 >= 0 {
		s += fmt.Sprintf("  TTFT p50 %v p99 %v", now.TTFT50.Round(time.Millisecond/10), now.TTFT99.Round(time.Millisecond/10))
	}
	if now.Left >= 0 {
		s += fmt.Sprintf("  %v left", now.Left.Round(time.Second))
	}
	return s
}

// startedText describes an engine that serves, and its start-up time.
func startedText(e *engine.Engine) string {
	stages := list.Map(e.Stages, func(s engine.StartStage) string { return fmt.Sprintf("%s %.1f s", s.Name, s.Took.Seconds()) })
	text := e.Facts.Name(e.Kind) + " at " + e.URL
	if e.Done() == nil {
		return "reached " + text
	}
	return fmt.Sprintf("%s serves after %.1f s (%s)", text, e.Cold.Seconds(), strings.Join(stages, ", "))
}

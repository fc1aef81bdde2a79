package measure

import (
	"math"
	"slices"

	"planner/internal/note"
)

// Reduce turns what was seen of a trial into figures, counts and a verdict. The
// requests measured are those due in the window, however late they end; in a
// closed loop and for a trace on its own clock, all of them.
func Reduce(t Trial, o Observation) Measurement {
	end := o.End
	if end <= 0 {
		end = 0
		for i := range o.Records {
			r := &o.Records[i]
			end = max(end, r.Due, r.Sent, r.First, r.Last)
		}
		end++ // after the last event
	}
	c := newCohort(&t, o.Records, end)
	m := Measurement{
		Trial: t, Duration: c.to - c.from, Tally: tally(c.records),
		SendLag: c.sendLag().summary(), Server: o.Server, Aborted: o.Aborted, Took: o.Took,
		Overloaded: c.growing(),
	}
	m.Latencies = c.latencies(o.Unpaced)
	if o.Gaps != nil {
		m.ITL = gaps(o.Gaps.Histogram, c.whole)
	}
	m.Throughput = c.throughput()
	m.Classes = c.classes(&o)
	var all []judged
	if !t.Objective.Empty() {
		all = append(c.judge(&o), c.judgeThroughput(m.Overloaded))
	}
	m.Warnings = slices.Concat(o.Doubts, c.doubts(&m, all, &o))
	m.Valid = len(m.Warnings) == 0
	if len(all) > 0 {
		m.settle(all, c, &o)
	}
	m.Warnings = append(m.Warnings, o.Remarks...)
	m.Warnings = append(m.Warnings, m.remarks(c)...)
	return m
}

// settle stores counts and verdict. An invalid trial meets nothing, and misses only what it would
// miss whatever the client did. One that meets the limits while conversations send less than the
// offered rate is unsure.
func (m *Measurement) settle(all []judged, c *cohort, o *Observation) {
	for _, j := range all {
		m.Counts = append(m.Counts, j.Count)
		if j.state == Unsure {
			m.Warnings = append(m.Warnings, j.doubt...)
		}
		if j.Bound == ErrorsBound && j.state == Met && j.allowed > 0 && j.High > j.allowed {
			m.Warnings = append(m.Warnings, note.New(note.ErrorsUnproven, j.N, 100*j.High, 100*j.allowed))
		}
	}
	m.Verdict = verdict(all)
	switch m.Verdict.State {
	case Met:
		if !m.Valid || len(c.unsteady(m)) > 0 {
			m.Verdict.State = Unsure
		}
	case Missed:
		if !m.Valid && !c.standing(o) {
			m.Verdict.State = Unsure
		}
	}
}

func tally(records []*Record) Tally {
	t := Tally{Requests: len(records), Failures: map[string]int{}}
	for _, r := range records {
		if r.failed() {
			t.Failed++
			t.Failures[r.Outcome.String()]++
		}
	}
	return t
}

// latencies summarises the latencies that records give: all but ITL, and TPOT only if tokens were
// paced.
func (c *cohort) latencies(unpaced bool) Latencies {
	l := unresolvedLatencies()
	l.ByPrompt = c.byPrompt()
	for _, m := range AllLatencies() {
		if m.row().value != nil && !(unpaced && m == TPOT) {
			*l.Latency(m) = c.latency(m).summary()
		}
	}
	return l
}

// throughput counts what happened in the window, whenever the request was due. Output tokens are
// spread evenly between first and last.
func (c *cohort) throughput() Throughput {
	var x Throughput
	length := c.length()
	if length <= 0 {
		x.Goodput = math.NaN()
		return x
	}
	for _, r := range c.all {
		if r.Sent >= 0 && c.inWindow(r.Sent) {
			x.Sent++
		}
		if r.Outcome == OK && c.inWindow(r.Last) {
			x.Achieved++
			if c.good(r) {
				x.Goodput++
			}
		}
		if at := r.first(); at >= 0 && c.inWindow(at) {
			x.PromptTokens += float64(r.Prompt)
		}
		x.OutputTokens += c.emitted(r)
	}
	x.Sent /= length
	x.Achieved /= length
	x.PromptTokens /= length
	x.OutputTokens /= length
	x.Goodput /= length
	if c.trial.Objective.Empty() {
		x.Goodput = math.NaN()
	}
	return x
}

func (c *cohort) emitted(r *Record) float64 {
	first := r.first()
	if first < 0 || r.Output == 0 {
		return 0
	}
	last := r.Last
	if last < 0 {
		last = c.end
	}
	tokens := 0.0
	switch {
	case !c.inWindow(first):
	case last <= first:
		return float64(r.Output)
	default:
		tokens = 1
	}
	if last > first && r.Output > 1 {
		low, high := max(first, c.from), min(last, c.to)
		tokens += float64(r.Output-1) * float64(max(high-low, 0)) / float64(last-first)
	}
	return tokens
}

// good reports whether a request ended well within every bound that applies to single requests: not
// those on means and on ITL.
func (c *cohort) good(r *Record) bool {
	if r.Outcome != OK {
		return false
	}
	for _, b := range c.trial.Objective.Bounds {
		if _, beyond := b.Decide(r, r.Last); beyond && b.Quantile > 0 && c.trial.Bounds(b, r) {
			return false
		}
	}
	return true
}

// classes splits a mix by component; nil for a plain workload.
func (c *cohort) classes(o *Observation) map[string]ClassSummary {
	if c.trial.Workload == nil {
		return nil
	}
	names := c.trial.Workload.Names()
	if len(names) < 2 {
		return nil
	}
	out := make(map[string]ClassSummary, len(names))
	for i, name := range names {
		part := c.of(name)
		s := ClassSummary{Tally: tally(part.records), Latencies: part.latencies(o.Unpaced)}
		if i < len(o.ClassGaps) {
			s.ITL = gaps(o.ClassGaps[i], c.whole)
		}
		out[name] = s
	}
	return out
}

package search

import (
	"slices"

	"planner/internal/note"
	"planner/sweep/measure"
)

const (
	// turnTrials is how many trials a final search runs before the other has its
	// turn: each turn begins with a start of the engine, which takes about as long
	// as a trial, and each is another draw of what starts differ by.
	turnTrials = 3
	// sharpStart is the half-width of the interval from the trials of one start,
	// relative, above which that start says nothing of how starts differ.
	sharpStart = 0.3
)

// starts keeps the trials of a race apart by the start of the engine that they
// ran on.
type starts struct {
	running measure.Knobs
	count   int
	told    []told
}

// told is a trial under load that counts, with the number of its start.
type told struct {
	start int
	final bool
	m     measure.Measurement
}

func (s *starts) observe(m *measure.Measurement, final bool) {
	if s.count == 0 || m.Trial.Knobs != s.running || m.Rejected != "" {
		s.count++
		s.running = m.Trial.Knobs
	}
	if m.Valid && m.Rejected == "" && !m.Trial.Closed() {
		s.told = append(s.told, told{s.count, final, *m})
	}
}

// of groups the trials of a knob set by start, in order. final counts the starts
// that the final search ran on.
func (s *starts) of(k measure.Knobs) (groups [][]measure.Measurement, final int) {
	last, lastFinal := 0, 0
	for i := range s.told {
		t := &s.told[i]
		if t.m.Trial.Knobs != k {
			continue
		}
		if t.start != last {
			groups, last = append(groups, nil), t.start
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], t.m)
		if t.final && t.start != lastFinal {
			final, lastFinal = final+1, t.start
		}
	}
	return groups, final
}

// takeTurns proposes trials of the final searches by turns.
func (r *Race) takeTurns() []measure.Trial {
	for range 2 * len(r.finals) {
		c := r.finals[r.turn]
		if r.inTurn < turnTrials && c.status != Unable {
			if batch := r.follow(c); len(batch) > 0 {
				r.inTurn += len(batch)
				return batch
			}
		}
		r.turn, r.inTurn = (r.turn+1)%len(r.finals), 0
	}
	r.phase = finished
	return nil
}

// allowForStarts widens what the final searches found by what the rate differs
// by from one start of the engine to the next, or says that this is not known.
func (r *Race) allowForStarts(out *RaceResult) {
	var sharp []Estimate
	groups, final := r.starts.of(out.Knobs)
	for _, g := range groups {
		if e := r.finals[0].search.alone(g); e.Value > 0 && (e.High-e.Low)/2 < sharpStart*e.Value {
			sharp = append(sharp, e)
		}
	}
	if len(sharp) < leastStarts {
		out.warn(note.New(note.FewStarts, len(sharp)))
		return
	}
	sigma := Drift(sharp)
	if sigma <= 0 {
		return
	}
	out.Best.Estimate = out.Best.Estimate.Widen(sigma, final)
	if out.Default != nil {
		_, final := r.starts.of(r.cfg.Default.Knobs)
		out.Default.Estimate = out.Default.Estimate.Widen(sigma, final)
	}
	out.warn(note.New(note.StartsDiffer, 100*sigma, len(sharp)))
}

// warn adds a warning to both results, as either may be chosen.
func (r *RaceResult) warn(n note.Note) {
	r.Best.Warnings = append(slices.Clip(r.Best.Warnings), n)
	if r.Default != nil {
		r.Default.Warnings = append(slices.Clip(r.Default.Warnings), n)
	}
}

// alone is what some trials say by themselves, without any prediction of the
// rate; zero if they say nothing.
func (s *MaxRate) alone(trials []measure.Measurement) Estimate {
	seen := make([][]evidence, len(s.bounds))
	for i := range trials {
		shown, _, _ := s.shown(&trials[i])
		for j := range shown {
			if _, ok := trials[i].Count(s.bounds[j].name); ok {
				seen[j] = append(seen[j], shown[j])
			}
		}
	}
	parts := make([]*posterior, len(s.bounds))
	for j := range s.bounds {
		b := s.bounds[j]
		b.max.median = 0
		if len(seen[j]) == 0 {
			return Estimate{}
		}
		parts[j] = b.infer(seen[j])
	}
	return minimum{parts}.estimate(s.cfg.Confidence)
}

package sweep

import "planner/sweep/measure"

// Together lets several sources run side by side: each proposal holds the next
// trials of all that have not finished, in the order of the sources. A source
// that has finished must go on proposing nothing.
type Together struct {
	Sources []Source

	// pending says whose trial is observed next.
	pending []int
}

// Next proposes the next trials of every source.
func (t *Together) Next() []measure.Trial {
	var all []measure.Trial
	for i, s := range t.Sources {
		next := s.Next()
		for range next {
			t.pending = append(t.pending, i)
		}
		all = append(all, next...)
	}
	return all
}

// Observe passes a measurement to the source that asked for it.
func (t *Together) Observe(m measure.Measurement) {
	t.Sources[t.pending[0]].Observe(m)
	t.pending = t.pending[1:]
}

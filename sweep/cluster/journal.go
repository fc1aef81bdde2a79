package cluster

import (
	"os"

	"planner/sweep"
	"planner/sweep/measure"
)

// journal is the journal of a part as far as it was read, and what of it was asked for.
type journal struct {
	seen  []measure.Measurement
	taken []bool
	size  int
}

// read reads the file where it has grown, and reports whether it has.
func (j *journal) read(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() == int64(j.size) {
		return false, nil
	}
	if info.Size() < int64(j.size) { // failures at its end were dropped
		j.seen, j.size = nil, 0
	}
	more, size, err := sweep.ReadJournalFrom(path, j.size)
	if err != nil {
		return false, err
	}
	j.seen, j.size = append(j.seen, more...), size
	j.taken = append(j.taken, make([]bool, max(len(j.seen)-len(j.taken), 0))...)[:len(j.seen)]
	return len(more) > 0, nil
}

// take finds the measurement of a trial that nobody took yet; nil where there is none.
func (j *journal) take(t *measure.Trial) *measure.Measurement {
	for i := range j.seen {
		if m := j.seen[i]; !j.taken[i] && sweep.Measures(&m, t) {
			j.taken[i] = true
			return &m
		}
	}
	return nil
}

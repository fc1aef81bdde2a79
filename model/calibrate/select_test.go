package calibrate

import (
	"slices"
	"testing"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// What a trial shows of a server that failed, or of a client that was late, is not fitted to.
func TestSelect(t *testing.T) {
	w := &workload.Workload{Class: "chat"}
	trial := func(change func(m *measure.Measurement)) measure.Measurement {
		m := measure.Measurement{Trial: measure.Trial{Number: 1, Workload: w, Rate: 5}, Valid: true, Tally: measure.Tally{Requests: 200}}
		change(&m)
		return m
	}
	for _, c := range []struct {
		skipped string
		change  func(m *measure.Measurement)
	}{
		{"", func(*measure.Measurement) {}},
		{"", func(m *measure.Measurement) { m.Failed, m.Failures = 2, map[string]int{"timeout": 2} }},
		{"trial 1 of run, of which 80 of 200 requests failed: 80 requests ended with http status",
			func(m *measure.Measurement) { m.Failed, m.Failures = 80, map[string]int{"http_status": 80} }},
		{"trial 1 of run, which overloaded the engine", func(m *measure.Measurement) { m.Overloaded = true }},
		{"trial 1 of run, of TP 4, KV fp8, which the configuration does not name", func(m *measure.Measurement) { m.Trial.Knobs.TensorParallel, m.Trial.Knobs.MaxNumSeqs = 4, 64 }},
		{"", func(m *measure.Measurement) { m.Trial.Knobs = measure.Knobs{TensorParallel: 1, MaxNumSeqs: 64} }},
		{"trial 1 of run, whose figures cannot be trusted", func(m *measure.Measurement) { m.Valid = false }},
	} {
		points, skipped := Select("run", []measure.Measurement{trial(c.change)}, w, []measure.Knobs{{TensorParallel: 2, KVCache: "fp8"}, {TensorParallel: 1, KVCache: "fp8"}})
		if c.skipped == "" && (len(points) != 1 || len(skipped) > 0) || c.skipped != "" && !slices.Equal(skipped, []string{c.skipped}) {
			t.Errorf("%d points, left out %q; want %q", len(points), skipped, c.skipped)
		}
	}
}

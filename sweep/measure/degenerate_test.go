package measure

import (
	"math/rand/v2"
	"testing"
	"time"

	"planner/internal/wire"
	"planner/sweep/workload"
)

// Whatever a trial was and however it ended, its measurement can be made and written: cut short
// before the first request or between any two events, without a window, without an engine, with
// records that contradict each other.
func TestReduceWhateverCame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		trial, o := anyTrial(rand.New(rand.NewPCG(seed, 0)))
		m := Reduce(trial, o)
		if m.Failed > m.Requests || m.Requests > len(o.Records) || m.Duration < 0 {
			t.Errorf("seed %d: %d of %d requests failed, of %d records in %v", seed, m.Failed, m.Requests, len(o.Records), m.Duration)
		}
		if _, err := wire.Marshal(m); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for now := time.Duration(0); now <= o.End; now += o.End/4 + 1 {
			_ = Hopeless(&trial, o.Records, now)
		}
	}
}

// anyTrial draws a trial and an observation of it, any part of which may be missing or absurd.
func anyTrial(rng *rand.Rand) (Trial, Observation) {
	pick := func(of ...time.Duration) time.Duration { return of[rng.IntN(len(of))] }
	whenever := func() time.Duration {
		return pick(Never, 0, 1, time.Duration(rng.Int64N(int64(time.Minute))), time.Hour)
	}
	length := workload.Lengths{Dist: workload.Fixed, Value: 1 + rng.IntN(50)}
	w := &workload.Workload{Class: "a", Arrivals: workload.Poisson, Turns: rng.IntN(3), Think: pick(0, time.Second), Timeout: pick(0, time.Second, time.Hour)}
	for i := range 1 + rng.IntN(3) {
		w.Shapes = append(w.Shapes, workload.Shape{Name: string(rune('a' + i)), Weight: 1, Prompt: length, Output: length})
	}
	t := Trial{Workload: w, Rate: float64(rng.IntN(3)) * 7.5, Concurrency: max(rng.IntN(8)-5, 0), Requests: rng.IntN(9),
		Warmup: pick(0, time.Second), Window: pick(0, 1, time.Second, time.Minute), Cooldown: pick(0, time.Second), Whole: rng.IntN(4) == 0}
	t.Objective.Errors = float64(rng.IntN(3)-1) / 100
	for range rng.IntN(4) {
		b := Bound{Metric: []Metric{TTFT, TPOT, ITL, E2E}[rng.IntN(4)], Quantile: []float64{0, 0.5, 0.99, 0.999}[rng.IntN(4)], Limit: pick(1, time.Millisecond, time.Second)}
		if b.Metric != ITL && rng.IntN(3) == 0 {
			b.Class = []string{"a", "b", "none"}[rng.IntN(3)]
		}
		t.Objective.Bounds = append(t.Objective.Bounds, b)
	}
	t.Objective.Throughput = rng.IntN(3) == 0
	o := Observation{End: whenever(), Unpaced: rng.IntN(5) == 0, Took: whenever()}
	for i := range []int{0, 1, 2, 300}[rng.IntN(4)] {
		o.Records = append(o.Records, Record{ID: i, Class: rng.IntN(len(w.Shapes)), Due: max(whenever(), 0), Sent: whenever(), First: whenever(), Last: whenever(),
			Prompt: rng.IntN(50), Cached: rng.IntN(3), Output: rng.IntN(4), Asked: rng.IntN(4), Outcome: Outcome(rng.IntN(int(Rejected) + 1)), Detail: "503: no"})
	}
	if rng.IntN(2) == 0 {
		o.Gaps = NewGaps(t.Warmup, t.Warmup+t.Window)
		for range rng.IntN(100) {
			o.Gaps.Add(whenever(), whenever(), 1+rng.IntN(3))
		}
	}
	return t, o
}

// TestRowOfGaps: gaps that are added in rows fall into the same parts as one by one.
func TestRowOfGaps(t *testing.T) {
	for _, from := range []time.Duration{0, 999 * time.Millisecond, 5 * time.Second, 30 * time.Second} {
		one, row := NewGaps(time.Second, 21*time.Second), NewGaps(time.Second, 21*time.Second)
		const gap, n, each = 7 * time.Millisecond, 5000, 3
		for i := range n {
			one.Add(from+time.Duration(i)*gap, gap, each)
		}
		row.AddRow(from, gap, n, each)
		if one.TotalCount() != row.TotalCount() {
			t.Errorf("from %v: %d gaps, want %d", from, row.TotalCount(), one.TotalCount())
		}
		for i := range one.parts {
			if a, b := one.parts[i].TotalCount(), row.parts[i].TotalCount(); a != b {
				t.Errorf("from %v: part %d has %d gaps, want %d", from, i, b, a)
			}
		}
	}
}

package load

import (
	"time"

	"planner/sweep/measure"
)

// Live is what can be said of a trial while it runs.
type Live struct {
	// Elapsed counts from the start of the trial; Left is what remains of its
	// schedule, negative where that is not known (a closed loop).
	Elapsed, Left time.Duration
	// Total counts the requests of the schedule, Sent those that left, Done and
	// Failed those that ended, with their class or without.
	Total, Sent, Done, Failed, InFlight int
	// Rate is the requests sent per second over the last whole second.
	Rate float64
	// TTFT50 and TTFT99 are quantiles over the requests of the window that
	// ended well so far; negative before the first.
	TTFT50, TTFT99 time.Duration
	// Counts holds one entry per bound of the trial's objective on a latency of
	// requests, and a last one named "errors": requests due in the window that
	// are decided, and those beyond the limit. A request in flight is decided
	// as soon as it is older than the limit.
	Counts []measure.Count
}

// tally keeps the counts of Live for requests that have ended.
type tally struct {
	slo    measure.SLO
	counts []measure.Count
}

func newTally(slo measure.SLO) *tally {
	t := &tally{slo: slo, counts: make([]measure.Count, len(slo.Bounds)+1)}
	for i, b := range slo.Bounds {
		t.counts[i].Bound = b.String()
	}
	t.counts[len(slo.Bounds)].Bound = "errors"
	return t
}

// ended counts a request that has ended. A failed one is beyond every limit.
func (t *tally) ended(r *measure.Record, gaps []uint32) {
	bad := r.Outcome != measure.OK
	for i, b := range t.slo.Bounds {
		if bad {
			t.count(i, true)
			continue
		}
		switch b.Metric {
		case measure.TTFT:
			if d, ok := r.TTFT(); ok {
				t.count(i, d > b.Limit)
			}
		case measure.E2E:
			d, _ := r.E2E()
			t.count(i, d > b.Limit)
		case measure.TPOT:
			if d, ok := r.TPOT(); ok && r.First >= 0 {
				t.count(i, d > b.Limit)
			}
		case measure.ITL:
			for _, us := range gaps {
				t.count(i, time.Duration(us)*time.Microsecond > b.Limit)
			}
		}
	}
	t.count(len(t.slo.Bounds), bad)
}

func (t *tally) count(i int, beyond bool) {
	t.counts[i].N++
	if beyond {
		t.counts[i].K++
	}
}

// overdue adds to counts a request in flight of the given age and output that
// is certain to miss. first is the age at its first token, negative before it.
func (t *tally) overdue(counts []measure.Count, age, first time.Duration, output int) {
	for i, b := range t.slo.Bounds {
		late := false
		switch b.Metric {
		case measure.TTFT:
			late = first > b.Limit || first < 0 && age > b.Limit
		case measure.E2E:
			late = age > b.Limit
		case measure.TPOT:
			late = first >= 0 && output > 1 && age-first > b.Limit*time.Duration(output-1)
		}
		if late {
			counts[i].N++
			counts[i].K++
		}
	}
}

package search

import (
	"time"

	"planner/sweep/workload"
)

// anywhere is the workload for trials: of a trace, one whose trials start at rows
// that their seeds draw. Trials that all began with the first row would see the same
// part of the trace again and again, and take its bursts for the whole.
func anywhere(w *workload.Workload) *workload.Workload {
	if w == nil || !w.Replayed() || w.AnyRow {
		return w
	}
	copied := *w
	copied.AnyRow = true
	return &copied
}

// lap lengthens the window of a trial to the whole trace: what bursts do to a server
// is seen by counting all of them once. Where engine time is short, and a lap would
// take more of it than one trial may, the window stays.
func (s *MaxRate) lap(window time.Duration, rate float64) time.Duration {
	w := s.cfg.Workload
	if w == nil || !w.Replayed() {
		return window
	}
	lap := time.Duration(min(float64(len(w.Replay))/rate*float64(time.Second), endless))
	if s.cfg.Budget > 0 && lap > s.cfg.Budget/lapShare {
		return window
	}
	return max(window, lap)
}

// lapShare is the part of the budget, as a divisor, that one lap of a trace may take.
const lapShare = 8

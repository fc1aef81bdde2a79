package search

import (
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// carried is the rate that a trial speaks of. Without conversations it is the one
// that was offered. A turn is only sent when the one before it has ended, and a
// schedule begins without conversations, so a trial whose warm-up is shorter than a
// conversation, or in which turns wait, sends less than is offered. What it shows
// to be well is well at the rate that was sent. What it shows to be bad is bad at
// the rate at which requests would come if none had to wait: that they did wait
// is the server's doing.
//
// Both are taken from the trial's own schedule, so the draw of the requests plays
// no part in the comparison.
func (s *MaxRate) carried(m *measure.Measurement, met bool) float64 {
	rate, w := m.Trial.Rate, s.cfg.Workload
	if w.Turns <= 1 || m.Duration <= 0 {
		return rate
	}
	from, to := m.Trial.Warmup, m.Trial.Warmup+m.Duration
	if steady := w.Steady(from, to); steady < measure.LeastSent {
		rate *= steady
	}
	if met {
		due := list.Count(w.Schedule(m.Trial.Rate, to, m.Trial.Seed), func(r workload.Request) bool { return r.Due >= from && r.Due < to })
		if share := m.Sent * m.Duration.Seconds() / float64(max(due, 1)); share < measure.LeastSent {
			rate *= share
		}
	}
	return rate
}

// windowShort says that the windows of trials were fixed at less than half of what they would be at a rate.
func (s *MaxRate) windowShort(rate float64) note.Notes {
	free, known := s.cfg, s.learned()
	free.Window, known.distrusted = 0, 0
	own := free.timed(rate, 1, known).Window
	return note.If(s.cfg.Window > 0 && s.cfg.Window < own/2, note.WindowShort, s.cfg.Window, own.Round(time.Second))
}

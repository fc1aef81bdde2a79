package search

import (
	"time"

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
	offered, w := m.Trial.Rate, s.cfg.Workload
	if w == nil || w.Turns <= 1 || m.Duration <= 0 || offered <= 0 {
		return offered
	}
	from, to := m.Trial.Warmup, m.Trial.Warmup+m.Duration
	rate := offered
	if steady := w.Steady(from, to); steady < measure.LeastSent {
		rate *= steady
	}
	if !met {
		return rate
	}
	due := 0
	for _, r := range w.Schedule(offered, to, m.Trial.Seed) {
		if r.Due >= from && r.Due < to {
			due++
		}
	}
	if share := m.Sent * m.Duration.Seconds() / float64(max(due, 1)); share < measure.LeastSent {
		rate *= share
	}
	return rate
}

// clumped makes conversations the unit in which exceedances come, before anything is
// seen of how they do: when the engine falls behind, all turns of the conversations
// under way are late.
func clumped(bounds []assumed, prior Prior, w *workload.Workload) []assumed {
	if w == nil || w.Turns <= 1 || prior.Phi > 0 {
		return bounds
	}
	for j := range bounds {
		bounds[j].phi.median *= float64(w.Turns)
	}
	return bounds
}

// cacheHits are the largest share of prompt tokens that the prefix cache held in a
// trial that met the objective, and the smallest in one that missed it.
func (s *MaxRate) cacheHits() (met, missed float64) {
	for _, t := range s.valid() {
		switch {
		case t.hits <= 0:
		case t.met:
			met = max(met, t.hits)
		case missed == 0 || t.hits < missed:
			missed = t.hits
		}
	}
	return met, missed
}

// remarks says what conversations, and trials of a given length, do to an answer.
func (s *MaxRate) remarks(rate float64) note.Notes {
	w := s.cfg.Workload
	var out note.Notes
	free, first := s.cfg, s.learned()
	free.Window, first.distrusted = 0, 0
	if own := free.timed(rate, 1, first).Window; s.cfg.Window > 0 && s.cfg.Window < own/2 {
		out = append(out, note.New(note.WindowShort, s.cfg.Window, own.Round(time.Second)))
	}
	if w.Turns <= 1 {
		return out
	}
	if met, missed := s.cacheHits(); missed > 0 && missed < (1-wide)*met {
		out = append(out, note.New(note.CacheCollapse, 100*met, 100*missed))
	}
	if settling := w.Settling(rate, first.typical()); s.cfg.Warmup > 0 && s.cfg.Warmup < settling {
		out = append(out, note.New(note.WarmUpShort, s.cfg.Warmup, settling.Round(time.Second)))
	}
	return out
}

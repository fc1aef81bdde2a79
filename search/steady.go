package search

import (
	"math"
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

// steadied lengthens a trial of conversations or shared prefixes so that the traffic
// is steady, and the prefix cache full, when the window begins. The requests of
// a conversation are one clump, and its length is the time that the number under
// way takes to change: the window is lengthened as well.
func (s *MaxRate) steadied(z size, rate float64, coarse bool) size {
	w := s.cfg.Workload
	settling := w.Settling(rate, s.typical())
	if settling == 0 {
		return z
	}
	if s.cfg.Window == 0 && w.Turns > 1 {
		z.window = max(z.window, time.Duration(s.courses(coarse)*float64(w.Course(s.typical()))))
	}
	if s.cfg.Warmup == 0 {
		if s.cfg.Budget > 0 {
			settling = min(settling, s.cfg.Budget/settlingShare)
		}
		z.warmup = max(z.warmup, settling+min(z.warmup, leastWarmup))
	}
	return z
}

// courses is how many conversations, one after another, a window is long.
func (s *MaxRate) courses(coarse bool) float64 {
	switch {
	case coarse:
		return 1
	case s.cfg.Budget > 0:
		return leastCourses
	}
	return min(leastCourses*math.Pow(growth, float64(min(s.fine(), 20))), mostCourses)
}

// fine counts the trials under load that were long enough to measure.
func (s *MaxRate) fine() int {
	n := 0
	for _, t := range s.tried {
		if t.valid && !t.coarse {
			n++
		}
	}
	return n
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

const (
	// leastCourses and mostCourses bound the length of a window in conversations. An
	// engine whose cache just holds the histories of those under way fails when
	// their number happens to rise, which it does within some tens of courses: where
	// time costs nothing, trials grow long enough to see it.
	leastCourses, mostCourses = 10, 40
	// settlingShare is the part of the budget, as a divisor, that the warm-up of one
	// trial may take.
	settlingShare = 10
)

// thrash watches the share of prompt tokens that the prefix cache held: the
// largest in a trial that met the objective, and the smallest in one that missed it.
type thrash struct{ met, missed float64 }

// lossy is how much of its hits, as a share, a cache that thrashes has lost at least.
const lossy = 0.2

// watch learns of a trial that counts.
func (h *thrash) watch(m *measure.Measurement, met bool) {
	switch hit := m.Server.HitRate; {
	case hit == nil || *hit <= 0:
	case met:
		h.met = max(h.met, *hit)
	case h.missed == 0 || *hit < h.missed:
		h.missed = *hit
	}
}

// remarks says what conversations, and trials of a given length, do to an answer.
func (s *MaxRate) remarks(rate float64) note.Notes {
	w := s.cfg.Workload
	var out note.Notes
	if own := s.ownWindow(rate); s.cfg.Window > 0 && s.cfg.Window < own*3/4 {
		out = append(out, note.New(note.WindowShort, s.cfg.Window, own.Round(time.Second)))
	}
	if w.Turns <= 1 {
		return out
	}
	if h := s.hits; h.missed > 0 && h.missed < (1-lossy)*h.met {
		out = append(out, note.New(note.CacheCollapse, 100*h.met, 100*h.missed))
	}
	if settling := w.Settling(rate, s.typical()); s.cfg.Warmup > 0 && s.cfg.Warmup < settling {
		out = append(out, note.New(note.WarmUpShort, s.cfg.Warmup, settling.Round(time.Second)))
	}
	return out
}

// ownWindow is the window of a first trial at a rate if none is given.
func (s *MaxRate) ownWindow(rate float64) time.Duration {
	free := MaxRate{cfg: s.cfg, bounds: s.bounds, posteriors: s.posteriors, latency: s.latency, mean: s.mean}
	free.cfg.Window = 0
	return free.sized(rate, false).window
}

// typical is the mean time of a request, as far as it is known.
func (s *MaxRate) typical() time.Duration {
	if s.mean > 0 {
		return s.mean
	}
	return s.latency
}

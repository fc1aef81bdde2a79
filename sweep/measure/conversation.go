package measure

import (
	"math"
	"time"

	"planner/internal/note"
)

// LeastSent is the least share of the offered requests that the window of a trial
// of conversations must see for its figures to be those of the offered rate. A
// measurement below it says so, and a search takes it at the rate that was sent.
const LeastSent = 0.95

// unsteady says why conversations sent fewer requests in the window than were
// offered; empty if they did not. A schedule begins without conversations under
// way, and a turn is sent only when the one before it has ended. Requests of one
// conversation are one clump, so that their number scatters by its turns.
func (c *cohort) unsteady(m *Measurement) note.Notes {
	w := c.trial.Workload
	if w == nil || w.Turns <= 1 || c.trial.Closed() || c.trial.Rate <= 0 || c.length() <= 0 {
		return nil
	}
	offered := c.trial.Rate
	if steady := w.Steady(c.from, c.to); steady < LeastSent {
		course := w.Course(max(m.E2E.Mean, 0))
		return note.Notes{note.New(note.ConversationsStarting, m.Sent, offered, course.Round(time.Second), c.trial.Warmup)}
	}
	want := offered * c.length()
	if missing := want - m.Sent*c.length(); missing > max((1-LeastSent)*want, 3*math.Sqrt(want*float64(w.Turns))) {
		return note.Notes{note.New(note.TurnsWaited, m.Sent, offered)}
	}
	return nil
}

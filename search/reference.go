package search

import (
	"fmt"
	"math"

	"planner/internal/note"
	"planner/sweep/measure"
)

// referenceLoad is the load at which challengers are measured: a little above what the
// incumbent carries, in trials as short as a search's first one. On the same requests
// these tell two sets apart that differ by a few per cent, provided that the incumbent is
// seen to miss the objective: where it meets it, what sets them apart, such as a place for
// one more sequence, was not even touched; where its queue outgrew everything, it is the
// same for all that are not much better. What the incumbent is thought to carry may be
// wrong by a tenth either way, so the reference is moved until it is neither.
type referenceLoad struct {
	rate float64
	// trial is the incumbent's there, but for its draw, and score what it showed.
	trial measure.Trial
	score showing
	moves int
	// met says that the incumbent met the objective at a lower rate. over is the lowest
	// rate at which it was overloaded so far, and worst what it showed there.
	met   bool
	over  float64
	worst showing
}

// move takes what the incumbent showed at the reference and moves it where that
// tells too little, by a step of what the incumbent's rate is uncertain by.
func (m *referenceLoad) move(s showing, step float64) (moved bool) {
	m.score = s
	m.moves++
	switch {
	case s.overloaded:
		m.over, m.worst = m.rate, s
		if m.met || m.moves > mostMoves {
			return false
		}
		m.rate /= 1 + step
	case s.excess >= 0 || m.moves > mostMoves:
		return false
	case m.over > 0:
		// Between meeting its objective and overload, a set that is better shows at the latter.
		m.rate, m.score = m.over, m.worst
		return false
	default:
		m.met = true
		m.rate *= 1 + step
	}
	return true
}

// referenceTrial measures the incumbent where challengers will be measured.
func (r *Race) referenceTrial() measure.Trial {
	s := r.incumbent.search
	if r.reference.rate == 0 {
		r.reference.rate = (1 + delta) * r.incumbent.carries.Value
	}
	first := unstarted(s.cfg.Prior)
	first.latency = s.latency
	cfg := s.cfg
	cfg.Budget = r.cfg.Search.Budget / partShare
	r.reference.trial = cfg.timed(r.reference.rate, 1, first)
	t := r.pairedTrial(r.incumbent)
	t.Why = "the best set so far, where challengers will be measured"
	return t
}

// pairedTrial measures a set at the reference. The requests are the same for all sets.
func (r *Race) pairedTrial(c *candidate) measure.Trial {
	test := c.tests
	if c == r.incumbent {
		test = 0
	}
	at := r.reference.trial
	at.Rate = r.reference.rate
	t := c.search.trial(at)
	t.Seed = trialSeed(r.cfg.Search.Seed^streamTests, test)
	t.Why = fmt.Sprintf("challenger: better than the best set by %.0f %%?", 100*delta)
	return *t
}

// showing says how far a trial at the reference is from the objective.
type showing struct {
	overloaded bool
	// bound is the one that is furthest beyond, or nearest to, what is allowed,
	// and share what it saw beyond the limit. mean says that it bounds a mean, of which
	// nothing is counted.
	bound string
	share float64
	mean  bool
	// excess is how far that bound is beyond what is allowed, on the scale of its
	// curve, and all the same of each bound, in the order of the objective.
	excess float64
	all    []excess
}

// excess is how far a bound is beyond what is allowed, NaN where nothing is known. counted
// says that it is told by counting: whole clumps of exceedances come or not. The bounded
// statistic tells more, where it is resolved: an exponential tail with the statistic x at
// the allowed share p has ln p (x/limit - 1) more or less beyond the limit.
type excess struct {
	value   float64
	counted bool
}

// scoreOf judges a trial by its raw counts.
func scoreOf(m *measure.Measurement) showing {
	s := showing{overloaded: m.Overloaded || m.Aborted.Text != "", excess: math.Inf(-1)}
	for _, b := range m.Trial.Objective.Bounds {
		c, ok := m.Count(b.String())
		if !ok || c.N == 0 {
			s.all = append(s.all, excess{value: math.NaN()})
			continue
		}
		e := excess{value: math.Log(max(c.Value, math.SmallestNonzeroFloat64))}
		if allowed := b.Allowed(); allowed > 0 {
			if x := m.Bounded(b); x > 0 {
				e.value = math.Log(1/allowed) * math.Log(float64(x)/float64(b.Limit))
			} else {
				// Half a request more keeps it finite where none, or all, are beyond.
				e = excess{link((float64(c.K)+0.5)/(float64(c.N)+1)) - link(allowed), true}
			}
		}
		s.all = append(s.all, e)
		if e.value > s.excess {
			s.bound, s.share, s.excess, s.mean = b.String(), float64(c.K)/float64(c.N), e.value, b.Allowed() == 0
		}
	}
	return s
}

// String says what was seen.
func (s showing) String() string {
	digits := "%.2g %% beyond %s"
	if s.share >= 0.1 {
		digits = "%.0f %% beyond %s"
	}
	text := fmt.Sprintf(digits, 100*s.share, s.bound)
	if s.mean {
		text = fmt.Sprintf("%.2g times %s", math.Exp(s.excess), s.bound)
	}
	if s.overloaded {
		text += " and overload"
	}
	return text
}

// advantage is by how much more, as a share, a set carries than the incumbent, told from
// their trials at the reference, with its standard deviation.
type advantage struct{ value, sd float64 }

// pairedGain compares a challenger's trial at the reference with the incumbent's. How much
// more each set could carry follows for each bound from its excess and from the
// steepness of the incumbent's curve; the least of them counts. An overload that only one
// of the two shows says which is better and hardly by how much.
func (r *Race) pairedGain(s showing) advantage {
	best := r.reference.score
	switch {
	case s.overloaded && best.overloaded:
		return advantage{0, unpairedSpread}
	case s.overloaded:
		return advantage{-unpairedSpread, unpairedSpread}
	case best.overloaded:
		return advantage{unpairedSpread, unpairedSpread}
	}
	parts := r.incumbent.search.posteriors
	sd := delta
	room := func(s showing) float64 {
		least, counted := math.Inf(1), true
		for j, e := range s.all {
			if x := -e.value / parts[j].kappa; x < least {
				least, counted = x, e.counted
			}
		}
		if counted {
			sd = unpairedSpread
		}
		return least
	}
	gain := room(s) - room(best)
	if math.IsNaN(gain) || math.IsInf(gain, 0) {
		return advantage{0, unpairedSpread}
	}
	return advantage{gain, sd}
}

// judge decides what a challenger's trial at the reference means. Both trials saw the
// same requests, so their difference is far surer than either figure is: one
// trial tells, where two independent ones of its length would not.
func (r *Race) judge(c *candidate, m *measure.Measurement) {
	c.tests++
	if !m.Valid {
		if c.tests >= few {
			c.status, c.reason = Tied, note.Because(note.InvalidInRow, c.tests, doubt(m))
		}
		return
	}
	s, best := scoreOf(m), r.reference.score
	switch g := r.pairedGain(s); {
	case g.value >= delta:
		c.gain = g
		r.promoted = append(r.promoted, c)
	case g.value > -delta/2:
		c.status, c.reason = Tied, note.Because(note.SeenAsGood, r.reference.rate, s, best)
	default:
		c.status, c.reason = Beaten, note.Because(note.SeenWorse, r.reference.rate, s, best)
	}
}

// better decides between a promoted set that was searched in full and the
// incumbent. Their two searches met different loads, so the difference of the
// rates is less sure than what the same requests showed at the reference; both count
// by what they are worth.
func (r *Race) better(c *candidate) bool {
	best := r.incumbent.carries
	difference := math.Log(c.carries.Value / best.Value)
	sd := math.Hypot(c.carries.deviation(), best.deviation())
	return c.gain.value/(c.gain.sd*c.gain.sd)+difference/(sd*sd) > 0
}

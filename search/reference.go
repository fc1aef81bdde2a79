package search

import (
	"fmt"
	"math"

	"planner/internal/note"
	"planner/sweep/measure"
)

// referenceLoad is the load at which challengers are measured: a little above what the incumbent
// carries, in trials as short as a search's first one. On the same requests
// these tell two sets apart that differ by a few per cent, provided that the
// incumbent is seen to miss the objective: where it shows next to no request
// beyond the limit, what sets them apart, such as a place for one more sequence,
// was not even touched; where its queue outgrew everything, it is the same for all
// that are not much better. What the incumbent is thought to carry may be wrong by
// a tenth either way, so the reference is moved until it is neither. Requests that happen
// to come so evenly that the incumbent carries far more of them would show of another
// set no more than that, and others are drawn.
type referenceLoad struct {
	rate float64
	draw int
	// trial is the incumbent's there, but for its draw.
	trial measure.Trial
	score showing
	moves int
	// low is the highest rate at which the incumbent showed too little, high the
	// lowest at which it was overloaded, and over what it showed there; 0 where there
	// is none.
	low, high float64
	over      showing
}

const (
	// above is where the incumbent is wanted, on the scale of its curve: at twice what
	// is allowed.
	above = 0.70
	// mostMoves is how often the reference is moved at most, farthest its largest distance
	// from the rate that the incumbent is thought to carry.
	mostMoves, farthest = 6, 0.2
	// enoughBeyond is the count of exceedances from which a trial there tells.
	enoughBeyond = 10
)

// move takes what the incumbent showed at the reference and moves it where that
// tells too little. steep is the steepness of the incumbent's curve, carries the rate
// that it is thought to carry.
func (m *referenceLoad) move(s showing, steep, carries float64) (moved bool) {
	m.score = s
	switch {
	case s.overloaded:
		m.high, m.over = m.rate, s
	case s.count >= enoughBeyond || s.mean:
		return false
	default:
		m.low = m.rate
	}
	if m.moves == mostMoves || m.low > 0 && m.high > 0 && m.high < m.low*(1+delta/2) {
		if m.high > 0 {
			// Between next to nothing and overload, a set that is better shows at the
			// latter.
			m.rate, m.score = m.high, m.over
		}
		return false
	}
	m.moves++
	switch {
	case m.low > 0 && m.high > 0:
		m.rate = math.Sqrt(m.low * m.high)
	case m.high > 0:
		m.rate /= 1 + delta
	case m.rate > (1+farthest-delta)*carries:
		*m = referenceLoad{rate: (1 + delta) * carries, draw: m.draw + 1, moves: m.moves}
	default:
		m.rate = min(m.rate*(1+max((above-s.excess)/steep, delta)), (1+farthest)*carries)
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
	r.reference.trial = s.cfg.timed(r.reference.rate, false, first)
	if s.cfg.Window == 0 {
		// Requests come at random: as many as resolve the statistics, in the mean, would
		// be too few in every other trial.
		r.reference.trial.Window += r.reference.trial.Window / 8
	}
	t := r.pairedTrial(r.incumbent)
	t.Why = "the best set so far, where challengers will be measured"
	return t
}

// pairedTrial measures a set at the reference. The requests are the same for all sets.
func (r *Race) pairedTrial(c *candidate) measure.Trial {
	test := max(c.tests, 0)
	if c == r.incumbent {
		test = 0
	}
	t := c.search.trial(r.reference.trial)
	t.Seed = trialSeed(r.cfg.Search.Seed^streamTests, test+r.reference.draw*(invalidInRow+1))
	t.Why = fmt.Sprintf("challenger: better than the best set by %.0f %%?", 100*delta)
	return *t
}

// showing says how far a trial at the reference is from the objective.
type showing struct {
	overloaded bool
	// bound is the one that is furthest beyond, or nearest to, what is allowed,
	// and share what it saw beyond the limit, count of them. mean says that it bounds
	// a mean, of which nothing is counted.
	bound string
	share float64
	count int
	mean  bool
	// excess is how far that bound is beyond what is allowed, on the scale of its
	// curve, and all the same of each bound, in the order of the objective; NaN
	// where nothing is known.
	excess float64
	all    []float64
	// tails are the same as told by the bounded statistic instead of by counting: an
	// exponential tail with the statistic x at the allowed share p has
	// ln p (x/limit - 1) more or less beyond the limit. NaN where the statistic is not
	// resolved.
	tails []float64
}

// scoreOf judges a trial by its raw counts.
func scoreOf(m *measure.Measurement) showing {
	s := showing{overloaded: m.Overloaded || m.Aborted.Text != "", excess: math.Inf(-1)}
	for _, b := range m.Trial.Objective.Bounds {
		c, ok := m.Count(b.String())
		if !ok || c.N == 0 {
			s.all, s.tails = append(s.all, math.NaN()), append(s.tails, math.NaN())
			continue
		}
		excess, tail := math.Log(max(c.Value, math.SmallestNonzeroFloat64)), math.NaN()
		if allowed := b.Allowed(); allowed > 0 {
			// Half a request more keeps it finite where none, or all, are beyond.
			excess = link((float64(c.K)+0.5)/(float64(c.N)+1)) - link(allowed)
			if x := m.Bounded(b); x > 0 {
				tail = math.Log(1/allowed) * math.Log(float64(x)/float64(b.Limit))
			}
		}
		s.all, s.tails = append(s.all, excess), append(s.tails, tail)
		if excess > s.excess {
			s.bound, s.share, s.count, s.excess, s.mean = b.String(), float64(c.K)/float64(c.N), c.K, excess, b.Allowed() == 0
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

// The standard deviation of a gain that is told from one trial of two sets on the
// same requests is pairedSpread where the same bound limits both and its statistic is
// resolved: on M/M/1 queues that differ by 5 %, it told 4 to 10 %, and counts of
// exceedances, whole clumps of which come or not, 0 to 25 %. Where only these are to
// be had they have pairedShare of their variances in common if the same bound limits
// both. An overload that only one
// of the two shows says which is better and hardly by how much.
const (
	pairedSpread    = 0.03
	pairedShare     = 0.8
	overloadGain    = 0.05
	overloadUnknown = 0.10
)

// pairedGain compares a challenger's trial at the reference with the incumbent's. How much
// more each set could carry follows for each bound from its excess and from the
// steepness of the incumbent's curve; the least of them counts.
func (r *Race) pairedGain(s showing) advantage {
	best := r.reference.score
	switch {
	case s.overloaded && best.overloaded:
		return advantage{0, overloadUnknown}
	case s.overloaded:
		return advantage{-overloadGain, overloadUnknown}
	case best.overloaded:
		return advantage{overloadGain, overloadUnknown}
	}
	parts := r.incumbent.search.posteriors
	roomFor := func(s showing) (room float64, of int) {
		room = math.Inf(1)
		for j, excess := range s.all {
			if x := -excess / parts[j].kappa; x < room {
				room, of = x, j
			}
		}
		return room, of
	}
	room, i := roomFor(s)
	bestRoom, j := roomFor(best)
	if math.IsInf(room, 1) || math.IsInf(bestRoom, 1) {
		return advantage{0, overloadUnknown}
	}
	g := advantage{room - bestRoom, pairedSpread}
	if distance := best.tails[j] - s.tails[j]; i == j && !math.IsNaN(distance) {
		g.value = distance / parts[j].kappa
	} else if !best.mean {
		clumps := parts[j].phi * (1/(float64(s.count)+1) + 1/(float64(best.count)+1))
		if i == j {
			clumps *= 1 - pairedShare
		}
		g.sd = max(g.sd, math.Sqrt(clumps)/parts[j].kappa)
	}
	return g
}

// judge decides what a challenger's trial at the reference means. Both trials saw the
// same requests, so their difference is far surer than either figure is: one
// trial tells, where two independent ones of its length would not.
func (r *Race) judge(c *candidate, m *measure.Measurement) {
	c.tests++
	if !m.Valid {
		if c.tests >= invalidInRow {
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
	if c.carries.Value <= 0 {
		return false
	}
	difference := math.Log(c.carries.Value / best.Value)
	sd := math.Hypot(math.Log(c.carries.High/c.carries.Low), math.Log(best.High/best.Low)) / (2 * quantile95)
	return c.gain.value/(c.gain.sd*c.gain.sd)+difference/(sd*sd) > 0
}

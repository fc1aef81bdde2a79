package search

import (
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

// Strategy says which knob sets are searched in full, and in which order. The zero
// value is ByPrediction.
type Strategy int

// The strategies, by their names in configurations "race", "one-at-a-time" and "grid".
const (
	// ByPrediction searches the set in full that is predicted to be the best, and of
	// the others, which are measured a little above its rate and on the same requests,
	// those that may be better (an incumbent race as in irace, ordered by prediction).
	ByPrediction Strategy = iota
	// OneAtATime searches every value of one knob in full, keeps the best, goes on with
	// the next knob, and so on. It begins with the first candidate, or the default where
	// it is one of them. It is cheap and easy to read, and blind to knobs that only help
	// together.
	OneAtATime
	// Grid searches every set in full. It costs as many searches as there are sets, and
	// leaves nothing to a prediction.
	Grid
)

// RaceConfig says which knob sets race, and under which load and objective.
type RaceConfig struct {
	// Strategy says which of them are searched in full.
	Strategy Strategy
	// Search is the search that each set would get by itself; its Prior is not
	// used. Its Budget bounds the whole race.
	Search MaxRateConfig
	// Candidates are the knob sets with what is predicted of each.
	Candidates []Prior
	// Explore is the share of the sets that are predicted to be worse which are
	// tried all the same, drawn at random, in case the prediction is wrong where
	// it matters; 0 means three in four, below 0 none. A try costs a seventh of a
	// search. With a simulator that under-predicts the best of 20 sets by 40 %
	// the best is found in seven races of ten without, and nearly always so.
	Explore float64
	// FinalPrecision is that of the final searches; 0 takes the search's own.
	FinalPrecision float64
	// Default, if set, is what the engine would do by itself. It is measured at
	// the end beside the winner.
	Default *Prior
	// Further, if set, is asked once nothing is left to try, given what the race
	// knows, and names sets that are tried all the same: those that were left out
	// by their prediction, and new ones beyond the candidates. It is asked again
	// until it names nothing that was not tried; for equal results its answers must
	// be equal.
	Further func(RaceResult) []Prior
	// OneEngine says that all trials run on one engine, which starts anew whenever
	// the knobs change: winner and default then take turns of several trials, and a
	// grid searches one set after the other.
	OneEngine bool
}

// Streams of the race's own draws.
const (
	streamWild = 101 + iota
	streamTests
	streamFinal
)

type phase int

const (
	seeking     phase = iota // looks for a set that meets the objective at all
	referencing              // measures the incumbent where challengers will be measured
	comparing                // tries challengers there, and measures promising ones in full
	finishing                // measures winner and default on more requests
	listing                  // searches the sets in full that the strategy admits
	finished
)

// Race finds the knob set with the highest maximum rate, as its strategy says.
type Race struct {
	cfg       RaceConfig
	all       []*candidate
	phase     phase
	incumbent *candidate
	// standard is what the engine would do by itself; nil if that is not known, or not
	// yet searched by a race that does so at the end.
	standard *candidate
	// admitted are the sets that are searched side by side, of this stage of the list.
	admitted []*candidate
	stage    int
	// reference is the incumbent's own trial at the challengers' rate.
	reference referenceLoad
	promoted  []*candidate
	// asked are the searches whose trials are out, in order.
	asked  []*candidate
	finals []*candidate
	// settled is what was known of the winner when they began.
	settled Result
	// turn counts the trials of the final searches on the only engine.
	turn   int
	spent  time.Duration
	trials int
}

// candidate is one knob set in the race.
type candidate struct {
	prior  Prior
	search *MaxRate
	status Status
	reason note.Reason
	// named says that it is tried whatever is predicted of it; tests counts its
	// trials at the reference.
	named bool
	tests int
	// carries is what its own search found, once that has ended; gain is by how
	// much more than the incumbent it seemed to carry on the same requests.
	carries Estimate
	gain    advantage
}

// NewRace starts a race. There must be a candidate.
func NewRace(cfg RaceConfig) *Race {
	if len(cfg.Candidates) == 0 {
		panic("search: race without candidates")
	}
	if len(cfg.Search.SLO.Bounds) == 0 && cfg.Strategy == ByPrediction {
		cfg.Strategy = Grid // what is compared at one rate are latencies
	}
	r := &Race{cfg: cfg}
	for _, p := range cfg.Candidates {
		r.all = append(r.all, &candidate{prior: p})
	}
	if cfg.Strategy != ByPrediction {
		r.list()
	}
	return r
}

// Next proposes the next trials; none when the race is over.
func (r *Race) Next() []measure.Trial {
	for r.phase != finished {
		limit := r.cfg.Search.Budget
		if r.phase != seeking {
			limit -= limit / finalShare
		}
		if limit > 0 && r.spent >= limit && r.phase < finishing {
			r.cut()
			r.conclude(note.Because(note.BudgetSpent))
		}
		var batch []measure.Trial
		switch r.phase {
		case seeking:
			batch = r.seek()
		case referencing:
			batch = r.ask(r.incumbent, r.referenceTrial())
		case comparing:
			batch = r.compare()
		case finishing:
			batch = r.finish()
		case listing:
			batch = r.nextListed()
		}
		if len(batch) > 0 {
			return batch
		}
	}
	return nil
}

// Observe takes the measurement of a proposed trial.
func (r *Race) Observe(m measure.Measurement) {
	c := r.asked[0]
	r.asked = r.asked[1:]
	r.trials++
	before := c.search.spent
	c.search.Observe(m)
	r.spent += c.search.spent - before
	switch {
	case m.Rejected.Text != "":
		c.status, c.reason = Unable, m.Rejected
	case r.phase == referencing:
		if !r.reference.move(scoreOf(&m), max(delta, r.incumbent.carries.deviation())) {
			r.phase = comparing
		}
	case r.phase == comparing && c.status == underTest:
		r.judge(c, &m)
	}
}

// ask proposes a trial of a candidate.
func (r *Race) ask(c *candidate, t measure.Trial) []measure.Trial {
	r.asked = append(r.asked, c)
	return []measure.Trial{t}
}

// follow proposes what a candidate's own search wants next.
func (r *Race) follow(c *candidate) []measure.Trial {
	batch := c.search.Next()
	for range batch {
		r.asked = append(r.asked, c)
	}
	return batch
}

// sideBySide proposes what the searches of some candidates want next, of as many at
// a time as go on.
func (r *Race) sideBySide(sets []*candidate, most int) []measure.Trial {
	var batch []measure.Trial
	for _, c := range sets {
		if len(batch) < most && c.status != Unable {
			batch = append(batch, r.follow(c)...)
		}
	}
	return batch
}

// searchOf starts a search of its own for a candidate, within a part of what is left of
// the budget.
func (r *Race) searchOf(p Prior, seed uint64, part time.Duration) *MaxRate {
	cfg := r.cfg.Search
	cfg.Prior, cfg.Seed = p, seed
	if cfg.Budget > 0 {
		cfg.Budget = max((cfg.Budget-r.spent)/part, time.Second)
	}
	return NewMaxRate(cfg)
}

// seek searches the sets in the order of prediction until one meets the objective at some
// rate. Each has a part of what is left of the budget: the rest is for the other sets.
// It gives up where several told nothing, for what is hardly a matter of the knobs then.
func (r *Race) seek() []measure.Trial {
	undecided := 0
	for {
		c := r.favourite()
		if c == nil {
			r.phase = finished
			return nil
		}
		if c.search == nil {
			c.search = r.searchOf(c.prior, r.cfg.Search.Seed, time.Duration(min(max(len(r.all), finalShare), partShare)))
			c.status = Measured
		}
		if batch := r.follow(c); len(batch) > 0 {
			return batch
		}
		switch found := c.search.Result(); {
		case c.status == Unable:
		case found.Estimate.Value > 0:
			c.carries = found.Estimate
			r.crown(c)
			return nil
		default:
			c.without(found)
		}
		undecided = 0
		for _, c := range r.all {
			if c.status == Skipped {
				undecided++
			}
		}
		if undecided >= few {
			r.skip(note.Because(note.NotTriedBehind, undecided, c.reason.Text))
		}
	}
}

// without says of a set that its search ended without a rate: it meets the objective at
// none, or what was measured does not tell.
func (c *candidate) without(found Result) {
	c.status, c.reason = Skipped, found.Reason
	if found.Outcome == Infeasible {
		c.status = Infeasibly
	}
}

// skip says of the sets that were not tried why.
func (r *Race) skip(why note.Reason) {
	for _, c := range r.all {
		switch c.status {
		case Untried:
			c.status, c.reason = Skipped, why.Or(r.foretold(c))
		case underTest:
			c.status, c.reason = Tied, why.Or(note.Because(note.AsGood, 100*delta))
		}
	}
}

// replace makes a set the incumbent.
func (r *Race) replace(c *candidate) {
	if old := r.incumbent; old != nil {
		old.reason = note.Because(note.CarriesLess, old.carries, c.carries)
		if old.carries.Value > c.carries.Value {
			old.reason = note.Because(note.CarriesLessBy, old.carries, c.carries, 100*c.gain.value)
		}
	}
	r.incumbent = c
	c.status, c.reason = Measured, note.Reason{}
}

// crown makes a set the incumbent that others are compared with.
func (r *Race) crown(c *candidate) {
	r.replace(c)
	r.phase, r.reference = referencing, referenceLoad{}
	if len(r.contenders()) == 0 && !r.further() {
		r.conclude(note.Reason{})
	}
}

// compare measures promising challengers in full, and else tries those that are most
// likely to be better.
func (r *Race) compare() []measure.Trial {
	if batch := r.refine(); len(batch) > 0 || r.phase != comparing {
		return batch
	}
	var batch []measure.Trial
	for _, c := range r.contenders() {
		if c.search == nil {
			c.search = r.searchOf(r.recentred(c), r.cfg.Search.Seed, partShare)
		}
		c.status = underTest
		batch = append(batch, r.ask(c, r.pairedTrial(c))...)
	}
	if len(batch) == 0 && !r.further() {
		r.conclude(note.Reason{})
	}
	return batch
}

// refine searches the promoted sets in full, one after another.
func (r *Race) refine() []measure.Trial {
	for len(r.promoted) > 0 {
		c := r.promoted[0]
		if c.status != Unable {
			c.status = Measured
			if batch := r.follow(c); len(batch) > 0 {
				return batch
			}
		}
		r.promoted = r.promoted[1:]
		if c.status == Unable {
			continue
		}
		if r.wins(c) {
			r.crown(c)
		}
	}
	return nil
}

// wins reports whether a promoted set is better than the incumbent by what its own search tells,
// which becomes what it carries.
func (r *Race) wins(c *candidate) bool {
	found := c.search.Result()
	if c.carries = found.Estimate; !(c.carries.Value > 0) {
		c.without(found)
		return false
	}
	c.reason = note.Because(note.CarriesLess, c.carries, r.incumbent.carries)
	return r.better(c)
}

// cut decides on the promoted sets whose searches the budget leaves no room for, by what these
// know so far: the final search measures the one that seems best.
func (r *Race) cut() {
	for _, c := range r.promoted {
		if c.status == Unable {
			continue
		}
		if c.status = Measured; r.wins(c) {
			r.replace(c)
		}
	}
	r.promoted = nil
}

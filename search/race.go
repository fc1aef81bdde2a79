package search

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// Strategy says which knob sets are searched in full, and in which order. The zero value is ByPrediction.
type Strategy string

// The strategies, by their names in configurations.
const (
	// ByPrediction searches the set that is predicted to be best in full. The others are measured a little above its
	// rate on the same requests, and those that may be better are searched too (an incumbent race as in irace).
	ByPrediction Strategy = "race"
	// OneAtATime searches every value of one knob in full, keeps the best, goes on with the next knob, and so on. It
	// begins with the first candidate, or the default if that is one, and is blind to knobs that only help together.
	OneAtATime Strategy = "one-at-a-time"
	// Grid searches every set in full. It costs as many searches as there are sets, and relies on no prediction.
	Grid Strategy = "grid"
)

// RaceConfig says which knob sets race, and under which load and objective.
type RaceConfig struct {
	Strategy Strategy
	// Search is the search that each set would get by itself, without its Prior. Its Budget bounds the whole race.
	Search         MaxRateConfig
	Candidates     []Prior // the knob sets with what is predicted of each
	FinalPrecision float64 // of the final searches; 0 means that of Search
	// Default, if set, holds the engine's own settings, which are measured at the end beside the winner.
	Default *Prior
	// Further, if set, is asked once nothing is left to try, given what the race knows, and names sets to be tried
	// whatever their prediction: some that it excluded, and new ones beyond the candidates. It is asked again until it
	// names none that is untried; for equal results its answers must be equal.
	Further func(RaceResult) []Prior
	// OneEngine says that all trials run on one engine, which restarts whenever the knobs change: winner and default
	// then take turns of several trials, and a grid searches one set after the other.
	OneEngine bool
}

// Race finds the knob set with the highest maximum rate, as its strategy says.
type Race struct {
	cfg RaceConfig
	all []*candidate
	// chosen says that no more sets are searched or compared, ended that winner and default have been measured, too.
	chosen, ended bool
	// incumbent is the best of the sets that were searched; nil while none has a rate.
	incumbent *candidate
	// standard holds the engine's own settings; nil if they are not known.
	standard *candidate
	// searched are the sets whose own searches are in progress, promoted those to be searched next.
	searched, promoted []*candidate
	// settled is what was known of the winner before its final search; nil until then.
	settled   *Result
	reference referenceLoad
	// stage counts the knobs varied so far, one after another, and turn the trials of the current turn on one engine.
	stage, turn int
	spent       time.Duration
}

// candidate is one knob set in the race.
type candidate struct {
	prior  Prior
	search *MaxRate
	status Status
	reason note.Reason
	// named says that the set is tried whatever its prediction; doubted counts its untrusted trials at the reference.
	named   bool
	doubted int
	// carries is what its own search found, once that has ended; gain is how much more than the incumbent it seemed to
	// carry on the same requests, as a share.
	carries Estimate
	gain    float64
}

// NewRace starts a race. There must be a candidate.
func NewRace(cfg RaceConfig) *Race {
	if len(cfg.Candidates) == 0 {
		panic("search: race without candidates")
	}
	cfg.Strategy = cmp.Or(cfg.Strategy, ByPrediction)
	if len(cfg.Search.SLO.Bounds) == 0 && cfg.Strategy == ByPrediction {
		cfg.Strategy = Grid // only latencies are compared at one rate
	}
	r := &Race{cfg: cfg, all: list.Map(cfg.Candidates, func(p Prior) *candidate { return &candidate{prior: p} })}
	if cfg.Default != nil {
		r.standard = r.candidate(*cfg.Default)
	}
	return r
}

// candidate returns the race's entry for some knobs, or a new one.
func (r *Race) candidate(p Prior) *candidate {
	known := append(slices.Clone(r.all), r.standard, &candidate{prior: p})
	return known[slices.IndexFunc(known, func(c *candidate) bool { return c != nil && c.prior.Knobs == p.Knobs })]
}

// Next proposes the next trials; none when the race is over. What the searches in progress find decides what comes next.
func (r *Race) Next() []measure.Trial {
	for {
		if batch := r.underWay(); len(batch) > 0 {
			return batch
		}
		if r.ended = r.chosen; r.ended {
			return nil
		}
		r.decide(r.searched)
		r.searched = nil
		if batch := r.choose(); len(batch) > 0 {
			return batch
		}
	}
}

// Observe takes the measurement of a proposed trial.
func (r *Race) Observe(m measure.Measurement) {
	c := r.candidate(Prior{Knobs: m.Trial.Knobs})
	before := c.search.spent
	c.search.Observe(m)
	r.spent += c.search.spent - before
	switch {
	case m.Rejected.Text != "":
		if c.status, c.reason = Unable, m.Rejected; c == r.incumbent && !r.chosen {
			r.incumbent, r.reference = nil, referenceLoad{}
			for _, next := range r.all {
				if next.status == Measured && next.carries.Value > 0 && (r.incumbent == nil || next.carries.Value > r.incumbent.carries.Value) {
					r.incumbent = next
				}
			}
		}
	case len(r.searched) > 0:
	case !m.Tells():
		why := note.Because(note.InvalidInRow, few, m.Doubt())
		if c.doubted++; c.doubted >= few && c == r.incumbent {
			r.conclude(why)
		} else if c.doubted >= few {
			c.status, c.reason = Tied, why
		}
	case c == r.incumbent:
		r.reference.move(r.shows(&m), max(delta, math.Log(c.carries.High/c.carries.Low)/(2*stat.NormalTail(c.carries.Confidence))))
	default:
		r.judge(c, &m)
	}
}

// underWay proposes the next trials of the searches in progress: side by side or, on one engine, in turns.
func (r *Race) underWay() (batch []measure.Trial) {
	for range r.searched {
		c := r.searched[0]
		if c.status != Unable {
			batch = append(batch, c.search.Next()...)
		}
		alone := r.cfg.OneEngine && len(batch) > 0
		if r.turn++; !alone || r.turn >= turnTrials {
			r.turn, r.searched = 0, append(r.searched[1:], c)
		}
		if alone {
			break
		}
	}
	return batch
}

// search begins the full search of a set, unless it has begun, with 1/part of the remaining budget.
func (r *Race) search(c *candidate, p Prior, part int) {
	if c.search == nil {
		cfg := r.cfg.Search
		cfg.Prior = p
		if cfg.Budget > 0 {
			cfg.Budget = max((cfg.Budget-r.spent)/time.Duration(part), time.Second)
		}
		c.search = NewMaxRate(cfg)
	}
}

// begin starts the searches of so many promoted sets side by side, each with 1/part of the remaining budget.
func (r *Race) begin(together, part int) {
	together = min(together, len(r.promoted))
	r.searched, r.promoted = slices.Clone(r.promoted[:together]), r.promoted[together:]
	for _, c := range r.searched {
		r.search(c, c.prior, part)
		c.status = Measured
	}
}

// list begins the next searches of a strategy without predictions: of all sets, or of those that differ from the best so
// far in the next knob alone, and of the engine's own settings. On one engine they run one after another.
func (r *Race) list() {
	knobs := measure.Searched()
	for ; len(r.promoted) == 0 && r.stage < len(knobs); r.stage++ {
		for _, c := range r.all {
			varied := r.lead().prior.Knobs
			knobs[r.stage].Copy(&varied, c.prior.Knobs)
			if c.search == nil && (r.cfg.Strategy == Grid || varied == c.prior.Knobs) {
				r.promoted = append(r.promoted, c)
			}
		}
	}
	if s := r.standard; s != nil && s.search == nil && !slices.Contains(r.promoted, s) {
		r.promoted = append(r.promoted, s)
	}
	r.chosen = len(r.promoted) == 0
	together, parts := field, len(r.promoted)
	if r.cfg.Strategy == OneAtATime {
		parts *= 1 + len(knobs) - r.stage
	}
	if r.cfg.OneEngine {
		together = 1
	}
	r.begin(together, parts)
}

// choose takes the next step when no search is in progress. ByPrediction searches sets in predicted order until one has
// a rate, each with a part of the remaining budget, so that the others have theirs. If several told nothing, or miss the
// objective even when idle, the race gives up: it is hardly a matter of the knobs. Once there is a rate, the sets
// likeliest to be better are tried beside the incumbent, and those that seem better are searched.
func (r *Race) choose() []measure.Trial {
	if r.cfg.Strategy != ByPrediction {
		r.list()
		return nil
	}
	contenders, part := r.contenders(), min(max(len(r.all), finalShare), partShare)
	told := slices.DeleteFunc(slices.Clone(r.all), func(c *candidate) bool {
		return c.status != Skipped && (c.status != Infeasibly || c.search.idle.broken < 0)
	})
	limit := r.cfg.Search.Budget
	if r.incumbent != nil {
		limit -= limit / finalShare
	}
	switch {
	case limit > 0 && r.spent >= limit:
		r.decide(r.promoted)
		r.conclude(note.Because(note.BudgetSpent))
	case r.incumbent == nil && len(told) >= few:
		r.conclude(note.Because(note.NotTriedBehind, len(told), told[0].reason.Text))
	case len(r.promoted) > 0 || r.incumbent == nil && len(contenders) > 0:
		if len(r.promoted) == 0 {
			r.promoted = contenders[:1]
		}
		r.begin(1, part)
	case len(contenders) == 0:
		if r.incumbent == nil || r.cfg.Further == nil || !r.further() {
			r.conclude(note.Reason{})
		}
	case !r.reference.settled:
		return []measure.Trial{r.referenceTrial()}
	default:
		var batch []measure.Trial
		for _, c := range contenders {
			r.search(c, r.predicted(c), part)
			c.status = underTest
			batch = append(batch, r.pairedTrial(c))
		}
		return batch
	}
	return nil
}

// decide takes the results of searches. The better set by these and by the paired trials becomes the incumbent.
func (r *Race) decide(sets []*candidate) {
	for _, c := range sets {
		if c.status == Unable || !slices.Contains(r.all, c) {
			continue
		}
		found := c.search.Result()
		c.status, c.carries = Measured, found.Estimate
		switch {
		case found.Outcome == Infeasible:
			c.status, c.reason = Infeasibly, found.Reason
		case !(c.carries.Value > 0):
			c.status, c.reason = Skipped, found.Reason
		case r.incumbent == nil || c.gain+math.Log(c.carries.Value/r.incumbent.carries.Value) > 0:
			for _, other := range r.promoted {
				other.gain -= c.gain // the others were compared with the previous incumbent
			}
			r.incumbent, r.reference = c, referenceLoad{}
		}
	}
}

// conclude begins the final measurements, of the winner and the default: on a budget their searches go on, and where
// engine time is free new ones begin. If no set has a rate, the one that tells most gets what is left of the budget.
func (r *Race) conclude(why note.Reason) {
	for _, c := range r.all {
		switch c.status {
		case Untried:
			c.status, c.reason = Skipped, why.Or(r.foretold(c))
		case underTest:
			c.status, c.reason = Tied, why.Or(note.Because(note.AsGood, 100*delta))
		}
	}
	r.searched, r.promoted, r.chosen = nil, nil, true
	winner, last := r.lead(), r.cfg.Search
	if winner.search == nil || r.incumbent == nil && (last.Budget == 0 || winner.search.outcome.hopeless()) {
		return
	}
	r.searched = []*candidate{winner}
	if r.incumbent != nil {
		r.settled = new(winner.search.Result())
		if r.standard != nil && r.standard != winner {
			r.searched = append(r.searched, r.standard)
		}
	}
	r.cfg.Search.Precision = cmp.Or(r.cfg.FinalPrecision, last.Precision)
	r.cfg.Search.Seed = trialSeed(last.Seed, streamFinal)
	for _, c := range r.searched {
		switch prior := c.prior; {
		case last.Budget == 0:
			if c == winner {
				prior.Rate, prior.Spread, prior.Latency = c.carries.Value, 0, c.search.latency
			}
			c.search = nil
			r.search(c, prior, 1)
		case c.search == nil:
			r.search(c, prior, len(r.searched))
		case !c.search.outcome.hopeless():
			c.search.goOn((last.Budget-r.spent)/time.Duration(len(r.searched)), r.cfg.Search.Precision)
		}
	}
}

// goOn continues a search with a further budget, to a precision. The race chose by its trials so far, so as many new
// ones must measure near the answer as any answer rests on.
func (s *MaxRate) goOn(budget time.Duration, precision float64) {
	s.cfg.Budget, s.cfg.Precision = s.spent+budget, cmp.Or(precision, s.cfg.Precision)
	s.outcome, s.reason, s.chosen, s.inRow = Searching, note.Reason{}, len(s.tried), 0
}

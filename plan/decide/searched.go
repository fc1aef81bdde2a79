package decide

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"planner/internal/list"
	"planner/internal/note"
	"planner/model/calibrate"
	"planner/plan/effects"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// SearchResults is what a decision's searches found, as a run folder keeps it: a plan for another demand or at
// other prices is made from it without a search.
type SearchResults struct {
	// Of is a digest of everything in the configuration that affects the results.
	Of          string              `json:"of"`
	Looks       []search.Result     `json:"looks"`    // results of the coarse pass's short searches, for all kinds of instances; none without a coarse pass
	Kinds       []search.RaceResult `json:"kinds"`    // results for the kinds of instances that were searched in full
	Rejected    []measure.Rejection `json:"rejected"` // the knob sets that cannot run, or were left out
	Certificate *search.Certified   `json:"certificate,omitempty"`
	Trials      []int               `json:"trials"` // the numbers of its trials
	Doubts      []doubted           `json:"doubts"` // uncertainty of the engine's constants
	Placed      *placed             `json:"placed"` // nil where there is no plan
}

// doubted is how far plausible constants move a knob set's rate.
type doubted struct {
	Knobs  measure.Knobs    `json:"knobs"`
	Rate   float64          `json:"rate_per_s"`
	Shifts calibrate.Shifts `json:"shifts"` // logarithms of the factors
}

// placed is what short runs say about the chosen knobs: how scenarios change their rate, and the rates of other
// sets beside it.
type placed struct {
	Knobs   measure.Knobs     `json:"knobs"`
	Moves   []moved           `json:"moves"`
	Crossed []effects.Setting `json:"crossed"`
	// Faster names kernels that carry more than the engine's default ones.
	Faster note.Notes `json:"faster,omitempty"`
}

// PlanStudy is the study of a plan, whose searches can be kept and recalled.
type PlanStudy interface {
	sweep.Study
	// Searched returns what the searches found, once they have ended.
	Searched() []SearchResults
	// Recall answers from the results and trials of an earlier study; false if that asked for something else,
	// or if some of it is missing.
	Recall(found []SearchResults, trials []measure.Measurement) bool
}

// digest identifies the configurations that share searches.
func (d *Decision) digest() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(d.cfg.Sought()))) }

// Searched returns what the searches found.
func (d *Decision) Searched() []SearchResults {
	s := SearchResults{Of: d.digest(), Looks: d.looked, Rejected: d.Unable, Doubts: d.doubts, Placed: d.placed,
		Kinds:  list.Map(d.instances, func(i *instance) search.RaceResult { return i.race() }),
		Trials: list.Map(d.Seen, func(m measure.Measurement) int { return m.Trial.Number })}
	if d.certificate != nil {
		s.Certificate = new(d.certificate())
	}
	return []SearchResults{s}
}

// Recall replaces the searches, and the curve of the set then chosen.
func (d *Decision) Recall(found []SearchResults, trials []measure.Measurement) bool {
	if len(found) != 1 || found[0].Of != d.digest() {
		return false
	}
	s := found[0]
	kept := 0
	for _, i := range d.instances {
		kind := i.priors[0].Knobs.Kind()
		if race, ok := list.Find(s.Kinds, func(r search.RaceResult) bool { return r.Knobs.Kind() == kind }); ok {
			i.race = func() search.RaceResult { return race }
			kept++
		}
		if look, ok := list.Find(s.Looks, func(r search.Result) bool { return r.Knobs.Kind() == kind }); ok {
			i.sight = func() search.Result { return look }
		} else if i.race == nil || d.coarsely() {
			return false // neither searched nor left out by a coarse pass
		}
	}
	trials = list.Filter(trials, func(m measure.Measurement) bool { return slices.Contains(s.Trials, m.Trial.Number) })
	if len(trials) != len(s.Trials) || kept != len(s.Kinds) {
		return false
	}
	if s.Certificate != nil {
		d.certificate = func() search.Certified { return *s.Certificate }
	}
	d.Unable, d.looked, d.Seen, d.doubts, d.placed = s.Rejected, s.Looks, trials, s.Doubts, s.Placed
	if d.coarsely() {
		d.leave(func(i *instance) bool { return i.race != nil })
	}
	d.plan, d.solved = d.solve()
	d.Stages, d.Ended = nil, true
	return true
}

// Searched returns what the searches of one pool and of each class found.
func (p *PoolStudy) Searched() []SearchResults {
	return slices.Concat(list.Map(p.all, (*Decision).Searched)...)
}

// Recall replaces the searches of one pool and of each class.
func (p *PoolStudy) Recall(found []SearchResults, trials []measure.Measurement) bool {
	p.Ended = len(found) == len(p.all)
	for i, d := range p.all {
		p.Ended = p.Ended && d.Recall(found[i:i+1], trials)
	}
	return p.Ended
}

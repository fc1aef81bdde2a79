package decide

import (
	"math"
	"slices"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/model/calibrate"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// newRace starts the search over knob sets by the configuration's strategy.
func newRace(cfg *config.Config, g sweep.Ground, i *instance) *search.Race {
	c := search.RaceConfig{Strategy: search.Strategy(cfg.Search.Strategy), Search: maxRateConfig(cfg, search.Prior{}), Candidates: i.priors, Default: i.standard}
	if g.Virtual {
		if !cfg.Search.BudgetGiven {
			// Requests are cheap: fine enough that chance neither sizes the fleet nor separates winner and
			// default, and no finer than trials can resolve.
			const share, finest = 0.4, 0.03
			c.FinalPrecision = min(cfg.Search.Precision, max(share*cfg.Search.Precision, finest))
		}
		if !cfg.Objective.Throughput {
			c.Further = func(r search.RaceResult) []search.Prior { return pastEnds(cfg, g.Predict, r) }
		}
	}
	c.OneEngine = !g.Virtual && g.Owned
	return search.NewRace(c)
}

// rated is a knob set with what is known of its maximum rate.
type rated struct {
	knobs measure.Knobs
	// found is what these knobs' search alone says of their maximum rate, rate the same with the uncertainty of
	// the engine's constants.
	found search.Result
	rate  search.Estimate
	doubt calibrate.Shifts
}

// rated adds the uncertainty of the engine's constants to what a search found.
func (s *searches) rated(k measure.Knobs, found search.Result) rated {
	doubt := s.doubtOf(k, found.Estimate)
	return rated{k, found, widen(found.Estimate, doubt), doubt}
}

// setting is the set for a comparison.
func (r *rated) setting() plan.Setting {
	if !(r.rate.Value > 0) {
		return plan.Setting{Knobs: r.knobs}
	}
	return plan.Setting{Knobs: r.knobs, Rate: new(r.rate)}
}

// selection is what a kind of instance takes from its race: the best set, or the engine's own settings if the
// best set is not shown to carry more.
type selection struct {
	rated
	// comparison is nil if the default was not tried.
	comparison *plan.Comparison
	rejected   []measure.Rejection
	warnings   note.Notes
}

// choose decides between a race's best set and the engine's own settings by their last searches, whose requests
// were used for no choice.
func (d *Decision) choose(i *instance) *selection {
	race := i.race()
	s := &selection{rated: d.rated(race.Knobs, race.Best), warnings: slices.Concat(race.Best.Warnings, edgeWarnings(race, i.standard))}
	s.rejected = list.Map(race.Contestants, func(c search.Contestant) measure.Rejection {
		return measure.Rejection{Knobs: c.Knobs, Reason: c.Reason.Or(note.Text(c.Status.String()).Reason())}
	})
	d.preferSafe(s, race.Contestants)
	if i.standard == nil || race.Default == nil {
		return s
	}
	best := s.setting()
	if i.standard.Knobs == s.knobs {
		s.comparison = &plan.Comparison{Default: best, Tuned: best}
		return s
	}
	standard := d.rated(i.standard.Knobs, *race.Default)
	s.comparison = &plan.Comparison{Default: standard.setting(), Tuned: best}
	gain := search.Estimate{}
	if s.rate.Value > 0 && standard.rate.Value > 0 {
		gain = widen(Ratio(s.found.Estimate, race.Default.Estimate), s.doubt.Over(standard.doubt))
		s.comparison.Gain = &search.Estimate{Value: gain.Value - 1, Low: gain.Low - 1, High: gain.High - 1, Safe: gain.Safe - 1, Confidence: gain.Confidence}
	}
	if allowed(d.cfg, standard.knobs) && prefersDefault(s.rate, standard.rate, gain) {
		s.take(standard, note.Because(note.NotBetter, s.found.Estimate, race.Default.Estimate))
	}
	return s
}

// take replaces the selected set by another one, for a reason.
func (s *selection) take(other rated, why note.Reason) {
	s.rejected = slices.DeleteFunc(s.rejected, func(r measure.Rejection) bool { return r.Knobs == other.knobs })
	s.rejected = append(s.rejected, measure.Rejection{Knobs: s.knobs, Reason: why})
	s.rated, s.warnings = other, other.found.Warnings
}

// secured returns a race's results with sets that were searched after it.
func secured(race func() search.RaceResult, also map[measure.Knobs]*search.MaxRate) func() search.RaceResult {
	return func() search.RaceResult {
		r := race()
		r.Contestants = slices.Clone(r.Contestants)
		for i := range r.Contestants {
			if m := also[r.Contestants[i].Knobs]; m != nil && m.Result().Estimate.Value > 0 {
				r.Contestants[i].Found = new(m.Result())
			}
		}
		return r
	}
}

// secure searches further sets if the uncertainty of the engine's constants makes a fleet of the best set a
// quarter larger than its likely rate would: those with smaller steps that the race measured beside it, as
// their gaps have more room; of those with other slots the ones whose steps replay CUDA graphs, so that they wait for no
// launches. It does nothing under a budget, which is the race's alone.
func (d *Decision) secure() sweep.Source {
	if d.failed != nil || d.cfg.Search.BudgetGiven {
		return nil
	}
	together := &sweep.Together{}
	for _, i := range d.instances {
		race := i.race()
		if best := d.rated(race.Knobs, race.Best); (1+Dearer)*best.rate.Safe >= best.rate.Value {
			continue
		}
		also := map[measure.Knobs]*search.MaxRate{}
		for _, c := range race.Contestants {
			if !shortens(d.ground.Predict, c.Knobs, race.Knobs) || c.Found != nil || c.Status != search.Beaten && c.Status != search.Tied {
				continue
			}
			also[c.Knobs] = search.NewMaxRate(maxRateConfig(d.cfg, search.Prior{Knobs: c.Knobs}))
			together.Sources = append(together.Sources, also[c.Knobs])
		}
		i.race = secured(i.race, also)
	}
	return together
}

// preferSafe takes the searched set with the highest safe rate if a fleet of the best set would need a quarter
// more instances. The uncertainty of the engine's constants may move the rate of one set far more than that of
// another: steps that just fit a limit exceed it if all are slightly slower.
func (d *Decision) preferSafe(s *selection, others []search.Contestant) {
	safest := rated{rate: search.Estimate{Safe: (1 + Dearer) * s.rate.Safe}}
	for _, c := range others {
		if c.Found == nil || c.Found.Estimate.Safe <= safest.rate.Safe {
			continue
		}
		if r := d.rated(c.Knobs, *c.Found); r.rate.Safe > safest.rate.Safe {
			safest = r
		}
	}
	if safest.found.Trials > 0 {
		s.take(safest, note.Because(note.LessSafe, s.rate.Value, stat.RoundedDown(s.rate.Safe, 3), stat.RoundedDown(safest.rate.Safe, 3)))
	}
}

// Dearer is the share of additional instances accepted for want of a gain that is shown.
const Dearer = 0.25

// prefersDefault reports whether the engine's own settings are chosen over the best set: if their safe rate is
// no lower, or if no gain is shown, that is, the interval of the ratio of the rates includes one. As fleets are
// sized by safe rates, the default is not kept for the latter reason if it would take a quarter more instances.
func prefersDefault(best, standard, gain search.Estimate) bool {
	return standard.Safe > 0 && (standard.Safe >= best.Safe || gain.Low <= 1 && best.Safe <= (1+Dearer)*standard.Safe)
}

// allowed reports whether the engine's own settings may be chosen: each knob has a value that the configuration
// lists, or the user gave no list for it.
func allowed(cfg *config.Config, k measure.Knobs) bool {
	return !slices.ContainsFunc(measure.Searched(), func(n measure.Knob) bool {
		return !cfg.Open(n) && !slices.ContainsFunc(cfg.Space[n.Name], func(v any) bool {
			listed := k
			n.Set(&listed, v)
			return listed == k
		})
	})
}

// settled returns what a kind of instance is reported with: its selection or, before there is one, what its
// race knows.
func (i *instance) settled() (measure.Knobs, search.Result) {
	if i.selected != nil {
		return i.selected.knobs, i.selected.found
	}
	r := i.race()
	return r.Knobs, r.Best
}

// Ratio returns the ratio of two independent estimates with the resulting interval.
func Ratio(e, other search.Estimate) search.Estimate {
	times, spread := e.Value/other.Value, math.Exp(math.Hypot(math.Log(e.High/e.Low), math.Log(other.High/other.Low))/2)
	return search.Estimate{Value: times, Low: times / spread, High: times * spread, Confidence: e.Confidence, Safe: times / spread}
}

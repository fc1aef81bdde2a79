// Package decide runs the searches of every kind of instance and turns them into
// offers and a plan.
//
// A kind of instance is a GPU with a degree of parallelism; its knob sets race against each other. What is
// known of a set before it is tried is its prior. The best set and the engine's own settings are searched once
// more with fresh requests, one of the two is selected, and its rate, with the uncertainty of the engine's
// constants, makes an offer. Package plan sizes and prices the offers.
package decide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// Decision is the study of the commands plan and estimate: for each kind of instance the best knobs and their
// maximum rate, and from these the fleet. Its stages are a coarse pass if there are many kinds, the races of
// all kinds side by side, searches of sets that may be safer than the winners, the curve of the chosen knobs,
// and the certificate.
type Decision struct {
	searches

	// class names the class of a mix that it is for, "" for all.
	class string
	// looks are the short searches of the coarse pass, races the full ones; nil before they begin. looked holds
	// the results of looks, and unsearched warns of kinds that were not searched in full but would be for this
	// demand.
	looks, races *sweep.Together
	looked       []search.Result
	unsearched   note.Notes
	// chosen is the kind of instance that the plan uses; without a plan, the one whose search is most
	// informative.
	chosen *instance
	// plan is the result of the searches, solved why there is none; both nil until all searches have ended.
	plan   *plan.Plan
	solved error
	// placed is what short runs say about the chosen knobs; nil before these are chosen.
	placed *placed
}

// searches is what the studies of this package share: the kinds of instances with the priors of their knob
// sets, and the final certificate.
type searches struct {
	sweep.Chain

	cfg    *config.Config
	ground sweep.Ground

	instances []*instance
	// certificate returns the certificate's result; nil if none is sought or it has not begun.
	certificate func() search.Certified
	// doubts are the uncertainties found so far.
	doubts []doubted
	// failed is an error of the study itself.
	failed error
}

// Parts lists the kinds of instances.
func (s *searches) Parts() []sweep.Part {
	return sweep.KindsOf(list.Map(s.instances, func(i *instance) measure.Knobs { return i.priors[0].Knobs }))
}

// Narrow keeps only the searches of one kind of instance. The later stages, from the choice of a kind to the
// certificate, need all kinds.
func (d *Decision) Narrow(part string, whole bool) {
	d.instances = slices.DeleteFunc(d.instances, func(i *instance) bool { return sweep.KindOf(i.priors[0].Knobs).Name != part })
	d.Unable = slices.DeleteFunc(d.Unable, func(r measure.Rejection) bool { return sweep.KindOf(r.Knobs).Name != part })
	if !whole {
		d.Stages = d.Stages[:1]
	}
}

// Searches is the number of searches that the budget applies to.
func (s *searches) Searches() int { return len(s.instances) }

// certifying begins the certificate for a search's result if the configuration asks for one.
func (s *searches) certifying(prior search.Prior, found search.Result) sweep.Source {
	if !s.cfg.Search.Certify {
		return nil
	}
	certificate := search.Certify(maxRateConfig(s.cfg, prior), found)
	s.certificate = certificate.Result
	return certificate
}

// instance is one kind of instance, with its candidate knob sets.
type instance struct {
	gpu    config.GPU
	priors []search.Prior
	// standard is the prior of the engine's own settings; nil if they do not run.
	standard *search.Prior
	// race returns the race's result, and sight that of the coarse pass's search; nil without one.
	race  func() search.RaceResult
	sight func() search.Result
	// selected is the selection from the race, nil until that has ended.
	selected *selection
}

// New groups the configuration's candidates into kinds of instances and rejects what does not fit.
func New(cfg *config.Config, g sweep.Ground) (*Decision, error) {
	all, err := searchesOf(cfg, g)
	d := &Decision{searches: all}
	d.Stages = []func() sweep.Source{d.search, d.secure, d.measureCurve, d.certify}
	if d.coarsely() {
		d.Stages = append([]func() sweep.Source{d.coarse}, d.Stages...)
	}
	return d, err
}

// searchesOf groups a configuration's candidates.
func searchesOf(cfg *config.Config, g sweep.Ground) (s searches, err error) {
	s.cfg, s.ground = cfg, g
	runnable, rejected := cfg.Candidates()
	s.Unable = rejected
	if g.Predict != nil && !g.Virtual && limitsOf(cfg.Objective, "", measure.ITL) {
		for _, k := range slices.Clone(runnable) { // for a simulated engine the race asks for them
			runnable = append(runnable, smallerSteps(cfg, g.Predict, k, math.MaxInt)...)
		}
		runnable = list.Distinct(runnable)
	}
	mean := sweep.MeanRequest(&cfg.Workload)
	var priors []search.Prior
	for _, k := range runnable {
		prior, err := priorFor(cfg, g.Predict, k, mean)
		if r, ok := errors.AsType[*measure.Rejection](err); ok {
			s.Unable = append(s.Unable, *r)
			continue
		} else if err != nil {
			return s, err
		}
		priors = append(priors, prior)
	}
	for _, of := range list.Groups(priors, func(p search.Prior) measure.Knobs { return p.Knobs.Kind() }) {
		i := &instance{priors: of}
		i.gpu, _ = cfg.GPU(of[0].Knobs.GPU)
		if g.Predict != nil {
			if prior, err := priorFor(cfg, g.Predict, cfg.EngineDefaults(of[0].Knobs), mean); err == nil {
				i.standard = &prior
			}
		}
		s.instances = append(s.instances, i)
	}
	return s, nil
}

// Best returns the result with the highest rate so far and its kind of instance in words.
func (d *Decision) Best() (best search.Result, of string) {
	for _, i := range d.instances {
		if i.race == nil || d.plan != nil {
			continue
		}
		if r := i.race(); r.Best.Estimate.Value > best.Estimate.Value {
			best, of = r.Best, r.Knobs.Kind().Describe()
		}
	}
	if of != "" && d.class != "" {
		of = d.class + " alone, " + of
	}
	return best, of
}

// Stage returns how many kinds of instances are done, and what was done with them; zeros before and after the
// searches.
func (d *Decision) Stage() (done, of int, what string) {
	stage, what := d.races, "kinds of instances searched"
	if stage == nil {
		stage, what = d.looks, "kinds of instances looked at"
	}
	if stage == nil || d.plan != nil {
		return 0, 0, ""
	}
	return stage.Finished, len(stage.Sources), what
}

// search runs the races of all kinds of instances side by side.
func (d *Decision) search() sweep.Source {
	together := &sweep.Together{}
	d.races = together
	d.narrow()
	if d.failed = predict(d.cfg, d.ground, d.instances); d.failed == nil {
		d.failed = d.screen()
	}
	if d.failed != nil {
		return together
	}
	for _, i := range d.instances {
		race := newRace(d.cfg, d.ground, i)
		i.race, together.Sources = race.Result, append(together.Sources, race)
	}
	return together
}

// solve sizes and prices what the searches have found so far.
func (d *Decision) solve() (*plan.Plan, error) {
	d.chosen = d.mostTelling()
	offers, rejected := d.offers()
	if d.failed != nil {
		return nil, d.failed
	}
	p, err := plan.Solve(d.cfg.Demand, d.cfg.Objective, offers, rejected)
	if err != nil {
		return nil, err
	}
	for _, i := range d.instances {
		if k, _ := i.settled(); k == p.Offer.Knobs {
			d.chosen = i
		}
	}
	return p, nil
}

// looseFactor is the largest ratio of likely to safe rate at which a fleet is sized by a search that did not
// end: it may take up to twice the GPUs that are likely needed. Uncertainty of the constants is excluded, as
// more trials do not reduce it.
const looseFactor = 2

// offers turns the searches' results into priced instances, and lists what was not chosen.
func (d *Decision) offers() (offers []plan.Offer, rejected []measure.Rejection) {
	prompt, output := d.cfg.Workload.MeanTokens()
	rejected = slices.Clone(d.Unable)
	for _, i := range d.instances {
		s := d.choose(i)
		i.selected = s
		o := plan.Offer{
			Knobs: s.knobs, GPU: i.gpu.Hardware.Name, GPUs: s.knobs.GPUs(), Rate: s.rate, Binding: s.found.Binding,
			Pricing: i.gpu.Pricing, PromptTokens: prompt, OutputTokens: output, Tail: tail(d.cfg.Demand.Job, d.Seen, s.knobs, s.rate.Safe),
			Warnings: slices.Concat(s.warnings, uncalibrated(d.cfg, d.ground, s.knobs)),
		}
		switch s.found.Outcome {
		case search.Infeasible, search.Unmeasured:
			o.Obstacle, o.Idle = s.found.Reason, idleLatency(s.found.Floor)
		case search.OutOfBudget, search.Searching:
			o.Unknown = cmp.Or(s.found.Reason.Text, "the search has not ended")
			if s.found.Estimate.Safe < s.found.Estimate.Value/looseFactor {
				o.Loose = note.Because(note.RateLoose, o.Rate.Value, o.Rate.Low, o.Rate.High, o.Unknown)
			}
		}
		loosen(&o, s.doubt)
		offers = append(offers, o)
		rejected = append(rejected, s.rejected...)
	}
	explainScaling(offers, d.Seen)
	return offers, rejected
}

// mostTelling returns the kind of instance to report on if there is no plan: one that has a rate, otherwise the
// one whose idle latency is nearest to its limit (one that misses limits only under load counts as at its
// limit), otherwise the first.
func (d *Decision) mostTelling() *instance {
	beyond := func(i *instance) float64 {
		switch best := i.race().Best; {
		case best.Estimate.Value > 0:
			return 0
		case best.Floor != nil:
			return float64(best.Floor.Value) / float64(best.Floor.Limit)
		case best.Outcome == search.Infeasible:
			return 1
		}
		return math.Inf(1)
	}
	if len(d.instances) == 0 {
		return nil
	}
	return slices.MinFunc(d.instances, func(a, b *instance) int { return cmp.Compare(beyond(a), beyond(b)) })
}

// all returns the priors of the knob sets and of the engine's own settings.
func (i *instance) all() []*search.Prior {
	all := list.Pointers(i.priors, func(*search.Prior) bool { return true })
	if i.standard != nil {
		all = append(all, i.standard)
	}
	return all
}

// certify tests the rate of the chosen knobs that the plan rests on.
func (d *Decision) certify() sweep.Source {
	if d.plan == nil {
		return nil
	}
	knobs, found := d.chosen.settled()
	found.EngineTime = d.chosen.race().EngineTime // the budget is that of all trials
	return d.certifying(d.chosen.prior(knobs), found)
}

// prior returns that of a knob set; of one that is not listed it knows nothing.
func (i *instance) prior(k measure.Knobs) search.Prior {
	if p, ok := list.Find(i.all(), func(p *search.Prior) bool { return p.Knobs == k }); ok {
		return *p
	}
	return search.Prior{Knobs: k}
}

// startTime is the time that an engine takes to start: 60 to 120 s for vLLM with weights on a local disk.
const startTime = 90 * time.Second

// Forecast says in words what a decision's searches on real engines would take according to the simulated
// engine; "" if nothing predicts it.
func (d *Decision) Forecast(ctx context.Context) (string, error) {
	if d.ground.Predict == nil || d.ground.Virtual {
		return "", nil
	}
	trials, starts := 0, 0
	var load time.Duration
	hours, usd, priced := 0.0, 0.0, true
	tried := map[measure.Knobs]bool{}
	for _, i := range d.instances {
		race := newRace(d.cfg, d.ground, i)
		var last measure.Knobs
		before, begun := load, starts
		loop := sweep.Loop{Source: race, Run: d.ground.Predict.Run, See: func(event any) {
			m, ok := event.(measure.Measurement)
			if !ok {
				return
			}
			if k := m.Trial.Knobs; k != last {
				last, tried[k] = k, true
				starts++
			}
			trials++
			load += m.Trial.Warmup + m.Duration + m.Trial.Cooldown
		}}
		if err := loop.Drive(ctx); err != nil {
			return "", err
		}
		held := (load - before + time.Duration(starts-begun)*startTime).Hours() * float64(i.priors[0].Knobs.GPUs())
		hours, usd, priced = hours+held, usd+held*i.gpu.PricePerGPUHour, priced && i.gpu.Priced()
	}
	text := fmt.Sprintf("about %d trials of %d knob sets: %v of load, %d starts of %v, %.2f GPU hours",
		trials, len(tried), load.Round(time.Second), starts, startTime, hours)
	if priced {
		text += fmt.Sprintf(", $%.2f", usd)
	}
	return text, nil
}

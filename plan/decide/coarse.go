package decide

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/parallel"
	"planner/model/calibrate"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// With more than mostKinds kinds of instances a coarse pass searches one knob set of each to coarsePrecision.
// The best kind of each GPU is then searched in full, and one more if it costs at most coarseMargin more.
const (
	mostKinds       = 8
	coarsePrecision = 0.3
	coarseMargin    = 0.05
	streamCoarse    = 0x636f61727365
)

// coarsely reports whether there are too many kinds of instances to search all in full.
func (d *Decision) coarsely() bool { return d.ground.Virtual && len(d.instances) > mostKinds }

// coarse runs the short searches of all kinds of instances side by side.
func (d *Decision) coarse() sweep.Source {
	together := &sweep.Together{}
	d.looks = together
	for _, i := range d.instances {
		c := maxRateConfig(d.cfg, i.typical())
		c.Precision, c.Seed = max(c.Precision, coarsePrecision), workload.Mix64(c.Seed^streamCoarse)>>11
		sight := search.NewMaxRate(c)
		i.sight, together.Sources = sight.Result, append(together.Sources, sight)
	}
	return together
}

// typical is the engine's own settings or, if they do not run, the set with the highest predicted rate.
func (i *instance) typical() search.Prior {
	if i.standard != nil {
		return *i.standard
	}
	return slices.MaxFunc(i.priors, func(a, b search.Prior) int { return cmp.Compare(a.Rate, b.Rate) })
}

// carries is the rate that the coarse pass found.
func (i *instance) carries() float64 { return i.sight().Estimate.Value }

// offered returns the kind of instance as an offer with the rate of the coarse pass.
func (i *instance) offered() plan.Offer {
	r := i.sight()
	k, rate := i.typical().Knobs, r.Estimate.Value
	return plan.Offer{Knobs: k, GPUs: k.GPUs(), Pricing: i.gpu.Pricing, Idle: idleLatency(r.Floor), Rate: search.Estimate{Value: rate, High: rate, Safe: rate}}
}

// timesDearer is the ratio of the fleets' costs for two offers: in money, or in GPUs if a price is unknown or
// zero.
func timesDearer(a, b *plan.Alternative) float64 {
	x, y := a.Cost.Money(), b.Cost.Money()
	switch {
	case a.Fleet.GPUs == 0 && b.Fleet.GPUs == 0:
		return 1
	case a.Fleet.GPUs == 0:
		return math.Inf(1)
	case x != nil && y != nil && *y > 0:
		return *x / *y
	}
	return float64(a.Fleet.GPUs) / float64(b.Fleet.GPUs)
}

// ranked ranks the kinds of instances by their fleets' cost for the demand according to the coarse pass, and
// maps each kind's typical knobs to it.
func (d *Decision) ranked() (ranked []plan.Alternative, of map[measure.Knobs]*instance) {
	of = map[measure.Knobs]*instance{}
	for _, i := range d.instances {
		of[i.typical().Knobs] = i
	}
	// Among equal fleets the one with most to spare comes first.
	byRate := slices.SortedStableFunc(slices.Values(d.instances), func(a, b *instance) int { return cmp.Compare(b.carries(), a.carries()) })
	return d.cfg.Demand.Rank(list.Map(byRate, (*instance).offered)), of
}

// narrow keeps the kinds for the full searches and rejects the others: for each GPU those not among its best,
// and all that cost so much more than the cheapest that no error of the constants could make up for it.
func (d *Decision) narrow() {
	if len(d.instances) == 0 || d.instances[0].sight == nil {
		return
	}
	d.looked = list.Map(d.instances, func(i *instance) search.Result { return i.sight() })
	ranked, of := d.ranked()
	best, kept := map[string][]*plan.Alternative{}, map[*instance]bool{}
	for n := range ranked {
		a, i := &ranked[n], of[ranked[n].Offer.Knobs]
		cheapest, beside := &ranked[0], best[i.gpu.Hardware.Name]
		switch {
		case (a.Offer.PricePerGPUHour > 0) == (cheapest.Offer.PricePerGPUHour > 0) && a.Fleet.GPUs > 0 && timesDearer(a, cheapest) > math.Exp(calibrate.WidestMove):
			d.Unable = append(d.Unable, leftOut(a, cheapest))
		case len(beside) == 0, len(beside) == 1 && timesDearer(a, beside[0]) <= 1+coarseMargin:
			best[i.gpu.Hardware.Name], kept[i] = append(beside, a), true
		default:
			d.Unable = append(d.Unable, leftOut(a, beside[0]))
		}
	}
	d.instances = slices.DeleteFunc(d.instances, func(i *instance) bool { return !kept[i] })
	for _, i := range d.instances {
		if i.carries() > 0 || ranked[0].Fleet.GPUs == 0 {
			continue
		}
		// One set is enough to show how far the limits are out of reach.
		one := i.typical()
		for _, p := range i.priors {
			if p.Knobs != one.Knobs {
				d.Unable = append(d.Unable, idleKind(p.Knobs, one.Knobs))
			}
		}
		i.priors = []search.Prior{one}
	}
}

// leave keeps the kinds that were searched in full, perhaps for another demand or at other prices, and rejects
// the others with their cost for this one; the plan warns if one of them is clearly cheaper.
func (d *Decision) leave(searched func(*instance) bool) {
	ranked, of := d.ranked()
	first := slices.IndexFunc(ranked, func(a plan.Alternative) bool { return searched(of[a.Offer.Knobs]) })
	if first < 0 {
		return
	}
	for n := range ranked {
		a := &ranked[n]
		if searched(of[a.Offer.Knobs]) {
			continue
		}
		d.Unable = slices.DeleteFunc(d.Unable, func(r measure.Rejection) bool { return r.Knobs == a.Offer.Knobs })
		d.Unable = append(d.Unable, leftOut(a, &ranked[first]))
		if less := 1 - timesDearer(a, &ranked[first]); less > coarsePrecision {
			d.unsearched = append(d.unsearched, note.New(note.CheaperUnsearched, a.Offer.Knobs.Kind().Describe(), 100*less))
		}
	}
	d.instances = slices.DeleteFunc(d.instances, func(i *instance) bool { return !searched(i) })
}

// leftOut says why a kind of instance is not searched in full.
func leftOut(a, best *plan.Alternative) measure.Rejection {
	if !(a.Offer.Rate.Value > 0) {
		return idleKind(a.Offer.Knobs, best.Offer.Knobs)
	}
	name := best.Offer.Knobs.Kind().Describe()
	return measure.Rejection{Knobs: a.Offer.Knobs, Reason: note.Because(note.DearerKind, a.Offer.Rate.Value, 100*(timesDearer(a, best)-1), name)}
}

func idleKind(k, best measure.Knobs) measure.Rejection {
	return measure.Rejection{Knobs: k, Reason: note.Because(note.KindIdle, best.Kind().Describe())}
}

// Without latency limits, knob sets differ in what they complete under more load than they can take, which one
// overloaded trial shows. The best screenKept of each kind of instance are then searched in full, since
// differences of a per cent are chance.
const screenKept = 2

// screen keeps, for each kind of instance, the sets that complete most on the simulated engine, in that order,
// and rejects the others.
func (d *Decision) screen() error {
	if !d.cfg.Objective.Throughput || d.ground.Predict == nil {
		return nil
	}
	for _, i := range d.instances {
		if err := parallel.Do(len(i.priors), func(n int) (err error) {
			i.priors[n].Rate, err = saturated(d.cfg, d.ground.Predict, &i.priors[n])
			return err
		}); err != nil {
			return err
		}
		slices.SortStableFunc(i.priors, func(a, b search.Prior) int { return cmp.Compare(b.Rate, a.Rate) })
		for len(i.priors) > screenKept {
			last := len(i.priors) - 1
			d.Unable = append(d.Unable, measure.Rejection{Knobs: i.priors[last].Knobs,
				Reason: note.Because(note.CompletesLess, i.priors[last].Rate, i.priors[0].Rate)})
			i.priors = i.priors[:last]
		}
	}
	return nil
}

// The overloaded trial of a screen offers screenOverload times the predicted rate. It warms up until every slot
// is taken and completions have become even, then runs as long again or for screenRequests requests.
const (
	screenOverload = 3
	screenRequests = 600
)

// saturated returns the requests per second that a knob set completes when overloaded.
func saturated(cfg *config.Config, engine *sweep.Simulated, p *search.Prior) (float64, error) {
	w := *cfg.Workload.Anywhere()
	w.Timeout = 0 // the trial itself causes the queue
	seats := p.Knobs.MaxNumSeqs + p.Knobs.MaxNumSeqs/2
	t := measure.Trial{
		Knobs: p.Knobs, Workload: &w, Rate: screenOverload * p.Rate, Seed: cfg.Workload.Seed, Whole: true,
		Warmup: workload.Span(float64(seats), p.Rate), Window: workload.Span(float64(max(seats, screenRequests)), p.Rate),
	}
	t.Warmup = max(t.Warmup, min(3*p.Latency, time.Hour))
	o, err := engine.Observe(t)
	if err != nil {
		return 0, err
	}
	m := measure.Reduce(t, o)
	return m.Achieved, nil
}

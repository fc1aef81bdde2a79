package decide

import (
	"cmp"
	"math"
	"slices"

	"planner/internal/note"
	"planner/model/calibrate"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Where there are more kinds of instances than mostKinds, a coarse pass looks at each with
// one knob set and a search of coarsePrecision, and the best of each GPU is searched in
// full, with another that is within coarseMargin of its cost.
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
		i.sight = search.NewMaxRate(c)
		together.Sources = append(together.Sources, i.sight)
	}
	return together
}

// typical is the engine's own settings, or the set that is predicted to carry most.
func (i *instance) typical() search.Prior {
	if i.standard != nil {
		return *i.standard
	}
	return slices.MaxFunc(i.priors, func(a, b search.Prior) int { return cmp.Compare(a.Rate, b.Rate) })
}

// carries is the rate that a coarse pass found.
func (i *instance) carries() float64 { return i.sight.Result().Estimate.Value }

// cost is what a request per second costs on the kind of instance by the coarse pass: in
// money, or in GPUs where that is none.
func (i *instance) cost() float64 {
	rate := i.carries()
	if !(rate > 0) {
		return math.Inf(1)
	}
	cost := float64(i.priors[0].Knobs.GPUs()) / rate
	if i.gpu.PricePerGPUHour > 0 {
		cost *= i.gpu.PricePerGPUHour
	}
	return cost
}

// beyond is how far the latency of an idle instance is beyond its limit, as a factor, as far as that is known; 0 where
// it is not.
func (i *instance) beyond() float64 {
	if f := i.sight.Result().Floor; f != nil {
		return float64(max(f.Value, 1)) / float64(max(f.Limit, 1))
	}
	return 0
}

// narrow leaves what the full searches are for, and rejects the other kinds: of a GPU those that are beside its best, and
// all that cost so many times the cheapest that no doubt about constants brings both together.
func (d *Decision) narrow() {
	if len(d.instances) == 0 || d.instances[0].sight == nil {
		return
	}
	ranked := slices.Clone(d.instances)
	slices.SortStableFunc(ranked, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(a.cost(), b.cost()), cmp.Compare(a.beyond(), b.beyond()))
	})
	best, kept := map[string]*instance{}, map[*instance]bool{}
	taken := map[string]int{}
	for _, i := range ranked {
		gpu := i.gpu.Hardware.Name
		switch first := best[gpu]; {
		case i.gpu.Priced() == ranked[0].gpu.Priced() && !math.IsInf(i.cost(), 1) && i.cost() > math.Exp(calibrate.WidestMove)*ranked[0].cost():
			d.rejected = append(d.rejected, i.leftOut(ranked[0]))
		case first == nil:
			best[gpu], kept[i] = i, true
		case taken[gpu] == 0 && i.cost() <= (1+coarseMargin)*first.cost():
			taken[gpu], kept[i] = 1, true
		default:
			d.rejected = append(d.rejected, i.leftOut(first))
		}
	}
	d.instances = slices.DeleteFunc(d.instances, func(i *instance) bool { return !kept[i] })
	for _, i := range d.instances {
		if i.carries() > 0 || ranked[0].carries() == 0 {
			continue
		}
		// One set tells how far its limits are out of reach.
		one := i.typical()
		for _, p := range i.priors {
			if p.Knobs != one.Knobs {
				why := i.leftOut(i)
				why.Knobs = p.Knobs
				d.rejected = append(d.rejected, why)
			}
		}
		i.priors = []search.Prior{one}
	}
}

// leftOut says why a kind of instance is not searched in full.
func (i *instance) leftOut(best *instance) measure.Rejection {
	name := best.priors[0].Knobs.Kind().Describe()
	r := measure.Rejection{Knobs: i.typical().Knobs, Reason: note.Because(note.KindIdle, name)}
	if i.carries() > 0 {
		r.Reason = note.Because(note.DearerKind, i.carries(), 100*(i.cost()/best.cost()-1), name)
	}
	return r
}

package curve

import (
	"math"
	"slices"
)

// pointsForPower is the smallest number of rates to which the exponent is
// fitted.
const pointsForPower = 6

// stationarySpecs lists the stationary forms that so many rates bear, simplest
// first.
func stationarySpecs(distinct int) []spec {
	specs := []spec{{Stationary, true}, {Stationary, false}}
	if distinct >= pointsForPower {
		specs = append(specs, spec{StationaryPower, true}, spec{StationaryPower, false})
	}
	return specs
}

// bestOf fits every form and keeps the simplest that no richer one beats by
// decisiveGain in AICc.
func bestOf(s *sample, specs []spec, seed uint64) fitted {
	all := fitAll(s, specs, seed)
	return all[choose(all)]
}

func fitAll(s *sample, specs []spec, seed uint64) []fitted {
	all := make([]fitted, len(specs))
	for i, sp := range specs {
		all[i] = fit(s, sp, seed)
	}
	return all
}

// choose picks from fits to one sample, in order of their parameters.
func choose(all []fitted) int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return all[a].model.parameters() - all[b].model.parameters()
	})
	best := order[0]
	for _, i := range order[1:] {
		if all[i].aicc() < all[best].aicc()-decisiveGain {
			best = i
		}
	}
	return best
}

// leaveOneOut is the root mean square error in ln latency of each point under
// the fit to the others; infinite where a fit to the others gives none.
func leaveOneOut(s *sample, f *fitted) float64 {
	sum, n := 0.0, 0
	for p := range s.points {
		rest := s.without(p)
		if len(rest.obs) == len(s.obs) {
			continue
		}
		if len(rest.obs) < f.model.parameters() {
			return math.Inf(1)
		}
		g := descend(rest, spec{f.model.Form, f.model.Joint}, f.x)
		for _, o := range s.obs {
			if o.point == p {
				d := math.Log(g.model.at(o.level, o.rate)) - o.lnY
				sum += d * d
				n++
			}
		}
	}
	if n == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(sum / float64(n))
}

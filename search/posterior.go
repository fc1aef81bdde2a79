package search

import (
	"math"
	"slices"
	"sort"

	"planner/internal/list"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// posterior is the posterior distribution of the largest rate that meets one bound.
type posterior struct {
	bound *assumed
	// unlimited says that no evidence shows the bound to limit the rate; then there is no mass.
	unlimited bool
	// low and step lay out the grid of ln max.
	low, step float64
	// mass is the probability of each node of ln max, and cumulative[i] that of all nodes below i.
	mass, cumulative []float64
	// nodes are the points (ln max, ln kappa) that are not unlikely, and mean is that of ln max.
	nodes []node
	mean  float64
	// kappa and phi are the geometric means of the steepness and the dispersion, and scatter the root mean square of the
	// standard deviation of the server's ln speed between trials.
	kappa, phi, scatter float64
	// steady is the probability that it does not differ, floor the mean part of what is allowed that lone requests take.
	steady, floor float64
}

// node is a curve with its probability.
type node struct{ logMax, kappa, mass float64 }

// infer computes the posterior of a bound from all evidence on it. The grid starts wide around the predicted rate and
// those of the trials, of which there must be at least one, and closes in on the mass until that fills half of it.
func (a *assumed) infer(seen []likelihood) *posterior {
	rates := list.Map(seen, func(e likelihood) float64 { return e.rate })
	if a.rate > 0 {
		rates = append(rates, a.rate)
	}
	low, high := math.Log(slices.Min(rates))-priorReach, math.Log(slices.Max(rates))+priorReach
	// No evidence shows the bound to limit the rate if no trial counted completions, or no request failed. Servers fail
	// requests far beyond saturation, where a latency bound is long missed.
	if !slices.ContainsFunc(seen, func(e likelihood) bool {
		return a.kind == onThroughput && e.spread > 0 || a.kind != onThroughput && (a.name != measure.ErrorsBound || e.k > 0)
	}) {
		return &posterior{bound: a, unlimited: true, low: low, step: (high - low) / (gridRates - 1), kappa: a.kappa, phi: a.phi, steady: 1}
	}
	var joint []float64 // the megabytes that each grid works in
	for {
		p := a.grid(seen, low, high, &joint)
		left := math.Exp(negligible / 2)
		from, to := p.low+p.step*float64(p.holding(left)-2), p.low+p.step*float64(p.holding(1-left)+2)
		if to-from > (high-low)/2 {
			return p
		}
		low, high = max(low, from), min(high, to)
	}
}

// holding is the first node of ln max up to which the cumulative mass reaches a share.
func (p *posterior) holding(share float64) int {
	return sort.Search(gridRates-1, func(i int) bool { return p.cumulative[i+1] >= share })
}

// grid evaluates the posterior on gridRates x gridKappas curves, in all forms and with all dispersions, in kept memory.
func (a *assumed) grid(seen []likelihood, low, high float64, kept *[]float64) *posterior {
	p := &posterior{bound: a, low: low, step: (high - low) / (gridRates - 1)}
	kappas := list.Times(gridKappas, func(j int) float64 {
		return a.kappa * math.Exp(-kappaBelow+(kappaBelow+kappaAbove)*float64(j)/(gridKappas-1))
	})
	if a.kind == onThroughput {
		kappas = []float64{1}
	}
	nodes := len(a.forms) * phiNodes
	prior := make([]float64, 0, len(kappas)*nodes)
	for _, kappa := range kappas {
		for l := range nodes {
			f, scatter := &a.forms[l/phiNodes], 0.0
			if f.sd > 0 {
				// The standard deviation of ln speed between trials is sd/kappa.
				scatter = math.Log(f.sd/kappa/usualScatter) / phiSpread
			}
			prior = append(prior, studentT2(math.Log(kappa/a.kappa)/kappaSpread)+studentT2(phiOffsets[l%phiNodes])+f.logProb-scatter*scatter/2)
		}
	}
	top := math.Inf(-1)
	ratio := make([]float64, len(seen))
	*kept = slices.Grow((*kept)[:0], gridRates*len(prior))
	joint := (*kept)[:gridRates*len(prior)]
	for i := range gridRates {
		u := low + p.step*float64(i)
		atRate := 0.0
		if a.rate > 0 {
			atRate = studentT2((u - math.Log(a.rate)) / a.spread)
		}
		for t := range seen {
			ratio[t] = seen[t].rate * math.Exp(-u)
		}
		for j, kappa := range kappas {
			sum := joint[i*len(prior)+j*nodes:][:nodes]
			copy(sum, prior[j*nodes:])
			for t := range seen {
				seen[t].at(a.curve(kappa, ratio[t]), a.forms, sum)
			}
			for l, v := range sum {
				v += atRate
				if sum[l] = v; v > top { // faster than max here, where most of a search's time goes
					top = v
				}
			}
		}
	}
	p.normalise(joint, kappas, top)
	return p
}

// normalise turns the log densities of (ln max, ln kappa, form, ln phi), top being the largest, into the posterior.
func (p *posterior) normalise(joint, kappas []float64, top float64) {
	total := 0.0
	for i, v := range joint {
		joint[i] = 0
		if v > top+negligible {
			joint[i] = math.Exp(v - top)
		}
		total += joint[i]
	}
	p.mass, p.cumulative = make([]float64, gridRates), make([]float64, gridRates+1)
	meanKappa, meanPhi, square := 0.0, 0.0, 0.0
	each := len(joint) / (gridRates * len(kappas))
	for i := range p.mass {
		for j, kappa := range kappas {
			x := node{logMax: p.low + p.step*float64(i), kappa: kappa}
			for l, mass := range joint[(i*len(kappas)+j)*each:][:each] {
				if mass == 0 {
					continue
				}
				mass /= total
				x.mass += mass
				meanPhi += mass * phiOffsets[l%phiNodes]
				f := &p.bound.forms[l/phiNodes]
				sigma := f.sd / kappa
				square += mass * sigma * sigma
				p.floor += mass * f.floor
				if sigma == 0 {
					p.steady += mass
				}
			}
			p.mass[i] += x.mass
			p.mean += x.mass * x.logMax
			meanKappa += x.mass * math.Log(kappa)
			if x.mass > unlikely {
				p.nodes = append(p.nodes, x)
			}
		}
		p.cumulative[i+1] = p.cumulative[i] + p.mass[i]
	}
	p.kappa = math.Exp(meanKappa)
	p.phi = p.bound.phi * math.Exp(phiSpread*meanPhi)
	p.scatter = math.Sqrt(square)
}

// survival is the probability that the largest rate exceeds exp(u); a node's mass is spread over one step around it.
func (p *posterior) survival(u float64) float64 {
	x := (u-p.low)/p.step + 0.5
	switch {
	case p.unlimited || x <= 0:
		return 1
	case x >= gridRates:
		return 0
	}
	i := int(x)
	return max(1-p.cumulative[i]-p.mass[i]*(x-float64(i)), 0)
}

// quantile is the q-quantile of the logarithm of the largest rate.
func (p *posterior) quantile(q float64) float64 {
	x := float64(gridRates)
	if !p.unlimited {
		i := p.holding(q)
		x = float64(i) + (q-p.cumulative[i])/p.mass[i]
	}
	return p.low + p.step*(x-0.5)
}

// posteriors holds that of each bound, and stands for that of the largest rate that meets every bound. All trials count
// for every bound, and a lucky draw of arrivals is lucky for each, so the errors are taken as fully dependent: each
// quantile is the least of the bounds' own. The lower end is too high no more often than that of the bound that truly
// limits the rate (an intersection-union test, Berger 1982).
type posteriors []*posterior

// quantile is the q-quantile of the largest rate, in requests per second; the end of the grid if no bound limits it.
func (all posteriors) quantile(q float64) float64 {
	least := math.Inf(1)
	for _, p := range all {
		least = min(least, p.quantile(q))
	}
	return math.Exp(least)
}

// halfWidth is half the width of the central interval at the given confidence, relative to the median.
func (all posteriors) halfWidth(confidence float64) float64 {
	e := all.estimate(confidence)
	return (e.High - e.Low) / 2 / e.Value
}

// binding gives the probability that each bound is the one that limits the rate, and the index of the likeliest. The
// remainder to 1 is the probability that none does. Here the bounds are taken as independent: with fully dependent
// errors the lower one would bind with certainty, however near the other is.
func (all posteriors) binding() (probability []float64, likeliest int) {
	probability = make([]float64, len(all))
	for j, p := range all {
		for i, mass := range p.mass {
			if mass == 0 {
				continue
			}
			u := p.low + p.step*float64(i)
			for l, other := range all {
				if l != j {
					mass *= other.survival(u)
				}
			}
			probability[j] += mass
		}
		if probability[j] > probability[likeliest] {
			likeliest = j
		}
	}
	return probability, likeliest
}

// estimate is the reported estimate for all bounds, with the error of the curve itself added in quadrature.
func (all posteriors) estimate(confidence float64) Estimate {
	median := all.quantile(0.5)
	at := func(q float64) float64 {
		distance := math.Log(all.quantile(q) / median)
		return median * math.Exp(math.Copysign(math.Hypot(distance, stat.NormalTail(1-2*min(q, 1-q))*misshapen), distance))
	}
	tail := (1 - confidence) / 2
	return Estimate{Value: median, Low: at(tail), High: at(1 - tail), Confidence: confidence, Safe: at(safeQuantile)}
}

package search

import (
	"math"
	"slices"

	"planner/sweep/measure"
)

// posterior is what is known of the largest rate that meets one bound.
type posterior struct {
	// low and step lay out the grid of ln max.
	low, step float64
	// mass is the probability of each node of ln max; it and beyond sum to 1.
	mass []float64
	// cumulative[i] is the probability of all nodes below i.
	cumulative []float64
	// beyond is the probability that the bound does not limit the rate, 0 or 1.
	beyond float64
	// kappa is the geometric mean steepness, phi that of the dispersion, and scatter the root of the
	// mean square by which the speed of the server differs between trials.
	kappa, phi, scatter float64
	// steady is the probability that it does not differ.
	steady float64
	// joint holds the probabilities of (ln max, ln kappa, width, ln phi), and nodes is how many of
	// the last two there are.
	joint []float64
	nodes int
}

// kappaAt is node i of n of the steepness.
func (a *assumed) kappaAt(i, n int) float64 {
	if a.kind == onThroughput {
		return 1
	}
	return a.kappa.median * math.Exp(-kappaBelow+(kappaBelow+kappaAbove)*float64(i)/float64(n-1))
}

// span is the range of ln max that a prior and trials point at; there must be
// either.
func (a *assumed) span(seen []likelihood) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	if a.max.median > 0 {
		low = math.Log(a.max.median)
		high = low
	}
	for i := range seen {
		u := math.Log(seen[i].rate)
		low, high = min(low, u), max(high, u)
	}
	return low - priorReach, high + priorReach
}

// infer computes the posterior of a bound from all that was seen of it: a pure
// function, so that a replayed search knows exactly what the first one knew.
// The grid starts wide and closes in on the mass until that fills half of it.
func (a *assumed) infer(seen []likelihood) *posterior {
	low, high := a.span(seen)
	for {
		p := a.grid(seen, low, high)
		from, to := p.support()
		if to-from > (high-low)/2 {
			return p
		}
		low, high = max(low, from), min(high, to)
	}
}

// support is the range of ln max that holds all but a negligible part of the mass, a step wider on
// either side.
func (p *posterior) support() (low, high float64) {
	all := p.cumulative[len(p.mass)]
	left := all * math.Exp(negligible/2)
	first, last := 0, len(p.mass)-1
	for first < last && p.cumulative[first+1] < left {
		first++
	}
	for last > first && all-p.cumulative[last] < left {
		last--
	}
	return p.low + p.step*float64(first-2), p.low + p.step*float64(last+2)
}

// grid evaluates the posterior on gridRates x gridKappas points of the curve, and on all widths and
// dispersions.
func (a *assumed) grid(seen []likelihood, low, high float64) *posterior {
	rates, kappas := gridRates, gridKappas
	if a.kind == onThroughput {
		kappas = 1
	}
	nodes := len(a.widths) * phiNodes
	p := &posterior{low: low, step: (high - low) / float64(rates-1), joint: make([]float64, rates*kappas*nodes), nodes: nodes}
	kappa := make([]float64, kappas)
	prior := make([]float64, kappas*nodes)
	for j := range kappas {
		kappa[j] = a.kappaAt(j, kappas)
		for l := range nodes {
			prior[j*nodes+l] = a.logKappa(kappa[j]) + studentT2(phiOffsets[l%phiNodes]) + a.logWidth(l/phiNodes, kappa[j])
		}
	}
	top := math.Inf(-1)
	ratio := make([]float64, len(seen))
	for i := range rates {
		u := low + p.step*float64(i)
		atRate := a.max.logDensity(u)
		for t := range seen {
			ratio[t] = seen[t].rate * math.Exp(-u)
		}
		for j := range kappas {
			sum := p.joint[(i*kappas+j)*nodes:][:nodes]
			copy(sum, prior[j*nodes:])
			for t := range seen {
				seen[t].at(a.curve(kappa[j], ratio[t]), a.widths, sum)
			}
			for l := range sum {
				sum[l] += atRate
				top = max(top, sum[l])
			}
		}
	}
	p.normalise(a, seen, top, kappa)
	return p
}

// normalise turns log densities into probabilities, adds the case that the
// bound is out of reach, and takes the marginals.
func (p *posterior) normalise(a *assumed, seen []likelihood, top float64, kappa []float64) {
	kappas := len(kappa)
	rates := len(p.joint) / (kappas * p.nodes)
	p.mass = make([]float64, rates)
	total := 0.0
	for i, v := range p.joint {
		w := 0.0
		if v > top+negligible {
			w = math.Exp(v - top)
		}
		p.joint[i] = w
		p.mass[i/(kappas*p.nodes)] += w
		total += w
	}
	if a.unlimited(seen) {
		p.beyond = 1
	}
	scale := (1 - p.beyond) / total
	meanKappa, meanPhi, square := 0.0, 0.0, 0.0
	p.cumulative = make([]float64, rates+1)
	for i := range p.joint {
		p.joint[i] *= scale
		k := kappa[i/p.nodes%kappas]
		meanKappa += p.joint[i] * math.Log(k)
		meanPhi += p.joint[i] * phiOffsets[i%phiNodes]
		sigma := a.widths[i%p.nodes/phiNodes].sd / k
		square += p.joint[i] * sigma * sigma
		if sigma == 0 {
			p.steady += p.joint[i]
		}
	}
	for i := range p.mass {
		p.mass[i] *= scale
		p.cumulative[i+1] = p.cumulative[i] + p.mass[i]
	}
	within := max(1-p.beyond, math.SmallestNonzeroFloat64)
	p.kappa = math.Exp(meanKappa / within)
	p.phi = a.phi.median * math.Exp(a.phi.sd*meanPhi/within)
	p.scatter = math.Sqrt(square / within)
	p.steady /= within
}

// unlimited reports whether nothing that was seen says that the bound limits the rate: no
// trial showed what was completed, or no request failed. Servers fail requests when they
// are far beyond saturation, where a latency bound is long missed.
func (a *assumed) unlimited(seen []likelihood) bool {
	return !slices.ContainsFunc(seen, func(e likelihood) bool {
		return a.kind == onThroughput && e.spread > 0 || a.kind != onThroughput && (a.name != measure.ErrorsBound || e.k > 0)
	})
}

// survival is the probability that the largest rate is above exp(u).
func (p *posterior) survival(u float64) float64 {
	// A node's probability is spread evenly over one step around it.
	x := (u-p.low)/p.step + 0.5
	if x <= 0 {
		return 1
	}
	if x >= float64(len(p.mass)) {
		return p.beyond
	}
	i := int(x)
	return max(1-p.cumulative[i]-p.mass[i]*(x-float64(i)), 0)
}

// end is the upper end of the grid of ln max.
func (p *posterior) end() float64 { return p.low + p.step*(float64(len(p.mass))-0.5) }

// posteriors are those of the bounds, and together that of the largest rate that meets every bound: of the
// least among the bounds' own. All trials count for every bound, and a lucky draw
// of arrivals is lucky for each, so the bounds' errors go together: the minimum
// takes them as going together wholly, which makes each of its quantiles the
// least of the bounds' quantiles. For the lower end that needs no assumption: it
// is at most the lower end of the bound that truly limits the rate, so it is too
// high no more often than that one is (an intersection-union test, Berger 1982).
// Independence would put the median of the minimum below every bound's own, the
// more so the more bounds bind at the same rate.
type posteriors []*posterior

// survival is the probability that every bound is met at the rate exp(u).
func (all posteriors) survival(u float64) float64 {
	s := 1.0
	for _, p := range all {
		s = min(s, p.survival(u))
	}
	return s
}

// quantile is the q-quantile of the largest rate, in requests per second. It is
// the end of the grid when no bound limits the rate with probability q.
func (all posteriors) quantile(q float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range all {
		low = min(low, p.low-p.step)
		high = max(high, p.end())
	}
	for range 60 {
		mid := (low + high) / 2
		if all.survival(mid) > 1-q {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// halfWidth is half the central interval of the given confidence over the
// median.
func (all posteriors) halfWidth(confidence float64) float64 {
	e := all.estimate(confidence)
	return (e.High - e.Low) / 2 / e.Value
}

// binding gives the probability that each bound is the one that limits the
// rate, and the index of the likeliest. What is left to 1 is the probability
// that none does. How sure it is which of two limits binds is asked of the
// bounds as if they were independent: errors that go together would name the
// lower one with certainty however near the other is.
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

// estimate is the minimum as it is reported: with what the curve itself may be wrong
// by, in quadrature.
func (all posteriors) estimate(confidence float64) Estimate {
	tail := (1 - confidence) / 2
	median := all.quantile(0.5)
	at := func(q, sigmas float64) float64 {
		distance := math.Log(all.quantile(q) / median)
		return median * math.Exp(math.Copysign(math.Hypot(distance, sigmas*misshapen), distance))
	}
	z := normalTail(confidence)
	return Estimate{Value: median, Low: at(tail, z), High: at(1-tail, z), Confidence: confidence, Safe: at(safeQuantile, quantile95)}
}

// quantile95 is the 95 % quantile of the normal distribution: half the width of
// a central interval of 90 %, in standard deviations.
const quantile95 = 1.645

// deviation is the standard deviation of ln rate that an interval of 90 % stands for.
func (e Estimate) deviation() float64 { return e.width() / (2 * quantile95) }

// normalTail is the standard normal quantile that a central interval of the
// given confidence reaches.
func normalTail(confidence float64) float64 {
	return math.Sqrt2 * math.Erfinv(confidence)
}

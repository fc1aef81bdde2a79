package search

import (
	"math"

	"planner/internal/stat"
)

const (
	// surprise is the posterior predictive probability below which a trial does
	// not fit the curve.
	surprise = 0.005
	// nearLow and nearHigh are how far below and above the limit, on the scale of the curve, the
	// shares lie of the trials that a curve which does not fit is fitted to once
	// more: at one in a hundred, a fifth and ten times what is allowed.
	nearLow, nearHigh = 1.61, 2.40
	// cliffWidth is the distance of two rates, relative, over which a cliff takes
	// the share from under a third to over ten times what is allowed.
	cliffWidth, cliffLow, cliffHigh = 0.05, 1.0 / 3, 10.0
)

// misfits reports whether some trial is a surprise to the posterior, or two
// trials contradict any monotone curve.
func (a *assumed) misfits(seen []likelihood, p *posterior) bool {
	if a.kind != onShare {
		return false
	}
	for i := range seen {
		if seen[i].n > 0 && a.predictive(&seen[i], p) < surprise {
			return true
		}
	}
	return a.nonMonotone(seen, p.phi)
}

// predictive is the posterior probability of a count at least as extreme, in
// the nearer tail, as the one that was seen.
func (a *assumed) predictive(e *likelihood, p *posterior) float64 {
	const bins = 64
	kappas := len(p.joint) / (len(p.mass) * phiNodes)
	span := (zHigh - zLow) / bins
	var weight [bins][phiNodes]float64
	kappa := make([]float64, kappas)
	for k := range kappa {
		kappa[k] = a.kappaAt(k, kappas)
	}
	for i, mass := range p.mass {
		if mass < 1e-9 {
			continue
		}
		ratio := e.rate * math.Exp(-p.low-p.step*float64(i))
		for k := range kappa {
			z := a.offset + rise(kappa[k], ratio)
			b := min(max(int((z-zLow)/span), 0), bins-1)
			for l, w := range p.joint[(i*kappas+k)*phiNodes:][:phiNodes] {
				weight[b][l] += w
			}
		}
	}
	below, above := 0.0, 0.0
	for b := range bins {
		share := unlink(zLow + (float64(b)+0.5)*span)
		for l, w := range weight[b] {
			if w < 1e-6 {
				continue
			}
			d := a.dispersion(a.phi.median * math.Exp(a.phi.sd*phiOffsets[l]))
			nb := stat.NegativeBinomial{Mean: e.n * share, Phi: max(d.Phi(share), 1.05)}
			below += w * nb.CDF(e.k)
			above += w * (1 - nb.CDF(math.Ceil(e.k)-1))
		}
	}
	return min(below, above) / max(1-p.beyond, surprise)
}

// nonMonotone reports whether a trial shows clearly more exceedances than one
// at a higher rate: the intervals of two shares that a monotone curve would
// have to pool are disjoint.
func (a *assumed) nonMonotone(seen []likelihood, phi float64) bool {
	if a.kind != onShare {
		return false
	}
	d := a.dispersion(phi)
	for i := range seen {
		for j := range seen {
			if seen[i].rate >= seen[j].rate || seen[i].n == 0 || seen[j].n == 0 || seen[i].k*seen[j].n <= seen[j].k*seen[i].n {
				continue
			}
			if d.Lower(seen[i].k, seen[i].n, surprise) > d.Upper(seen[j].k, seen[j].n, surprise) {
				return true
			}
		}
	}
	return false
}

// cliff reports whether the share of exceedances jumps from well under to far
// over what is allowed within a few per cent of the rate.
func (a *assumed) cliff(seen []likelihood) bool {
	for i := range seen {
		for j := range seen {
			lo, hi := &seen[i], &seen[j]
			if lo.rate < hi.rate && hi.rate < lo.rate*(1+cliffWidth) && lo.n > 0 && hi.n > 0 && a.kind == onShare &&
				lo.k < lo.n*a.share*cliffLow && hi.k > hi.n*a.share*cliffHigh {
				return true
			}
		}
	}
	return false
}

// near lists the evidence close to the limit.
func (a *assumed) near(seen []likelihood) []likelihood {
	out := make([]likelihood, 0, len(seen))
	for _, e := range seen {
		if z := link((e.k + 0.5) / (e.n + 1)); a.kind != onShare || (z >= a.offset-nearLow && z <= a.offset+nearHigh) {
			out = append(out, e)
		}
	}
	return out
}

// seenMet is the highest rate at which the bound was well met and below which it
// was never clearly missed; 0 if there is none. It is well met where so few
// requests beyond the limit, with the dispersion of the posterior, are a surprise if
// the share is what is just allowed. Bounds on means are left to their curve.
func (a *assumed) seenMet(seen []likelihood, phi float64) float64 {
	d := a.dispersion(phi)
	met, missed := 0.0, math.Inf(1)
	for i := range seen {
		e := &seen[i]
		switch {
		case e.n == 0 || a.kind != onShare:
		case e.atLeast, d.Lower(e.k, e.n, surprise) > a.share:
			missed = min(missed, e.rate)
		case a.logBelow(e.k, e.n, a.share, phi) <= math.Log(safeTail):
			met = max(met, e.rate)
		}
	}
	if missed < met {
		return 0
	}
	return met
}

// safeTail is the probability with which a rate that was seen to be well met may
// not be.
const safeTail = 0.05

package search

// surprise is the probability below which two trials do not fit one curve.
const surprise = 0.005

// cliffWidth is the distance of two rates, relative, over which a cliff takes
// the share from under a third to over ten times what is allowed.
const cliffWidth, cliffLow, cliffHigh = 0.05, 1.0 / 3, 10.0

// nonMonotone finds trials that show clearly more exceedances than one at a higher rate:
// the intervals of two shares that a monotone curve would have to pool are disjoint. It
// gives the lowest of their rates, from which on the bound may be missed, and the highest;
// false where there are none.
func (a *assumed) nonMonotone(seen []likelihood, phi float64) (low, high float64, found bool) {
	if a.kind != onShare {
		return 0, 0, false
	}
	d := a.dispersion(phi)
	for i := range seen {
		for j := range seen {
			worse, better := &seen[i], &seen[j]
			if worse.rate >= better.rate || worse.n == 0 || better.n == 0 || worse.k*better.n <= better.k*worse.n {
				continue
			}
			if d.Lower(worse.k, worse.n, surprise) <= d.Upper(better.k, better.n, surprise) {
				continue
			}
			if !found || worse.rate < low {
				low = worse.rate
			}
			high, found = max(high, better.rate), true
		}
	}
	return low, high, found
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

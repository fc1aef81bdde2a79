package search

import (
	"cmp"
	"math"

	"planner/internal/stat"
	"planner/sweep/measure"
)

// boundKind is what a bound limits.
type boundKind int

const (
	// onShare limits the share of requests beyond a latency, or failed.
	onShare boundKind = iota
	// onMean limits the mean of a latency.
	onMean
	// onThroughput asks that what arrives is completed.
	onThroughput
)

// assumed is what is believed of one bound before its first trial. The share of exceedances follows
//
//	link p(rate) = link p0 + rise(kappa, rate/max)
//
// where max is the largest rate that meets the bound, and ln(mean/limit) the same with 0 for link p0: for M/M/1 ln p
// is linear in the rate, and heavy traffic gives the same form with other constants. A server that is offered more
// than it completes completes max, so that the rest, 1 - max/rate of what comes, stays.
type assumed struct {
	name string
	kind boundKind
	// waits says that a latency holds the time in the queue, which grows for as long as a server is overloaded.
	waits bool
	// share is the allowed share of exceedances p0; 0 for a mean.
	share float64
	// offset is the value of the curve at max: link p0, or 0 for a mean; so much above it a share counts as "at least".
	offset, above float64
	// kappa and phi are the medians of the steepness and of the dispersion, gamma is that of [stat.Dispersion].
	kappa, phi, gamma float64
	// rate is the predicted max, 0 for none, and spread the standard deviation of its logarithm.
	rate, spread float64
	// widths are how far the server may be off the curve in one trial, as it is faster or slower: not at all first.
	widths []width
}

// width is how far off the curve trials are.
type width struct {
	// sd is the standard deviation on the scale of the curve.
	sd float64
	// shift is how far below the curve, at each node of z, trials are in the middle: the curve is of the
	// share of all of them, which those that are slow make up most of.
	shift []float64
}

// assume lists the bounds of an objective with what is believed of each; the share of failed requests, where it is
// bounded, and the throughput come last, as in measure.Measurement.Counts.
func assume(slo measure.SLO, prior Prior) []assumed {
	bounds := make([]assumed, 0, len(slo.Bounds)+2)
	for _, b := range slo.Bounds {
		a := generic(b.String(), b.Allowed())
		a.waits = b.Waits()
		a.rate, a.spread = prior.Rate, cmp.Or(prior.Spread, rateSpread)
		if prior.Binding == a.name || prior.Binding == "" && a.kind == onShare && len(slo.Bounds) == 1 {
			a.kappa, a.phi, a.gamma = cmp.Or(prior.Kappa, a.kappa), cmp.Or(prior.Phi, a.phi), cmp.Or(prior.Gamma, a.gamma)
		}
		bounds = append(bounds, a)
	}
	if slo.Errors >= 0 {
		a := generic(measure.ErrorsBound, max(slo.Errors, 1e-6))
		a.rate = prior.Rate
		bounds = append(bounds, a)
	}
	return append(bounds, assumed{name: measure.ThroughputBound, kind: onThroughput, kappa: 1, phi: 1, widths: make([]width, 1)})
}

// generic is what is believed of a bound without a simulator. If the latency above its floor is exponential with a
// mean that grows as 1/(saturation - rate), the steepness at the limit is steep(p0) times a factor of the utilisation
// alone. Queues follow that, while engines hardly become flatter as more requests are allowed beyond the limit (29, 24
// and 17 for a hundredth, a tenth and a half; M/M/1 13, 9 and 4): the root of steep is in the middle. The dispersion
// is the same whatever the share of queues at equal utilisation; of engines it grows with it (97, 177 and 356).
func generic(name string, share float64) assumed {
	a := assumed{name: name, share: share, kappa: flat, phi: stat.Generic, gamma: stat.Growth, spread: rateSpread, widths: make([]width, 1)}
	if share == 0 {
		a.kind = onMean
		return a
	}
	a.offset = stat.CLogLog(share)
	a.above = min(far, stat.CLogLog(share+(1-share)*plateau)-a.offset)
	a.kappa = genericKappa * math.Sqrt(steep(share)/steep(0.01))
	rarer := math.Sqrt(math.Log(0.01) / math.Log(share))
	a.phi, a.gamma = rarer*stat.Generic, rarer*stat.Growth
	return a
}

// steep is d ln(-ln(1-p)) / d ln(saturation - rate) of an exponential tail.
func steep(p float64) float64 { return p * math.Log(p) / ((1 - p) * math.Log1p(-p)) }

// scattered are bounds of a server that may be faster in one trial than in others, as all are that run in real time.
func scattered(bounds []assumed) []assumed {
	for _, offset := range phiOffsets {
		// A curve that is steeper than most is left further by the same scatter.
		sd := usualScatter * genericKappa * math.Exp(phiSpread*(offset+1))
		shares, means := make([]float64, zNodes), make([]float64, zNodes)
		for i := range zNodes {
			shares[i], means[i] = shareShift(zLow+float64(i)*zStep, sd), sd*sd/2
		}
		for j := range bounds {
			b := &bounds[j]
			w := width{sd, shares}
			switch b.kind {
			case onMean:
				w.shift = means
			case onThroughput:
				w.sd /= genericKappa
			}
			b.widths = append(b.widths, w)
		}
	}
	return bounds
}

// shareShift is by how much the trials in the middle are below the curve at z, if all have its share and scatter by sd.
func shareShift(z, sd float64) float64 {
	low, high := 0.0, sd*(sd+1)
	for range 20 {
		mid, share := (low+high)/2, 0.0
		for i, x := range phiOffsets {
			share += nodeWeights[i] * unlink(z-mid+x*sd)
		}
		if share > unlink(z) {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// dispersion is the variance of a count over its mean as a function of the share.
func (a *assumed) dispersion(phi float64) stat.Dispersion {
	return stat.Dispersion{At: phi, Level: a.share, Gamma: a.gamma}
}

// curve is the bound's at ratio times the largest rate that meets it.
func (a *assumed) curve(kappa, ratio float64) float64 {
	if a.kind == onThroughput {
		return math.Log(ratio)
	}
	return a.offset + rise(kappa, ratio)
}

// logWidth is the log density of a width of a curve of a steepness. What differs is the speed of
// the server, so it is one of width/kappa; all servers may be the same in every trial.
func (a *assumed) logWidth(i int, kappa float64) float64 {
	if len(a.widths) == 1 {
		return 0
	}
	if i == 0 {
		return math.Log(steady)
	}
	x := math.Log(a.widths[i].sd/kappa/usualScatter) / phiSpread
	return math.Log((1-steady)/math.Sqrt(2*math.Pi)) - x*x/2
}

// studentT2 is the log density of Student's t with two degrees of freedom, up to a constant. It is that of
// priors in place of the normal one: a simulator that is wrong by 2x must be outvoted by a few trials, and
// under a normal prior of spread 0.3 it would still pull the answer by half a standard error after them. Nor would
// one of the usual spread believe a steepness of 1, as where the limit is near the latency of an idle engine.
func studentT2(t float64) float64 { return -1.5 * math.Log1p(t*t/2) }

// unlink is the share whose [stat.CLogLog], the scale of curves, is z. It stays below 1, so that a single request within
// the limit does not exclude a rate at which the curve leaves room for none.
func unlink(z float64) float64 { return -math.Expm1(-math.Exp(min(z, zHigh))) }

// rise is how far above its value at the limit a curve is at x times that rate: kappa (x-1), as of queues, and for
// curves that are flatter than those of any queue a power of x, down to ln x. Exceedances that have nothing to do with
// waiting, such as tokens that wait for one prompt, come in proportion to the rate.
func rise(kappa, x float64) float64 {
	if kappa >= flat {
		return kappa * (x - 1)
	}
	return flat * (math.Exp(kappa/flat*math.Log(x)) - 1)
}

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
// is linear in the rate, and heavy traffic gives the same form with other constants. Part of p0, or of the limit on a
// mean, may be of lone requests, at any load; then the rest follows the form, see raised. A server that is offered more
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
	// forms are those that the curve may have and its trials may leave it by: those without any scatter come first.
	forms []curveForm
}

// curveForm is what may be added to a curve of two parameters.
type curveForm struct {
	// floor is the part that lone requests take of what is allowed, see raised; logProb is the log probability of the form.
	floor, logProb float64
	// sd is the standard deviation, on the scale of the curve, by which trials are off it, as the server is faster or slower.
	sd float64
	// places are where on the scale, in nodes of the table of a likelihood, trials are that are off the curve by each of
	// phiOffsets, for each node of the curve without a floor. Throughput has none.
	places [phiNodes][zNodes]float64
}

// assume lists the bounds of an objective with what is believed of each; the share of failed requests, where it is
// bounded, and the throughput come last, as in measure.Measurement.Counts. With scatter the server may be faster in one
// trial than in another, as all are that run in real time.
func assume(slo measure.SLO, prior Prior, scatter bool) []assumed {
	bounds := make([]assumed, 0, len(slo.Bounds)+2)
	for _, b := range slo.Bounds {
		a := generic(b.String(), b.Allowed(), scatter)
		a.waits = b.Waits()
		a.rate, a.spread = prior.Rate, cmp.Or(prior.Spread, rateSpread)
		if prior.Binding == a.name || prior.Binding == "" && a.kind == onShare && len(slo.Bounds) == 1 {
			a.kappa, a.phi, a.gamma = cmp.Or(prior.Kappa, a.kappa), cmp.Or(prior.Phi, a.phi), cmp.Or(prior.Gamma, a.gamma)
		}
		bounds = append(bounds, a)
	}
	if slo.Errors >= 0 {
		a := generic(measure.ErrorsBound, max(slo.Errors, 1e-6), scatter)
		a.rate = prior.Rate
		bounds = append(bounds, a)
	}
	flow := assumed{name: measure.ThroughputBound, kind: onThroughput, kappa: 1, phi: 1}
	flow.addForms(scatter)
	return append(bounds, flow)
}

// generic is what is believed of a bound without a simulator. If the latency above its floor is exponential with a
// mean that grows as 1/(saturation - rate), the steepness at the limit is steep(p0) times a factor of the utilisation
// alone. Queues follow that, while engines hardly become flatter as more requests are allowed beyond the limit (29, 24
// and 17 for a hundredth, a tenth and a half; M/M/1 13, 9 and 4): the root of steep is in the middle. The dispersion
// is the same whatever the share of queues at equal utilisation; of engines it grows with it (97, 177 and 356).
func generic(name string, share float64, scatter bool) assumed {
	a := assumed{name: name, kind: onMean, share: share, kappa: flat, phi: stat.Generic, gamma: stat.Growth, spread: rateSpread}
	if share > 0 {
		a.kind = onShare
		a.offset = stat.CLogLog(share)
		a.above = min(far, stat.CLogLog(share+(1-share)*plateau)-a.offset)
		a.kappa = genericKappa * math.Sqrt(steep(share)/steep(0.01))
		rarer := math.Sqrt(math.Log(0.01) / math.Log(share))
		a.phi, a.gamma = rarer*stat.Generic, rarer*stat.Growth
	}
	a.addForms(scatter)
	return a
}

// steep is d ln(-ln(1-p)) / d ln(saturation - rate) of an exponential tail.
func steep(p float64) float64 { return p * math.Log(p) / ((1 - p) * math.Log1p(-p)) }

// addForms adds those that the curve of a bound may have.
func (a *assumed) addForms(scatter bool) {
	speeds := []curveForm{{}}
	if scatter {
		speeds[0].logProb = math.Log(steady)
		for _, x := range phiOffsets {
			speeds = append(speeds, curveForm{sd: usualScatter * math.Exp(phiSpread*(x+1)), logProb: math.Log((1 - steady) / math.Sqrt(2*math.Pi))})
		}
	}
	for _, f := range speeds {
		if a.kind == onThroughput {
			a.forms = append(a.forms, f)
			continue
		}
		// A curve that is steeper than most is left further by the same scatter.
		f.sd *= genericKappa
		each, some := f.logProb, (1-floorless)/3
		for lone, prob := range []float64{floorless, some, some, some} {
			f.floor, f.logProb = lonePart*float64(lone), each+math.Log(prob)
			for i := range zNodes {
				z := zLow + float64(i)*zStep
				z -= a.below(f.floor, z, f.sd)
				for n, x := range phiOffsets {
					f.places[n][i] = min(max((raised(a.offset, f.floor, z+x*f.sd)-zLow)/zStep, 0), float64(zNodes-1))
				}
			}
			a.forms = append(a.forms, f)
		}
	}
}

// below is how far below a curve without a floor at z trials are in the middle, if they scatter by sd: with the floor the
// curve is of the share, or the mean, of all of them, which those that are slow make up most of.
func (a *assumed) below(floor, z, sd float64) float64 {
	if a.kind == onMean || sd == 0 {
		return sd * sd / 2 / (1 - floor)
	}
	low, high := stat.Bisect(0, sd*(sd+1)/(1-floor), 12, func(mid float64) bool {
		share := 0.0
		for i, x := range phiOffsets {
			share += nodeWeights[i] * unlink(raised(a.offset, floor, z-mid+x*sd))
		}
		return share <= unlink(raised(a.offset, floor, z))
	})
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

// raised is the value of a curve, which has the value limit at the limit, of which lone requests make up the part floor
// of what is allowed, where it were z without them: rates at which requests come to be late add up, and so do times. At
// the limit it is as steep, so that the rest is steeper.
func raised(limit, floor, z float64) float64 {
	return limit + math.Log(floor+(1-floor)*math.Exp((z-limit)/(1-floor)))
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

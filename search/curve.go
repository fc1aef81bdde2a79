package search

import (
	"cmp"
	"math"

	"planner/internal/stat"
	"planner/sweep/measure"
)

// boundKind is what a bound limits: the share of requests that exceed a latency, or that failed; the mean of a latency; or,
// by requiring that what arrives is completed, the throughput.
type boundKind int

const (
	onShare boundKind = iota
	onMean
	onThroughput
)

// assumed is the prior belief about one bound. The share of exceedances follows
//
//	link p(rate) = link p0 + rise(kappa, rate/max)
//
// where link is [stat.CLogLog] and max the largest rate that meets the bound; ln(mean/limit) follows the same with 0 for
// link p0. For M/M/1 ln p is linear in the rate, and heavy traffic gives the same form with other constants. Part of p0,
// or of the limit on a mean, may be due to lone requests, at any load; the rest then follows the form, see raised. An
// overloaded server completes max, so that a share 1 - max/rate of arrivals stays behind.
type assumed struct {
	name string
	kind boundKind
	// waits says that the latency includes time in the queue, which keeps growing while a server is overloaded.
	waits bool
	// share is the allowed share of exceedances p0; 0 for a mean.
	share float64
	// offset is the curve at max: link p0, or 0 for a mean; beyond offset+above a share counts only as "at least that".
	offset, above float64
	// kappa and phi are the prior medians of the steepness and the dispersion, gamma is that of [stat.Dispersion].
	kappa, phi, gamma float64
	// rate is the predicted max, 0 for none, and spread the scale of ln rate, see studentT2.
	rate, spread float64
	// forms are the variants of the curve, by floor and by the scatter of trials about it; first those without scatter.
	forms []curveForm
}

// curveForm extends a curve of two parameters by a floor, by scatter between trials, or both.
type curveForm struct {
	// floor is the part of what is allowed that lone requests take up, see raised; logProb is the log prior of the form.
	floor, logProb float64
	// sd is the standard deviation of trials about the curve, on its scale, as the speed of the server differs.
	sd float64
	// places[m][i] is where a trial lies that is off the curve by phiOffsets[m] times sd, in nodes of a likelihood's
	// table, if the curve without its floor is at node i. Throughput has none.
	places [phiNodes][zNodes]float64
}

// assume lists the bounds of an objective with the prior belief about each. The share of failed requests, if bounded,
// and the throughput come last, as in measure.Measurement.Counts. With scatter the server may be faster in one trial
// than in another, as every engine in real time may be.
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

// generic is the prior belief about a bound without a simulator. If latency above its floor is exponential with a mean
// proportional to 1/(saturation - rate), the steepness at the limit is steep(p0) times a factor that depends only on the
// utilisation. Queues follow that, while engines become hardly flatter as more requests may exceed the limit (29, 24 and
// 17 for a hundredth, a tenth and a half; M/M/1 13, 9 and 4): the square root of steep lies in between. At equal
// utilisation the dispersion of queues does not depend on the share; that of engines grows with it (97, 177 and 356).
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

// steep is -d ln(-ln(1-p)) / d ln(saturation - rate) for an exponential tail.
func steep(p float64) float64 { return p * math.Log(p) / ((1 - p) * math.Log1p(-p)) }

// addForms adds the forms that the curve of a bound may have.
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
		// From ln speed to the scale of curves at the usual steepness; the prior of scatter allows for others.
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

// below is how far the median trial lies below a curve that is at z without its floor, if trials scatter by sd: the
// curve is that of the share, or the mean, over all trials, to which the slow ones contribute most.
func (a *assumed) below(floor, z, sd float64) float64 {
	if a.kind == onMean || sd == 0 {
		return sd * sd / 2 / (1 - floor)
	}
	limit, most, above, times := math.Exp(a.offset), math.Exp(zHigh), math.Exp((z-a.offset)/(1-floor)), phiOffsets
	for i, x := range phiOffsets {
		times[i] = math.Exp(x * sd / (1 - floor))
	}
	// beyond is unlink(raised(z)), given exp((z-a.offset)/(1-floor)).
	beyond := func(above float64) float64 { return -math.Expm1(-min(limit*(floor+(1-floor)*above), most)) }
	all := beyond(above)
	low, high := stat.Bisect(0, sd*(sd+1)/(1-floor), 12, func(mid float64) bool {
		share, median := 0.0, above*math.Exp(-mid/(1-floor))
		for i, weight := range nodeWeights {
			share += weight * beyond(median*times[i])
		}
		return share <= all
	})
	return (low + high) / 2
}

// curve is the value of the bound's curve at ratio times the largest rate that meets it.
func (a *assumed) curve(kappa, ratio float64) float64 {
	if a.kind == onThroughput {
		return math.Log(ratio)
	}
	return a.offset + rise(kappa, ratio)
}

// raised adds a floor to a curve: z is its value without lone requests, limit its value at the limit, and floor the part
// of what is allowed that lone requests take up. Hazards of being late add up, and so do mean times. The steepness at
// the limit is kept, so that the rest of the curve is steeper.
func raised(limit, floor, z float64) float64 {
	return limit + math.Log(floor+(1-floor)*math.Exp((z-limit)/(1-floor)))
}

// studentT2 is the log density of Student's t with two degrees of freedom, up to a constant. Priors use it instead of
// the normal: a few trials must outvote a simulator that is wrong by 2x, which under a normal prior of spread 0.3 would
// still pull the answer by half a standard error after them. A normal prior of the usual spread would also rule out a
// steepness of 1, as found where the limit is near the latency of an idle engine.
func studentT2(t float64) float64 { return -1.5 * math.Log1p(t*t/2) }

// unlink is the inverse of [stat.CLogLog], the scale of curves. It stays below 1, so that a single request within the
// limit does not rule out a rate at which the curve leaves room for none.
func unlink(z float64) float64 { return -math.Expm1(-math.Exp(min(z, zHigh))) }

// rise is how far a curve lies above its value at the limit, at x times the limit's rate: kappa (x-1), as for queues,
// or, for curves flatter than any queue's, a power of x that tends to kappa ln x. Exceedances that have nothing to do
// with queueing, such as tokens that wait for one prompt, are proportional to the rate.
func rise(kappa, x float64) float64 {
	if kappa >= flat {
		return kappa * (x - 1)
	}
	return flat * (math.Exp(kappa/flat*math.Log(x)) - 1)
}

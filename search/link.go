package search

import "math"

// link carries a share of exceedances to the scale on which it is a straight line
// in the rate: the complementary log-log ln(-ln(1-p)). Where few requests are beyond
// a limit it is ln p, as the logit is; where many are, the curves of queues and of
// batching engines are straight on it and not on the logit: over rates of 0.9 to 1.2
// times the largest that meets a median, a batching engine's slope is 16 to 18 on
// this scale and 19 to 60 in logits, that of M/M/1 3.8 to 5.6 and 5 to 10.
func link(p float64) float64 { return math.Log(-math.Log1p(-p)) }

// unlink is the share at z. It stays below 1, so that a single request within the
// limit does not exclude a rate at which the curve leaves room for none.
func unlink(z float64) float64 { return min(-math.Expm1(-math.Exp(z)), mostShare) }

// rise is how far above its value at the limit a curve is at x times that rate:
// kappa (x-1), as of queues, and for curves that are flatter than those of any queue
// a power of x, down to ln x. Exceedances that have nothing to do with waiting, such
// as tokens that wait for one prompt, come in proportion to the rate.
func rise(kappa, x float64) float64 {
	if kappa >= flat {
		return kappa * (x - 1)
	}
	return flat * (math.Exp(kappa/flat*math.Log(x)) - 1)
}

// flat is the steepness below which curves bend: that of a queue of half load under a
// limit on p99, and of a limit on the median near saturation.
const flat = 4.0

// mostShare is the largest share that a curve predicts.
const mostShare = 1 - 1e-9

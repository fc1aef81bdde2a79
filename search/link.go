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

// mostShare is the largest share that a curve predicts.
const mostShare = 1 - 1e-9

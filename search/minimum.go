package search

import "math"

// minimum is the posterior of the largest rate that meets every bound: of the
// least among the bounds' own. All trials count for every bound, and a lucky draw
// of arrivals is lucky for each, so the bounds' errors go together: the minimum
// takes them as going together wholly, which makes each of its quantiles the
// least of the bounds' quantiles. For the lower end that needs no assumption: it
// is at most the lower end of the bound that truly limits the rate, so it is too
// high no more often than that one is (an intersection-union test, Berger 1982).
// Independence would put the median of the minimum below every bound's own, the
// more so the more bounds bind at the same rate.
type minimum struct{ parts []*posterior }

// survival is the probability that every bound is met at the rate exp(u).
func (m minimum) survival(u float64) float64 {
	s := 1.0
	for _, p := range m.parts {
		s = min(s, p.survival(u))
	}
	return s
}

// quantile is the q-quantile of the largest rate, in requests per second. It is
// the end of the grid when no bound limits the rate with probability q.
func (m minimum) quantile(q float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range m.parts {
		low = min(low, p.low-p.step)
		high = max(high, p.end())
	}
	for range 60 {
		mid := (low + high) / 2
		if m.survival(mid) > 1-q {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// halfWidth is half the central interval of the given confidence over the
// median.
func (m minimum) halfWidth(confidence float64) float64 {
	e := m.estimate(confidence)
	return (e.High - e.Low) / 2 / e.Value
}

// binding gives the probability that each bound is the one that limits the
// rate, and the index of the likeliest. What is left to 1 is the probability
// that none does. How sure it is which of two limits binds is asked of the
// bounds as if they were independent: errors that go together would name the
// lower one with certainty however near the other is.
func (m minimum) binding() (probability []float64, likeliest int) {
	probability = make([]float64, len(m.parts))
	for j, p := range m.parts {
		for i, mass := range p.mass {
			if mass == 0 {
				continue
			}
			u := p.low + p.step*float64(i)
			for l, other := range m.parts {
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
func (m minimum) estimate(confidence float64) Estimate {
	tail := (1 - confidence) / 2
	median := m.quantile(0.5)
	at := func(q, sigmas float64) float64 {
		distance := math.Log(m.quantile(q) / median)
		return median * math.Exp(math.Copysign(math.Hypot(distance, sigmas*misshapen), distance))
	}
	z := normalTail(confidence)
	return Estimate{Value: median, Low: at(tail, z), High: at(1-tail, z), Confidence: confidence, Safe: at(0.05, quantile95)}
}

// misshapen is what a curve of two parameters is wrong by, as a standard deviation of
// ln rate, however many trials it is fitted to: answers for queues and batching
// engines, under limits at shares from a thousandth to a half, come out between 0.6 %
// low and 0.9 % high in the mean of many searches.
const misshapen = 0.008

package search

import (
	"math"

	"planner/internal/stat"
	"planner/sweep/measure"
)

// The likelihood of one trial depends on the parameters only through the curve
// z at the trial's rate and through the dispersion. It is tabulated over both
// once, so that a posterior of 14,000 points costs interpolations instead of
// gamma functions.
const (
	phiNodes = 5
	zLow     = -16.0
	zHigh    = 3.0
	zStep    = 1.0 / 12
	zNodes   = int((zHigh-zLow)/zStep) + 1
	// topSlope is that of the log likelihood above the table, where a share is
	// nearly 1 and some requests were within the limit all the same.
	topSlope = -1.0
)

// phiOffsets are the nodes of the dispersion in standard deviations of its log.
var phiOffsets = [phiNodes]float64{-2, -1, 0, 1, 2}

// likelihood is what one trial says of one bound.
type likelihood struct {
	rate float64
	// n and k are in units of requests.
	n, k float64
	// value is mean/limit of a bound on a mean.
	value float64
	// over is the log likelihood of a growing backlog at a rate that meets the
	// bound, 0 where none was seen.
	over float64
	// table holds log likelihoods, phiNodes for each node of z; bottom and top
	// are their slopes below and above it.
	table       []float64
	bottom, top [phiNodes]float64
}

// falseOverload is the probability that a trial at a rate that meets the
// objective is marked overloaded all the same, where many requests are late as
// well; falseGrowth where they are not, as the number in flight of an engine
// with long answers wanders slowly and far.
const falseOverload, falseGrowth = 0.01, 0.3

// observe turns what a trial counted for a bound into evidence. A trial in
// which nothing of the bound was decided has no table, but keeps its rate.
func (a *assumed) observe(m *measure.Measurement, c measure.Count) likelihood {
	unit := max(c.Cluster, 1)
	e := likelihood{rate: m.Trial.Rate, n: float64(c.N) / unit, k: float64(c.K) / unit, value: c.Value}
	if m.Overloaded && a.name != measure.ErrorsBound {
		e.over = math.Log(falseGrowth)
		if float64(c.K) >= common*float64(c.N) || (a.mean && a.missed(c)) {
			e.over = math.Log(falseOverload)
		}
	}
	if a.mean {
		e.k = 0
	}
	if c.N == 0 || (a.mean && !(c.Value > 0)) {
		e.n, e.k = 0, 0
		return e
	}
	e.table = make([]float64, zNodes*phiNodes)
	for j, offset := range phiOffsets {
		phi := a.phi.median * math.Exp(a.phi.sd*offset)
		for i := range zNodes {
			e.table[i*phiNodes+j] = a.logLikelihood(&e, zLow+float64(i)*zStep, phi)
		}
		if !a.mean {
			e.bottom[j] = e.k
		}
		if !a.mean && e.k <= e.n*a.far() {
			e.top[j] = topSlope
		}
	}
	return e
}

// logLikelihood is that of a trial when the curve at its rate has the value z.
func (a *assumed) logLikelihood(e *likelihood, z, phi float64) float64 {
	if a.mean {
		return a.logMean(e, z, phi)
	}
	p := unlink(z)
	switch share := e.k / e.n; {
	case share > a.far():
		return math.Log(max(a.dispersion(phi).CountAbove(e.k, e.n, p), math.SmallestNonzeroFloat64))
	case share < unlink(a.offset-farBelow):
		return a.logBelow(e.k, e.n, p, phi)
	}
	if p <= common {
		// The floor keeps a count that is nearly free of clumps from claiming to be
		// more regular than any queue is.
		return stat.NegativeBinomial{Mean: e.n * p, Phi: max(a.dispersion(phi).Phi(p), 1.05)}.LogProb(e.k)
	}
	return logBetaBinomial(e.k, e.n, p, a.dispersion(phi).Phi(p))
}

// farAbove is how far above the limit, in logits, a share counts as "at least
// that": there a queue is filling and not yet as long as it will be, so that a
// share taken at its face would bend the curve, and with it the answer,
// downwards. farBelow, on the scale of the curve, is how far below it counts as "at most that": requests
// that are slow whatever the load, such as long prompts, leave a floor there.
const farAbove, farBelow = 3.0, 2.0

// far is the share that is farAbove the limit.
func (a *assumed) far() float64 {
	odds := a.share / (1 - a.share) * math.Exp(farAbove)
	return odds / (1 + odds)
}

// common is the share from which exceedances are so common that a count
// distribution without an upper end is wrong: it gives no exceedance at all a
// fair chance even far beyond saturation. The beta-binomial of the same
// dispersion takes over.
const common = 0.2

// logBetaBinomial is the log probability of k of n when their share is p and
// the variance n p (1-p) phi. A dispersion near n means all or none.
func logBetaBinomial(k, n, p, phi float64) float64 {
	a, b := betaShape(n, p, phi)
	return logBeta(k+a, n-k+b) - logBeta(a, b) - logBeta(k+1, n-k+1) - math.Log(n+1)
}

// logBelow is the log probability of k and fewer exceedances among n when their
// share is p and phi the dispersion at the limit.
func (a *assumed) logBelow(k, n, p, phi float64) float64 {
	d := a.dispersion(phi)
	if p > common {
		return logBetaBinomialBelow(k, n, p, d.Phi(p))
	}
	return math.Log(max(d.CountBelow(k, n, p), math.SmallestNonzeroFloat64))
}

// logBetaBinomialBelow is the log probability of k and fewer. A quasi-binomial
// tail, which divides both counts by the dispersion, would give no exceedance
// among 1,700 requests with a dispersion of 600 a chance of one in two where one
// request in four is late, ten times too much.
func logBetaBinomialBelow(k, n, p, phi float64) float64 {
	a, b := betaShape(n, p, phi)
	sum, term := 1.0, 1.0
	for i := k; i >= 1 && term > 1e-12*sum; i-- {
		term *= i * (n - i + b) / ((n - i + 1) * (i - 1 + a))
		sum += term
	}
	return min(logBetaBinomial(k, n, p, phi)+math.Log(sum), 0)
}

// betaShape gives the parameters of the beta distribution of the share in one
// trial.
func betaShape(n, p, phi float64) (a, b float64) {
	s := max((n-phi)/(max(phi, 1.05)-1), 0.1)
	return s * p, s * (1 - p)
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// logMean is the likelihood of an observed mean: ln(mean/limit) is normal
// around z. Its variance is phi/n, as for exponential latencies whose
// fluctuations are as clumped as exceedances are, and grows with the distance
// from the limit, since no single curve describes an idle and a saturated
// server.
func (a *assumed) logMean(e *likelihood, z, phi float64) float64 {
	const misfit, least, outgrown = 0.25, 0.02, 0.5
	v := phi/e.n + least*least + misfit*misfit*z*z
	d := math.Log(e.value) - z
	if d > 0 || math.Log(e.value) < outgrown {
		return -d*d/(2*v) - math.Log(v)/2
	}
	// A queue far beyond its limit is still growing: the mean is at least that.
	return -math.Log(v) / 2
}

// at adds the table's log likelihoods at z to sum, one a dispersion. Beyond the
// table, where a share is 1e-7 or nearly 1, each exceedance below, and a first
// request without one above, costs in proportion to z.
func (e *likelihood) at(z float64, sum *[phiNodes]float64) {
	if e.table == nil {
		return
	}
	in := min(max(z, zLow), zHigh)
	x := (in - zLow) / zStep
	i := min(int(x), zNodes-2)
	f := x - float64(i)
	row := e.table[i*phiNodes : (i+2)*phiNodes]
	for j := range sum {
		sum[j] += row[j] + f*(row[phiNodes+j]-row[j])
	}
	if z != in {
		slope := &e.top
		if z < in {
			slope = &e.bottom
		}
		for j := range sum {
			sum[j] += slope[j] * (z - in)
		}
	}
}

package search

import (
	"cmp"
	"math"

	"planner/internal/parallel"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// The likelihood of a trial depends on the parameters only through the curve z at its rate, the form and the dispersion.
// It is tabulated over these once, as a posterior has up to 400,000 points.

// phiOffsets are the nodes of a standardised error, such as that of ln dispersion, nodeWeights their (binomial) weights.
var (
	phiOffsets  = [phiNodes]float64{-2, -1, 0, 1, 2}
	nodeWeights = [phiNodes]float64{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16}
)

// likelihood is the evidence of one trial on one bound.
type likelihood struct {
	rate float64
	// n are the requests that were counted, k those beyond the limit. Counts of tokens are converted to requests.
	n, k float64
	// value is mean/limit for a bound on a mean, for throughput the share of arrivals that stayed behind; spread its deviation.
	value, spread float64
	// atLeast says that in the long run the share, or the mean, is larger still: the server's queue was growing.
	atLeast bool
	// table holds log likelihoods: for each node of z, phiNodes of each form. Throughput has none.
	table []float64
}

// observe turns what a trial counted for a bound into evidence, with a table if it counted anything. Of a whole trace nothing
// is drawn: it tells as much as coarseRequests independent exceedances, unless it has none, as little then tells when they come.
func (a *assumed) observe(c measure.Count, rate float64, atLeast bool) likelihood {
	unit := max(c.Cluster, 1)
	if c.Whole && c.Value > 0 {
		unit = float64(c.N) * cmp.Or(a.share, 1) / (a.phi * coarseRequests)
	}
	e := likelihood{rate: rate, n: float64(c.N) / unit, k: float64(c.K) / unit, value: c.Value, atLeast: atLeast}
	switch {
	case a.kind == onThroughput && c.N > 0:
		e.spread = (c.High - c.Value) / stat.StudentT(0.95, flowFreedom)
	case a.kind != onThroughput && c.N > 0 && (a.kind == onShare || c.Value > 0):
		e.tabulate(a)
	}
	return e
}

// tabulate fills the table. Each form averages the likelihood over the places where trials may lie about the curve.
func (e *likelihood) tabulate(a *assumed) {
	nodes := len(a.forms) * phiNodes
	e.table = make([]float64, zNodes*nodes)
	_ = parallel.Do(phiNodes, func(j int) error {
		phi := a.phi * math.Exp(phiSpread*phiOffsets[j])
		most, floor := math.Inf(-1), math.Log(disturbed*(1-e.k/e.n))
		var column [zNodes]float64
		for i := zNodes - 1; i >= 0; i-- {
			l := a.logLikelihood(e, zLow+float64(i)*zStep, phi)
			most = max(most, l)
			column[i] = max(l, most+floor)
		}
		for i := range column {
			column[i] = math.Exp(column[i] - most)
		}
		for n := range a.forms {
			for i := range zNodes {
				seen := math.SmallestNonzeroFloat64
				for m, weight := range nodeWeights {
					at := a.forms[n].places[m][i]
					k := min(int(at), zNodes-2)
					seen += weight * (column[k] + (at-float64(k))*(column[k+1]-column[k]))
				}
				e.table[i*nodes+n*phiNodes+j] = most + math.Log(seen)
			}
		}
		return nil
	})
}

// flowFreedom is the number of degrees of freedom of the spread of a throughput, which comes from eight blocks.
const flowFreedom = 7

// logFlow is the log likelihood of the share of arrivals that stayed behind, if the rate is exp(z) times what the server
// completes and ln of its speed has standard deviation width: that of Student's t, as the spread is estimated.
func (e *likelihood) logFlow(z, width float64) float64 {
	density := 0.0
	for i, x := range phiOffsets {
		over := max(z+x*width, 0)
		sd := math.Hypot(e.spread, misfit*over)
		t := (e.value + math.Expm1(-over)) / sd
		density += nodeWeights[i] * math.Pow(1+t*t/flowFreedom, -(flowFreedom+1)/2) / sd
	}
	return math.Log(density)
}

// logLikelihood is the log likelihood of a trial if the curve has the value z at its rate.
func (a *assumed) logLikelihood(e *likelihood, z, phi float64) float64 {
	if a.kind == onMean {
		return logMean(e, z, phi)
	}
	p := unlink(z)
	d := stat.Dispersion{At: phi, Level: a.share, Gamma: a.gamma}
	switch share := e.k / e.n; {
	case e.atLeast, share > unlink(a.offset+a.above):
		return math.Log(max(d.CountAbove(e.k, e.n, p), math.SmallestNonzeroFloat64))
	case share < unlink(a.offset-far):
		return stat.BetaBinomial{N: e.n, P: p, Phi: d.Phi(p)}.LogCDF(e.k)
	}
	// The misfit of the curve, a share of the distance from the limit, scatters counts as clumps do. The floor of phi
	// keeps a count that is nearly free of clumps from claiming to be more regular than any queue is.
	wrong := misfit * (z - a.offset)
	spread := max(d.Phi(p), 1.05) + e.n*p*wrong*wrong
	return stat.BetaBinomial{N: e.n, P: p, Phi: min(spread, e.n)}.LogProb(e.k)
}

// logMean is the log likelihood of an observed mean: ln(mean/limit) is normal around z. Its variance is phi/n, as for
// exponential latencies that are as clumped as exceedances, plus a misfit that grows with the distance from the limit,
// since no single curve describes both an idle and a saturated server. Far below the limit the mean counts as "at most",
// as it includes the idle latency; far above, or of a queue that is still growing, as "at least".
func logMean(e *likelihood, z, phi float64) float64 {
	seen := math.Log(e.value)
	d, variance := z-seen, phi/e.n+misfit*misfit*seen*seen
	if d < 0 && seen < -farMean || d > 0 && (e.atLeast || seen > farMean) {
		d = 0
	}
	return -d*d/(2*variance) - math.Log(variance)/2
}

// at adds the log likelihoods at z to sum, one per form and dispersion. Beyond the table, where a share is 1e-7 or
// nearly 1, the values at its ends hold.
func (e *likelihood) at(z float64, forms []curveForm, sum []float64) {
	if e.spread > 0 {
		for n, f := range forms {
			flow := e.logFlow(z, f.sd)
			for j := range phiNodes {
				sum[n*phiNodes+j] += flow
			}
		}
	}
	if e.table == nil {
		return
	}
	nodes := len(sum)
	x := (min(max(z, zLow), zHigh) - zLow) / zStep
	i := min(int(x), zNodes-2)
	f := x - float64(i)
	below, above := e.table[i*nodes:][:nodes], e.table[(i+1)*nodes:][:nodes]
	for j := range sum {
		sum[j] += below[j] + f*(above[j]-below[j])
	}
}

package search

import (
	"math"
	"slices"

	"planner/internal/stat"
	"planner/sweep/measure"
)

// The likelihood of one trial depends on the parameters only through the curve z at the trial's rate and through the
// dispersion. It is tabulated over both once, as a posterior has up to 400,000 points.

// phiOffsets are values of a standard normal error, as of ln dispersion, and nodeWeights their probabilities (binomial).
var (
	phiOffsets  = [phiNodes]float64{-2, -1, 0, 1, 2}
	nodeWeights = [phiNodes]float64{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16}
)

// likelihood is what one trial says of one bound.
type likelihood struct {
	rate float64
	// n and k are in units of requests.
	n, k float64
	// value is mean/limit of a bound on a mean, and of throughput the share of what
	// came that stayed, with its standard deviation in spread.
	value, spread float64
	// atLeast says that in the long run the share, or the mean, is larger still: the
	// server was overloaded, and its queue not yet as long as it will be.
	atLeast bool
	// table holds log likelihoods, phiNodes of each form for each node of z. Throughput has none.
	table []float64
}

// observe turns what a trial counted for a bound into evidence about a rate. A trial in
// which nothing of the bound was decided has no table, but keeps its rate.
func (a *assumed) observe(c measure.Count, rate float64, atLeast bool) likelihood {
	unit := max(c.Cluster, 1)
	e := likelihood{rate: rate, n: float64(c.N) / unit, value: c.Value, atLeast: atLeast}
	switch {
	case c.N == 0:
	case a.kind == onThroughput:
		e.spread = (c.High - c.Value) / stat.StudentT(0.95, flowFreedom)
	case a.kind == onMean && c.Value > 0:
		e.tabulate(a)
	case a.kind == onShare:
		e.k = float64(c.K) / unit
		e.tabulate(a)
	}
	return e
}

// tabulate fills the table: each form sees the likelihood of another place of the curve.
func (e *likelihood) tabulate(a *assumed) {
	nodes := len(a.forms) * phiNodes
	e.table = make([]float64, zNodes*nodes)
	for j, offset := range phiOffsets {
		phi := a.phi * math.Exp(phiSpread*offset)
		most, floor := math.Inf(-1), math.Log(disturbed*(1-e.k/e.n))
		var column [zNodes]float64
		for i := zNodes - 1; i >= 0; i-- {
			l := a.logLikelihood(e, zLow+float64(i)*zStep, phi)
			most = max(most, l)
			column[i] = max(l, most+floor)
		}
		top := slices.Max(column[:])
		for i := range column {
			column[i] = math.Exp(column[i] - top)
		}
		for n := range a.forms {
			for i := range zNodes {
				seen := math.SmallestNonzeroFloat64
				for m, weight := range nodeWeights {
					at := a.forms[n].places[m][i]
					k := min(int(at), zNodes-2)
					seen += weight * (column[k] + (at-float64(k))*(column[k+1]-column[k]))
				}
				e.table[i*nodes+n*phiNodes+j] = top + math.Log(seen)
			}
		}
	}
}

// flowFreedom is the number of degrees of freedom of the spread of a throughput, which comes from eight blocks.
const flowFreedom = 7

// logFlow is the log likelihood of a share of what came that stayed, where the rate is exp(z) times what the server
// completes, and ln of its speed differs between trials by width: Student's t, as the spread is estimated.
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

// logLikelihood is that of a trial when the curve at its rate has the value z.
func (a *assumed) logLikelihood(e *likelihood, z, phi float64) float64 {
	if a.kind == onMean {
		return logMean(e, z, phi)
	}
	p := unlink(z)
	d := a.dispersion(phi)
	switch share := e.k / e.n; {
	case e.atLeast, share > unlink(a.offset+a.above):
		return math.Log(max(d.CountAbove(e.k, e.n, p), math.SmallestNonzeroFloat64))
	case share < unlink(a.offset-far):
		return stat.BetaBinomial{N: e.n, P: p, Phi: d.Phi(p)}.LogCDF(e.k)
	}
	// The curve is wrong by a share of the distance from the limit, which scatters counts as clumps do. The floor keeps
	// a count that is nearly free of clumps from claiming to be more regular than any queue is.
	wrong := misfit * (z - a.offset)
	spread := max(d.Phi(p), 1.05) + e.n*p*wrong*wrong
	return stat.BetaBinomial{N: e.n, P: p, Phi: min(spread, e.n)}.LogProb(e.k)
}

// logMean is the likelihood of an observed mean: ln(mean/limit) is normal around z. Its variance is phi/n, as for
// exponential latencies whose fluctuations are as clumped as exceedances are, and grows with its distance from the
// limit, since no single curve describes an idle and a saturated server. Far below the limit a mean is at most that of
// the curve's queue, as it holds what an idle engine takes; of a queue that is still growing it is at least that.
func logMean(e *likelihood, z, phi float64) float64 {
	seen := math.Log(e.value)
	d, variance := z-seen, phi/e.n+misfit*misfit*seen*seen
	if d < 0 && seen < -farMean || d > 0 && (e.atLeast || seen > farMean) {
		d = 0
	}
	return -d*d/(2*variance) - math.Log(variance)/2
}

// at adds the log likelihoods at z to sum, one a form and dispersion. Beyond the
// table a share is 1e-7 or nearly 1, and they stay as they are at its ends.
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
	row := e.table[i*nodes : (i+2)*nodes]
	for j := range sum {
		sum[j] += row[j] + f*(row[nodes+j]-row[j])
	}
}

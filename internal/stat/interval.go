package stat

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// ShareLower returns the exact one-sided lower bound, at confidence 1-alpha, of a probability after
// k of n trials (Clopper and Pearson 1934). k and n are real: dividing both by a dispersion gives
// the quasi-binomial bound.
func ShareLower(k, n, alpha float64) float64 {
	if k <= 0 || n <= 0 {
		return 0
	}
	return mathext.InvRegIncBeta(k, n-k+1, alpha)
}

// ShareUpper returns the one-sided upper bound that belongs to ShareLower.
func ShareUpper(k, n, alpha float64) float64 {
	if n <= 0 || k >= n {
		return 1
	}
	return mathext.InvRegIncBeta(k+1, n-k, 1-alpha)
}

// Dispersion says how much wider than binomial a count of exceedances spreads, as a function of
// their share p: the variance of the count is n p (1-p) phi(p), taken as n p phi(p) while
// exceedances are rare, with phi(p) = At * (ln(1-p) / ln(1-Level))^Gamma, at least 1. For small
// shares that is a power of p. Up to shares of a half and more it still fits with a constant Gamma,
// as a power of p does not: for M/M/1 with a limit on the median Gamma is 1.3 from p = 0.16 to
// 0.77.
type Dispersion struct {
	// At is the dispersion where the share is Level.
	At, Level float64
	// Gamma is how it grows with the share: 0.5 on most queues, 0 for constant.
	Gamma float64
}

// mostShare keeps logarithms finite.
const mostShare = 1 - 1e-12

// Phi returns the dispersion at share p.
func (d Dispersion) Phi(p float64) float64 {
	if d.Gamma == 0 {
		return max(d.At, 1)
	}
	return max(d.At*math.Pow(math.Log1p(-min(p, mostShare))/math.Log1p(-min(d.Level, mostShare)), d.Gamma), 1)
}

// NegativeBinomial is the distribution of a count with the given mean whose
// variance is Phi times its mean. Phi of 1 and less is Poisson, its limit.
type NegativeBinomial struct{ Mean, Phi float64 }

// nearPoisson is the dispersion below which the shape parameter Mean/(Phi-1)
// costs more digits than the difference from Poisson is worth.
const nearPoisson = 1 + 1e-6

// CDF returns the probability of a count <= k. Between whole numbers it is the smooth curve through
// them, for counts that were divided by a clump size.
func (d NegativeBinomial) CDF(k float64) float64 {
	switch {
	case k < 0:
		return 0
	case d.Mean <= 0:
		return 1
	case d.Phi < nearPoisson:
		return mathext.GammaIncRegComp(k+1, d.Mean)
	}
	return mathext.RegIncBeta(d.Mean/(d.Phi-1), k+1, 1/d.Phi)
}

// BetaBinomial is the distribution of a count among N whose mean is N P and whose variance is Phi
// times the binomial one. At a dispersion near N it is all or none. Counts need not be whole.
type BetaBinomial struct{ N, P, Phi float64 }

// leastExcess and leastShape keep the shape finite where the dispersion is nearly binomial, and
// positive where the count is all or none.
const leastExcess, leastShape = 0.05, 0.1

// shape returns the parameters of the beta distribution of the share in one sample.
func (d BetaBinomial) shape() (a, b float64) {
	s := max((d.N-d.Phi)/(max(d.Phi, 1+leastExcess)-1), leastShape)
	return s * d.P, s * (1 - d.P)
}

// LogProb returns the log probability of k.
func (d BetaBinomial) LogProb(k float64) float64 {
	a, b := d.shape()
	return mathext.Lbeta(k+a, d.N-k+b) - mathext.Lbeta(a, b) - mathext.Lbeta(k+1, d.N-k+1) - math.Log(d.N+1)
}

// LogCDF returns the log probability of k and fewer. A quasi-binomial tail, which divides both
// counts by the dispersion, would give none among 1,700, at a share of one in four and a dispersion
// of 600, a probability of one half, ten times too much.
func (d BetaBinomial) LogCDF(k float64) float64 {
	a, b := d.shape()
	sum, term := 1.0, 1.0
	for i := k; i >= 1 && term > 1e-12*sum; i-- {
		term *= i * (d.N - i + b) / ((d.N - i + 1) * (i - 1 + a))
		sum += term
	}
	return min(d.LogProb(k)+math.Log(sum), 0)
}

// commonShare is the share from which exceedances are too common for a count
// distribution without an upper end.
const commonShare = 0.2

// CountBelow returns the probability of k and fewer exceedances among n when their true share is p.
func (d Dispersion) CountBelow(k, n, p float64) float64 {
	switch {
	case k >= n:
		return 1
	case p >= 1:
		return 0
	case p < commonShare:
		return NegativeBinomial{n * p, d.Phi(p)}.CDF(k)
	}
	return math.Exp(BetaBinomial{n, p, d.Phi(p)}.LogCDF(k))
}

// CountAbove returns the probability of k and more exceedances among n when their true share is p.
// From commonShare on it is the quasi-binomial one, which is wider where a server is overloaded:
// with the beta-binomial one, searches trusted such trials too much.
func (d Dispersion) CountAbove(k, n, p float64) float64 {
	if k <= 0 {
		return 1
	}
	phi := d.Phi(p)
	if p < commonShare {
		return 1 - NegativeBinomial{n * p, phi}.CDF(k-1)
	}
	if p >= 1 {
		return 1
	}
	return mathext.RegIncBeta(k/phi, (n-k)/phi+1, p)
}

// Upper returns the one-sided upper bound at confidence 1-alpha of the share of exceedances after k
// among n: the smallest share from which so few have a probability <= alpha. The dispersion is
// taken at the share in question and not at the observed one, which would give a lucky trial a
// small dispersion and so a weight that it has not earned.
func (d Dispersion) Upper(k, n, alpha float64) float64 {
	if n <= 0 {
		return 1
	}
	_, bound := Bisect(k/n, 1, 60, func(p float64) bool { return d.CountBelow(k, n, p) <= alpha })
	return bound
}

// Lower returns the one-sided lower bound that belongs to Upper.
func (d Dispersion) Lower(k, n, alpha float64) float64 {
	if n <= 0 || k <= 0 {
		return 0
	}
	_, bound := Bisect(0, k/n, 60, func(p float64) bool { return d.CountAbove(k, n, p) > alpha })
	return bound
}

// QuantileRanks inverts the bounds of a share into an interval of the q-quantile of n values: the
// 1-based ranks of its ends among the sorted values, each at confidence 1-alpha. High is n+1 when
// even the largest value is no upper bound, low is 0 when the smallest is no lower one.
func (d Dispersion) QuantileRanks(n int, q, alpha float64) (low, high int) {
	p := 1 - q
	// Few values above x speak for the quantile being below x, many against.
	low = sort.Search(n, func(i int) bool { return d.CountAbove(float64(n-i-1), float64(n), p) > alpha })
	high = 1 + sort.Search(n, func(i int) bool { return d.CountBelow(float64(n-i-1), float64(n), p) <= alpha })
	return low, high
}

// StudentT returns the q-quantile of Student's t distribution with df degrees of freedom.
func StudentT(q, df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(q)
}

// NormalTail returns the standard normal quantile at the upper end of a central interval of the
// given confidence.
func NormalTail(confidence float64) float64 {
	return math.Sqrt2 * math.Erfinv(confidence)
}

// CLogLog maps a share to the complementary log-log scale, on which the shares of late requests of
// queues and of batching engines are straight lines in the rate, whether small or large.
func CLogLog(p float64) float64 { return math.Log(-math.Log1p(-p)) }

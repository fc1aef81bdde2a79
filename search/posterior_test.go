package search

import (
	"math"
	"testing"

	"planner/sweep/measure"
)

// counted is a trial of n requests at a rate, k of them beyond the limit.
func counted(rate float64, n, k int) measure.Measurement {
	return measure.Measurement{Trial: measure.Trial{Rate: rate}, Valid: true,
		Counts: []measure.Count{{Bound: "ttft.p99", N: n, K: k, Cluster: 1}}}
}

func evidenceOf(a *assumed, trials ...measure.Measurement) []likelihood {
	var seen []likelihood
	for i := range trials {
		seen = append(seen, a.observe(trials[i].Counts[0], trials[i].Trial.Rate, false))
	}
	return seen
}

// TestLikelihoodIsADistribution sums the likelihood over the counts near the limit: at any share, on either side of
// where the count distribution changes, it is at most one.
func TestLikelihoodIsADistribution(t *testing.T) {
	a := generic("ttft.p90", 0.1, false)
	for _, z := range []float64{-4, -2, -1.4, -1.3, 0, 2} {
		sum := 0.0
		const n = 400
		for k := range n * 20 {
			// Counts below and above the band around the limit contribute tails.
			e := likelihood{n: n, k: float64(k)}
			if share := e.k / n; share > unlink(a.offset+a.above) || share < unlink(a.offset-far) {
				continue
			}
			if k <= n {
				sum += math.Exp(a.logLikelihood(&e, z, 6))
			}
		}
		if sum > 1.01 {
			t.Errorf("z %.1f: probabilities of the counts near the limit sum to %.3f", z, sum)
		}
	}
}

// TestDispersionAtTheModelsShare is about the most harmful mistake: a dispersion taken at the observed share gives a
// lucky trial a small dispersion and so a large weight. A trial without exceedances must leave a fair chance to a rate
// that is just allowed: phi^(-n p0/(phi-1)) = 0.39 for 1000 requests.
func TestDispersionAtTheModelsShare(t *testing.T) {
	a := generic("ttft.p99", 0.01, false)
	e := likelihood{n: 1000}
	got := math.Exp(a.logLikelihood(&e, a.offset, 40))
	if want := math.Pow(40, -10.0/39); math.Abs(got-want) > 1e-2 {
		t.Errorf("likelihood %.4f of no exceedance at the limit, want %.4f", got, want)
	}
}

// TestGridReachesTheMass has data far from the prior's rate.
func TestGridReachesTheMass(t *testing.T) {
	a := generic("ttft.p99", 0.01, false)
	a.rate = 1
	seen := evidenceOf(&a, counted(900, 20_000, 2), counted(1000, 20_000, 180), counted(1100, 20_000, 900))
	p := a.infer(seen)
	m := posteriors{p}
	if v := m.quantile(0.5); v < 950 || v > 1060 {
		t.Errorf("median %.1f, want near 1000", v)
	}
	if p.mass[0] > 5e-3 || p.mass[len(p.mass)-1] > 5e-3 {
		t.Errorf("mass at the edges: %.2g and %.2g", p.mass[0], p.mass[len(p.mass)-1])
	}
	total := 0.0
	for _, w := range p.mass {
		total += w
	}
	if math.Abs(total-1) > 1e-9 {
		t.Errorf("probabilities sum to %v", total)
	}
}

// TestPosteriorFollowsTheEvidence checks directions: more exceedances lower the
// rate, more of the same evidence narrows it.
func TestPosteriorFollowsTheEvidence(t *testing.T) {
	a := generic("ttft.p99", 0.01, false)
	of := func(trials ...measure.Measurement) posteriors {
		return posteriors{a.infer(evidenceOf(&a, trials...))}
	}
	few := of(counted(20, 3000, 5), counted(25, 3000, 30))
	many := of(counted(20, 3000, 5), counted(25, 3000, 150))
	if many.quantile(0.5) >= few.quantile(0.5) {
		t.Errorf("150 exceedances give %.2f, 30 give %.2f", many.quantile(0.5), few.quantile(0.5))
	}
	twice := of(counted(20, 3000, 5), counted(25, 3000, 30), counted(20, 3000, 5), counted(25, 3000, 30))
	if twice.halfWidth(0.9) >= few.halfWidth(0.9) {
		t.Errorf("half-width %.3f with twice the evidence, %.3f before", twice.halfWidth(0.9), few.halfWidth(0.9))
	}
}

// TestMeansTellTheirDispersion is about a mean that grows slowly with the rate and hardly scatters, as of times between
// tokens in a long trial: its scatter about the curve says how well it is known, as with counts.
func TestMeansTellTheirDispersion(t *testing.T) {
	a := generic("itl.mean", 0, false)
	var seen []likelihood
	for i, rate := range []float64{3.7, 4.9, 6.5, 4.3, 4.9, 5.6} {
		mean := math.Pow(rate/6, 0.4) * math.Exp(0.002*float64(i%3-1))
		seen = append(seen, a.observe(measure.Count{N: 18_000, Value: mean, Cluster: 1}, rate, false))
	}
	p := posteriors{a.infer(seen)}
	if v := p.quantile(0.5); math.Abs(v-6) > 0.4 || p.halfWidth(0.9) > 0.35 {
		t.Errorf("%.2f, half-width %.2f; want near 6", v, p.halfWidth(0.9))
	}
	if phi := p[0].phi; phi > a.phi {
		t.Errorf("dispersion %.1f, more than was believed before: %.1f", phi, a.phi)
	}
}

func BenchmarkInfer(b *testing.B) {
	a := generic("ttft.p99", 0.01, false)
	var seen []likelihood
	for i := range 10 {
		seen = append(seen, evidenceOf(&a, counted(22+float64(i), 3000, i*i*3))...)
	}
	for b.Loop() {
		a.infer(seen)
	}
}

func BenchmarkObserve(b *testing.B) {
	a := generic("ttft.p99", 0.01, false)
	m := counted(25, 3000, 30)
	for b.Loop() {
		a.observe(m.Counts[0], m.Trial.Rate, false)
	}
}

// TestWholeTraceIsNoDraw replays whole traces. Nothing of them was drawn: how many tokens a trace has makes its share no
// better known, and a short one tells more than as many tokens that were drawn.
func TestWholeTraceIsNoDraw(t *testing.T) {
	a := generic("itl.p99_9", 0.001, false)
	seen := func(n, k int, whole bool) likelihood {
		return a.observe(measure.Count{N: n, K: k, Value: float64(k) / float64(n), Cluster: 1, Whole: whole}, 1, false)
	}
	short, long, drawn := seen(20_000, 14, true), seen(2_000_000, 1_400, true), seen(20_000, 14, false)
	if math.Abs(long.n/short.n-1) > 1e-9 || math.Abs(long.k/short.k-1) > 1e-9 {
		t.Errorf("%.4g of %.4g of a short trace, %.4g of %.4g of a long one", short.k, short.n, long.k, long.n)
	}
	if drawn.n >= short.n {
		t.Errorf("a short trace counts as %.4g requests, as many drawn ones as %.4g", short.n, drawn.n)
	}
	if none := seen(20_000, 0, true); none.n != drawn.n {
		t.Errorf("a trace of which none is beyond the limit counts as %.4g requests, as many drawn ones as %.4g", none.n, drawn.n)
	}
}

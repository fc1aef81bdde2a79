package curve

import (
	"fmt"
	"math"
	"time"

	"planner/sweep/measure"
)

// Regime says whether a server kept up with the load of a point.
type Regime string

// The regimes of a point.
const (
	// Unknown: nothing tells. Such a point is fitted, with a warning.
	Unknown Regime = "unknown"
	// Stable: the server kept up.
	Stable Regime = "stable"
	// Overload: it did not; latency depends on how long was measured.
	Overload Regime = "overload"
)

// keepsUp is the share of the offered load that a server in steady state
// completes at least.
const keepsUp = 0.97

// inferred reports whether nothing but latencies tells the regime of a point.
func (p *Point) inferred() bool { return !(p.Achieved > 0) && !p.Overloaded }

// assess gives every point its regime: from the completed rate where that is
// known, else, for latencies that carry a backlog, from the latencies alone.
// Points must be in ascending order of rate.
func assess(points []Point, metric measure.Metric, levels []float64, seed uint64) {
	evidence := false
	for i := range points {
		p := &points[i]
		p.Regime, p.Why = fromRates(p)
		evidence = evidence || p.Regime != Unknown
	}
	switch {
	case evidence:
		fillBetween(points)
	case metric == measure.TTFT || metric == measure.E2E:
		fromLatencies(points, levels, seed)
	}
}

// fromRates judges by what was completed. A shortfall below 3 % can be the
// requests still in flight; one below twice the root of the number of requests
// can be the chance of Poisson arrivals.
func fromRates(p *Point) (Regime, string) {
	if p.Overloaded {
		return Overload, "the backlog kept growing"
	}
	if !(p.Achieved > 0) {
		return Unknown, ""
	}
	offered := p.Rate
	if p.Sent > 0 {
		offered = p.Sent
	}
	share := p.Achieved / offered
	missing := (offered - p.Achieved) * p.Window.Seconds()
	if share >= keepsUp {
		return Stable, fmt.Sprintf("%.1f %% of the offered load was completed", 100*share)
	}
	if p.Window > 0 && missing < 2*math.Sqrt(offered*p.Window.Seconds()) {
		return Stable, fmt.Sprintf("%.1f %% of the offered load was completed in %v, within the chance of arrivals", 100*share, p.Window.Round(time.Second))
	}
	return Overload, fmt.Sprintf("only %.1f %% of the offered load was completed", 100*share)
}

// fillBetween extends what is known by the order of the rates: below a stable
// point is stable, above an overloaded one is overload. What lies between stays
// unknown.
func fillBetween(points []Point) {
	stable, overload := 0.0, math.Inf(1)
	for _, p := range points {
		switch p.Regime {
		case Stable:
			stable = max(stable, p.Rate)
		case Overload:
			overload = min(overload, p.Rate)
		}
	}
	for i := range points {
		p := &points[i]
		switch {
		case p.Regime != Unknown:
		case p.Rate <= stable && p.Rate < overload:
			p.Regime, p.Why = Stable, "a higher rate was stable"
		case p.Rate >= overload && p.Rate > stable:
			p.Regime, p.Why = Overload, "a lower rate was overloaded"
		}
	}
}

// A verdict from latencies alone needs this many rates, this many of them
// stable, and this gain in AICc, the one beyond which the poorer model has
// little support (Burnham and Anderson 2002: 4 to 7).
const (
	ratesForLatencyRule  = 5
	stableForLatencyRule = 4
	decisiveGain         = 4.0
)

// fromLatencies looks for the rate above which latencies are those of a growing
// backlog. Two hypotheses are fitted to all points: every point is stationary
// (Stationary or StationaryPower), or the points above a saturation rate within
// the measured range are not (StationaryFluid with the change at any rate, or
// TimeDependent). The second must win by decisiveGain in AICc, which charges it
// for its additional parameters. What it rests on is that one saturation rate
// explains both the rise below and the straight line above; a server whose
// latency only looks like that cannot be told apart without completed rates.
func fromLatencies(points []Point, levels []float64, seed uint64) {
	distinct := rates(points)
	if len(distinct) < ratesForLatencyRule {
		return
	}
	s := newSample(points, levels)
	all := fitAll(s, stationaryForms(len(distinct)), seed)
	stationary := all[choose(all)]
	overload := bestOverload(s, distinct, seed)
	mu := math.Inf(1)
	if overload.aicc() < stationary.aicc()-decisiveGain {
		mu = overload.model.Mu
	}
	for i := range points {
		p := &points[i]
		if p.Rate <= mu {
			p.Regime, p.Why = Stable, "latency as in a steady state"
			continue
		}
		p.Regime = Overload
		p.Why = fmt.Sprintf("latency as of a backlog growing above %.3g requests/s (AICc %.1f; %.1f if every rate were stable)",
			mu, overload.aicc(), stationary.aicc())
	}
}

// bestOverload is the best description with a saturation rate below the highest
// measured one.
func bestOverload(s *sample, distinct []float64, seed uint64) fitted {
	best := fitted{rss: math.Inf(1), n: len(s.obs)}
	best.model.Levels = s.levels
	consider := func(f fitted) {
		if f.model.Mu < distinct[len(distinct)-1] && f.aicc() < best.aicc() {
			best = f
		}
	}
	for m := stableForLatencyRule; m < len(distinct); m++ {
		split := *s
		split.highest, split.next = distinct[m-1], distinct[m]
		consider(fit(&split, Model{Form: StationaryFluid, Joint: true}, seed))
		consider(fit(&split, Model{Form: StationaryFluid}, seed))
	}
	consider(fit(s, Model{Form: TimeDependent, Joint: true}, seed))
	consider(fit(s, Model{Form: TimeDependent}, seed))
	if len(best.x) == 0 {
		best.rss = hopeless
	}
	return best
}

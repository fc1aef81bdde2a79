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
	// Unknown: there is no evidence. Such a point is fitted, with a warning.
	Unknown Regime = "unknown"
	// Stable: the server kept up.
	Stable Regime = "stable"
	// Overload: it did not; latency depends on the length of the measurement.
	Overload Regime = "overload"
)

// keepsUp is the least share of the offered load that a server in a steady state completes.
const keepsUp = 0.97

// inferred reports whether the regime of a point is known from latencies alone.
func (p *Point) inferred() bool { return !(p.Achieved > 0) && !p.Overloaded }

// assess sets every point's regime: from completed rates if any are known, otherwise, for latencies
// that include the queue, from the latencies alone. Points must be in ascending order of rate.
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

// fromRates judges by the completed rate. A shortfall below 3 % can be requests still in flight; one of
// fewer requests than twice the square root of those offered can be the randomness of Poisson arrivals.
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

// fillBetween extends what is known by the order of the rates: points below a stable one are stable,
// points above an overloaded one are overload. Those between stay unknown.
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

// A verdict from latencies alone needs this many rates, this many of them stable, and this gain in
// AICc, beyond which the poorer model has little support (Burnham and Anderson 2002: 4 to 7).
const (
	ratesForLatencyRule  = 5
	stableForLatencyRule = 4
	decisiveGain         = 4.0
)

// fromLatencies looks for the rate above which latencies are those of a growing backlog. Two hypotheses
// are fitted to all points: every point is stationary (Stationary or StationaryPower), or those above a
// saturation rate within the measured range are not (StationaryFluid with the change at any rate, or
// TimeDependent). The second must win by decisiveGain in AICc, which charges it for its additional
// parameters. The verdict rests on one saturation rate explaining both the rise below it and the
// straight line above; only completed rates could expose a server whose latency merely looks like that.
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

// bestOverload returns the best fit with a saturation rate below the highest measured rate.
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

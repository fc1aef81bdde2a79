package curve

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
)

// Saturation is the rate that the server cannot exceed, in requests per second, from up to three
// independent routes.
type Saturation struct {
	// Value is the median of the routes, Low and High span their ranges.
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Routes []Route `json:"routes"` // the methods that found it
	// Agree says that there are at least two routes and all lie within 5 % of each other.
	Agree  bool   `json:"agree"`
	Reason string `json:"reason"` // how the routes compare, or on what a single one rests
}

// Route is one method of finding the saturation rate. Low and High are its own range.
type Route struct {
	Name string  `json:"name"`       // the method
	Rate float64 `json:"rate_per_s"` // requests per second
	Low  float64 `json:"low"`        // the lower end of its interval
	High float64 `json:"high"`       // its upper end
}

// agreement is the largest spread of routes that agree, relative to the value.
const agreement = 0.05

// trusted is the share of saturation up to which points are used to find it: nearer to it a trial is
// too short for a steady state.
const trusted = 0.95

// saturate finds the saturation rate.
func (c *Curve) saturate(steady []Point, best *fitted, boot [2]float64, seed uint64) {
	floor := c.High
	var routes []Route
	if r, ok := c.served(); ok {
		routes = append(routes, r)
	}
	if r := c.stationaryRoute(steady, best, boot, seed); c.tells(r.Rate) {
		routes = append(routes, r)
	}
	if c.Whole != nil && c.tells(c.Whole.Mu) {
		mu := c.Whole.Mu
		routes = append(routes, Route{"time_dependent", mu, mu, mu})
	}
	if len(routes) == 0 {
		c.Warnings = append(c.Warnings, note.New(note.NoSaturation, c.High))
		return
	}
	sat := &Saturation{Low: math.Inf(1), Routes: routes}
	values := make([]float64, len(routes))
	for i := range routes {
		r := &routes[i]
		r.Rate, r.Low, r.High = max(r.Rate, floor), max(r.Low, floor), max(r.High, floor)
		values[i] = r.Rate
		sat.Low, sat.High = min(sat.Low, r.Low), max(sat.High, r.High)
	}
	slices.Sort(values)
	sat.Value = (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	spread := (values[len(values)-1] - values[0]) / sat.Value
	sat.Agree = len(values) > 1 && spread <= agreement
	sat.Reason = saturationReason(routes, spread, floor)
	c.Saturation = sat
}

func saturationReason(routes []Route, spread, highest float64) string {
	if len(routes) == 1 {
		return fmt.Sprintf("extrapolated by the fitted form alone: the highest rate measured is %.0f %% of it, and no point is overload", 100*highest/routes[0].Rate)
	}
	parts := list.Map(routes, func(r Route) string { return fmt.Sprintf("%s %.4g", strings.ReplaceAll(r.Name, "_", " "), r.Rate) })
	verdict := "agree within"
	if spread > agreement {
		verdict = "differ by"
	}
	return fmt.Sprintf("%d routes %s %.1f %%: %s", len(routes), verdict, 100*spread, strings.Join(parts, ", "))
}

// served returns the mean rate that the server completed in overload.
func (c *Curve) served() (Route, bool) {
	sum, low, high, n := 0.0, math.Inf(1), 0.0, 0
	for i := range c.Points {
		p := &c.Points[i]
		if p.Regime == Overload && p.Achieved > 0 {
			sum += p.Achieved
			low, high = min(low, p.Achieved), max(high, p.Achieved)
			n++
		}
	}
	if n == 0 {
		return Route{}, false
	}
	return Route{"served_in_overload", sum / float64(n), low, high}, true
}

// stationaryRoute returns mu of the chosen stationary form, refitted without the points above 0.95 of
// it if there are any and enough remain. Its range spans the bootstrap's, if there is one, and the
// stationary forms that are about as good.
func (c *Curve) stationaryRoute(steady []Point, best *fitted, boot [2]float64, seed uint64) Route {
	m := best.model
	kept := list.Filter(steady, func(p Point) bool { return p.Rate <= trusted*m.Mu })
	if len(kept) < len(steady) && len(rates(kept)) >= pointsToFit {
		m = fit(newSample(kept, m.Levels).weigh(kept, &m), m, seed).model
	}
	r := Route{string(m.Form), m.Mu, m.Mu, m.Mu}
	if boot[0] > 0 {
		r.Low, r.High = min(r.Low, boot[0]), max(r.High, boot[1])
	}
	for _, k := range c.Candidates {
		if k.Points == steadyPoints && k.Quality.AICc <= best.aicc()+decisiveGain {
			r.Low, r.High = min(r.Low, k.Model.Mu), max(r.High, k.Model.Mu)
		}
	}
	return r
}

// Doubt applies a ceiling in requests per second that the hardware cannot exceed. A saturation rate
// above it keeps its value, which is the form's, and says so; a knee above it is dropped.
func (c *Curve) Doubt(ceiling float64) {
	if !(ceiling > 0) {
		return
	}
	if s := c.Saturation; s != nil && s.Value > ceiling {
		s.Reason += fmt.Sprintf("; more than the %.4g requests/s that the data sheets allow: the form is followed too far", ceiling)
	}
	if c.Knee > ceiling {
		c.Knee, c.KneeOf = 0, 0
	}
}

// kneeElasticity is the growth of latency in percent per percent more load from which on more load is
// expensive. Unlike the geometric knee (Kneedle) it does not depend on how far the sweep went.
const kneeElasticity = 3.0

// findKnee finds where the elasticity of the highest fitted quantile is 3, if the curve is known there.
func (c *Curve) findKnee() {
	if c.Model.Form == Interpolated {
		return
	}
	level := c.Model.Levels[len(c.Model.Levels)-1]
	knee, _ := stat.Bisect(0, c.Model.Mu*(1-1e-9), 200, func(rate float64) bool {
		return c.Model.elasticity(level, rate) > kneeElasticity
	})
	// The form's own saturation rate may lie above the one that several routes give: a knee beyond the
	// latter is discarded.
	if knee <= c.End() && knee < c.saturationOr(math.Inf(1)) {
		c.Knee, c.KneeOf = knee, level
	}
}

// elasticity is d ln latency / d ln rate, by central difference.
func (m *Model) elasticity(quantile, rate float64) float64 {
	h := 1e-4 * min(rate, m.Mu-rate)
	if h <= 0 {
		return 0
	}
	lo, okLo := m.At(quantile, rate-h)
	hi, okHi := m.At(quantile, rate+h)
	if !okLo || !okHi {
		return math.Inf(1)
	}
	return math.Log(hi/lo) / math.Log((rate+h)/(rate-h))
}

package curve

import (
	"math"
	"slices"

	"planner/internal/stat"
)

// Form names a family of curves, also in files and reports.
type Form string

// The forms, with rho = rate/mu. Each statistic has its own floor and scale.
const (
	// Interpolated is no formula, only the points and what lies between them: it has no parameters and
	// no saturation rate.
	Interpolated Form = "interpolated"
	// Stationary is floor + scale*rho/(1-rho): M/M/1, and Pollaczek-Khinchine
	// and Kingman up to the scale. It holds below saturation only.
	Stationary Form = "stationary"
	// StationaryPower is floor + scale*rho^k/(1-rho) (Sakasegawa 1977; Allen and
	// Cunneen; k = sqrt(2(c+1))-1 for c servers).
	StationaryPower Form = "stationary_power"
	// TimeDependent is floor + scale*((rho-1) + sqrt((rho-1)^2 + m*rho)), the queue in a trial of
	// finite length (Kimber and Hollis 1979; Akcelik 1980): it tends to Stationary below saturation and
	// to a straight line above.
	TimeDependent Form = "time_dependent"
	// StationaryFluid is Stationary below mu, and above it the straight line
	// floor + slope*(rate-mu) of a backlog that grows for the whole trial.
	StationaryFluid Form = "stationary_fluid"
)

// Model is a form with its parameters. Floors, Scales and Slopes hold one figure per statistic in
// Levels.
type Model struct {
	Form Form `json:"form"` // the name of the formula
	// Joint says that one floor and one scale serve all statistics: the scale of quantile q is the
	// common one times ln(1/(1-q)).
	Joint bool `json:"joint"`
	// Levels are the quantiles (0 for the mean) that the parameters belong to.
	Levels []float64 `json:"-"`
	// Floors are the latencies of an idle server and Scales the sizes of the load-dependent part, in
	// seconds.
	Floors []float64 `json:"-"`
	Scales []float64 `json:"-"`
	// Mu is the saturation rate in requests per second.
	Mu float64 `json:"mu_per_s"`
	// Power is k of StationaryPower, Curvature m of TimeDependent.
	Power     float64 `json:"power,omitempty"`
	Curvature float64 `json:"curvature,omitempty"`
	// Slopes are those of StationaryFluid above Mu, in seconds per request per second.
	Slopes []float64 `json:"-"`
}

// At returns a statistic's latency in seconds at a rate, false where the model says nothing: for a
// statistic that it does not hold, or a rate at which a stationary form has no steady state.
func (m *Model) At(quantile, rate float64) (float64, bool) {
	if m.Form == Interpolated {
		return 0, false
	}
	i := slices.Index(m.Levels, quantile)
	if i < 0 {
		if !m.Joint || len(m.Levels) == 0 || m.Form == StationaryFluid {
			return 0, false
		}
		scale := m.Scales[0] / tail(m.Levels[0]) * tail(quantile)
		y := m.Floors[0] + scale*m.growth(rate/m.Mu)
		return y, !math.IsInf(y, 0)
	}
	y := m.at(i, rate)
	return y, !math.IsInf(y, 0) && !math.IsNaN(y)
}

// at returns the latency of the i-th statistic, infinite where there is none.
func (m *Model) at(i int, rate float64) float64 { return m.grown(i, rate, m.growth(rate/m.Mu)) }

// grown is at for a known growth.
func (m *Model) grown(i int, rate, growth float64) float64 {
	if m.Form == StationaryFluid && rate > m.Mu {
		return m.Floors[i] + m.Slopes[i]*(rate-m.Mu)
	}
	return m.Floors[i] + m.Scales[i]*growth
}

// growth is the load-dependent part at unit scale.
func (m *Model) growth(rho float64) float64 {
	switch m.Form {
	case Stationary, StationaryFluid:
		if rho < 1 {
			return rho / (1 - rho)
		}
	case StationaryPower:
		if rho < 1 {
			return math.Pow(rho, m.Power) / (1 - rho)
		}
	case TimeDependent:
		x := rho - 1
		root := math.Sqrt(x*x + m.Curvature*rho)
		if x < 0 { // x + root without cancellation
			return m.Curvature * rho / (root - x)
		}
		return x + root
	}
	return math.Inf(1)
}

// parameters counts the free parameters, the noise not included.
func (m *Model) parameters() int {
	perLevel := 2
	if !m.Joint {
		perLevel *= len(m.Levels)
	}
	n := perLevel + 1 + len(m.Slopes)
	if m.Form == StationaryPower || m.Form == TimeDependent {
		n++
	}
	return n
}

// Crossing returns the rate at which a statistic reaches a limit in seconds, false if it does so at no
// rate above 0 that the model covers: up to Mu, or 16 Mu for forms that go beyond.
func (m *Model) Crossing(quantile, limit float64) (float64, bool) {
	if m.Form == Interpolated || m.Mu <= 0 {
		return 0, false
	}
	lo, hi := 0.0, m.Mu
	if y, ok := m.At(quantile, lo); !ok || y >= limit {
		return 0, false
	}
	if m.Form == TimeDependent || m.Form == StationaryFluid {
		hi = 16 * m.Mu
	}
	over := func(rate float64) bool {
		y, ok := m.At(quantile, rate)
		return !ok || y > limit
	}
	if !over(hi) {
		return 0, false
	}
	rate, _ := stat.Bisect(lo, hi, 200, over)
	return rate, true
}

package calibrate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"planner/internal/parallel"
	"planner/model"
	"planner/sweep/measure"
)

// shown are the statistics that a run is expected to be most informative by.
var shown = []measure.Bound{{Metric: measure.TPOT}, {Metric: measure.TTFT}}

// Forecast is the result of simulating a load point, in seconds.
type Forecast struct {
	// TPOT and TTFT are means, and Seconds is how long the run takes.
	TPOT, TTFT, Seconds float64
}

// Predict simulates a load point.
func Predict(p *LoadPoint, c model.Constants, o FitOptions) (Forecast, error) {
	records, err := p.simulate(&o, c)
	if err != nil {
		return Forecast{}, err
	}
	var f Forecast
	for i := range records {
		f.Seconds = max(f.Seconds, records[i].Last.Seconds())
	}
	f.TPOT, f.TTFT = p.statistic(shown[0])(records), p.statistic(shown[1])(records)
	if !(f.TPOT > 0 && f.TTFT > 0) {
		return f, fmt.Errorf("predict a load point: %d requests show no mean latency", len(records))
	}
	return f, nil
}

// Telling returns the index of the candidate load point that reveals most, per second of engine time, about what
// the measured ones leave open: the gain in the log determinant of the posterior's precision that its mean
// latencies bring, for all terms together and linearised at the constants, over its duration. It returns -1 if
// no candidate can be simulated.
func Telling(measured, candidates []LoadPoint, c model.Constants, o FitOptions) (best int, err error) {
	all := append(append([]LoadPoint(nil), measured...), candidates...)
	rows := make([]*mat.Dense, len(all))
	seconds := make([]float64, len(all))
	_ = parallel.Do(len(all), func(i int) error {
		rows[i], seconds[i] = sensitivities(&all[i], c, o)
		return nil // those that cannot be simulated are left out
	})
	terms := model.Terms()
	precision := mat.NewSymDense(len(terms), nil)
	for k, t := range terms {
		sd := model.SpreadFor(o.Deployment, o.engine())[t]
		precision.SetSym(k, k, 1/(sd*sd))
	}
	for _, r := range rows[:len(measured)] { // each of its rows has one latency's derivatives over its deviation
		if r != nil {
			precision.SymRankK(precision, 1, r.T())
		}
	}
	var before mat.Cholesky
	if !before.Factorize(precision) {
		return -1, fmt.Errorf("choose a load point: the terms cannot be told apart")
	}
	best, most := -1, 0.0
	for i, r := range rows[len(measured):] {
		if r == nil {
			continue
		}
		var with mat.SymDense
		with.SymRankK(precision, 1, r.T())
		var after mat.Cholesky
		if !after.Factorize(&with) {
			continue
		}
		if gain := (after.LogDet() - before.LogDet()) / (fixedSeconds + seconds[len(measured)+i]); gain > most {
			best, most = i, gain
		}
	}
	return best, nil
}

// fixedSeconds is what a run takes besides its requests, in seconds.
const fixedSeconds = 2

// sensitivities returns the derivatives of the logarithms of a run's mean latencies in those of all terms, each
// over the latency's standard deviation, and the run's duration; nil if it cannot be simulated.
func sensitivities(p *LoadPoint, c model.Constants, o FitOptions) (*mat.Dense, float64) {
	middle, err := Predict(p, c, o)
	if err != nil {
		return nil, 0
	}
	n := p.Trial.Requests
	out := mat.NewDense(len(shown), len(model.Terms()), nil)
	for k, t := range model.Terms() {
		away, err := Predict(p, c.WithValue(t, o.Deployment, c.Value(t, o.Deployment)*math.Exp(-distance)), o)
		if err != nil {
			return nil, 0
		}
		out.Set(0, k, math.Log(middle.TPOT/away.TPOT)/distance/p.deviation(shown[0], n))
		out.Set(1, k, math.Log(middle.TTFT/away.TTFT)/distance/p.deviation(shown[1], n))
	}
	return out, middle.Seconds
}

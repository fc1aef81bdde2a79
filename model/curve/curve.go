package curve

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// Curve is the latency of one metric against the offered rate.
type Curve struct {
	Metric measure.Metric
	// Class names the component of a mix whose requests the curve is of; "" stands for all.
	Class string
	// Points are in ascending order of rate, each with its regime.
	Points []Point
	// Model is the form fitted to the points that are not overload, and Quality says how well it fits.
	// Its form is Interpolated if there are too few points.
	Model   Model
	Quality Quality
	// Whole is the time-dependent form fitted to all points, overload included; nil if no point is
	// overload or there are too few points.
	Whole *Model
	// Candidates are all forms that were fitted.
	Candidates []FittedForm
	// Low and High are the lowest and the highest rate measured in a steady state: the range in which
	// the curve is known.
	Low, High float64
	// Saturation is nil where no form gives one.
	Saturation *Saturation
	// Knee is the rate at which the latency statistic KneeOf grows by 3 % per 1 % more load; 0 if
	// unknown.
	Knee   float64
	KneeOf float64
	// Band encloses the model with 90 % probability, given the numbers of requests; empty if these are
	// unknown.
	Band     []BandPoint
	Warnings note.Notes
}

// Quality says how well a model describes the points it was fitted to, in ln latency. A figure for
// which the sample is too small is +Inf, or NaN after it was read from a file.
type Quality struct {
	RMSE        float64 `json:"rmse_ln"`          // root mean square error of ln latency
	AICc        float64 `json:"aicc"`             // Akaike's information criterion, corrected for small samples
	LeaveOneOut float64 `json:"leave_one_out_ln"` // root mean square error of ln latency at points left out of the fit
}

// FittedForm is a form that was fitted.
type FittedForm struct {
	Model      Model   `json:"model"`
	Points     string  `json:"points"`     // what it was fitted to: allPoints or steadyPoints
	Parameters int     `json:"parameters"` // how many are fitted
	Quality    Quality `json:"quality"`
	Chosen     bool    `json:"chosen"` // whether it is the curve's
}

const (
	allPoints    = "all"
	steadyPoints = "steady" // those in a steady state
)

// furthest is the share of the saturation rate up to which a form is extrapolated.
const furthest = 0.95

// pointsToFit is the smallest number of rates to which a form is fitted.
const pointsToFit = 4

// Fit classifies the points and fits the forms to p50 and p99, or to other statistics if fewer than
// three points hold these. It needs two points; with fewer than four rates in a steady state the curve
// only interpolates. The seed determines the starting points and the band.
func Fit(metric measure.Metric, points []Point, seed uint64) (*Curve, error) {
	if err := validate(points); err != nil {
		return nil, err
	}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
	levels := commonLevels(points)
	assess(points, metric, levels, seed)
	c := &Curve{Metric: metric, Points: points, Model: Model{Form: Interpolated, Levels: levels}}
	c.Quality = Quality{math.Inf(1), math.Inf(1), math.Inf(1)}
	c.warnRegimes()
	steady := c.steady()
	if len(steady) > 0 {
		c.Low, c.High = steady[0].Rate, steady[len(steady)-1].Rate
	}
	if len(rates(steady)) < pointsToFit {
		c.Warnings = append(c.Warnings, note.New(note.CurveInterpolates, len(rates(steady)), pointsToFit))
		return c, nil
	}
	best := c.fitSteady(steady, levels, seed)
	c.fitWhole(points, levels, seed)
	muRange := c.bootstrap(steady, best, seed)
	c.saturate(steady, best, muRange, seed)
	c.findKnee()
	return c, nil
}

// commonLevels chooses p50 and p99 if enough points hold them, otherwise what the points do hold, at
// most two statistics.
func commonLevels(points []Point) []float64 {
	var chosen []float64
	for _, q := range []float64{0.99, 0.50, 0.95, 0.90, 0, 0.999} {
		n := list.Count(points, func(p Point) bool {
			_, ok := p.Latency(q)
			return ok
		})
		if n >= min(3, len(points)) && len(chosen) < 2 {
			chosen = append(chosen, q)
		}
	}
	if len(chosen) == 0 {
		chosen = []float64{float64(points[0].Values[0].Quantile)}
	}
	slices.Sort(chosen)
	return chosen
}

// steady returns the points that are not overload.
func (c *Curve) steady() []Point {
	return list.Filter(c.Points, func(p Point) bool { return p.Regime != Overload })
}

func (c *Curve) warnRegimes() {
	unknown, inferred := 0, false
	for i := range c.Points {
		p := &c.Points[i]
		if p.Regime == Unknown {
			unknown++
		}
		inferred = inferred || (p.Regime == Overload && p.inferred())
	}
	if unknown > 0 {
		c.Warnings = append(c.Warnings, note.New(note.CurveWithoutRates, unknown))
	}
	if inferred {
		c.Warnings = append(c.Warnings, note.New(note.OverloadInferred))
	}
}

// fitSteady fits the stationary forms to the points in a steady state and chooses one. These forms do
// not exist above saturation, so overloaded points are kept out.
func (c *Curve) fitSteady(steady []Point, levels []float64, seed uint64) *fitted {
	forms := stationaryForms(len(rates(steady)))
	plain := newSample(steady, levels)
	all := fitAll(plain, forms, seed)
	s := plain.weigh(steady, &all[choose(all)].model)
	if s != plain {
		all = fitAll(s, forms, seed)
	}
	best := choose(all)
	c.addCandidates(s, all, best, steadyPoints)
	c.Model, c.Quality = all[best].model, c.Candidates[best].Quality
	return &all[best]
}

func (c *Curve) addCandidates(s *sample, all []fitted, best int, points string) {
	for i := range all {
		c.Candidates = append(c.Candidates, FittedForm{
			Model: all[i].model, Points: points, Parameters: all[i].model.parameters(), Chosen: i == best,
			Quality: Quality{all[i].rmse(), all[i].aicc(), leaveOneOut(s, &all[i])},
		})
	}
}

// fitWhole fits the time-dependent form to all points if some are overload.
func (c *Curve) fitWhole(points []Point, levels []float64, seed uint64) {
	if len(c.steady()) == len(points) {
		return
	}
	s := newSample(points, levels)
	all := fitAll(s, []Model{{Form: TimeDependent, Joint: true}, {Form: TimeDependent}}, seed)
	best := choose(all)
	if math.IsInf(all[best].aicc(), 1) {
		return
	}
	c.addCandidates(s, all, best, allPoints)
	c.Whole = &all[best].model
}

// At returns the latency of a statistic at a rate, false where the curve says nothing: it is measured
// between [Curve.Low] and [Curve.High], and extrapolated below and up to [Curve.End].
func (c *Curve) At(quantile, rate float64) (time.Duration, bool) {
	measured := rate >= c.Low && rate <= c.High
	if !measured && (c.Model.Form == Interpolated || rate <= 0 || rate > c.End()) {
		return 0, false
	}
	y, ok := c.Model.At(quantile, rate)
	if !ok {
		line, err := interpolate(c.Points, quantile)
		if err != nil {
			return 0, false
		}
		y, ok = line.at(rate)
	}
	return time.Duration(y * float64(time.Second)), ok
}

// End is the highest rate at which the curve says anything: the highest steady rate measured, or 0.95
// of the fitted saturation rate if that is higher and the points determine it.
func (c *Curve) End() float64 {
	if c.Model.Form == Interpolated || !c.tells(c.Model.Mu) {
		return c.High
	}
	return max(c.High, furthest*c.Model.Mu)
}

// bent is the largest factor by which a fitted saturation rate may exceed the highest steady rate
// measured. At a quarter of the saturation rate the wait in a queue is a third of the service time;
// points that end below that hardly bend, and the extrapolation is the form's, not theirs.
const bent = 4.0

// tells reports whether the points determine a fitted saturation rate.
func (c *Curve) tells(mu float64) bool { return mu <= bent*c.High }

package decide

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/interp"

	"planner/internal/note"
	"planner/model"
	"planner/plan"
	"planner/sweep/measure"
)

// autoscaling is the signal of a plan's fleet by the trials of its knobs; nil where none
// of them tells how long requests take.
func autoscaling(p *plan.Plan, trials []measure.Measurement) *plan.Autoscaling {
	inFlight := inFlightAt(trials, p.Offer.Knobs)
	if inFlight == nil || p.Fleet.Instances == 0 {
		return nil
	}
	return p.Autoscale(inFlight)
}

// inFlightAt is how many requests an instance has in flight at a rate: by Little's law the
// rate times the mean time of a request. It is nil where no trial tells.
func inFlightAt(trials []measure.Measurement, k measure.Knobs) func(rate float64) float64 {
	var points []point
	for i := range trials {
		m := &trials[i]
		told := m.Trial.Knobs == k && m.Rejected.Text == "" && m.Valid && !m.Overloaded && !m.Trial.Closed()
		if told && m.Offered() > 0 && m.E2E.Mean > 0 {
			points = append(points, point{m.Offered(), m.E2E.Mean.Seconds()})
		}
	}
	seconds := interpolated(points)
	if seconds == nil {
		return nil
	}
	return func(rate float64) float64 { return rate * seconds(rate) }
}

// fewSlots says that the slots for low-rank adapters are what requests wait for at a rate: those in
// flight ask for more adapters than may run at once.
func fewSlots(l model.LoRA, inFlight func(float64) float64, rate float64) note.Notes {
	if !l.On() || inFlight == nil {
		return nil
	}
	all := l
	all.Slots = l.Adapters
	n := inFlight(rate)
	asked := all.Distinct(n)
	return note.If(l.Slots < l.Adapters && asked >= float64(l.Slots), note.FewSlots, n, asked, l.Adapters, l.Slots)
}

// point is a figure that was measured at a rate.
type point struct{ rate, figure float64 }

// interpolated is a figure between the points at both sides of a rate, of which those at one
// rate are averaged, and beyond them that of the last; nil without points.
func interpolated(points []point) func(rate float64) float64 {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.rate, b.rate) })
	var rates, figures []float64
	for i := 0; i < len(points); {
		sum, n := 0.0, 0
		for rate := points[i].rate; i < len(points) && points[i].rate == rate; i++ {
			sum, n = sum+points[i].figure, n+1
		}
		rates, figures = append(rates, points[i-1].rate), append(figures, sum/float64(n))
	}
	switch len(rates) {
	case 0:
		return nil
	case 1:
		return func(float64) float64 { return figures[0] }
	}
	var line interp.PiecewiseLinear
	if line.Fit(rates, figures) != nil {
		return nil // not reached: the rates are in order, and differ
	}
	return line.Predict
}

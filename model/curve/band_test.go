package curve

import (
	"math"
	"math/rand/v2"
	"testing"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// Derivatives find the optima of redrawn samples that a simplex finds with forty times the evaluations.
func TestRefitIsASimplex(t *testing.T) {
	for _, form := range []Model{{Form: Stationary, Joint: true}, {Form: Stationary}, {Form: StationaryPower}} {
		points := stationaryLaw(0).draw(1, 5, 10, 15, 20, 25, 28)
		for i := range points {
			points[i].Requests = 3000
		}
		c := must.Get(Fit(measure.TTFT, points, 1))
		s := newSample(points, c.Model.Levels).weigh(points, &c.Model)
		best, src := fit(s, form, 1), rand.NewPCG(1, 2)
		for range 20 {
			redraw(s, points, &best.model, src)
			m, simplex := refit(s, &best), descend(s, best.model, best.x, 2000)
			if m.rss > 1.15*simplex.rss {
				t.Errorf("%s: squares %.5f, by a simplex %.5f", form.Form, m.rss, simplex.rss)
			}
			if off := math.Abs(m.model.Mu/simplex.model.Mu - 1); off > 0.02 && form.Form == Stationary {
				t.Errorf("%s: mu %.2f, by a simplex %.2f", form.Form, m.model.Mu, simplex.model.Mu)
			}
		}
	}
}

package report

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"planner/internal/stat"
	"planner/search"
	"planner/sweep/measure"
)

// exceedanceChart draws, for one bound of a search, the share of requests beyond the limit in each trial and
// the fitted curve. The title counts the trials with a share of zero, which has no place on the logarithmic
// axis.
func exceedanceChart(b search.BoundResult, trials []measure.Measurement) *Chart {
	c := &Chart{
		Name:   "beyond-" + strings.ReplaceAll(b.Bound, ".", "-"),
		XLabel: "offered load, requests/s", YLabel: "% of requests beyond the limit (log scale)",
		Limits: []Reference{{100 * b.Share, "allowed: " + percent(b.Share)}},
	}
	scale := 100.0
	if b.Share == 0 {
		scale, c.YLabel, c.Limits = 1, "mean over its limit (log scale)", []Reference{{1, "limit"}}
	}
	s := Line{Name: "trials"}
	none := 0
	lo, hi := math.Inf(1), 0.0
	for _, m := range counted(b, trials) {
		k, _ := m.Count(b.Bound)
		lo, hi = min(lo, m.Trial.Rate), max(hi, m.Trial.Rate)
		if k.Value <= 0 {
			none++
			continue
		}
		low, high := beyondWithin(b, k)
		s.Points = append(s.Points, ChartPoint{X: m.Trial.Rate, Y: scale * k.Value, Low: scale * low, High: scale * high, Overload: m.Overloaded, Trial: m.Trial.Number})
	}
	if b.Rate > 0 && hi > lo {
		s.Fit = exceedanceFit(b, lo, hi, s.Points, scale)
	}
	c.Series = []Line{s}
	c.Title = "Requests beyond " + boundName(b.Bound) + ", trials on the fitted curve" + where(none > 0, " ("+plural(none, "trial")+" without any not drawn)")
	if b.Rate > 0 {
		c.Rates = []Reference{{b.Rate, "crossing " + number(b.Rate, 3)}}
	}
	return c
}

func counted(b search.BoundResult, trials []measure.Measurement) []*measure.Measurement {
	return slices.DeleteFunc(byLoad(trials), func(m *measure.Measurement) bool {
		k, ok := m.Count(b.Bound)
		return !ok || k.N == 0 || !m.Valid || m.Trial.Rate <= 0
	})
}

// exceedanceFit returns the fitted curve between two rates, down to a fifth of the smallest share seen or
// allowed, below which no trial could tell.
func exceedanceFit(b search.BoundResult, lo, hi float64, seen []ChartPoint, scale float64) plotter.XYs {
	least := scale * b.At(b.Rate)
	for _, p := range seen {
		least = min(least, p.Y)
	}
	return sample(lo, hi, func(x float64) (float64, bool) {
		y := scale * b.At(x)
		return y, y >= least/5
	})
}

// beyondWithin returns the 90 % interval of a trial's share beyond a bound, with the clumping estimated from
// all trials of the search, since a single trial says far less of it. A mean has an interval of its own.
func beyondWithin(b search.BoundResult, k measure.Count) (low, high float64) {
	if b.Share == 0 {
		return k.Low, k.High
	}
	const tail = 0.05
	unit := max(k.Cluster, 1)
	beyond, n := float64(k.K)/unit, float64(k.N)/unit
	d := stat.Dispersion{At: b.Phi, Level: b.Share, Gamma: b.Gamma}
	return d.Lower(beyond, n, tail), d.Upper(beyond, n, tail)
}

package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot/plotter"

	"planner/internal/list"
	"planner/model/curve"
	"planner/search"
	"planner/sweep/measure"
)

// latencyChart draws a fitted curve with its points, with errors from the trials, the limits on its metric, and
// the rates of interest.
func latencyChart(c *curve.Curve, slo measure.SLO, max search.Estimate, trials []measure.Measurement) *Chart {
	name := strings.ToUpper(c.Metric.String())
	ch := &Chart{
		Title:  name + behind(" of ", c.Class) + " against load, one instance",
		Name:   c.Metric.String(),
		XLabel: "offered load, requests/s", YLabel: name + ", ms (log scale)",
	}
	for _, q := range quantiles(slo.Of(c.Class), c.Metric) {
		if l := latencyLine(c, q, trials); len(l.Points) > 0 {
			ch.Series = append(ch.Series, l)
		}
	}
	for _, b := range slo.Of(c.Class).Bounds {
		if b.Metric == c.Metric {
			ch.Limits = append(ch.Limits, Reference{millis(b.Limit), "limit: " + boundName(b.String()) + " " + limit(b.Limit)})
		}
		for _, p := range b.Limits.Parts(b.Quantile) {
			if p.Metric == c.Metric {
				ch.Limits = append(ch.Limits, Reference{millis(p.Limit), "limit within goodput: " + name + " " + limit(p.Limit)})
			}
		}
	}
	mark := func(at float64, label string) {
		if at > 0 {
			ch.Rates = append(ch.Rates, Reference{at, label})
		}
	}
	if max.Value > 0 {
		value, _, safe := estimate(max)
		mark(max.Value, "max rate "+value)
		if max.Safe < max.Value {
			mark(max.Safe, "safe "+safe)
		}
	}
	mark(c.Knee, "knee "+number(c.Knee, 3))
	if s := c.Saturation; s != nil {
		mark(s.Value, "saturation "+number(s.Value, 3))
	}
	return ch
}

func latencyLine(c *curve.Curve, q float64, trials []measure.Measurement) Line {
	l := Line{Name: measure.StatName(q)}
	for i := range c.Points {
		p := &c.Points[i]
		y, ok := p.Latency(q)
		if !ok {
			continue
		}
		at := ChartPoint{X: p.Rate, Y: millis(y), Low: millis(y), High: millis(y), Overload: p.Regime == curve.Overload}
		for n := range trials {
			s := trials[n].Of(c.Class).Latency(c.Metric)
			if w := s.Around(q); trials[n].Offered() == p.Rate && s.Stat(q) == y {
				at.Trial = trials[n].Trial.Number
				if w[0] > 0 {
					at.Low, at.High = millis(w[0]), millis(w[1])
				}
			}
		}
		l.Points = append(l.Points, at)
	}
	fit := func(x float64) (float64, bool) {
		y, ok := c.At(q, x)
		return millis(y), ok
	}
	if c.High > c.Low {
		l.Fit = sample(c.Low, c.High, fit)
	}
	if c.End() > c.High {
		l.Beyond = sample(c.High, c.End(), fit)
	}
	for _, b := range c.Band {
		if b.Quantile == q && b.Rate >= c.Low && b.Rate <= c.High {
			l.Lower = append(l.Lower, plotter.XY{X: b.Rate, Y: 1e3 * b.Low})
			l.Upper = append(l.Upper, plotter.XY{X: b.Rate, Y: 1e3 * b.High})
		}
	}
	return l
}

// curveFacts describe the curve in words. Its crossings of the limits are told only if nothing better is known:
// a search for the maximum rate weighs counts, the curve only interpolates quantiles.
func curveFacts(c *curve.Curve, slo measure.SLO, crossings bool) Facts {
	var facts Facts
	for _, b := range slo.Of(c.Class).Bounds {
		if x, err := c.Crossing(b); b.Metric == c.Metric && crossings && err == nil {
			facts = append(facts, crossingFact(x))
		}
	}
	return append(facts, Facts{
		{"knee", where(c.Knee > 0, fmt.Sprintf("%s requests/s: from there on 1 %% more load costs 3 %% more %s %s",
			number(c.Knee, 3), measure.StatName(c.KneeOf), strings.ToUpper(c.Metric.String()))), Plain},
		{"saturation", told(c.Saturation, func(s curve.Saturation) string {
			return number(s.Value, 3) + " requests/s" + where(s.High > s.Low, fmt.Sprintf(" (%s-%s)", number(s.Low, 3), number(s.High, 3))) + behind(": ", s.Reason)
		}), Plain},
		{"overloaded", overloads(c), Plain},
		{"fit", fmt.Sprintf("%s, known from %s to %s requests/s", strings.ReplaceAll(string(c.Model.Form), "_", " "), number(c.Low, 3), number(c.High, 3)) +
			where(finite(c.Quality.RMSE), ", typical error "+percent(math.Expm1(c.Quality.RMSE))), Plain},
	}...)
}

func overloads(c *curve.Curve) string {
	over := list.Filter(c.Points, func(p curve.Point) bool { return p.Regime == curve.Overload })
	rates := join(list.Map(over, func(p curve.Point) string { return number(p.Rate, 3) }))
	why := cmp.Or(list.Map(over, func(p curve.Point) string { return p.Why })...)
	return where(rates != "", rates+" requests/s: latency there depends on how long was measured"+where(why != "", " ("+why+")"))
}

func crossingFact(x curve.Crossing) Fact {
	at, text := number(x.Value, 3)+" requests/s", "cannot be told: the points hold no such statistic"
	switch x.Outcome {
	case curve.Found:
		text = "crossed at " + at + where(x.High > x.Low, fmt.Sprintf(" (%s-%s, depending on the form of the curve)", number(x.Low, 3), number(x.High, 3)))
	case curve.Below:
		text = "exceeded at the lowest measured rate already" + where(x.Idle > 0, " ("+latency(x.Idle)+")")
	case curve.NotReached:
		text = "kept up to the highest measured rate, " + at
	case curve.AtSaturation:
		text = "crossed by a growing backlog only, at saturation: " + at
	}
	return Fact{Label: boundName(x.Bound.String()) + " " + limit(x.Bound.Limit), Text: text}
}

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"planner/internal/list"
	"planner/plan"
	"planner/sweep/measure"
)

const (
	spacing   = 0.95 // of the throughput of a point of the frontier the next one listed has at most
	mostKinds = 6    // of instances, or of sets, that a chart tells apart by colour
)

// addPareto draws the trade-off over all sets and GPUs: throughput per GPU against the speed for one user, with
// the frontier.
func addPareto(d *Document, p *plan.Plan, trials []measure.Measurement) {
	c := &Chart{Title: "Throughput a GPU against the speed of one answer, all trials", Name: "pareto", LinearY: true,
		XLabel: "output tokens/s for one user (1 / median TPOT)", YLabel: "output tokens/s for each GPU"}
	which := differing(measure.KnobSets(trials))
	shown := list.Filter(ran(trials), func(m *measure.Measurement) bool {
		return m.Valid && !m.Overloaded && m.Aborted.Text == "" && m.TPOT.P50 > 0 && m.OutputTokens > 0
	})
	series := seriesOf(p, shown)
	var all []ChartPoint
	for _, m := range shown {
		k := m.Trial.Knobs
		name := series(k)
		i := slices.IndexFunc(c.Series, func(l Line) bool { return l.Name == name })
		if i < 0 {
			i, c.Series = len(c.Series), append(c.Series, Line{Name: name})
		}
		y := m.OutputTokens / float64(gpusOf(p, k))
		at := ChartPoint{X: 1 / m.TPOT.P50.Seconds(), Y: y, Low: y, High: y, Trial: m.Trial.Number, Note: load(&m.Trial) + behind(", ", values([]measure.Knobs{k}, which))}
		if v := m.Verdict; v != nil && v.State != measure.Unsure {
			at.Note += ", " + v.State.String()
		}
		c.Series[i].Points, all = append(c.Series[i].Points, at), append(all, at)
	}
	if len(all) < 3 {
		return
	}
	edge := frontier(all)
	c.Series = append(c.Series, Line{Name: "frontier", Fit: steps(edge)})
	tab := table(right("tokens/s for one user", "tokens/s for each GPU", "trial"), wrapped("load and settings"))
	tab.Caption = "On the frontier: nothing that was tried is better in both"
	last := math.Inf(1)
	for _, q := range edge {
		if q.Y > spacing*last {
			continue
		}
		last = q.Y
		tab.row(number(q.X, 3), number(q.Y, 3), q.Trial, q.Note)
		tab.Trials = append(tab.Trials, q.Trial)
	}
	d.section("Throughput against speed", c, tab)
}

// gpusOf are the GPUs of an instance: those said of all results, where these do not tell.
func gpusOf(p *plan.Plan, k measure.Knobs) int {
	if o := &p.Offer; o.GPUs > 0 && o.GPUs != o.Knobs.GPUs() {
		return o.GPUs
	}
	return k.GPUs()
}

// seriesOf names the series of the instances of trials: their kinds, or their GPUs alone where a chart cannot
// tell so many kinds apart, the last of too many GPUs together; the chosen one is never among these.
func seriesOf(p *plan.Plan, trials []*measure.Measurement) func(measure.Knobs) string {
	gpu := func(k measure.Knobs) string { return cmp.Or(k.GPU, p.Offer.GPU, "GPU") }
	kind := func(k measure.Knobs) string { return fmt.Sprintf("%s x %s", count(gpusOf(p, k)), gpu(k)) }
	names := func(of func(measure.Knobs) string) []string {
		return list.Distinct(list.Map(trials, func(m *measure.Measurement) string { return of(m.Trial.Knobs) }))
	}
	if len(names(kind)) <= mostKinds {
		return kind
	}
	gpus := list.Distinct(append([]string{gpu(p.Offer.Knobs)}, names(gpu)...))
	return func(k measure.Knobs) string {
		return either(len(gpus) > mostKinds && slices.Index(gpus, gpu(k)) >= mostKinds-1, "other GPUs", gpu(k))
	}
}

// frontier are the points that no other is above and right of, from left to right.
func frontier(all []ChartPoint) []ChartPoint {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b ChartPoint) int { return cmp.Or(cmp.Compare(b.X, a.X), cmp.Compare(b.Y, a.Y)) })
	var out []ChartPoint
	highest := math.Inf(-1)
	for _, p := range sorted {
		if p.Y > highest {
			out, highest = append(out, p), p.Y
		}
	}
	slices.Reverse(out)
	return out
}

// steps returns the stepped line along a frontier: the throughput reached at each speed.
func steps(edge []ChartPoint) plotter.XYs {
	var line plotter.XYs
	for i, p := range edge {
		if i > 0 {
			line = append(line, plotter.XY{X: edge[i-1].X, Y: p.Y})
		}
		line = append(line, plotter.XY{X: p.X, Y: p.Y})
	}
	return line
}

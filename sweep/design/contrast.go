package design

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	gonum "gonum.org/v1/gonum/stat"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// An aspect is what two measurements are compared by.
type aspect struct {
	name, label string
	of          func(*measure.Measurement) float64
}

// aspects lists what pairs are compared by: latencies in milliseconds, those that have a
// limit among them, and throughput, of which more is better.
func aspects(pairs []pairing) []aspect {
	var bounds []measure.Bound
	for _, metric := range []measure.Metric{measure.TTFT, measure.TPOT, measure.E2E} {
		for _, q := range []float64{0, 0.50, 0.99} {
			bounds = append(bounds, measure.Bound{Metric: metric, Quantile: q})
		}
	}
	for _, p := range pairs {
		for _, b := range p.a.Trial.Objective.Latencies() {
			if !slices.ContainsFunc(bounds, func(o measure.Bound) bool { return o.String() == b.String() }) {
				bounds = append(bounds, b)
			}
		}
	}
	var all []aspect
	for _, b := range bounds {
		name, of, _ := strings.Cut(b.String(), " ")
		label := strings.TrimSpace(b.Stat() + " " + strings.ToUpper(b.Metric.String()) + " " + of)
		all = append(all, aspect{strings.TrimSpace(name + inMilliseconds + " " + of), label + ", ms", func(m *measure.Measurement) float64 {
			return above0(float64(m.Bounded(b)) / float64(time.Millisecond))
		}})
	}
	return append(all, aspect{"achieved_per_s", "requests/s", func(m *measure.Measurement) float64 { return above0(m.Achieved) }},
		aspect{"output_tokens_per_s", "output tokens/s", func(m *measure.Measurement) float64 { return above0(m.OutputTokens) }})
}

// inMilliseconds ends the names of latencies.
const inMilliseconds = "_ms"

func above0(v float64) float64 {
	if v <= 0 {
		return math.NaN()
	}
	return v
}

// A pairing is what two things made of the same load.
type pairing struct{ a, b *measure.Measurement }

// tested says how pairs are tested.
const tested = "Student's t over the logarithms of the ratios of the pairs; ratios and their intervals are geometric means"

// contrast compares pairs in every figure that both sides have. Pairs with a
// trial that is not valid are left out; where fewer than two are left, all are
// shown and nothing is decided.
func contrast(pairs []pairing, t Terms) []Contrast {
	valid := slices.DeleteFunc(slices.Clone(pairs), func(p pairing) bool { return !p.a.Valid || !p.b.Valid })
	if len(valid) >= 2 || len(valid) == len(pairs) {
		return contrastAll(valid, t)
	}
	all := contrastAll(pairs, t)
	for i := range all {
		all[i].Judgement = Undecided
	}
	return all
}

func contrastAll(pairs []pairing, t Terms) []Contrast {
	var all []Contrast
	for _, f := range aspects(pairs) {
		var a, b, differences, ratios []float64
		for _, p := range pairs {
			x, y := f.of(p.a), f.of(p.b)
			if math.IsNaN(x) || math.IsNaN(y) {
				continue
			}
			a, b = append(a, x), append(b, y)
			differences, ratios = append(differences, y-x), append(ratios, math.Log(y/x))
		}
		if len(a) == 0 {
			continue
		}
		d := stat.PairedT(differences, t.Confidence)
		r := stat.PairedT(ratios, t.Confidence)
		c := Contrast{Figure: f.name, Label: f.label, Relative: Difference{math.Expm1(r.Value), math.Expm1(r.Low), math.Expm1(r.High)}, P: r.P}
		c.A, c.B, c.Pairs = gonum.Mean(a, nil), gonum.Mean(b, nil), len(a)
		c.Difference = Difference{d.Value, d.Low, d.High}
		all = append(all, c)
	}
	judge(all, t)
	return all
}

// unresolvedIn lists the figures that no pair resolves on both sides.
func unresolvedIn(pairs []pairing) note.Notes {
	var out note.Notes
	for _, f := range aspects(pairs) {
		some := false
		for _, p := range pairs {
			some = some || !math.IsNaN(f.of(p.a)) && !math.IsNaN(f.of(p.b))
		}
		out = append(out, note.If(!some && len(pairs) > 0, note.FigureUnknown, f.label)...)
	}
	return out
}

// judge adjusts the probabilities for the number of figures and decides each:
// the same if the whole interval lies within the indifference, better or worse
// if the difference is significant, otherwise undecided.
func judge(all []Contrast, t Terms) {
	p := make([]float64, len(all))
	for i := range all {
		p[i] = all[i].P
	}
	for i, adjusted := range stat.Holm(p) {
		c := &all[i]
		c.Adjusted = adjusted
		switch {
		case c.Relative.Low >= -t.Indifference && c.Relative.High <= t.Indifference:
			c.Judgement = Same
		case !(adjusted < 1-t.Confidence):
			c.Judgement = Undecided
		case (c.Relative.Value > 0) != strings.Contains(c.Figure, inMilliseconds): // of throughput more is better
			c.Judgement = Better
		default:
			c.Judgement = Worse
		}
	}
}

// matched pairs the measurements of two runs that had the same load: the same
// rate or concurrency, and the same knobs where one of the runs has several.
// Left says how many had no counterpart.
func matched(a, b []measure.Measurement) (pairs []pairing, left int) {
	byKnobs := knobSets(a) > 1 || knobSets(b) > 1
	taken := make([]bool, len(b))
	for i := range a {
		if a[i].Rejected.Text != "" {
			continue
		}
		found := false
		for j := range b {
			if taken[j] || b[j].Rejected.Text != "" || !sameLoad(&a[i].Trial, &b[j].Trial) || byKnobs && a[i].Trial.Knobs != b[j].Trial.Knobs {
				continue
			}
			taken[j], found = true, true
			pairs = append(pairs, pairing{&a[i], &b[j]})
			break
		}
		if !found {
			left++
		}
	}
	for j := range b {
		if !taken[j] && b[j].Rejected.Text == "" {
			left++
		}
	}
	return pairs, left
}

// sameLoad asks for rates that agree to a thousandth, and for the same
// temperature of the prefix cache.
func sameLoad(a, b *measure.Trial) bool {
	return a.Concurrency == b.Concurrency && math.Abs(a.Rate-b.Rate) <= 0.001*a.Rate && (a.Warmup == 0) == (b.Warmup == 0)
}

func knobSets(all []measure.Measurement) int {
	seen := map[measure.Knobs]bool{}
	for i := range all {
		if all[i].Rejected.Text == "" {
			seen[all[i].Trial.Knobs] = true
		}
	}
	return len(seen)
}

// pairDoubts says what of the pairs a reader should know: failures, which are in
// no latency, and trials that were not valid or overloaded.
func pairDoubts(pairs []pairing) note.Notes {
	out := unresolvedIn(pairs)
	for _, side := range []struct {
		name string
		of   func(pairing) *measure.Measurement
	}{{"A", func(p pairing) *measure.Measurement { return p.a }}, {"B", func(p pairing) *measure.Measurement { return p.b }}} {
		failed, requests, invalid, overloaded, how := 0, 0, 0, 0, ""
		for _, p := range pairs {
			m := side.of(p)
			failed, requests = failed+m.Failed, requests+m.Requests
			how = cmp.Or(how, m.Complaint())
			if !m.Valid {
				invalid++
			}
			if m.Overloaded || m.Aborted.Text != "" {
				overloaded++
			}
		}
		out = slices.Concat(out, note.If(failed > 0, note.SideFailed, side.name, failed, requests, how),
			note.If(invalid > 0, note.SideInvalid, side.name, invalid, len(pairs)),
			note.If(overloaded > 0, note.SideOverloaded, side.name, overloaded, len(pairs)))
	}
	return out
}

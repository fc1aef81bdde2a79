package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/report"
	"planner/internal/stat"
	"planner/search"
	"planner/sweep/measure"
)

// An aspect is what two measurements are compared by.
type aspect struct {
	name, label string
	// more says that a larger figure is the better one.
	more bool
	of   func(*measure.Measurement) float64
}

// aspects lists what is compared, latencies in milliseconds first.
func aspects() []aspect {
	var all []aspect
	for _, metric := range []measure.Metric{measure.TTFT, measure.TPOT, measure.E2E} {
		for _, q := range []float64{0, 0.50, 0.99} {
			b := measure.Bound{Metric: metric, Quantile: q}
			all = append(all, aspect{b.String() + "_ms", latencyLabel(b), false, func(m *measure.Measurement) float64 {
				d := m.Latency(metric).Stat(q)
				if d <= 0 {
					return math.NaN()
				}
				return float64(d) / float64(time.Millisecond)
			}})
		}
	}
	return append(all,
		aspect{"achieved_per_s", "requests/s", true, func(m *measure.Measurement) float64 { return above0(m.Achieved) }},
		aspect{"output_tokens_per_s", "output tokens/s", true, func(m *measure.Measurement) float64 { return above0(m.OutputTokens) }},
	)
}

func latencyLabel(b measure.Bound) string {
	names := map[measure.Metric]string{measure.TTFT: "TTFT", measure.TPOT: "TPOT", measure.E2E: "E2E"}
	return b.Stat() + " " + names[b.Metric] + ", ms"
}

func above0(v float64) float64 {
	if v <= 0 {
		return math.NaN()
	}
	return v
}

// A pair is what two things made of the same load.
type pair struct{ a, b *measure.Measurement }

// tested says how pairs are tested.
const tested = "Student's t over the logarithms of the ratios of the pairs; ratios and their intervals are geometric means"

// contrast compares pairs in every figure that both sides have. Pairs with a
// trial that is not valid are left out; where fewer than two are left, all are
// shown and nothing is decided.
func contrast(pairs []pair, confidence, indifference float64) []report.Contrast {
	valid := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return !p.a.Valid || !p.b.Valid })
	if len(valid) >= 2 || len(valid) == len(pairs) {
		return contrastAll(valid, confidence, indifference)
	}
	all := contrastAll(pairs, confidence, indifference)
	for i := range all {
		all[i].Judgement = report.Undecided
	}
	return all
}

func contrastAll(pairs []pair, confidence, indifference float64) []report.Contrast {
	var all []report.Contrast
	for _, f := range aspects() {
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
		d := stat.PairedT(differences, confidence)
		c := ratio(f.name, f.label, stat.PairedT(ratios, confidence))
		c.A, c.B, c.Pairs = mean(a), mean(b), len(a)
		c.Difference, c.Low, c.High = d.Value, d.Low, d.High
		all = append(all, c)
	}
	judge(all, confidence, indifference)
	return all
}

// unresolvedIn lists the figures that no pair resolves on both sides.
func unresolvedIn(pairs []pair) []string {
	var out []string
	for _, f := range aspects() {
		some := false
		for _, p := range pairs {
			some = some || !math.IsNaN(f.of(p.a)) && !math.IsNaN(f.of(p.b))
		}
		if !some && len(pairs) > 0 {
			out = append(out, f.label+": not known in any pair; a p99 takes 1,200 requests")
		}
	}
	return out
}

// ratio turns the change of a logarithm into a relative difference.
func ratio(name, label string, c stat.Change) report.Contrast {
	return report.Contrast{Name: name, Label: label, Relative: math.Expm1(c.Value), RelativeLow: math.Expm1(c.Low), RelativeHigh: math.Expm1(c.High), P: c.P}
}

// judge adjusts the probabilities for the number of figures and decides each:
// the same if the whole interval lies within the indifference, better or worse
// if the difference is significant, otherwise undecided.
func judge(all []report.Contrast, confidence, indifference float64) {
	more := map[string]bool{maxRateFigure: true}
	for _, f := range aspects() {
		more[f.name] = f.more
	}
	p := make([]float64, len(all))
	for i := range all {
		p[i] = all[i].P
	}
	for i, adjusted := range stat.Holm(p) {
		c := &all[i]
		c.Adjusted = adjusted
		switch {
		case c.RelativeLow >= -indifference && c.RelativeHigh <= indifference:
			c.Judgement = report.Same
		case !(adjusted < 1-confidence):
			c.Judgement = report.Undecided
		case (c.Relative > 0) == more[c.Name]:
			c.Judgement = report.Better
		default:
			c.Judgement = report.Worse
		}
	}
}

// maxRateFigure names the maximum rate of two plans.
const maxRateFigure = "max_rate_per_s"

// contrastRates compares the maximum rates of two plans, whose intervals are
// taken as those of independent normal errors of the logarithm.
func contrastRates(a, b search.Estimate, confidence, indifference float64) []report.Contrast {
	if !(a.Value > 0 && b.Value > 0) {
		return nil
	}
	all := []report.Contrast{ratio(maxRateFigure, "maximum rate, requests/s",
		stat.NormalChange(math.Log(a.Value), math.Log(b.Value), logDeviation(a), logDeviation(b), confidence))}
	c := &all[0]
	c.A, c.B, c.Pairs, c.Difference = a.Value, b.Value, 1, b.Value-a.Value
	c.Low, c.High = math.NaN(), math.NaN()
	judge(all, confidence, indifference)
	return all
}

// logDeviation is the standard deviation of the logarithm that an interval
// stands for; NaN if it has none.
func logDeviation(e search.Estimate) float64 {
	if !(e.Low > 0 && e.High > e.Low && e.Confidence > 0 && e.Confidence < 1) {
		return math.NaN()
	}
	return math.Log(e.High/e.Low) / 2 / stat.NormalQuantile(0.5+e.Confidence/2)
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// matched pairs the measurements of two runs that had the same load: the same
// rate or concurrency, and the same knobs where one of the runs has several.
// Left says how many had no counterpart.
func matched(a, b []measure.Measurement) (pairs []pair, left int) {
	byKnobs := knobSets(a) > 1 || knobSets(b) > 1
	taken := make([]bool, len(b))
	for i := range a {
		if a[i].Rejected != "" {
			continue
		}
		found := false
		for j := range b {
			if taken[j] || b[j].Rejected != "" || !sameLoad(&a[i].Trial, &b[j].Trial) || byKnobs && a[i].Trial.Knobs != b[j].Trial.Knobs {
				continue
			}
			taken[j], found = true, true
			pairs = append(pairs, pair{&a[i], &b[j]})
			break
		}
		if !found {
			left++
		}
	}
	for j := range b {
		if !taken[j] && b[j].Rejected == "" {
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
		if all[i].Rejected == "" {
			seen[all[i].Trial.Knobs] = true
		}
	}
	return len(seen)
}

// pairDoubts says what of the pairs a reader should know: failures, which are in
// no latency, and trials that were not valid or overloaded.
func pairDoubts(pairs []pair) []string {
	out := unresolvedIn(pairs)
	for _, side := range []struct {
		name string
		of   func(pair) *measure.Measurement
	}{{"A", func(p pair) *measure.Measurement { return p.a }}, {"B", func(p pair) *measure.Measurement { return p.b }}} {
		failed, requests, invalid, overloaded := 0, 0, 0, 0
		for _, p := range pairs {
			m := side.of(p)
			failed, requests = failed+m.Failed, requests+m.Requests
			if !m.Valid {
				invalid++
			}
			if m.Overloaded || m.Aborted != "" {
				overloaded++
			}
		}
		if failed > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %d requests failed; latencies are over the others", side.name, failed, requests))
		}
		if invalid > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %d trials are not valid; their pairs do not count", side.name, invalid, len(pairs)))
		}
		if overloaded > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %d trials were overloaded: their latencies depend on how long was measured", side.name, overloaded, len(pairs)))
		}
	}
	return out
}

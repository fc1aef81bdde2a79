package design

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	gonum "gonum.org/v1/gonum/stat"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep"
	"planner/sweep/measure"
)

// Judgement says how the second of two sides does against the first.
type Judgement string

// The judgements. Same means that the whole interval lies within the indifference, NotJudged that
// the figure is only shown.
const (
	Undecided Judgement = "undecided"
	Same      Judgement = "same"
	Better    Judgement = "better"
	Worse     Judgement = "worse"
	NotJudged Judgement = "not judged"
)

// Contrast compares one figure of two sides, in pairs.
type Contrast struct {
	// Figure is its name in files, such as "ttft.p99_ms"; Label is for readers.
	Figure string `json:"figure"`
	Label  string `json:"-"`
	// A and B are geometric means over the pairs, in ms, per second or as a share; of hit rates,
	// arithmetic.
	A float64 `json:"a"`
	B float64 `json:"b"`
	// Difference is B - A, Relative is B/A - 1, with intervals. P is the probability of a ratio as
	// far from 1 by chance, Adjusted that for all figures. NaN is not known.
	Difference stat.Difference `json:"difference"`
	Relative   stat.Difference `json:"relative"`
	P          float64         `json:"p"`
	Adjusted   float64         `json:"p_adjusted"`
	Pairs      int             `json:"pairs"`
	Judgement  Judgement       `json:"judgement"`
}

// Compared is the outcome of comparing two sides.
type Compared struct {
	A string `json:"a"`
	B string `json:"b"`
	// Design says what was paired with what, Test how it was tested.
	Design string `json:"design"`
	Test   string `json:"test"`
	Terms
	// Rate is the rate offered to both, Window, in seconds, and Rounds are those of the rounds; all
	// are nil if runs on disk were compared.
	Rate      *float64   `json:"rate_per_s"`
	Window    *float64   `json:"window_s"`
	Rounds    *int       `json:"rounds"`
	Contrasts []Contrast `json:"figures"`
	note.Warnings

	// Trials are those of the rounds.
	Trials []measure.Measurement `json:"-"`
}

// Files returns what a run folder keeps of the comparison, by file name.
func (c *Compared) Files() map[string]any { return map[string]any{"compare.json": c} }

// Terms are what a comparison is judged by.
type Terms struct {
	// Confidence is that of the intervals. Indifference is the relative difference below which two
	// figures count as the same.
	Confidence   float64 `json:"confidence"`
	Indifference float64 `json:"indifference"`
	// FailIfWorse is the relative difference by which no figure may be worse; at 0 the comparison
	// asks for every figure to be decided instead.
	FailIfWorse float64 `json:"fail_if_worse,omitempty"`
}

// Failed returns the figures that are worse by more than the terms allow: significantly worse after
// adjustment for all figures, and by more than FailIfWorse in the mean of the pairs.
func (c *Compared) Failed() []Contrast {
	return list.Filter(c.Contrasts, func(x Contrast) bool {
		return c.FailIfWorse > 0 && x.Judgement == Worse && math.Abs(x.Relative.Value) > c.FailIfWorse
	})
}

// Tested reports whether any figure was tested: a single pair says nothing about chance.
func (c *Compared) Tested() bool {
	return slices.ContainsFunc(c.Contrasts, func(x Contrast) bool { return !math.IsNaN(x.P) })
}

// answer is undecided if some figure is. With FailIfWorse it is infeasible if some figure is worse
// by more than that, and undecided only if none was tested.
func (c *Compared) answer() sweep.Answer {
	state := sweep.Done
	switch {
	case len(c.Failed()) > 0:
		state = sweep.Infeasible
	case c.FailIfWorse > 0 && c.Tested():
	case slices.ContainsFunc(c.Contrasts, func(x Contrast) bool { return x.Judgement == Undecided }):
		state = sweep.Undecided
	}
	return sweep.Answer{State: state, Value: c}
}

// CompareRuns compares the measurements of two run folders, at the loads that both have. doubts say
// what else differs between them.
func CompareRuns(paths [2]string, trials [2][]measure.Measurement, t Terms, doubts note.Notes) (sweep.Answer, error) {
	a, b := trials[0], trials[1]
	pairs, left := matched(a, b)
	other := list.Count(pairs, func(x pairing) bool { return x[0].Trial.Seed != x[1].Trial.Seed })
	c := &Compared{A: filepath.Clean(paths[0]), B: filepath.Clean(paths[1]), Test: tested, Terms: t,
		Contrasts: contrast(pairs, t), Warnings: slices.Concat(doubts, pairDoubts(pairs), note.If(other > 0, note.SeedsDiffer, other, len(pairs))).Warnings()}
	c.Design = fmt.Sprintf("%s that both runs have; %d have no counterpart", note.Count(len(pairs), "load point"), left)
	c.Warnings.Add(note.If(len(a) > 0 && len(b) > 0 && !a[0].Trial.Workload.Alike(b[0].Trial.Workload), note.TrafficDiffers)...)
	if len(c.Contrasts) == 0 {
		return sweep.Answer{}, fmt.Errorf("compare: %s and %s have no load in common: measure both at the same rates, as 'planner sweep --rates' does", paths[0], paths[1])
	}
	return c.answer(), nil
}

// An aspect is a figure by which two measurements are compared.
type aspect struct {
	name, label string
	of          func(*measure.Measurement) float64
}

// aspects lists what pairs are compared by: latencies in milliseconds, including those with a
// limit, throughput, and, if requests failed, the share that did not, of which more is better.
func aspects(pairs []pairing) []aspect {
	var bounds []measure.Bound
	for _, metric := range []measure.Metric{measure.TTFT, measure.TPOT, measure.E2E} {
		for _, q := range []float64{0, 0.50, 0.99} {
			bounds = append(bounds, measure.Bound{Metric: metric, Quantile: q})
		}
	}
	for _, p := range pairs {
		for _, b := range p[0].Trial.Objective.Latencies() {
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
	if slices.ContainsFunc(pairs, func(p pairing) bool { return p[0].Failed+p[1].Failed > 0 && min(p[0].Requests, p[1].Requests) > 0 }) { // latencies are those of the requests that did not fail
		all = append(all, aspect{"answered_share", "share answered", func(m *measure.Measurement) float64 {
			return max(float64(m.Requests-m.Failed), 0.5) / float64(m.Requests)
		}})
	}
	return append(all, aspect{"achieved_per_s", "requests/s", achieved},
		aspect{"output_tokens_per_s", "output tokens/s", func(m *measure.Measurement) float64 { return above0(m.OutputTokens) }})
}

// ratio returns the logarithm of the ratio of a pair, NaN if one side does not have the figure.
func (f aspect) ratio(p pairing) float64 { return math.Log(f.of(p[1]) / f.of(p[0])) }

// inMilliseconds is the suffix in the names of latencies.
const inMilliseconds = "_ms"

func achieved(m *measure.Measurement) float64 { return above0(m.Achieved) }

func above0(v float64) float64 {
	if v <= 0 {
		return math.NaN()
	}
	return v
}

// A pairing is the measurements of the two sides, A and B, at the same load.
type pairing [2]*measure.Measurement

// sides are the names of the sides.
var sides = [2]string{"A", "B"}

// tested says how pairs are tested.
const tested = "Student's t over the logarithms of the ratios of the pairs; values, differences and ratios are geometric means"

// contrast compares pairs in every figure that both sides have. Pairs with an invalid trial are
// left out; if that leaves fewer than two, all are shown but decide nothing. The loads at which
// only one side fell behind are a figure of their own: their ratios and those at loads that both
// sides carry have no common spread.
func contrast(pairs []pairing, t Terms) []Contrast {
	sound := list.Filter(pairs, func(p pairing) bool { return p[0].Valid && p[1].Valid })
	valid := sound
	few := len(valid) < 2 && len(valid) < len(pairs)
	if few {
		valid = pairs
	}
	var all []Contrast
	var ratios [][]float64
	for _, f := range aspects(valid) {
		if c, ok := contrastIn(f, valid, nil, t); ok {
			all, ratios = append(all, c), append(ratios, list.Map(valid, f.ratio))
		}
	}
	shown := len(all)
	kept := list.Filter(sound, func(p pairing) bool { return p.behind() == "" })
	for _, side := range sides {
		alone := list.Filter(pairs, func(p pairing) bool { return p.behind() == side })
		f := aspect{"achieved_per_s where " + side + " fell behind", "requests/s where " + side + " fell behind", achieved}
		if c, ok := contrastIn(f, alone, kept, t); ok {
			all = append(all, c)
		}
	}
	judge(all, stat.SignFlips(ratios, 1-t.Confidence), t)
	for i := range all[:shown] {
		if few {
			all[i].Judgement = Undecided
		}
	}
	return append(all, cacheHits(valid)...)
}

// cacheHits returns the mean shares of prompt tokens found in the prefix cache, for readers: they
// explain latencies, and are neither better nor worse by themselves. They are left out if nothing
// was found.
func cacheHits(pairs []pairing) []Contrast {
	var a, b []float64
	for _, p := range pairs {
		if x, y := p[0].Server.HitRate, p[1].Server.HitRate; x != nil && y != nil {
			a, b = append(a, *x), append(b, *y)
		}
	}
	nan := math.NaN()
	none := stat.Difference{Value: nan, Low: nan, High: nan}
	c := Contrast{Figure: "prefix_hit_rate", Label: "prefix-cache hit rate", A: gonum.Mean(a, nil), B: gonum.Mean(b, nil),
		Difference: none, Relative: none, P: nan, Adjusted: nan, Pairs: len(a), Judgement: NotJudged}
	if c.Difference.Value = c.B - c.A; !(c.A+c.B > 0) {
		return nil
	}
	return []Contrast{c}
}

// contrastIn returns one figure of pairs, not judged yet; false if no pair has it. others are pairs
// that do not differ, whose ratios have the same scatter.
func contrastIn(f aspect, pairs, others []pairing, t Terms) (Contrast, bool) {
	ratios := func(pairs []pairing) (a, ratios []float64) {
		for _, p := range pairs {
			if r := f.ratio(p); !math.IsNaN(r) {
				a, ratios = append(a, f.of(p[0])), append(ratios, r)
			}
		}
		return a, ratios
	}
	a, own := ratios(pairs)
	if len(a) == 0 {
		return Contrast{}, false
	}
	_, beside := ratios(others)
	r, p := stat.PairedT(own, beside, t.Confidence)
	c := Contrast{Figure: f.name, Label: f.label, A: gonum.GeometricMean(a, nil), P: p, Pairs: len(a),
		Relative: stat.Difference{Value: math.Expm1(r.Value), Low: math.Expm1(r.Low), High: math.Expm1(r.High)}}
	c.Difference = stat.Difference{Value: c.A * c.Relative.Value, Low: c.A * c.Relative.Low, High: c.A * c.Relative.High}
	c.B = c.A + c.Difference.Value
	return c, true
}

// behind names the side that fell behind in a trial, valid and overloaded or drifting, if the
// other's trial is valid and its backlog did not grow; "" for neither.
func (p pairing) behind() string {
	for i, m := range p {
		if other := p[1-i]; (m.Overloaded && m.Valid || m.Drifted()) && other.Valid && !other.Grew() {
			return sides[i]
		}
	}
	return ""
}

// unresolvedIn lists the figures that no pair resolves on both sides.
func unresolvedIn(pairs []pairing) note.Notes {
	var out note.Notes
	for _, f := range aspects(pairs) {
		some := slices.ContainsFunc(pairs, func(p pairing) bool { return !math.IsNaN(f.ratio(p)) })
		out = append(out, note.If(!some && len(pairs) > 0, note.FigureUnknown, f.label)...)
	}
	return out
}

// judge adjusts the probabilities for the number of figures and decides each figure: the same if
// the whole interval lies within the indifference, better or worse if the difference is
// significant, else undecided. flipped are the probabilities adjusted by [stat.SignFlips], which
// allows for figures that move together; the figures for which it has none, NaN, are adjusted by
// Holm's method. The number of pairs says which applies, not which is smaller: picking the smaller
// would raise the chance of a false alarm. Each kind has a share of that chance in proportion to
// its figures.
func judge(all []Contrast, flipped []float64, t Terms) {
	p := list.Map(all, func(c Contrast) float64 { return c.P })
	numbered, signed := make([]float64, len(all)), 0.0
	copy(numbered, p)
	for i, f := range flipped {
		if !math.IsNaN(f) {
			numbered[i], signed = math.NaN(), signed+1
		}
	}
	figures := float64(list.Count(p, func(p float64) bool { return !math.IsNaN(p) }))
	for i, adjusted := range stat.Holm(numbered) {
		c := &all[i]
		if adjusted *= figures / (figures - signed); i < len(flipped) && !math.IsNaN(flipped[i]) {
			adjusted = flipped[i] * figures / signed
		}
		c.Adjusted = min(adjusted, 1)
		switch {
		case c.Relative.Low >= -t.Indifference && c.Relative.High <= t.Indifference:
			c.Judgement = Same
		case !(adjusted < 1-t.Confidence):
			c.Judgement = Undecided
		case (c.Relative.Value > 0) != strings.Contains(c.Figure, inMilliseconds): // more throughput is better
			c.Judgement = Better
		default:
			c.Judgement = Worse
		}
	}
}

// matched pairs the measurements of two runs at the same load, and with the same knobs if one of
// the runs has several sets. left is how many had no counterpart.
func matched(a, b []measure.Measurement) (pairs []pairing, left int) {
	byKnobs := len(measure.KnobSets(a)) > 1 || len(measure.KnobSets(b)) > 1
	rest := list.Filter(b, func(m measure.Measurement) bool { return m.Ran() })
	for i := range a {
		m := &a[i]
		if !m.Ran() {
			continue
		}
		j := slices.IndexFunc(rest, func(o measure.Measurement) bool {
			return sameLoad(&m.Trial, &o.Trial) && (!byKnobs || m.Trial.Knobs == o.Trial.Knobs)
		})
		if j < 0 {
			left++
			continue
		}
		pairs = append(pairs, pairing{m, new(rest[j])})
		rest = slices.Delete(rest, j, j+1)
	}
	return pairs, left + len(rest)
}

// sameLoad reports whether trials have the same concurrency, mean rates, also of traces, that agree
// to a thousandth, and the same temperature of the prefix cache.
func sameLoad(a, b *measure.Trial) bool {
	x, y := a.Workload.MeanRate(a.Rate), b.Workload.MeanRate(b.Rate)
	return a.Concurrency == b.Concurrency && math.Abs(x-y) <= 0.001*x && (a.Warmup == 0) == (b.Warmup == 0)
}

// pairDoubts returns what a reader should know about the pairs: failures, which are in no latency,
// and trials that were invalid or overloaded.
func pairDoubts(pairs []pairing) note.Notes {
	out := unresolvedIn(pairs)
	for i, side := range sides {
		failed, requests, invalid, overloaded, behind, how := 0, 0, 0, 0, 0, ""
		for _, p := range pairs {
			m := p[i]
			failed, requests = failed+m.Failed, requests+m.Requests
			how = cmp.Or(how, m.Complaint())
			switch {
			case p.behind() == side:
				behind++
			case !m.Valid:
				invalid++
			}
			if m.Overloaded || m.Aborted.Text != "" {
				overloaded++
			}
		}
		out = slices.Concat(out, note.If(failed > 0, note.SideFailed, side, failed, requests, cmp.Or(how, "not told")),
			note.If(invalid > 0, note.SideInvalid, side, invalid, len(pairs)),
			note.If(behind > 0, note.SideBehind, side, behind, len(pairs)),
			note.If(overloaded > 0, note.SideOverloaded, side, overloaded, len(pairs)))
	}
	return out
}

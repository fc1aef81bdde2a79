package decide

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// endedKnobs are the knobs at the ends of whose ranges a search may have stopped too early.
func endedKnobs() []measure.Knob {
	return slices.DeleteFunc(measure.Searched(), func(n measure.Knob) bool { return n.Most == 0 })
}

// nextValue returns the value one step beyond another: shares of memory change by twentieths, counts by factors
// of two.
func nextValue(n measure.Knob, x float64, lower bool) float64 {
	_, share := n.Zero.(float64)
	switch {
	case share && lower:
		return math.Round(100*x-5) / 100
	case share:
		return math.Round(100*x+5) / 100
	case lower:
		return x / 2
	}
	return 2 * x
}

// edge is a knob of the best set that is at an end of the values tried, with room beyond.
type edge struct {
	axis  measure.Knob
	knobs measure.Knobs
	lower bool
	// inner is the contestant with the nearest value on the other side.
	inner search.Contestant
}

// beyond returns the sets one step further, two steps and so on, as far as there is room, at most n.
func (e *edge) beyond(n int) []measure.Knobs {
	var sets []measure.Knobs
	for k := e.knobs; len(sets) < n; {
		x := nextValue(e.axis, e.axis.Number(k), e.lower)
		if x < e.axis.Least || x > e.axis.Most {
			break
		}
		e.axis.SetNumber(&k, x)
		if k.MaxNumBatchedTokens > 0 {
			// Engines refuse steps with fewer tokens than requests.
			k.MaxNumSeqs = min(k.MaxNumSeqs, k.MaxNumBatchedTokens)
		}
		if e.axis.Number(k) != x {
			break
		}
		sets = append(sets, k)
	}
	return sets
}

// edgesOf finds the knobs of a race's best set that are at an end. Only sets that differ from it in that knob
// alone count, and of these only those that can run.
func edgesOf(r search.RaceResult) []edge {
	var found []edge
	for _, a := range endedKnobs() {
		at := a.Number(r.Knobs)
		beside := list.Filter(r.Contestants, func(c search.Contestant) bool {
			k, x := c.Knobs, a.Number(c.Knobs)
			a.SetNumber(&k, at)
			return k == r.Knobs && c.Status != search.Unable && x != 0 && x != at
		})
		below := list.Count(beside, func(c search.Contestant) bool { return a.Number(c.Knobs) < at })
		if len(beside) == 0 || below > 0 && below < len(beside) {
			continue
		}
		e := edge{axis: a, knobs: r.Knobs, lower: below == 0, inner: slices.MinFunc(beside, func(x, y search.Contestant) int {
			return cmp.Compare(math.Abs(a.Number(x.Knobs)-at), math.Abs(a.Number(y.Knobs)-at))
		})}
		if len(e.beyond(1)) > 0 {
			found = append(found, e)
		}
	}
	return found
}

// pastEnds returns sets for a simulated engine's race to try beyond default lists: the next two values where
// the best set is at an end, as two steps may achieve what one does not, and the nearest value on the other
// side, in case only a prediction ruled it out. A largest value no better than the one below it is not
// extended: what is not used up need not be larger. If the time between tokens limits the rate, smaller steps are
// tried too, of given lists as well, wherever the best set is.
func pastEnds(cfg *config.Config, sim *sweep.Simulated, r search.RaceResult) []search.Prior {
	var sets []measure.Knobs
	for _, e := range edgesOf(r) {
		if !cfg.Open(e.axis) || e.axis.Name == "gpu_memory_utilization" || !e.lower && e.inner.Status == search.Tied {
			continue
		}
		sets = append(sets, append(e.beyond(2), e.inner.Knobs)...)
	}
	if limitsOf(cfg.Objective, r.Best.Binding, measure.ITL, measure.TPOT) {
		most := math.MaxInt
		if limitsOf(cfg.Objective, r.Best.Binding, measure.TPOT) {
			most = 2 // the mean of a request's gaps gains nothing from the shortest
		}
		sets = append(sets, smallerSteps(cfg, sim, r.Knobs, most)...)
		for _, c := range r.Contestants {
			if shortens(sim, c.Knobs, r.Knobs) {
				sets = append(sets, c.Knobs)
			}
		}
	}
	return list.FilterMap(sets, func(k measure.Knobs) (search.Prior, bool) {
		prior, err := priorFor(cfg, sim, k, sweep.MeanRequest(&cfg.Workload))
		return prior, err == nil
	})
}

// limitsOf reports whether a bound of the objective, or any if none is named, limits one of the metrics.
func limitsOf(slo measure.SLO, bound string, of ...measure.Metric) bool {
	return slices.ContainsFunc(slo.Bounds, func(b measure.Bound) bool {
		return slices.Contains(of, b.Metric) && (bound == "" || b.String() == bound)
	})
}

// shortens reports whether a set has smaller steps than another one and is otherwise the same, but for slots if the
// steps then replay CUDA graphs.
func shortens(sim *sweep.Simulated, k, than measure.Knobs) bool {
	same := k
	same.MaxNumBatchedTokens = than.MaxNumBatchedTokens
	if sim != nil && sim.Captures(k) {
		same.MaxNumSeqs = than.MaxNumSeqs
	}
	return same == than && k.MaxNumBatchedTokens <= than.MaxNumBatchedTokens && k != than
}

// smallerSteps returns variants of a knob set with at most so many step sizes below the default list, if the user gave no list.
// A step with a prompt in it is a gap in every running answer. Either few prompts keep these rare, or small
// steps keep them short: the rate rises at both ends, so no neighbour of a large step shows that a small one is
// better. Nor does one show that they want more slots: CUDA graphs are captured for so many tokens as these can decode, and a
// step beyond them waits for its launches.
func smallerSteps(cfg *config.Config, sim *sweep.Simulated, k measure.Knobs, most int) []measure.Knobs {
	n, _ := measure.KnobNamed("max_num_batched_tokens")
	slots, _ := measure.KnobNamed("max_num_seqs")
	if !cfg.Open(n) {
		return nil
	}
	n.Set(&k, n.Usual[0])
	e := edge{axis: n, knobs: k, lower: true}
	sets := e.beyond(most)
	for _, k := range sets {
		if cfg.Open(slots) && !sim.Captures(k) {
			k.MaxNumSeqs = max(k.MaxNumSeqs, k.MaxNumBatchedTokens/2)
			if sim.Captures(k) {
				sets = append(sets, k)
			}
		}
	}
	return sets
}

// edgeWarnings warns where the best set is at an end of the values tried and its neighbour was measured to
// carry less: the best may lie beyond. If the engine's own settings, nil if unknown, were measured beyond, that
// is known.
func edgeWarnings(r search.RaceResult, standard *search.Prior) note.Notes {
	var out note.Notes
	for _, e := range edgesOf(r) {
		switch e.inner.Status {
		case search.Beaten, search.Measured, search.Infeasibly:
		default:
			continue
		}
		a, end, further, way := e.axis, "largest", "larger", 1
		if e.lower {
			end, further, way = "smallest", "smaller", -1
		}
		if standard != nil && r.Default != nil && cmp.Compare(a.Number(standard.Knobs), a.Number(e.knobs)) == way {
			continue
		}
		at, inner := a.Number(e.knobs), a.Number(e.inner.Knobs)
		values := []float64{a.Number(e.beyond(1)[0]), at, inner}
		slices.Sort(values)
		out = append(out, note.New(note.KnobAtEnd, a.Name, knobText(at), end, knobText(inner), further, strings.Join(list.Map(values, knobText), ", ")))
	}
	return out
}

// knobText formats a knob's value as in configurations.
func knobText(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"planner/internal/config"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// axis is a knob whose values have an order.
type axis struct {
	name string
	get  func(*measure.Knobs) float64
	put  func(*measure.Knobs, float64)
	// room bounds the values that are worth trying beside the other knobs.
	room func(measure.Knobs) (least, most float64)
	// next is the value a step beyond one.
	next func(x float64, lower bool) float64
	// usual reports whether the values are those that are searched where none are
	// given, which may be gone beyond.
	usual func(*config.Config) bool
}

// axes are the knobs at whose ends a search may have stopped too early. Steps of
// fewer than 256 tokens waste the GPU on any model, and engines refuse steps of
// fewer tokens than requests. What is beyond 95 % of a GPU's memory its driver
// and others need.
func axes() []axis {
	double := func(x float64, lower bool) float64 {
		if lower {
			return x / 2
		}
		return 2 * x
	}
	return []axis{
		{"max_num_batched_tokens", func(k *measure.Knobs) float64 { return float64(k.MaxNumBatchedTokens) },
			func(k *measure.Knobs, x float64) { k.MaxNumBatchedTokens = int(x) },
			func(measure.Knobs) (least, most float64) { return 256, 65536 },
			double, (*config.Config).UsualTokens},
		{"max_num_seqs", func(k *measure.Knobs) float64 { return float64(k.MaxNumSeqs) },
			func(k *measure.Knobs, x float64) { k.MaxNumSeqs = int(x) },
			func(k measure.Knobs) (least, most float64) { return 1, float64(min(4096, k.MaxNumBatchedTokens)) },
			double, (*config.Config).UsualSeqs},
		{"gpu_memory_utilization", func(k *measure.Knobs) float64 { return k.GPUMemoryUtilization },
			func(k *measure.Knobs, x float64) { k.GPUMemoryUtilization = x },
			func(measure.Knobs) (least, most float64) { return 0.5, 0.95 },
			func(x float64, lower bool) float64 {
				if lower {
					return math.Round(100*x-5) / 100
				}
				return math.Round(100*x+5) / 100
			}, func(*config.Config) bool { return false }},
	}
}

// edge is a knob of the best set that stands at an end of the values tried, with
// room beyond.
type edge struct {
	axis  axis
	knobs measure.Knobs
	lower bool
	// inner is the set with the nearest value on the other side.
	inner search.Contestant
}

// beyond are the sets a step further and so on, as many as there is room for, at
// most n.
func (e *edge) beyond(n int) []measure.Knobs {
	var sets []measure.Knobs
	least, most := e.axis.room(e.knobs)
	for k := e.knobs; len(sets) < n; {
		x := e.axis.next(e.axis.get(&k), e.lower)
		if x < least || x > most {
			break
		}
		e.axis.put(&k, x)
		if k.MaxNumBatchedTokens > 0 {
			// Engines refuse steps of fewer tokens than requests.
			k.MaxNumSeqs = min(k.MaxNumSeqs, k.MaxNumBatchedTokens)
		}
		sets = append(sets, k)
	}
	return sets
}

// edgesOf finds the knobs of the best set of a contest that stand at an end. Only
// sets that differ from it in that knob alone count, and of these the ones that
// can run.
func edgesOf(r search.RaceResult) []edge {
	var found []edge
	for _, a := range axes() {
		at := a.get(&r.Knobs)
		var below, above []search.Contestant
		for _, c := range r.Contestants {
			k := c.Knobs
			a.put(&k, at)
			switch x := a.get(&c.Knobs); {
			case k != r.Knobs || c.Status == search.Unable || x == 0:
			case x < at:
				below = append(below, c)
			case x > at:
				above = append(above, c)
			}
		}
		nearer := func(x, y search.Contestant) int {
			return cmp.Compare(math.Abs(a.get(&x.Knobs)-at), math.Abs(a.get(&y.Knobs)-at))
		}
		e := edge{axis: a, knobs: r.Knobs}
		switch {
		case len(below) == 0 && len(above) > 0:
			e.lower, e.inner = true, slices.MinFunc(above, nearer)
		case len(above) == 0 && len(below) > 0:
			e.inner = slices.MinFunc(below, nearer)
		default:
			continue
		}
		if len(e.beyond(1)) > 0 {
			found = append(found, e)
		}
	}
	return found
}

// pastEnds names what the race of a simulated engine is to try beyond lists that
// nobody gave: where the best set stands at their end the next two values, as
// what one step does not bring two may, and the nearest on the other side if its
// prediction alone left it out. A largest value that is no better than the one
// below is no reason to go on: what is not used up need not be larger.
func pastEnds(cfg *config.Config, sim *sweep.Simulated, r search.RaceResult) []search.Prior {
	var further []search.Prior
	for _, e := range edgesOf(r) {
		if !e.axis.usual(cfg) || !e.lower && e.inner.Status == search.Tied {
			continue
		}
		for _, k := range append(e.beyond(2), e.inner.Knobs) {
			if prior, err := priorFor(cfg, sim, k); err == nil {
				further = append(further, prior)
			}
		}
	}
	return further
}

// edgeWarnings tell where the best set stands at an end of the values tried and
// its neighbour was measured to carry less: the best may lie beyond.
func edgeWarnings(r search.RaceResult) []string {
	var out []string
	for _, e := range edgesOf(r) {
		switch e.inner.Status {
		case search.Beaten, search.Measured, search.Infeasibly:
		default:
			continue
		}
		a, end, further := e.axis, "largest", "larger"
		if e.lower {
			end, further = "smallest", "smaller"
		}
		at, inner := a.get(&e.knobs), a.get(&e.inner.Knobs)
		list := []float64{a.get(&e.beyond(1)[0]), at, inner}
		slices.Sort(list)
		out = append(out, fmt.Sprintf("%s is %s, the %s value tried, and %s carries less: %s values may carry more; try knobs.%s = [%s, %s, %s]",
			a.name, knobText(at), end, knobText(inner), further, a.name, knobText(list[0]), knobText(list[1]), knobText(list[2])))
	}
	return out
}

// knobText writes a knob's value as configurations do.
func knobText(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

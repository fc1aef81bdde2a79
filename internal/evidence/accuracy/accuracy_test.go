package main

import (
	"math"
	"testing"

	"planner/internal/evidence/must"
	"planner/model"
)

const data = "../../../testdata/groundtruth"

// collection is the study with few schedules.
func collection() *study { return &study{dir: data, seed: 1, schedules: 2} }

// servers reads the collection.
func servers() []server {
	return must.Get(collection().read(0))
}

// No change of constants or equations may move a group beyond its goal, or, where the
// goal is not reached, further from it.
func TestErrorsStayWithinGoals(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a hundred benchmarks")
	}
	servers := servers()
	got := must.Get(collection().predict(defaults))
	beyond := map[string]float64{groupOverload: 13} // CodeLlama-34B, see goals
	for i := range goals {
		g := &goals[i]
		limit := max(g.limit, beyond[g.group])
		e := g.reached(servers, got)
		t.Logf("%s, %s: %.1f %%", g.group, g.metric, e)
		if math.IsNaN(e) || e > limit {
			t.Errorf("%s, %s: error %.1f %%, at most %g", g.group, g.metric, e, limit)
		}
	}
	half := must.Get(calibrateHalf(data, &servers[len(servers)-1]))
	if math.Abs(half.after[metricTPOT]) > halfTPOT || math.Abs(half.after[metricP99]) > halfP99 {
		t.Errorf("second half of the trace: TPOT %+.1f %%, p99 TTFT %+.1f %%", half.after[metricTPOT], half.after[metricP99])
	}
}

// The schedules are the benchmarks': as many requests as were sent, prompts as long as
// they were on average, and each of the hundred prompts as often as any other.
func TestSchedulesAreTheBenchmarks(t *testing.T) {
	servers := servers()
	if len(servers) < 100 {
		t.Fatalf("only %d servers", len(servers))
	}
	for _, s := range servers {
		if s.group != groupOpen && s.group != groupOverload {
			continue
		}
		for _, l := range s.loads {
			prompts := map[uint64]int{}
			sum, last := 0.0, 0.0
			for _, q := range l.requests {
				sum += float64(q.Prompt)
				prompts[uint64(q.Shared[1].Content)]++
				if d := q.Due.Seconds(); d < last {
					t.Fatalf("%s %s: out of order", s.file, l.label)
				} else {
					last = d
				}
			}
			n := len(l.requests)
			if len(prompts) != 100 {
				t.Errorf("%s %s: %d distinct prompts", s.file, l.label, len(prompts))
			}
			for _, k := range prompts {
				if k < n/100 || k > n/100+1 {
					t.Errorf("%s %s: a prompt %d times in %d requests", s.file, l.label, k, n)
				}
			}
			if mean := sum / float64(n); mean < 560 || mean > 1100 {
				t.Errorf("%s %s: prompts of %.1f tokens on average", s.file, l.label, mean)
			}
		}
	}
}

// A knob at 1 is the default, and the fit finds a knob that was turned: the surrogate
// and the simulation agree.
func TestRefitFindsATurnedKnob(t *testing.T) {
	var few []server
	for _, s := range servers() {
		if s.model() == "Llama-2-7B" && s.group == groupOpen {
			few = append(few, s)
		}
	}
	values := ones()
	for _, s := range few {
		if turned(&s, values) != defaults(&s) {
			t.Errorf("%s: knobs at 1 are not the defaults", s.file)
		}
	}
	at := -1
	for k := range knobs {
		if knobs[k].name == "frontend" {
			at = k
		}
	}
	values[at] = 1.2
	truth := must.Get(all(few, func(s *server) model.Constants { return turned(s, values) }))
	for i := range few {
		for k := range few[i].loads {
			few[i].loads[k].measured = truth[i][k]
		}
	}
	base := must.Get(all(few, defaults))
	rows := must.Get(fitRows(few, base))
	fit := must.Get(without(rows, ""))
	if math.Abs(fit[at]-1.2) > 0.1 {
		t.Errorf("front end fitted as %.2f, was 1.20", fit[at])
	}
}

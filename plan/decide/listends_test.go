package decide

import (
	"math"
	"slices"
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// contestOf is the end of a race that k won, against others.
func contestOf(k measure.Knobs, others ...search.Contestant) search.RaceResult {
	return search.RaceResult{Knobs: k, Contestants: others}
}

// A warning names the knob, its value and the direction: only where the best
// value stands at an end, a neighbour was measured to be worse, and there is room.
func TestEdgeWarnings(t *testing.T) {
	set := func(tokens, seqs int, memory float64) measure.Knobs {
		return measure.Knobs{MaxNumBatchedTokens: tokens, MaxNumSeqs: seqs, GPUMemoryUtilization: memory, TensorParallel: 8}
	}
	other := func(tokens, seqs int, memory float64, s search.Status) search.Contestant {
		return search.Contestant{Knobs: set(tokens, seqs, memory), Status: s}
	}
	best := set(2048, 128, 0.9)
	const lower = "max_num_batched_tokens is 2048, the smallest value tried, and 4096 carries less: smaller values may carry more; " +
		"try knobs.max_num_batched_tokens = [1024, 2048, 4096]"
	for name, c := range map[string]struct {
		best   measure.Knobs
		others []search.Contestant
		want   string
	}{
		"one value":               {best, nil, ""},
		"smallest":                {best, []search.Contestant{other(8192, 128, 0.9, search.Beaten), other(4096, 128, 0.9, search.Beaten)}, lower},
		"largest":                 {best, []search.Contestant{other(1024, 128, 0.9, search.Measured)}, "max_num_batched_tokens is 2048, the largest value tried, and 1024 carries less: larger values may carry more; try knobs.max_num_batched_tokens = [1024, 2048, 4096]"},
		"in the middle":           {best, []search.Contestant{other(1024, 128, 0.9, search.Beaten), other(4096, 128, 0.9, search.Beaten)}, ""},
		"as good":                 {best, []search.Contestant{other(4096, 128, 0.9, search.Tied), other(8192, 128, 0.9, search.Beaten)}, ""},
		"not tried":               {best, []search.Contestant{other(4096, 128, 0.9, search.Skipped)}, ""},
		"others differ by more":   {best, []search.Contestant{other(4096, 64, 0.9, search.Beaten)}, ""},
		"cannot run":              {best, []search.Contestant{other(1024, 128, 0.9, search.Unable), other(4096, 128, 0.9, search.Beaten)}, lower},
		"no room below requests":  {set(256, 256, 0.9), []search.Contestant{other(512, 256, 0.9, search.Beaten)}, ""},
		"no room in the memory":   {set(2048, 128, 0.95), []search.Contestant{other(2048, 128, 0.9, search.Beaten)}, ""},
		"room in the memory":      {best, []search.Contestant{other(2048, 128, 0.85, search.Beaten)}, "gpu_memory_utilization is 0.9, the largest value tried, and 0.85 carries less: larger values may carry more; try knobs.gpu_memory_utilization = [0.85, 0.9, 0.95]"},
		"the engine's own choice": {best, []search.Contestant{other(0, 128, 0.9, search.Beaten)}, ""},
	} {
		if got := edgeWarnings(contestOf(c.best, c.others...), nil).String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// Where the engine's own settings were measured beyond the end of a list, it is known what comes there.
func TestEndBelowTheEnginesOwn(t *testing.T) {
	knobs := func(seqs int) measure.Knobs {
		return measure.Knobs{MaxNumBatchedTokens: 8192, MaxNumSeqs: seqs, GPUMemoryUtilization: 0.9}
	}
	r := contestOf(knobs(256), search.Contestant{Knobs: knobs(128), Status: search.Beaten})
	r.Default = &search.Result{}
	for seqs, warned := range map[int]bool{64: true, 256: true, 1024: false} {
		if got := edgeWarnings(r, &search.Prior{Knobs: knobs(seqs)}); (len(got) > 0) != warned {
			t.Errorf("by itself %d: %v", seqs, got)
		}
	}
}

// Beyond the usual lists the race goes on by halves and doubles, never beyond
// lists that were given, and not upward where the neighbour is as good.
func TestBeyondUsualLists(t *testing.T) {
	base := []string{"model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM", "workload.class", "chat", "demand.rate", "10", "slo.ttft.p99", "500ms"}
	usual, given := configtest.Load("estimate", base...), configtest.Load("estimate", append(base, "knobs.max_num_batched_tokens", "[2048, 16384]")...)
	for _, c := range []struct {
		cfg           *config.Config
		best, seqs, x int
		status        search.Status
		want          []int
	}{
		{usual, 2048, 128, 4096, search.Beaten, []int{1024, 512, 4096}},
		{usual, 2048, 512, 4096, search.Beaten, []int{1024, 512, 4096}},
		{usual, 2048, 128, 4096, search.Untried, []int{1024, 512, 4096}},
		{usual, 2048, 128, 4096, search.Tied, []int{1024, 512, 4096}},
		{usual, 16384, 128, 8192, search.Beaten, []int{32768, 65536, 8192}},
		{usual, 16384, 128, 8192, search.Tied, nil},
		{given, 2048, 128, 16384, search.Beaten, nil},
		{given, 16384, 128, 2048, search.Beaten, nil},
	} {
		sim := &sweep.Simulated{Deployment: c.cfg.Deployment, Version: c.cfg.Engine.Version}
		all, _ := c.cfg.Candidates()
		i := slices.IndexFunc(all, func(k measure.Knobs) bool { return k.MaxNumBatchedTokens == c.best && k.MaxNumSeqs == c.seqs })
		inner := all[i]
		inner.MaxNumBatchedTokens = c.x
		var got []int
		for _, p := range pastEnds(c.cfg, sim, contestOf(all[i], search.Contestant{Knobs: inner, Status: c.status})) {
			got = append(got, p.Knobs.MaxNumBatchedTokens)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d beside %d, which is %v: %v, want %v", c.best, c.x, c.status, got, c.want)
		}
	}
}

// Where gaps between tokens limit the rate, steps smaller than any of the usual list are tried, too, though the
// best set stands at the other end: a plan of long prompts takes them.
func TestSmallerStepsForGaps(t *testing.T) {
	base := []string{
		"model.name", "llama-3.1-8b", "hardware.gpu", "L40S", "demand.rate", "5",
		"knobs.max_num_seqs", "64", "knobs.gpu_memory_utilization", "0.9", "search.precision", "0.3",
		"workload.prompt", `{ dist = "fixed", value = 3000 }`, "workload.output", `{ dist = "fixed", value = 30 }`, "slo.itl.p99", "80ms",
	}
	cfg := configtest.Load("estimate", base...)
	ground := undoubted(cfg)
	d := must.Get(New(cfg, ground))
	must.OK((&sweep.Loop{Source: d, Run: ground.Run, Parallel: 2}).Drive(t.Context())) // without the answer's sensitivities
	small, large := d.chosen.selected, searched(t, append(base, "knobs.max_num_batched_tokens", "2048")...)
	if k := small.knobs; k.MaxNumBatchedTokens > 512 || small.rate.Safe < 1.5*large {
		t.Errorf("%v with steps of %d tokens, %g with those of 2048", small.rate, k.MaxNumBatchedTokens, large)
	}
	cfg = configtest.Load("plan", append(base, "engine.kind", "vllm")...)
	all := must.Get(searchesOf(cfg, sweep.Ground{Predict: &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}}))
	var steps []int
	for _, p := range all.instances[0].priors {
		steps = append(steps, p.Knobs.MaxNumBatchedTokens)
	}
	if want := []int{2048, 4096, 8192, 16384, 1024, 512, 256}; !slices.Equal(steps, want) {
		t.Errorf("on a launched engine steps of %d, want %d", steps, want)
	}
}

// Graphs hold so many tokens as the slots can decode: small steps are tried with enough of them, or they wait for their
// launches, unless a user says how many there are.
func TestSmallerStepsHaveGraphs(t *testing.T) {
	for slots, want := range map[string][][2]int{
		"":   {{1024, 64}, {512, 64}, {256, 64}, {512, 256}, {256, 128}},
		"64": {{1024, 64}, {512, 64}, {256, 64}},
	} {
		set := []string{"model.name", "Gemma-3-27B", "hardware.gpu", "H100 SXM", "engine.tensor_parallel", "4", "demand.rate", "20", "slo.itl.p99.9", "40ms"}
		if slots != "" {
			set = append(set, "knobs.max_num_seqs", slots)
		}
		cfg := configtest.Load("estimate", set...)
		runnable, _ := cfg.Candidates()
		var got [][2]int
		for _, k := range smallerSteps(cfg, &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, runnable[0], math.MaxInt) {
			got = append(got, [2]int{k.MaxNumBatchedTokens, k.MaxNumSeqs})
		}
		if !slices.Equal(got, want) {
			t.Errorf("slots %q: %v, want %v", slots, got, want)
		}
	}
}

// Of given lists, too, the sets that may shorten gaps are tried, whatever is predicted of them.
func TestSetsThatShortenSteps(t *testing.T) {
	for bound, want := range map[string][][2]int{"itl.p99.9": {{512, 64}, {512, 256}}, "tpot.p99": {{512, 64}, {512, 256}}, "ttft.p99": nil} {
		cfg := configtest.Load("estimate", "model.name", "Gemma-3-27B", "hardware.gpu", "H100 SXM", "engine.tensor_parallel", "4", "demand.rate", "20",
			"slo."+bound, "40ms", "knobs.max_num_seqs", "[64, 256]", "knobs.max_num_batched_tokens", "[512, 8192]", "knobs.gpu_memory_utilization", "0.9")
		sim := &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}
		r := search.RaceResult{Best: search.Result{Binding: bound}}
		runnable, _ := cfg.Candidates()
		for _, k := range runnable {
			if r.Contestants = append(r.Contestants, search.Contestant{Knobs: k}); k.MaxNumSeqs == 64 && k.MaxNumBatchedTokens == 8192 {
				r.Knobs = k
			}
		}
		var got [][2]int
		for _, p := range pastEnds(cfg, sim, r) {
			got = append(got, [2]int{p.Knobs.MaxNumBatchedTokens, p.Knobs.MaxNumSeqs})
		}
		slices.SortFunc(got, func(a, b [2]int) int { return a[1] - b[1] })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", bound, got, want)
		}
	}
}

// Steps of fewer tokens than requests are refused by engines: where the list goes on
// to them, the requests go along.
func TestFewerTokensThanRequests(t *testing.T) {
	e := edge{axis: endedKnobs()[0], knobs: measure.Knobs{MaxNumBatchedTokens: 512, MaxNumSeqs: 512}, lower: true}
	want := []measure.Knobs{{MaxNumBatchedTokens: 256, MaxNumSeqs: 256}}
	if got := e.beyond(2); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

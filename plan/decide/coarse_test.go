package decide

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// TestCoarsePass compares kinds of instances by lists of GPUs, degrees and number formats, too
// many for full searches: each is searched in full or left out with its figure, one or two of
// each GPU are kept, and none that was left out is clearly cheaper than what was kept.
func TestCoarsePass(t *testing.T) {
	if testing.Short() {
		t.Skip("searches a dozen instances")
	}
	prepared := func(rate string) (*Decision, sweep.Ground) {
		cfg := configtest.Load("estimate", append(manyKinds(), "demand.rate", rate)...)
		ground := undoubted(cfg)
		return must.Get(New(cfg, ground)), ground
	}
	d, ground := prepared("40")
	made := must.Get(sweep.Drive(t.Context(), nil, ground, d, nil, nil)).Value.(*Planned)
	cost := func(k measure.Knobs, rate float64) float64 {
		return float64(k.GPUs()) * map[string]float64{"L40S": 1, "A10": 0.5}[k.GPU] / rate
	}
	kept, seen := map[string]float64{}, map[measure.Knobs]bool{}
	searched := append([]plan.Alternative{{Offer: made.Offer}}, made.Alternatives...)
	of := map[string]int{}
	for _, a := range searched {
		k := a.Offer.Knobs
		if !seen[k.Kind()] {
			of[k.GPU]++
		}
		seen[k.Kind()] = true
		if least, known := kept[k.GPU]; a.Offer.Rate.High > 0 && (!known || cost(k, a.Offer.Rate.High) < least) {
			kept[k.GPU] = cost(k, a.Offer.Rate.High)
		}
	}
	for gpu, n := range of {
		if n > 2 {
			t.Errorf("%d kinds of instance with %s are searched in full", n, gpu)
		}
	}
	for _, r := range made.Rejected {
		seen[r.Knobs.Kind()] = true
		if r.Reason.Note.Kind != note.DearerKind {
			continue
		}
		rate, _ := r.Reason.Note.Figures["rate_per_s"].(float64)
		if own := cost(r.Knobs, rate); !(own > kept[r.Knobs.GPU]*(1-coarsePrecision)) || math.IsInf(own, 0) {
			t.Errorf("%s is left out at %.3g USD an hour for a request/s, of its GPU %.3g is kept: %s", r.Knobs.Describe(), own, kept[r.Knobs.GPU], r.Reason.Text)
		}
	}
	if len(seen) != 16 || len(of) != 2 {
		t.Errorf("%d of 16 kinds are told of, on %d of 2 GPUs", len(seen), len(of))
	}
	argv := made.Plan.Offer.Knobs
	if !slices.ContainsFunc(searched, func(a plan.Alternative) bool { return a.Offer.Knobs.Weights == "fp8" }) || argv.Weights == "" || argv.KVCache == "" {
		t.Errorf("no fp8 among what was searched, or the chosen one has no formats: %s", argv.Describe())
	}

	// What they carry does not change with the demand: what the searches found is recalled for another one.
	var found []SearchResults
	must.OK(wire.Unmarshal(must.Get(wire.Marshal(d.Searched())), &found))
	more, _ := prepared("400")
	if !more.Recall(found, d.Seen) {
		t.Fatal("for another demand the searches are not known again")
	}
	again := must.Get(more.Answer()).Value.(*Planned)
	same := slices.ContainsFunc(searched, func(a plan.Alternative) bool {
		return a.Offer.Knobs == again.Offer.Knobs && a.Offer.Rate == again.Offer.Rate
	})
	if !same || len(again.Alternatives) != len(made.Alternatives) || len(again.Rejected) != len(made.Rejected) {
		t.Errorf("for another demand %s carries %+v, with %d alternatives of %d", again.Offer.Knobs.Describe(), again.Offer.Rate, len(again.Alternatives), len(made.Alternatives))
	}
}

// Whole instances of the fleet for the demand decide what is searched in full, not what a request per second costs on one;
// a price of 0 is the lowest, and no number of GPUs.
func TestCoarsePassSizesFleets(t *testing.T) {
	cfg := configtest.Load("estimate", manyKinds()...)
	carries := map[int]float64{2: 2.9, 4: 6, 8: 19}
	narrowed := func(rate float64, prices ...float64) *Decision {
		own := *cfg
		own.Demand = plan.Demand{Rate: rate, Spare: 1}
		d := &Decision{searches: searches{cfg: &own}}
		for n, price := range prices {
			gpu := config.GPU{Pricing: plan.Pricing{PricePerGPUHour: price, PricedBy: "the owner"}}
			gpu.Hardware.Name = []string{"A10", "L40S"}[n]
			for _, tp := range []int{8, 4, 2} {
				k := measure.Knobs{GPU: gpu.Hardware.Name, TensorParallel: tp}
				d.instances = append(d.instances, &instance{gpu: gpu, priors: []search.Prior{{Knobs: k}},
					sight: func() search.Result { return search.Result{Estimate: search.Estimate{Value: carries[tp]}} }})
			}
		}
		d.narrow()
		return d
	}
	for _, c := range []struct {
		rate   float64
		prices []float64
		kept   string
	}{
		{2, []float64{1}, "[A10/2]"},           // 4 GPUs, and 8 or 16 with more to spare
		{190, []float64{1}, "[A10/8]"},         // 88, 134 and 132 GPUs
		{2, []float64{0, 3}, "[A10/2 L40S/2]"}, // one of each
		{2, []float64{1, 1000}, "[A10/2]"},     // of L40S no doubt makes one cheaper
	} {
		d := narrowed(c.rate, c.prices...)
		var kept []string
		for _, i := range d.instances {
			kept = append(kept, fmt.Sprintf("%s/%d", i.gpu.Hardware.Name, i.priors[0].Knobs.TensorParallel))
		}
		said := slices.ContainsFunc(d.Unable, func(r measure.Rejection) bool { return r.Reason.Note.Kind == note.DearerKind })
		if got := fmt.Sprint(kept); got != c.kept || len(d.Unable)+len(kept) != 3*len(c.prices) || !said {
			t.Errorf("%v/s at %v: kept %s, want %s: %+v", c.rate, c.prices, got, c.kept, d.Unable)
		}
	}
	// For another demand the kind that was searched in full stays, and one that costs a third less is named.
	d := narrowed(2, 1)
	searched := d.instances[0]
	d.instances, d.Unable, d.cfg.Demand.Rate = append(narrowed(190, 1).instances, searched), nil, 190
	d.leave(func(i *instance) bool { return i == searched })
	if said := d.unsearched.Texts(); len(d.instances) != 1 || len(d.Unable) != 1 || len(said) != 1 || !strings.Contains(said[0], "34 % less") {
		t.Errorf("%d kinds are left; %v, %+v", len(d.instances), said, d.Unable)
	}
}

// manyKinds are more kinds of instances than are searched in full.
func manyKinds() []string {
	return []string{
		"model.name", "llama-3.1-8b", "model.weights", `["bf16", "fp8"]`, "model.kv_cache", `["auto", "fp8"]`,
		"hardware.gpu", `["L40S", "A10"]`, "hardware.price_per_gpu_hour", `{ "L40S" = 1, "A10" = 0.5 }`, "engine.tensor_parallel", "[1, 2]",
		"knobs.max_num_seqs", "128", "knobs.max_num_batched_tokens", "2048", "knobs.gpu_memory_utilization", "0.9", "search.precision", "0.3",
		"workload.prompt", `{ dist = "uniform", min = 50, max = 150 }`, "workload.output", `{ dist = "uniform", min = 20, max = 40 }`,
		"demand.rate", "40", "slo.ttft.p90", "500ms", "slo.tpot.p90", "40ms",
	}
}

// Who waits is told how many kinds of instances have no more to ask for, in each pass.
func TestStage(t *testing.T) {
	pass := func() *sweep.Together {
		return &sweep.Together{Sources: []sweep.Source{&sweep.List{Trials: make([]measure.Trial, 2)}, &sweep.List{}}}
	}
	var d Decision
	check := func(want string) {
		t.Helper()
		done, of, what := d.Stage()
		if got := fmt.Sprintf("%d of %d %s", done, of, what); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("0 of 0 ")
	d.looks = pass()
	d.looks.Next()
	check("1 of 2 kinds of instances looked at")
	d.races = pass()
	for range 3 {
		d.races.Next()
	}
	check("2 of 2 kinds of instances searched")
	d.plan = &plan.Plan{}
	check("0 of 0 ")
	d.plan = nil
	pools := PoolStudy{all: []*Decision{&d, {races: pass()}, {}}}
	if done, of, _ := pools.Stage(); done != 2 || of != 4 {
		t.Errorf("%d of %d for the pools of a mix", done, of)
	}
}

// A coarse pass that is interrupted ends with what it is, and no rate.
func TestInterruptedCoarsePass(t *testing.T) {
	cfg := configtest.Load("estimate", manyKinds()...)
	ground := sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, 1)
	trials := 0
	answer, err := sweep.Drive(t.Context(), nil, ground, must.Get(New(cfg, ground)), func() bool { trials++; return trials > 3 }, nil)
	if answer.Value != nil || !errors.Is(err, sweep.ErrInterrupted) {
		t.Errorf("%+v, %v", answer, err)
	}
}

package main

import (
	"testing"

	"planner/internal/engines"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/sweep"
	"planner/sweep/measure"
)

// A server that was not told its workload takes requests up to the model's own limit,
// or as long as the memory holds.
func TestLongestContext(t *testing.T) {
	for _, c := range []struct {
		model, gpu string
		own        bool
	}{{"llama-3.1-8b", "H100 SXM", true}, {"llama-3.1-8b", "L4", false}} {
		cfg := configtest.Load("serve-sim", "model.name", c.model, "hardware.gpu", c.gpu,
			"workload.prompt", `{ dist = "fixed", value = 100 }`, "workload.output", `{ dist = "fixed", value = 20 }`)
		engine := must.Get(engines.Simulated(cfg))
		runnable, _ := cfg.Candidates()
		k, own := runnable[0], cfg.Model.Arch.MaxPosition
		got := longestContext(engine, k, own)
		if (got == own) != c.own || got < 1000 || !fits(engine, k, got) || !c.own && fits(engine, k, got+16) {
			t.Errorf("%s on %s: %d of %d", c.model, c.gpu, got, own)
		}
	}
}

func fits(engine *sweep.Simulated, k measure.Knobs, length int) bool {
	k.MaxModelLen = length
	_, err := engine.Fit(k)
	return err == nil
}

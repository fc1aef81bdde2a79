package workload

import (
	"encoding/json"
	"testing"
	"time"

	"planner/internal/wire"
)

// A workload is like itself after a journal, whatever its seed and its engine, and unlike one that
// differs in what its users ask for.
func TestAlike(t *testing.T) {
	make := func(edit func(*Workload)) *Workload {
		shape, _ := Class("chat")
		w := &Workload{Class: "chat", Shapes: []Shape{shape}, Turns: 3, Think: 333333 * time.Microsecond, Arrivals: Gamma, Burstiness: 0.3,
			Timeout: 1234567 * time.Microsecond, MaxLen: 6000, Seed: 1}
		edit(w)
		return w
	}
	base := make(func(*Workload) {})
	text, err := wire.Marshal(base)
	var back Workload
	if err != nil || json.Unmarshal(text, &back) != nil || !base.Alike(&back) {
		t.Errorf("unlike after a round trip: %+v", back)
	}
	for name, c := range map[string]struct {
		edit  func(*Workload)
		alike bool
	}{
		"seed":        {func(w *Workload) { w.Seed = 2 }, true},
		"longest":     {func(w *Workload) { w.MaxLen = 0 }, true},
		"trace moved": {func(w *Workload) { w.TraceFile = "elsewhere.csv" }, true},
		"prompts":     {func(w *Workload) { w.Shapes[0].Prompt.Median *= 2 }, false},
		"outputs":     {func(w *Workload) { w.Shapes[0].Output.Max++ }, false},
		"prefixes":    {func(w *Workload) { w.Shapes[0].Prefix = Prefix{Groups: 3, Tokens: 100} }, false},
		"turns":       {func(w *Workload) { w.Turns = 4 }, false},
		"timeout":     {func(w *Workload) { w.Timeout = time.Second }, false},
		"arrivals":    {func(w *Workload) { w.Arrivals = Poisson }, false},
	} {
		if other := make(c.edit); base.Alike(other) != c.alike || other.Alike(base) != c.alike {
			t.Errorf("%s: alike is %v", name, !c.alike)
		}
	}
	if !base.Alike(nil) || !(*Workload)(nil).Alike(base) {
		t.Error("nothing is known of a missing workload, and it is called another")
	}
}

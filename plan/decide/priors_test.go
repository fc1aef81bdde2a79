package decide

import (
	"math"
	"testing"

	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/sweep"
)

// foreseen prepares the priors of a run on a real engine from the simulated one.
func foreseen(seed string) *instance {
	cfg := configtest.Load("estimate",
		"model.name", "llama-3.1-8b", "hardware.gpu", "L40S", "workload.class", "chat", "demand.rate", "20",
		"slo.ttft.p95", "500ms", "slo.tpot.p99", "60ms", "knobs.max_num_seqs", "[64, 128]", "knobs.max_num_batched_tokens", "2048",
		"knobs.gpu_memory_utilization", "0.9", "workload.seed", seed)
	sim := &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}
	g := must.Get(searchesOf(cfg, sweep.SimulatedGround(sim, 1))).instances[0]
	for _, p := range g.all() {
		must.OK(simulatePrior(cfg, sim, p))
	}
	must.OK(disperse(cfg, sim, g.all()))
	return g
}

// What the simulated engine says of a knob set ahead of a run on a real one:
// rate, binding limit, steepness, and how exceedances clump, which two seeds must
// agree on within what their 80 batches leave open.
func TestPriorsFromTheSimulatedEngine(t *testing.T) {
	a, b := foreseen("1"), foreseen("2")
	told := 0
	for i := range a.priors {
		p, q := a.priors[i], b.priors[i]
		if p.Binding == "" || p.Rate <= 0 || p.Kappa <= 0 || p.Spread != predictionSpread {
			t.Errorf("%+v", p)
		}
		t.Logf("%d seqs: %.2f/s, %s, kappa %.0f and %.0f, phi %.0f and %.0f, gamma %.2f and %.2f", p.Knobs.MaxNumSeqs, p.Rate, p.Binding,
			p.Kappa, q.Kappa, p.Phi, q.Phi, p.Gamma, q.Gamma)
		if p.Binding != "tpot.p99" {
			continue // what binds the set that carries most is told of this one too
		}
		if p.Phi < 1 || p.Gamma < 0.2 || p.Gamma > 1.5 {
			t.Errorf("dispersion %.1f with slope %.2f", p.Phi, p.Gamma)
		}
		told++
		if math.Abs(math.Log(p.Phi/q.Phi)) > math.Log(3) {
			t.Errorf("two seeds give dispersions of %.0f and %.0f", p.Phi, q.Phi)
		}
	}
	if told == 0 {
		t.Error("no set is bound by TPOT")
	}
}

package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/plan/decide"
	"planner/sweep"
)

// BenchmarkEstimate is the README's first command without printing: 48 knob
// sets raced on one kind of instance, and the curve of the winner. To beat:
// 1.5 s on two cores.
func BenchmarkEstimate(b *testing.B) {
	cfg := configtest.Load("estimate",
		"model.name", "llama-3.1-70b", "model.weights", "fp8", "hardware.gpu", "H100 SXM", "engine.tensor_parallel", "4",
		"workload.class", "chat", "demand.rate", "100", "slo.ttft.p99", "500ms", "slo.tpot.p99", "50ms")
	ground := sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, runtime.GOMAXPROCS(0))
	// As main does.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	b.ReportAllocs()
	for b.Loop() {
		d := must.Get(decide.New(cfg, ground))
		must.Get(sweep.Drive(b.Context(), nil, ground, d, nil, nil))
	}
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "cores")
}

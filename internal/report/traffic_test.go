package report

import (
	"math"
	"math/rand/v2"
	"time"

	"planner/sweep/ingest"
	"planner/sweep/workload"
)

// traffic is a trace of 300 requests of which half begin alike, read from a log
// with a coarse clock.
func traffic() *ingest.Trace {
	rng := rand.New(rand.NewPCG(1, 1))
	var rows []workload.TraceRow
	at := time.Duration(0)
	for i := range 300 {
		at += time.Duration(rng.ExpFloat64() * float64(time.Second))
		r := workload.TraceRow{Arrival: at, Prompt: 200 + rng.IntN(2000), Output: 10 + rng.IntN(300)}
		if i%2 == 0 {
			r.Shared = []workload.Segment{{Content: workload.TraceContent(uint64(i % 6)), Tokens: 150}}
		}
		rows = append(rows, r)
	}
	return &ingest.Trace{Format: "gateway", Traffic: workload.Describe(rows), Resolution: 3 * time.Second, Skipped: 4, Estimated: 12,
		Changed: []string{"thinned to 0.5 of the requests, 300 of 611 (seed 1)"}, Warnings: []string{"columns that are not read: model"}}
}

// addedDocuments are those of the commands about traces, comparisons, sweeps and
// checks.
func addedDocuments() map[string]Document {
	bare := traffic()
	bare.Resolution, bare.Skipped, bare.Estimated, bare.Changed, bare.Warnings = -1, 0, 0, nil, nil
	bare.Traffic = workload.Describe([]workload.TraceRow{{Prompt: 10, Output: 5}})
	return map[string]Document{
		"trace":     Trace(traffic()),
		"trace-one": Trace(bare),
		"lengths":   LengthsOnly("share.json", workload.DescribeLengths([]int{10, 20, 900}, []int{5, 6, 70}), []string{"lengths are estimated"}),
		"compare":   Compare(comparison()),
		"doctor": Doctor([]Check{{"engine", Passed, "the simulated engine needs none on PATH", ""}, {"GPU", Warning, "neither nvidia-smi nor rocm-smi is there", "install the driver"},
			{"disk", Problem, "runs has 95 MiB free", "free some space, or set output.dir to another disk"}}),
		"doctor-well": Doctor([]Check{{"port", Passed, "a port on 127.0.0.1 is free", ""}}),
		"sweep":       Sweep(Swept{Trials: trials()[:6], Rejected: rejected(), Planned: 12, Objective: slo(), Warnings: []string{"one warning"}}),
		"matrix": Sweep(Swept{Trials: trials()[:4], Planned: 4, Rows: []MatrixRow{
			{"A", "short chat", "Does anybody wait?", "Nobody waits.", Held, "p99 83.8 ms", []int{1, 2}}, {"B", "long prefill", "What does a prompt cost?", "Much.", Refuted, "little", []int{3}},
			{"C", "long decode", "Where does time go?", "Into decode.", Unclear, "a mean is not known", nil}, {"F", "production trace", "Is it worse?", "It is.", NotRun, "there is no trace", nil}}}),
		"imported": Imported("runs/vllm", trials()[:4]),
	}
}

// comparison has a row of every judgement.
func comparison() Comparison {
	nan := math.NaN()
	return Comparison{
		A: "a.toml", B: "b.toml", Design: "8 rounds of 5m0s at 4.5 requests/s, in turns", Test: "Student's t", Confidence: 0.95, Indifference: 0.02,
		Contrasts: []Contrast{
			{"ttft.p99_ms", "p99 TTFT, ms", 3229, 1474, -1750, -2100, -1400, -0.57, -0.631, -0.498, 1e-6, 1e-5, 8, Better},
			{"ttft.p50_ms", "p50 TTFT, ms", 168.9, 165.3, -3.57, -20, 13, -0.013, -0.101, 0.084, 0.75, 0.75, 8, Undecided},
			{"tpot.mean_ms", "mean TPOT, ms", 40, 44, 4, 3.5, 4.5, 0.1, 0.09, 0.11, 0.0004, 0.0012, 8, Worse},
			{"achieved_per_s", "requests/s", 4.483, 4.493, 0.0102, 0.001, 0.02, 0.002, 0.001, 0.004, 0.0081, 0.016, 8, Same},
			{"e2e.p99_ms", "p99 E2E, ms", 4000, 4100, 100, nan, nan, 0.025, nan, nan, nan, nan, 1, Undecided},
		},
		Warnings: []string{"A: 3 of 1,000 requests failed; latencies are over the others"},
	}
}

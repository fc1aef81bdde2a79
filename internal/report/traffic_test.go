package report

import (
	"math/rand/v2"
	"time"

	"planner/sweep/workload"
)

// traffic is a trace of 300 requests of which half begin alike, read from a log
// with a coarse clock.
func traffic() Traffic {
	rng := rand.New(rand.NewPCG(1, 1))
	var rows []workload.Row
	at := time.Duration(0)
	for i := range 300 {
		at += time.Duration(rng.ExpFloat64() * float64(time.Second))
		r := workload.Row{Arrival: at, Prompt: 200 + rng.IntN(2000), Output: 10 + rng.IntN(300)}
		if i%2 == 0 {
			r.Shared = []workload.Segment{{Content: workload.TraceContent(uint64(i % 6)), Tokens: 150}}
		}
		rows = append(rows, r)
	}
	return Traffic{Name: "log.jsonl", Format: "gateway", Description: workload.Describe(rows), Tick: 3 * time.Second, Skipped: 4, Estimated: 12,
		Changed: []string{"thinned to 0.5 of the requests, 300 of 611 (seed 1)"}, Warnings: []string{"columns that are not read: model"}}
}

// addedDocuments are those of the commands about traces, comparisons, sweeps and
// checks.
func addedDocuments() map[string]Document {
	bare := traffic()
	bare.Tick, bare.Skipped, bare.Estimated, bare.Changed, bare.Warnings = 0, 0, 0, nil, nil
	bare.Description = workload.Describe([]workload.Row{{Prompt: 10, Output: 5}})
	return map[string]Document{
		"trace":     Trace(traffic()),
		"trace-one": Trace(bare),
		"lengths":   LengthsOnly("share.json", workload.DescribeLengths([]int{10, 20, 900}, []int{5, 6, 70}), []string{"lengths are estimated"}),
		"imported":  Imported("runs/vllm", trials()[:4]),
	}
}

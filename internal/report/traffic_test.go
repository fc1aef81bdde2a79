package report

import (
	"math"
	"math/rand/v2"
	"time"

	"planner/internal/doctor"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/design"
	"planner/sweep/ingest"
	"planner/sweep/measure"
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
		Changed: []string{"thinned to 0.5 of the requests, 300 of 611 (seed 1)"}, Warnings: note.Notes{note.New(note.ColumnsIgnored, "model")}.Warnings()}
}

// addedDocuments are those of the commands about traces, comparisons, sweeps and
// checks.
func addedDocuments() map[string]Document {
	bare := traffic()
	bare.Resolution, bare.Skipped, bare.Estimated, bare.Changed, bare.Warnings = -1, 0, 0, nil, note.Warnings{}
	bare.Traffic = workload.Describe([]workload.TraceRow{{Prompt: 10, Output: 5}})
	return map[string]Document{
		"trace":     Trace(traffic()),
		"trace-one": Trace(bare),
		"lengths":   LengthsOnly("share.json", workload.DescribeLengths([]int{10, 20, 900}, []int{5, 6, 70}), note.Notes{note.Text("lengths are estimated")}),
		"compare":   comparisonDocument(comparison(), Engines{}),
		"doctor": Doctor([]doctor.Check{{Name: "engine", State: doctor.Passed, Found: "the simulated engine needs none on PATH"}, {Name: "GPU", State: doctor.Warning, Found: "neither nvidia-smi nor rocm-smi is there", Remedy: "install the driver"},
			{Name: "disk", State: doctor.Problem, Found: "runs has 95 MiB free", Remedy: "free some space, or set output.dir to another disk"}}),
		"doctor-well": Doctor([]doctor.Check{{Name: "port", State: doctor.Passed, Found: "a port on 127.0.0.1 is free"}}),
		"sweep":       sweepDocument(&design.Swept{Seen: trials()[:6], Rejected: rejected(), Planned: 12, Objective: slo(), Warnings: note.Notes{note.Text("one warning")}.Warnings()}, Engines{}),
		"matrix": sweepDocument(&design.Swept{Seen: trials()[:4], Planned: 4, Rows: []design.MatrixRow{
			{ID: "A", Name: "short chat", Question: "Does anybody wait?", Hypothesis: "Nobody waits.", Finding: design.Held, Outcome: "p99 83.8 ms", Trials: []int{1, 2}}, {ID: "B", Name: "long prefill", Question: "What does a prompt cost?", Hypothesis: "Much.", Finding: design.Refuted, Outcome: "little", Trials: []int{3}},
			{ID: "C", Name: "long decode", Question: "Where does time go?", Hypothesis: "Into decode.", Finding: design.Unclear, Outcome: "a mean is not known", Trials: nil}, {ID: "F", Name: "production trace", Question: "Is it worse?", Hypothesis: "It is.", Finding: design.NotRun, Outcome: "there is no trace", Trials: nil}}}, Engines{}),
		"imported": Imported("runs/vllm", imported()),
	}
}

// imported are load points of which the tool told the mean tokens of a request.
func imported() []measure.Measurement {
	all := trials()[:4]
	for i := range all {
		all[i].MeanPrompt, all[i].MeanOutput = 690.25, 274
	}
	return all
}

// comparison has a row of every judgement.
func comparison() *design.Compared {
	nan := math.NaN()
	return &design.Compared{
		A: "a.toml", B: "b.toml", Design: "8 rounds of 5m0s at 4.5 requests/s, in turns", Test: "Student's t", Terms: design.Terms{Confidence: 0.95, Indifference: 0.02},
		Contrasts: []design.Contrast{
			{Figure: "ttft.p99_ms", Label: "p99 TTFT, ms", A: 3229, B: 1474, Difference: stat.Difference{Value: -1750, Low: -2100, High: -1400}, Relative: stat.Difference{Value: -0.57, Low: -0.631, High: -0.498}, P: 1e-6, Adjusted: 1e-5, Pairs: 8, Judgement: design.Better},
			{Figure: "ttft.p50_ms", Label: "p50 TTFT, ms", A: 168.9, B: 165.3, Difference: stat.Difference{Value: -3.57, Low: -20, High: 13}, Relative: stat.Difference{Value: -0.013, Low: -0.101, High: 0.084}, P: 0.75, Adjusted: 0.75, Pairs: 8, Judgement: design.Undecided},
			{Figure: "tpot.mean_ms", Label: "mean TPOT, ms", A: 40, B: 44, Difference: stat.Difference{Value: 4, Low: 3.5, High: 4.5}, Relative: stat.Difference{Value: 0.1, Low: 0.09, High: 0.11}, P: 0.0004, Adjusted: 0.0012, Pairs: 8, Judgement: design.Worse},
			{Figure: "achieved_per_s", Label: "requests/s", A: 4.483, B: 4.493, Difference: stat.Difference{Value: 0.0102, Low: 0.001, High: 0.02}, Relative: stat.Difference{Value: 0.002, Low: 0.001, High: 0.004}, P: 0.0081, Adjusted: 0.016, Pairs: 8, Judgement: design.Same},
			{Figure: "e2e.p99_ms", Label: "p99 E2E, ms", A: 4000, B: 4100, Difference: stat.Difference{Value: 100, Low: nan, High: nan}, Relative: stat.Difference{Value: 0.025, Low: nan, High: nan}, P: nan, Adjusted: nan, Pairs: 1, Judgement: design.Undecided},
			{Figure: "prefix_hit_rate", Label: "prefix-cache hit rate", A: 0.41, B: 0.352, Difference: stat.Difference{Value: -0.058, Low: nan, High: nan}, Relative: stat.Difference{Value: nan, Low: nan, High: nan}, P: nan, Adjusted: nan, Pairs: 8, Judgement: design.NotJudged},
		},
		Warnings: note.Notes{note.Text("A: 3 of 1,000 requests failed; latencies are over the others")}.Warnings(),
	}
}

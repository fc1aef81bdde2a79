package load

import (
	"runtime"
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// requests makes n requests of fixed lengths, due at a constant rate; rate 0
// makes them due at once.
func requests(n, prompt, output int, rate float64) []workload.Request {
	out := make([]workload.Request, n)
	for i := range out {
		out[i] = workload.Request{ID: i, Prompt: prompt, Output: output}
		if rate > 0 {
			out[i].Due = time.Duration(float64(i) / rate * float64(time.Second))
		}
	}
	return out
}

// BenchmarkClient measures the client alone: its processor time, not the clock,
// counts, and the server is another process. An op is one request of 32 tokens;
// "burst" gets its stream in one write, "flush" in a write for every event.
//
//	go test -run ^$ -bench Client -benchtime 100000x ./sweep/load
func BenchmarkClient(b *testing.B) {
	for _, mode := range []string{"burst", "flush"} {
		b.Run(mode, func(b *testing.B) {
			p := startProcess(b, mode)
			c := &Client{URL: p.url, Model: "m", Stream: true, Engine: "vllm"}
			trial := measure.Trial{Concurrency: 64, Requests: b.N}
			schedule := requests(b.N, 16, 32, 0)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			cpu := processCPU()
			b.ResetTimer()
			obs, err := c.Run(b.Context(), trial, schedule)
			b.StopTimer()
			used := (processCPU() - cpu).Seconds()
			runtime.ReadMemStats(&after)
			if err != nil {
				b.Fatal(err)
			}
			tokens := 0
			for _, r := range obs.Records {
				if r.Outcome != measure.OK {
					b.Fatalf("request %d: %v %s", r.ID, r.Outcome, r.Detail)
				}
				tokens += r.Output
			}
			b.ReportMetric(float64(b.N)/used, "requests/core-s")
			b.ReportMetric(float64(tokens)/used, "tokens/core-s")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(tokens), "allocs/token")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(tokens), "B/token")
		})
	}
}

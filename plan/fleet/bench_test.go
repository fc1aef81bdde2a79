package fleet

import (
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// BenchmarkDay is a day of 537,600 requests of 2,000 prompt and 300 output tokens on
// eight replicas under an HPA.
func BenchmarkDay(b *testing.B) {
	w := workload.Workload{Class: "day", Arrivals: workload.Poisson, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Fixed, Value: 2000}, Output: workload.Lengths{Dist: workload.Fixed, Value: 300}}}}
	requests := w.Schedule(537600.0/86400, 24*time.Hour, 1)
	s := &Scenario{Engine: engineOf(256), Stages: []Stage{{Requests: requests, Length: 24 * time.Hour}}, Timeout: 10 * time.Minute, Limits: oneClass(measure.Limits{TTFT: time.Second}),
		Policy: Policy{Min: 8, Max: 8, Router: LeastInFlight, Autoscaler: Autoscaler{Kind: ByHPA, Metrics: []Metric{{Name: "in_flight", Target: 20}}, HPA: UsualHPA(),
			Monitor: Monitor{Scrape: 15 * time.Second, Window: time.Minute}}}, Nodes: nodes()}
	for b.Loop() {
		if e := Run(s); len(e.Records) != len(requests) {
			b.Fatal("records are missing")
		}
	}
}

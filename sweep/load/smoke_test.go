package load

import (
	"testing"
	"time"
	"fmt"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

func TestSmoke(t *testing.T) {
	w := &workload.Workload{Shapes: []workload.Shape{{Prompt: workload.Lengths{Dist: workload.Fixed, Value: 50}, Output: workload.Lengths{Dist: workload.Fixed, Value: 20}}}, Arrivals: workload.Poisson, Timeout: 10 * time.Second}
	url := serve(t, paced(20*time.Millisecond, 5*time.Millisecond, nil))
	c := &Client{URL: url, Model: "m", Stream: true, Engine: "vllm"}
	tr := measure.Trial{Workload: w, Rate: 100, Warmup: 500*time.Millisecond, Window: 2 * time.Second, Seed: 1}
	r, err := c.Start(t.Context(), tr, tr.Schedule())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	fmt.Printf("%+v\n", r.Live())
	obs, err := r.Wait()
	rep := r.Report()
	fmt.Println(len(obs.Records), obs.End, obs.Doubts, obs.Gaps.TotalCount(), obs.Gaps.ValueAtPercentile(50), err)
	fmt.Printf("%+v\n", rep.Vitals)
	fmt.Println(rep.Counted, rep.Estimated, rep.TokensPerChunk, rep.Coalesced, rep.Connections, rep.Resent, len(rep.Intervals))
	fmt.Printf("%+v\n%+v\n", obs.Records[0], obs.Records[50])
}

package load

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/stat"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// strict reports whether timings must be those of an idle machine: PLANNER_TIMING=1 go test -run
// TestAccuracy ./sweep/load
func strict() bool { return os.Getenv("PLANNER_TIMING") != "" }

// fixedLengths is a workload of one prompt and one output length.
func fixedLengths(prompt, output int, arrivals workload.Process) *workload.Workload {
	return &workload.Workload{
		Class: "fixed", Arrivals: arrivals, Timeout: 20 * time.Second,
		Shapes: []workload.Shape{{
			Prompt: workload.Lengths{Dist: workload.Fixed, Value: prompt},
			Output: workload.Lengths{Dist: workload.Fixed, Value: output},
		}},
	}
}

// accuracy is how the client's times differ from the server's own log.
type accuracy struct {
	ttft            []time.Duration
	mean, p99       time.Duration
	perCore         float64
	lag50, lag99    time.Duration
	tokens, missing int
}

func (a accuracy) String() string {
	return fmt.Sprintf("TTFT error mean %v p99 %v; %d tokens, %d not counted; %.0f paced tokens per core-second; send lag p50 %v p99 %v",
		a.mean, a.p99, a.tokens, a.missing, a.perCore, a.lag50, a.lag99)
}

// measureAccuracy sends rate requests a second of 100 tokens, 5 ms apart, to a
// server process and compares each first token with when it left there.
func measureAccuracy(t *testing.T, rate float64, window time.Duration) accuracy {
	p := startProcess(t, "paced")
	c := &Client{URL: p.url, Model: "m", Stream: true, Engine: "vllm"}
	trial := measure.Trial{Workload: fixedLengths(32, 100, workload.Poisson), Rate: rate, Warmup: time.Second, Window: window, Seed: 7}
	schedule := trial.Schedule()
	cpu := processCPU()
	r := must.Get(c.Start(t.Context(), trial, schedule))
	obs := must.Get(r.Wait())
	used := (processCPU() - cpu).Seconds()
	offset := monotonic() - int64(time.Since(r.recorder.start))
	log := p.stop(t)
	var a accuracy
	for _, rec := range obs.Records {
		if rec.Outcome != measure.OK {
			t.Fatalf("request %d: %v %s", rec.ID, rec.Outcome, rec.Detail)
		}
		left := log[promptKey(r.encoder.appendBody(nil, &schedule[rec.ID]))]
		a.tokens += rec.Output
		a.missing += len(left) - rec.Output
		if rec.Due >= trial.Warmup {
			a.ttft = append(a.ttft, time.Duration(int64(rec.First)+offset-left[0]))
		}
	}
	sum := time.Duration(0)
	for _, e := range a.ttft {
		sum += e
	}
	slices.Sort(a.ttft)
	a.mean, a.p99 = sum/time.Duration(len(a.ttft)), stat.Quantile(a.ttft, 0.99)
	a.perCore = float64(a.tokens) / used
	v := r.Telemetry()
	a.lag50, a.lag99 = v.Lag50, v.Lag99
	return a
}

// TestAccuracy holds the client to its promise on 2 cores shared with the server: every token is
// counted, and first tokens are stamped within 0.2 ms in the mean and 0.7 ms at p99 of their
// leaving, in the best of three runs. Without PLANNER_TIMING only the counting is checked, which no
// busy neighbour disturbs.
func TestAccuracy(t *testing.T) {
	runs, window := 1, time.Second
	if strict() {
		runs, window = 3, 10*time.Second
	}
	best := accuracy{mean: time.Hour}
	for range runs {
		a := measureAccuracy(t, 200, window)
		t.Log(a)
		if a.missing != 0 {
			t.Errorf("%d tokens of %d not counted", a.missing, a.tokens)
		}
		if a.p99 < best.p99 || best.mean == time.Hour {
			best = a
		}
	}
	if strict() && (best.mean > 200*time.Microsecond || best.p99 > 700*time.Microsecond || best.perCore < 50000) {
		t.Errorf("best of %d: %v", runs, best)
	}
}

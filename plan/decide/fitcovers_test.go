package decide

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/internal/evidence/search/virtual"
	"planner/sweep/ingest"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// bench is what a closed-form queue gives the load generator of vLLM at a rate: a file of
// summaries, of so many requests behind each other from an empty queue on.
func bench(q virtual.Queue, rate float64, requests int, wholly bool, rng *rand.Rand) string {
	schedule, now := make([]workload.Request, requests), 0.0
	for i := range schedule {
		now += rng.ExpFloat64() / rate
		schedule[i] = workload.Request{ID: i, Due: time.Duration(now * float64(time.Second)), Output: 1}
	}
	for i := range schedule { // the last falls at n/rate
		schedule[i].Due = time.Duration(float64(schedule[i].Due) * float64(requests) / rate / now)
	}
	var ttft []float64
	end, mean := 0.0, 0.0
	for _, r := range q.Serve(schedule, 1, rng.Uint64()) {
		end = max(end, r.Last.Seconds())
		ttft = append(ttft, 1000*(r.First-r.Due).Seconds()+idleTTFT)
		mean += ttft[len(ttft)-1] / float64(requests)
	}
	slices.Sort(ttft)
	at := func(p float64) float64 { return ttft[int(p*float64(requests-1))] }
	told := map[string]any{
		"request_rate": rate, "num_prompts": requests, "completed": requests, "duration": end, "request_throughput": float64(requests) / end,
		"mean_ttft_ms": mean, "median_ttft_ms": at(.5), "p90_ttft_ms": at(.9), "p99_ttft_ms": at(.99),
	}
	if wholly { // with --percentile-metrics e2el
		told["mean_e2el_ms"], told["median_e2el_ms"], told["p99_e2el_ms"] = mean+1000/q.Rate, at(.5)+1000/q.Rate, at(.99)+1000/q.Rate
	}
	return string(must.Get(json.Marshal(told)))
}

var draws, from = flag.Int("draws", 16, "queues that TestFitOfSummariesCovers draws"), flag.Uint64("from", 1, "seed of the first")

// idleTTFT is the TTFT without a queue, in milliseconds.
const idleTTFT = 50.0

// The interval of a fit holds the maximum rate of queues with a closed form about as often as it says, from files that
// hold nothing but summaries. Where 86 % of the intervals hold, fewer than three of four of 16 do with a
// probability of 0.06, and fewer than five of six safe rates, where 95 % hold, of 0.04; the seeds are fixed.
func TestFitOfSummariesCovers(t *testing.T) {
	t.Parallel()
	covered, safe, silent, logs := 0, 0, 0, []float64{}
	for i := range uint64(*draws) {
		rng := rand.New(rand.NewPCG(*from+i, 20261127))
		q := virtual.Queue{Servers: 1 << rng.IntN(6), Rate: math.Exp(rng.NormFloat64()), Waiting: true}
		saturation := float64(q.Servers) * q.Rate
		quantile := []float64{0.5, 0.9, 0.99}[rng.IntN(3)]
		truth := saturation * (0.6 + 0.37*rng.Float64())
		for truth < saturation*0.995 && q.Exceeds(truth, 0) <= 1-quantile {
			truth += 0.2 * (saturation - truth)
		}
		// The limit at which that is the maximum rate.
		wait := math.Log(q.Exceeds(truth, 0)/(1-quantile)) / (saturation - truth)
		limit := time.Duration((wait + idleTTFT/1000) * float64(time.Second))
		requests, rates := []int{200, 500, 1000, 3000}[rng.IntN(4)], 4+rng.IntN(6)
		low, high := 0.2+0.3*rng.Float64(), 0.9+0.3*rng.Float64()
		var file []byte
		for j := range rates {
			rate := saturation * (low + (high-low)*float64(j)/float64(rates-1))
			file = fmt.Appendln(file, bench(q, rate, requests, i%2 == 1, rng))
		}
		read := must.Get(ingest.Read("results.json", file))
		bound := measure.Bound{Metric: measure.TTFT, Quantile: quantile, Limit: limit}
		cfg := &config.Config{Objective: measure.SLO{Bounds: []measure.Bound{bound}, Errors: 0.01}}
		f, err := fitted(cfg, read.Measurements)
		if err != nil || f.Unreached || f.Obstacle.Text != "" {
			silent++
			continue
		}
		r := f.Rate
		logs = append(logs, math.Abs(math.Log(r.Value/truth)))
		if r.Low <= truth && truth <= r.High {
			covered++
		}
		if r.Safe <= truth*1.01 {
			safe++
		}
		t.Logf("%d: %d servers, p%g within %v of %d requests at %d rates: %.4g (%.4g to %.4g), safe %.4g; %.4g", i, q.Servers, 100*quantile, limit, requests, rates, r.Value, r.Low, r.High, r.Safe, truth)
	}
	slices.Sort(logs)
	n := len(logs)
	t.Logf("%d of %d intervals hold, and %d safe rates; %d without an answer; an error of %.3f in the median, %.3f in 95 %%", covered, n, safe, silent, logs[n/2], logs[n*95/100])
	if 4*covered < 3*n || 6*safe < 5*n || silent > n/3 {
		t.Errorf("%d of %d intervals hold, and %d safe rates; %d without an answer", covered, n, safe, silent)
	}
}

package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"

	"planner/internal/evidence/search/virtual"
	"planner/internal/parallel"
	"planner/internal/stat"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// testCase is a server, the objective it is searched under, and its true
// maximum rate.
type testCase struct {
	name     string
	server   virtual.Server
	workload *workload.Workload
	slo      measure.SLO
	truth    float64
	// phi is the long-run dispersion at the limit, for the simulator's prior.
	// kappa is the steepness d logit p / d ln rate there.
	phi, kappa float64
	// overhead is what a trial costs besides its load.
	overhead time.Duration
	drift    float64
	// warmup and window are those that a user fixed for every trial; 0 leaves them
	// to the search.
	warmup, window time.Duration
}

const errorsAllowed = 0.001

func fixed(n int) workload.Lengths { return workload.Lengths{Dist: workload.Fixed, Value: n} }

// single is the workload of a queue, where requests have no lengths.
func single() *workload.Workload {
	return &workload.Workload{Class: "single", Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: fixed(1), Output: fixed(1)}}}
}

// chat is the workload of the batching engine.
func chat() *workload.Workload {
	shape := workload.Shape{
		Prompt: workload.Lengths{Dist: workload.Lognormal, Median: 500, Sigma: 0.8, Min: 50, Max: 4000},
		Output: workload.Lengths{Dist: workload.Lognormal, Median: 200, Sigma: 0.8, Min: 10, Max: 2000},
	}
	return &workload.Workload{Class: "chat", Arrivals: workload.Poisson, Shapes: []workload.Shape{shape}}
}

func limit(m measure.Metric, q float64, d time.Duration) measure.SLO {
	return objective(measure.Bound{Metric: m, Quantile: q, Limit: d})
}

func objective(bounds ...measure.Bound) measure.SLO {
	return measure.SLO{Bounds: bounds, Errors: errorsAllowed}
}

// cliffEngine is limited by its number of sequences: prompts wait for a place,
// and a little above the maximum rate for ever. decodeEngine has places enough,
// but each sequence slows all others.
var (
	cliffEngine  = virtual.Engine{Budget: 2048, Sequences: 64, Base: 8 * time.Millisecond, PerToken: 25 * time.Microsecond, PerSequence: 40 * time.Microsecond}
	decodeEngine = virtual.Engine{Budget: 2048, Sequences: 512, Base: 8 * time.Millisecond, PerToken: 40 * time.Microsecond, PerSequence: 60 * time.Microsecond}
)

// servers are the five of the study. The queues' rates are exact; those of the
// engine come from long runs.
func servers() []testCase {
	mm1 := virtual.Queue{Servers: 1, Rate: 35}
	md1 := virtual.Queue{Servers: 1, Rate: 35, Constant: true}
	mm8 := virtual.Queue{Servers: 8, Rate: 4.4, Waiting: true}
	cases := []testCase{
		{name: "M/M/1", server: mm1, workload: single(), slo: limit(measure.TTFT, 0.99, 500*time.Millisecond)},
		{name: "M/D/1", server: md1, workload: single(), slo: limit(measure.TTFT, 0.99, 250*time.Millisecond)},
		{name: "M/M/8", server: mm8, workload: single(), slo: limit(measure.TTFT, 0.99, 500*time.Millisecond)},
		{name: "TTFT, cliff", server: cliffEngine, workload: chat(), slo: limit(measure.TTFT, 0.99, 500*time.Millisecond)},
		{name: "TPOT", server: decodeEngine, workload: chat(), slo: limit(measure.TPOT, 0.99, 50*time.Millisecond)},
	}
	for i := range cases {
		cases[i].overhead = trialOverhead
		if q, ok := cases[i].server.(virtual.Queue); ok {
			cases[i].truth = q.MaxRate(cases[i].slo.Bounds[0].Limit, 0.01)
		}
	}
	return cases
}

// storedServers are the five, and small servers, whose truths a file keeps, if it has a name.
func storedServers(file string) (five, tiny []testCase, err error) {
	type kept struct{ Truth, Phi, Kappa float64 }
	all := map[string]kept{}
	data, err := os.ReadFile(file)
	if err != nil {
		five, tiny = finished(servers(), 1), smallServers()
		for _, c := range slices.Concat(five, tiny) {
			all[c.name] = kept{c.truth, c.phi, c.kappa}
		}
		if data, err = json.Marshal(all); err == nil && file != "" {
			err = os.WriteFile(file, data, 0o600)
		}
		return five, tiny, err
	}
	err = json.Unmarshal(data, &all)
	five, tiny = servers(), tinyServers()
	for _, cases := range [][]testCase{five, tiny} {
		for i := range cases {
			k := all[cases[i].name]
			cases[i].truth, cases[i].phi, cases[i].kappa = k.Truth, k.Phi, k.Kappa
		}
	}
	return five, tiny, err
}

// trialOverhead is what a trial costs besides its load.
const trialOverhead = 6 * time.Second

// finished fills in what a case needs beside its server and objective. The rates
// of queues are exact; others are found around the one that is given.
func finished(cases []testCase, seed uint64) []testCase {
	for i := range cases {
		c := &cases[i]
		if _, exact := c.server.(virtual.Queue); !exact {
			c.truth = precise(c, bruteForce(c, 12, 16))
		}
		c.phi, c.kappa = longPhi(c, seed), steepness(c)
	}
	return cases
}

// longRun is the share beyond each bound over a long window at a rate.
func longRun(c *testCase, rate, speed float64, seed uint64) []float64 {
	t := measure.Trial{Workload: c.workload, Rate: rate, Warmup: 100 * time.Second, Window: time.Duration(40_000 / rate * float64(time.Second)), Seed: seed}
	n, k := make([]float64, len(c.slo.Bounds)), make([]float64, len(c.slo.Bounds))
	for _, r := range c.server.Serve(t.Schedule(), speed, t.Seed) {
		if r.Due < t.Warmup {
			continue
		}
		for j, b := range c.slo.Bounds {
			known, beyond := b.Decide(&r, r.Last)
			if known {
				n[j]++
			}
			if beyond {
				k[j]++
			}
		}
	}
	floats.Div(k, n)
	return k
}

// longRuns is longRun over several of them, at speeds that are evenly spread over those
// which trials have.
func longRuns(c *testCase, rate float64, runs int, seed uint64) []float64 {
	mean := make([]float64, len(c.slo.Bounds))
	for _, share := range parallel.Map(runs, func(r int) []float64 {
		speed := math.Exp(c.drift * math.Sqrt2 * math.Erfinv(2*(float64(r)+0.5)/float64(runs)-1))
		return longRun(c, rate, speed, seed+uint64(r))
	}) {
		floats.AddScaled(mean, 1/float64(runs), share)
	}
	return mean
}

// bruteForce finds the rate at which the first bound missed is exactly at its
// allowed share, by bisection over common arrivals.
func bruteForce(c *testCase, steps, runs int) float64 {
	low, high := 2.0, 80.0
	if c.truth > 0 {
		low, high = c.truth/2, c.truth*2
	}
	for range steps {
		mid := math.Sqrt(low * high)
		missed := false
		for j, share := range longRuns(c, mid, runs, 1_000_000) {
			missed = missed || share > c.slo.Bounds[j].Allowed()
		}
		if missed {
			high = mid
		} else {
			low = mid
		}
	}
	return math.Sqrt(low * high)
}

// precise corrects a rate that bruteForce found, whose 640,000 requests leave the
// share of a clumped limit uncertain by 10 % and so the rate by 0.5 %, a sixth of
// what a good search is wrong by and always to the same side: one step of the
// secant rule over 1 % on either side, on 2.4 million other requests each.
func precise(c *testCase, rate float64) float64 {
	const step, runs = 0.01, 60
	excess := func(x float64) float64 {
		worst := math.Inf(-1)
		for j, p := range longRuns(c, x, runs, 5_000_000) {
			allowed := c.slo.Bounds[j].Allowed()
			worst = max(worst, math.Log(p/(1-p))-math.Log(allowed/(1-allowed)))
		}
		return worst
	}
	low, high := excess(rate*(1-step)), excess(rate*(1+step))
	return rate * (1 - step*(high+low)/(high-low))
}

// longPhi is the dispersion at the true rate, from batches of 300 s.
func longPhi(c *testCase, seed uint64) float64 {
	const batches = 200
	window := time.Duration(7500 / c.truth * float64(time.Second))
	total, sum, squares := 0.0, 0.0, 0.0
	for _, count := range parallel.Map(batches, func(b int) measure.Count {
		t := measure.Trial{Workload: c.workload, Rate: c.truth, Warmup: 60 * time.Second, Window: window, Seed: seed<<20 + uint64(b), Objective: c.slo}
		return virtual.Bench{Server: c.server, NoAbort: true}.Run(t).Counts[0]
	}) {
		n, k := float64(count.N), float64(count.K)
		total += n
		sum += k
		squares += k * k
	}
	mean := sum / batches
	p := sum / total
	return max((squares/batches-mean*mean)/(mean*(1-p)), 1)
}

// steepness is the slope of the share on the scale of the search's curve, over 5 %
// of the rate on either side of the limit: of queues by their closed form, else from
// 1.6 million requests a side, as late ones of a server with a cliff come by the
// thousand.
func steepness(c *testCase) float64 {
	const step, runs = 0.05, 40
	share := func(rate float64) float64 {
		if q, ok := c.server.(virtual.Queue); ok && c.workload.Arrivals == workload.Poisson {
			return q.Exceeds(rate, c.slo.Bounds[0].Limit)
		}
		return longRuns(c, rate, runs, 2_000_000)[0]
	}
	return (stat.CLogLog(share(c.truth*(1+step))) - stat.CLogLog(share(c.truth*(1-step)))) / (2 * step)
}

// noise draws one normal of the given stream: what a simulator gets wrong.
func noise(seed, stream uint64) float64 {
	return rand.New(rand.NewPCG(seed, 7000+stream)).NormFloat64()
}

// Package drift tries the drift check of `planner compare` on runs of virtual servers.
package drift

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/evidence/search/virtual"
	"planner/internal/list"
	"planner/internal/parallel"
	"planner/sweep"
	"planner/sweep/design"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// runs is how many pairs of runs are compared a case.
var runs = flag.Int("runs", 15, "pairs of runs of each case")

// drifted is a server that may be slower than its baseline, and how it is compared.
type drifted struct {
	name string
	// slower is by how much, scatter the standard deviation of the speed of each trial, and
	// again that of each whole run: what two starts differ by.
	slower, scatter, again float64
	// other: the two runs have other requests; margin is that of --fail-if-worse; pressed: trials of a minute
	// at loads up to what the server carries and a little more.
	other, pressed bool
	margin         float64
	// least and most bound the share that is found worse.
	least, most float64
}

// cases hold what a drift check must do, but for the last two, which show what it cannot:
// two starts that differ are a difference.
var cases = []drifted{
	{name: "equal, the same requests", scatter: 0.01, most: 0.06},
	{name: "equal, other requests", scatter: 0.01, other: true, most: 0.06},
	{name: "equal to the byte", most: 0},
	{name: "5 % slower, the same requests", slower: 0.05, scatter: 0.01, least: 0.9, most: 1},
	{name: "5 % slower, to the byte else", slower: 0.05, least: 1, most: 1},
	{name: "10 % slower, margin 5 %", slower: 0.10, scatter: 0.01, margin: 0.05, least: 0.9, most: 1},
	{name: "equal, margin 5 %", scatter: 0.01, margin: 0.05, most: 0.01},
	{name: "equal, up to what it carries", scatter: 0.01, pressed: true, most: 0.06},
	{name: "equal, other requests, up to what it carries", scatter: 0.01, other: true, pressed: true, most: 0.06},
	{name: "equal, up to what it carries, margin 5 %", scatter: 0.01, pressed: true, margin: 0.05, most: 0.06},
	{name: "5 % slower, up to what it carries", slower: 0.05, scatter: 0.01, pressed: true, least: 0.9, most: 1},
	{name: "equal, starts differ by 1 %, margin 5 %", scatter: 0.01, again: 0.01, margin: 0.05, most: 0.06},
}

// rates are the loads of a run, up to about two thirds of what the server carries.
var rates = []float64{1, 2, 3, 4, 5, 6, 7, 8}

// press makes the highest of them a little more than the server carries, so that by chance one side alone falls behind.
const press = 4.9

// server is a small batching engine.
var server = virtual.Engine{Budget: 2048, Sequences: 64, Base: 8 * time.Millisecond,
	PerToken: 20 * time.Microsecond, PerSequence: 150 * time.Microsecond}

// limits are far off; a trial that has some counts what stays in the server.
var limits = measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Minute}}, Errors: -1}

// traffic is of chat's kind, and short.
var traffic = workload.Workload{Class: "x", Arrivals: workload.Poisson, Shapes: []workload.Shape{{
	Prompt: workload.Lengths{Dist: workload.Lognormal, Median: 300, Sigma: 0.8, Min: 20, Max: 2000},
	Output: workload.Lengths{Dist: workload.Lognormal, Median: 60, Sigma: 0.6, Min: 5, Max: 300}}}}

// run measures a server at all rates: 300 requests each, or a minute, as a drift check in CI would.
func (c *drifted) run(speed float64, seed uint64, rng *rand.Rand) []measure.Measurement {
	var all []measure.Measurement
	for i, rate := range rates {
		window := time.Duration(300 / rate * float64(time.Second))
		if c.pressed {
			rate, window = press*rate, time.Minute
		}
		t := measure.Trial{Number: i + 1, Rate: rate, Window: window, Workload: &traffic, Seed: seed + uint64(i), Whole: true, Objective: limits}
		records := server.Serve(t.Schedule(), speed*math.Exp(c.scatter*rng.NormFloat64()), t.Seed)
		all = append(all, measure.Reduce(t, measure.Observation{Records: records}))
	}
	return all
}

// worse reports whether a comparison of two runs finds the second worse.
func (c *drifted) worse(t *testing.T, n uint64) bool {
	rng := rand.New(rand.NewPCG(n, 17))
	start := func() float64 { return math.Exp(c.again * rng.NormFloat64()) }
	other := uint64(0)
	if c.other {
		other = 1000
	}
	trials := [2][]measure.Measurement{c.run(start(), 100_000*n, rng), c.run(start()/(1+c.slower), 100_000*n+other, rng)}
	answer, err := design.CompareRuns([2]string{"base", "run"}, trials, design.Terms{Confidence: 0.95, Indifference: 0.02, FailIfWorse: c.margin}, nil)
	if err != nil {
		t.Error(err)
		return false
	}
	if c.margin > 0 {
		return answer.State == sweep.Infeasible
	}
	return slices.ContainsFunc(answer.Value.(*design.Compared).Contrasts, func(x design.Contrast) bool { return x.Judgement == design.Worse })
}

// Whatever is found worse is found in so many of the runs as the cases say. Of few runs
// the bounds are as wide as their number asks for.
func TestDrift(t *testing.T) {
	for _, c := range cases {
		found := make([]bool, *runs)
		must.OK(parallel.Do(len(found), func(i int) error {
			found[i] = c.worse(t, uint64(i)+1)
			return nil
		}))
		n := list.Count(found, func(worse bool) bool { return worse })
		share := float64(n) / float64(*runs)
		chance := func(p float64) float64 { return 2 * math.Sqrt(p*(1-p)/float64(*runs)) }
		t.Logf("%s: worse in %.3f of %d", c.name, share, *runs)
		if share < c.least-chance(c.least) || share > c.most+chance(c.most) {
			t.Errorf("%s: worse in %.3f, want %.2f to %.2f", c.name, share, c.least, c.most)
		}
	}
}

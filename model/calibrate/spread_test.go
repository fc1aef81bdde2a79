package calibrate

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// deployed returns a deployment from the catalog.
func deployed(name, gpu string, tp int, w model.WeightFormat) model.Deployment {
	c := must.Get(model.NewCatalog())
	return model.Deployment{Arch: must.Get(c.Model(name)), Hardware: must.Get(c.GPU(gpu)), TP: tp, Precision: model.Precision{Weights: w}}
}

// engine returns an idle simulated engine.
func engine(dep model.Deployment, c model.Constants, l model.EngineArgs) *sim.Engine {
	return must.Get(sim.Build(dep, c, l, true))
}

var ttftLimit = measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}}}

// A server whose every latency is 1/(mu - rate), with mu as many requests per second as
// steps of the constants' length, keeps its latency when the rate falls as much as mu. With
// constants that are too slow at any rate the limit would have to be as much longer as an idle server is slow.
func TestShiftOfAQueueInClosedForm(t *testing.T) {
	dep := deployed("llama-3.1-8b", "H100 SXM", 1, model.BF16)
	c := model.ConstantsFor(dep.Hardware, model.EngineArgs{EngineVersion: "0.20.0"})
	mu := func(c model.Constants) float64 { return 1 / (100 * c.Fixed.Step) }
	probe := func(c model.Constants, rate, _ float64, _ uint64) (measure.Trial, measure.Observation, error) {
		wait := 1e6 // overloaded
		if m := mu(c); rate < m {
			wait = 1 / (m - rate)
		}
		r := measure.Record{First: time.Duration(wait * 1e9), Last: time.Duration(wait*1e9) + 1, Output: 2, Outcome: measure.OK}
		return measure.Trial{}, measure.Observation{Records: []measure.Record{r}}, nil
	}
	rate, limit := 0.9*mu(c), 10/mu(c)
	objective := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: time.Duration(limit * 1e9)}}}
	k := Known{Constants: c, Spread: model.Spread{model.DoubtStep: 1.5}, Rate: rate, Objective: objective, Seed: 3}
	got := must.Get(Shift(k, probe))
	if len(got) != 32 {
		t.Fatalf("%d samples", len(got))
	}
	longest := 1.0
	samples := c.Samples(drawn, drawSeed, k.Spread)
	for i, x := range got {
		m := mu(samples[i])
		idle := math.Exp(-WidestMove) * rate
		want := math.Log(max(m-1/limit, idle) / rate)
		if longer := 1 / limit / (m - idle); longer > 1 {
			want -= math.Log(longer)
			longest = max(longest, longer)
		}
		if math.Abs(x-want) > shiftTolerance*(1+math.Abs(want)) {
			t.Errorf("sample %d: shift %.3f, exactly %.3f", i, x, want)
		}
	}
	if longest == 1 || math.Abs(got.Longer()-longest) > 0.01*longest {
		t.Errorf("limits %.3g times as long for all samples, want %.3g", got.Longer(), longest)
	}
	if got.Quantile(0.05) >= got.Quantile(0.95) {
		t.Errorf("sd %.3f, 5 %% %.3f, 95 %% %.3f", sd(got), got.Quantile(0.05), got.Quantile(0.95))
	}
}

// A latency that jumps, as the p99 of gaps does where 1 % of them hold a prompt, passes all limits between both of its
// values at the same rate.
func TestMovesAcrossAJump(t *testing.T) {
	const jump = 0.53
	in := func(limit time.Duration) Situation {
		return Situation{Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: limit}}},
			Run: func(rate, _ float64) (measure.Trial, measure.Observation, error) {
				wait := 18 + rate
				if rate > jump {
					wait = 190 + rate
				}
				r := measure.Record{First: time.Duration(wait * 1e6), Last: time.Duration(wait*1e6) + 1, Output: 2, Outcome: measure.OK}
				return measure.Trial{}, measure.Observation{Records: []measure.Record{r}}, nil
			}}
	}
	var to []Situation
	for limit := 25; limit <= 185; limit += 5 {
		to = append(to, in(time.Duration(limit)*time.Millisecond))
	}
	moves := must.Get(Moves(0.52, in(100*time.Millisecond), to))
	for i, m := range moves {
		if m.Err != nil || math.Abs(m.By) > 0.03 {
			t.Errorf("limit %v: moved by %.3f, %v; no limit between both latencies moves the rate", to[i].Objective.Bounds[0].Limit, m.By, m.Err)
		}
	}
}

// A draw of requests that by chance brings a latency far below the limit at the maximum rate
// says nothing of where other constants meet it; another draw does. A short run of a server
// whose latency hardly grows with the rate is no better.
func TestShiftNearTheLimit(t *testing.T) {
	dep := deployed("llama-3.1-8b", "H100 SXM", 1, model.BF16)
	c := model.ConstantsFor(dep.Hardware, model.EngineArgs{EngineVersion: "0.20.0"})
	mu := func(c model.Constants) float64 { return 1 / (100 * c.Fixed.Step) }
	limit := ttftLimit.Bounds[0].Limit.Seconds()
	for _, test := range []struct {
		name   string
		rate   float64
		wait   func(m, rate, times float64, seed uint64) float64
		wanted func(m float64) float64 // the rate at the limit
	}{
		{"a knee", mu(c) - 1/limit, func(m, rate, _ float64, seed uint64) float64 {
			if seed == 3 {
				rate /= 5 // few requests came close together
			}
			if rate >= m {
				return 1e6
			}
			return 1 / (m - rate)
		}, func(m float64) float64 { return m - 1/limit }},
		{"a slope", mu(c) / 2, func(m, rate, times float64, _ uint64) float64 {
			return limit * (0.5*mu(c)/m + rate/m) * (1 + 0.3/(times*times)) // long answers, by chance
		}, func(m float64) float64 { return m - 0.5*mu(c) }},
	} {
		probe := func(c model.Constants, rate, times float64, seed uint64) (measure.Trial, measure.Observation, error) {
			wait := time.Duration(test.wait(mu(c), rate, times, seed) * 1e9)
			r := measure.Record{First: wait, Last: wait + 1, Output: 2, Outcome: measure.OK}
			return measure.Trial{}, measure.Observation{Records: []measure.Record{r}}, nil
		}
		k := Known{Constants: c, Spread: model.Spread{model.DoubtStep: 0.1}, Rate: test.rate, Objective: ttftLimit, Seed: 3}
		samples := c.Samples(drawn, drawSeed, k.Spread)
		for i, x := range must.Get(Shift(k, probe)) {
			want := math.Log(max(test.wanted(mu(samples[i]))/k.Rate, math.Exp(-WidestMove)))
			if math.Abs(x-want) > 0.04 {
				t.Errorf("%s, sample %d: shift %.3f, exactly %.3f", test.name, i, x, want)
			}
		}
	}
}

// Where no draw of requests meets the limit at any rate, as of a quantile that so few requests do not show, shifts are from
// what the known rate brings.
func TestShiftOfAnUnlikelyLimit(t *testing.T) {
	dep := deployed("llama-3.1-8b", "H100 SXM", 1, model.BF16)
	c := model.ConstantsFor(dep.Hardware, model.EngineArgs{EngineVersion: "0.20.0"})
	mu := func(c model.Constants) float64 { return 1 / (100 * c.Fixed.Step) }
	probe := func(c model.Constants, rate, _ float64, _ uint64) (measure.Trial, measure.Observation, error) {
		wait := time.Duration(1e9 * (1 + rate/mu(c))) // of a limit of half a second
		r := measure.Record{First: wait, Last: wait + 1, Output: 2, Outcome: measure.OK}
		g := measure.NewGaps(0, 0)
		g.Add(0, wait, 100)
		return measure.Trial{}, measure.Observation{Records: []measure.Record{r}, Gaps: g}, nil
	}
	for _, metric := range []measure.Metric{measure.TTFT, measure.ITL} {
		slo := measure.SLO{Bounds: []measure.Bound{{Metric: metric, Quantile: 0.99, Limit: 500 * time.Millisecond}}}
		k := Known{Constants: c, Spread: model.Spread{model.DoubtStep: 0.1}, Rate: mu(c), Objective: slo, Seed: 3}
		samples := c.Samples(drawn, drawSeed, k.Spread)
		for i, x := range must.Get(Shift(k, probe)) {
			want := math.Log(mu(samples[i]) / mu(c))
			if math.Abs(x-want) > 0.03 {
				t.Errorf("%v, sample %d: shift %.3f, exactly %.3f", metric, i, x, want)
			}
		}
	}
}

// chatProbe simulates windows of chat traffic on 4 x H100.
func chatProbe() (model.Constants, model.Spread, Probe) {
	dep := deployed("llama-3.1-70b", "H100 SXM", 4, model.FP8)
	shape := must.Get(workload.Class("chat"))
	w := &workload.Workload{Class: "chat", Shapes: []workload.Shape{shape}, Arrivals: workload.Poisson}
	limits := model.EngineArgs{EngineVersion: "0.20.0", MaxModelLen: 6000, MaxNumSeqs: 256}
	return model.ConstantsFor(dep.Hardware, limits), model.SpreadFor(dep, limits),
		func(c model.Constants, rate, _ float64, seed uint64) (measure.Trial, measure.Observation, error) {
			e, err := sim.Build(dep, c, limits, true)
			if err != nil {
				return measure.Trial{}, measure.Observation{}, err
			}
			trial := measure.Trial{Workload: w, Rate: rate, Warmup: 10 * time.Second, Window: 40 * time.Second, Seed: seed}
			return trial, e.Run(sim.Load{Requests: trial.Schedule()}), nil
		}
}

// The spread of the maximum rate of chat on 4 x H100 is that of the step time by and
// large, whatever binds: a latency, or the server's capacity, and more where a slow host's
// launches alone take the limit. It is the same however
// many samples run at once, and costs little.
func TestShiftOfSimulatedChat(t *testing.T) {
	c, spread, probe := chatProbe()
	for _, k := range []Known{
		{Rate: 15, Objective: ttftLimit},
		{Rate: 13, Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TPOT, Quantile: 0.99, Limit: 50 * time.Millisecond}}}},
		{Rate: 17, Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TPOT, Quantile: 0.99, Limit: 500 * time.Millisecond}}}},
	} {
		k.Constants, k.Spread, k.Seed = c, spread, 1
		start := time.Now()
		got := must.Get(Shift(k, probe))
		t.Logf("%v: sd %.3f, mean %.3f, 5 %% %.3f, 95 %% %.3f, %v", k.Objective.Bounds[0], sd(got), mean(got), got.Quantile(0.05), got.Quantile(0.95), time.Since(start))
		if sd(got) < 0.02 || sd(got) > 0.25 || math.Abs(mean(got)) > 0.08 {
			t.Errorf("%v: sd %.3f, mean %.3f: %.3f", k.Objective.Bounds[0], sd(got), mean(got), got)
		}
	}
}

func TestShiftIsReproducible(t *testing.T) {
	c, spread, probe := chatProbe()
	k := Known{Constants: c, Spread: spread, Rate: 15, Objective: ttftLimit, Seed: 7}
	first := must.Get(Shift(k, probe))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if again, err := Shift(k, probe); err != nil || !slices.Equal(first, again) {
		t.Errorf("%v, then on one core %v, %v", first, again, err)
	}
	k.Spread = model.Spread{}
	if none, err := Shift(k, probe); err != nil || slices.Max(none) != 0 || slices.Min(none) != 0 {
		t.Errorf("certain constants move the rate by %+v, %v", none, err)
	}
}

func TestShiftRefusals(t *testing.T) {
	c, spread, probe := chatProbe()
	for name, k := range map[string]Known{
		"no objective": {Constants: c, Spread: spread, Rate: 1},
		"no rate":      {Constants: c, Spread: spread, Objective: ttftLimit},
		"no gaps": {Constants: c, Spread: spread, Rate: 1, Objective: measure.SLO{Bounds: []measure.Bound{
			{Metric: measure.ITL, Quantile: 0.99, Limit: time.Second}}}},
	} {
		if _, err := Shift(k, probe); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// sd is the standard deviation of the shifts.
func sd(s Shifts) float64 {
	sum, center := 0.0, mean(s)
	for _, x := range s {
		sum += (x - center) * (x - center)
	}
	return math.Sqrt(sum / float64(len(s)-1))
}

// The quantiles of draws that lie where those of a uniform variable do in the mean are its own,
// as far as the draws reach.
func TestQuantilesOfFewDraws(t *testing.T) {
	for _, n := range []int{1, 2, 5, 32} {
		var s Shifts
		for k := n; k > 0; k-- {
			s = append(s, float64(k)/float64(n+1))
		}
		for _, q := range []float64{0, 0.05, 0.3, 0.5, 0.95, 1} {
			want := min(max(q, s[n-1]), s[0])
			if got := s.Quantile(q); math.Abs(got-want) > 1e-12 {
				t.Errorf("%v quantile of %d draws: %v, want %v", q, n, got, want)
			}
		}
	}
}

// A server whose steps are of two lengths, the longer one in a share of the gaps that grows with the
// rate: whatever the limit between them, the quantile is beyond it from the same rate on.
func TestMovesOfGapsThatJump(t *testing.T) {
	steps := func(limit time.Duration) Situation {
		return Situation{
			Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.ITL, Quantile: 0.99, Limit: limit}}},
			Run: func(rate, _ float64) (measure.Trial, measure.Observation, error) {
				g := measure.NewGaps(0, 0)
				g.Add(0, time.Duration(14*math.Pow(rate, 0.1)*1e6), 1e6)
				g.Add(0, 22*time.Millisecond, int(1e4*rate))
				return measure.Trial{}, measure.Observation{Gaps: g}, nil
			},
		}
	}
	moves := must.Get(Moves(1.1, steps(21*time.Millisecond), []Situation{steps(17 * time.Millisecond), steps(19 * time.Millisecond), steps(21 * time.Millisecond)}))
	for i, m := range moves {
		if m.Err != nil || math.Abs(m.By) > 0.02 {
			t.Errorf("%d: moved by %.3f, %v, want 0", i, m.By, m.Err)
		}
	}
}

// A server of which short runs show less of how latency grows than long ones do.
func TestMovesWhereShortRunsAreFlat(t *testing.T) {
	const steep, flat, bend = 1.9, 0.6, 0.05
	within := func(limit float64) Situation {
		return Situation{
			Objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.ITL, Limit: time.Duration(limit * 1e9)}}},
			Run: func(rate, times float64) (measure.Trial, measure.Observation, error) {
				x := math.Log(rate)
				grown := steep * x
				if times == 1 && x > bend {
					grown = steep*bend + flat*(x-bend)
				}
				g := measure.NewGaps(0, 0)
				g.Add(0, time.Duration(1e9*math.Exp(grown)), 1000)
				return measure.Trial{}, measure.Observation{Gaps: g}, nil
			},
		}
	}
	for _, looser := range []float64{0.8, 1.2} {
		m := must.Get(Moves(1, within(1), []Situation{within(looser)}))[0]
		if want := math.Log(looser) / steep; m.Err != nil || math.Abs(m.By-want) > 0.02 {
			t.Errorf("limit times %g: moved by %.3f, %v, want %.3f", looser, m.By, m.Err, want)
		}
	}
}

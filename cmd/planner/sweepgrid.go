package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/config"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// sweepSpec says which trials a sweep is of. Written into the run folder as
// arguments, it is all that a resumed sweep needs besides the configuration.
type sweepSpec struct {
	// rates in requests per second; a matrix has its own.
	rates []float64
	// window and warm are 0 for the defaults; a warm-up of 0 is not one.
	window, warm time.Duration
	// oneAtATime varies one knob at a time from the first set.
	oneAtATime bool
	repeats    int
	matrix     bool
}

// args writes the specification as arguments.
func (s sweepSpec) args() []string {
	out := []string{fmt.Sprintf("--repeats=%d", s.repeats)}
	if len(s.rates) > 0 {
		texts := make([]string, len(s.rates))
		for i, r := range s.rates {
			texts[i] = strconv.FormatFloat(r, 'g', -1, 64)
		}
		out = append(out, "--rates="+strings.Join(texts, ","))
	}
	if s.window > 0 {
		out = append(out, "--duration="+s.window.String())
	}
	if s.warm > 0 {
		out = append(out, "--warm-up="+s.warm.String())
	}
	if s.oneAtATime {
		out = append(out, "--strategy=one-at-a-time")
	}
	if s.matrix {
		out = append(out, "--matrix")
	}
	return out
}

// parseSweepSpec reads what args writes; the positional argument ahead of it is
// skipped.
func parseSweepSpec(args []string) (sweepSpec, error) {
	var s sweepSpec
	var err error
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--repeats":
			s.repeats, err = strconv.Atoi(value)
		case "--rates":
			s.rates, err = parseRates(value)
		case "--duration":
			s.window, err = time.ParseDuration(value)
		case "--warm-up":
			s.warm, err = time.ParseDuration(value)
		case "--strategy":
			s.oneAtATime = value == "one-at-a-time"
		case "--matrix":
			s.matrix = true
		}
		if err != nil {
			return s, fmt.Errorf("arguments of the sweep: %s: %w", arg, err)
		}
	}
	if s.repeats < 1 {
		return s, fmt.Errorf("arguments of the sweep: %q does not say how often each trial runs", args)
	}
	return s, nil
}

// parseRates reads rates: "1,2,5", or "1:20:5" for 5 rates from 1 to 20 in equal
// ratios.
func parseRates(text string) ([]float64, error) {
	if parts := strings.Split(text, ":"); len(parts) > 1 {
		return geometric(parts, text)
	}
	var rates []float64
	for _, part := range strings.Split(text, ",") {
		r, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(r > 0) || math.IsInf(r, 0) {
			return nil, fmt.Errorf("%q is not a rate above 0", part)
		}
		if slices.Contains(rates, r) {
			return nil, fmt.Errorf("the rate %g is there twice", r)
		}
		rates = append(rates, r)
	}
	return rates, nil
}

func geometric(parts []string, text string) ([]float64, error) {
	const most = 1000
	if len(parts) != 3 {
		return nil, fmt.Errorf("%q is not lowest:highest:number, such as 1:20:5", text)
	}
	low, errLow := strconv.ParseFloat(parts[0], 64)
	high, errHigh := strconv.ParseFloat(parts[1], 64)
	n, errN := strconv.Atoi(parts[2])
	if errLow != nil || errHigh != nil || errN != nil || !(low > 0 && high > low) || math.IsInf(high, 0) || n < 2 || n > most {
		return nil, fmt.Errorf("%q is not lowest:highest:number with 0 < lowest < highest and 2 to %d rates", text, most)
	}
	rates := make([]float64, n)
	for i := range rates {
		rates[i] = significant(low*math.Pow(high/low, float64(i)/float64(n-1)), 4)
	}
	return rates, nil
}

// gridShares are the shares of the predicted maximum rate that a sweep measures
// where no rates are given: idle, the rise, and beyond the limit.
var gridShares = []float64{0.1, 0.3, 0.5, 0.7, 0.85, 1, 1.2}

// sharesOf are rates at shares of a maximum.
func sharesOf(most float64) []float64 {
	rates := make([]float64, len(gridShares))
	for i, share := range gridShares {
		rates[i] = significant(share*most, 3)
	}
	return rates
}

// oneAtATime keeps the sets that differ from the first one in at most one knob,
// in their order.
func oneAtATime(sets []measure.Knobs) []measure.Knobs {
	return slices.DeleteFunc(slices.Clone(sets), func(k measure.Knobs) bool { return sets[0].Differences(k) > 1 })
}

// Temperatures of the prefix cache at the start of the window.
const (
	coldCache = "cold prefix cache"
	warmCache = "warm prefix cache"
)

// gridTrials lists the trials of a grid, those of one set of knobs together, so
// that a real engine starts once for them. All sets get the same requests at one
// rate; repeats get others.
func gridTrials(cfg *config.Config, s sweepSpec, sets []measure.Knobs) []measure.Trial {
	w := &cfg.Workload
	var all []measure.Trial
	for _, k := range sets {
		temperatures := []string{""}
		if k.PrefixCaching && sharesPrefixes(w) {
			temperatures = []string{coldCache, warmCache}
		}
		for _, temperature := range temperatures {
			for i, rate := range s.rates {
				for repeat := range s.repeats {
					t := measure.Trial{Knobs: k, Workload: w, Rate: rate, Seed: w.Seed + uint64(i) + 1000*uint64(repeat), Objective: cfg.Objective, Whole: true, Why: temperature}
					s.windows(cfg, &t, temperature, enoughForP99)
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// sharesPrefixes reports whether requests of a workload begin as others do.
func sharesPrefixes(w *workload.Workload) bool {
	if w.Replayed() {
		return slices.ContainsFunc(w.Replay, func(r workload.TraceRow) bool { return len(r.Shared) > 0 })
	}
	return w.Turns > 1 || slices.ContainsFunc(w.Shapes, func(s workload.Shape) bool { return s.Prefix.Groups > 0 })
}

// enoughForP99 requests resolve a p99 with some to spare.
const enoughForP99 = 1500

// windows sets the times of a trial. Virtual time is free, so a simulated trial
// is long enough for the requests that are wanted; a real one takes three minutes
// at most unless the user says otherwise. Without warm-up the cache is cold; a
// warm one has seen each shared prompt about three times.
func (s sweepSpec) windows(cfg *config.Config, t *measure.Trial, temperature string, requests float64) {
	const longestReal, longestWarmup = 3 * time.Minute, 10 * time.Minute
	t.Window = max(time.Minute, time.Duration(math.Ceil(requests/t.Rate))*time.Second)
	if !cfg.Simulated() {
		t.Window = min(t.Window, longestReal)
	}
	if d := cfg.Search.Trial.Duration; d > 0 {
		t.Window = d
	}
	if s.window > 0 {
		t.Window = s.window
	}
	t.Cooldown = min(30*time.Second, t.Window/2)
	t.Warmup = min(30*time.Second, t.Window)
	if cfg.Search.Warmup.Given {
		t.Warmup = cfg.Search.Warmup.Duration
	}
	if s.warm > 0 {
		t.Warmup = s.warm
	}
	switch temperature {
	case coldCache:
		t.Warmup = 0
	case warmCache:
		fill := time.Duration(3 * float64(sharedPrompts(t.Workload)) / t.Rate * float64(time.Second))
		t.Warmup = max(t.Warmup, min(fill, longestWarmup))
	}
}

// sharedPrompts counts the prefixes, or prompts where they are reused as a whole,
// that a warm cache holds.
func sharedPrompts(w *workload.Workload) int {
	n := 0
	for _, s := range w.Shapes {
		n += s.Prefix.Groups * max(s.Prefix.Prompts, 1)
	}
	return n
}

// gridSource proposes trials that are known beforehand, a few at a time, and
// leaves out those of knobs that turned out not to run.
type gridSource struct {
	trials []measure.Trial
	// size is how many are proposed together.
	size   int
	failed map[measure.Knobs]bool
}

// Next proposes the next trials.
func (g *gridSource) Next() []measure.Trial {
	var batch []measure.Trial
	for len(g.trials) > 0 && len(batch) < g.size {
		if t := g.trials[0]; !g.failed[t.Knobs] {
			batch = append(batch, t)
		}
		g.trials = g.trials[1:]
	}
	return batch
}

// Observe learns which knobs do not run.
func (g *gridSource) Observe(m measure.Measurement) {
	if m.Rejected != "" {
		if g.failed == nil {
			g.failed = map[measure.Knobs]bool{}
		}
		g.failed[m.Trial.Knobs] = true
	}
}

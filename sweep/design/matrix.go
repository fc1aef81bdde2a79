package design

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/stat"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// HypothesisResult says what became of a hypothesis.
type HypothesisResult string

// The results.
const (
	Unclear HypothesisResult = "undecided"
	Held    HypothesisResult = "held"
	Refuted HypothesisResult = "refuted"
	NotRun  HypothesisResult = "not_run"
)

// MatrixRow is one kind of traffic of a matrix: the question, what was expected, and what came out.
type MatrixRow struct {
	ID         string           `json:"row"`
	Name       string           `json:"name"`
	Question   string           `json:"question"`
	Hypothesis string           `json:"hypothesis"`
	Finding    HypothesisResult `json:"finding"`
	Outcome    string           `json:"outcome"`
	// Trials are the numbers of the row's measurements.
	Trials []int `json:"trials"`

	loads []matrixLoad
	// read judges the hypothesis by the measurements of all rows.
	read func(at byLoad) (HypothesisResult, string)
}

// byLoad holds the measurements of a matrix by the keys of their loads.
type byLoad map[string]*measure.Measurement

// of returns the measurement of a load; of one that failed there are no figures.
func (at byLoad) of(key string) *measure.Measurement {
	return cmp.Or(at[key], &measure.Measurement{})
}

// ttft returns a statistic of the time to first token under a load, by its quantile, 0 for the mean; it is not above 0 if
// it is not known.
func (at byLoad) ttft(key string, quantile float64) time.Duration {
	return at.of(key).TTFT.Stat(quantile)
}

// matrixLoad is one trial of a row.
type matrixLoad struct {
	// key names it: "A 10 %".
	key      string
	workload *workload.Workload
	// share is relative to the rate predicted for the row's first workload.
	share float64
	// temperature is that of the prefix cache, "" for what the knobs say about it.
	temperature string
	// requests is how many requests the window should have.
	requests float64
}

// matrixTrials lists the trials of a matrix with one set of knobs; the Why of a trial is the key of
// its load. max_model_len is raised to the longest request of all rows, so that one engine serves
// them all.
func matrixTrials(cfg *config.Config, g sweep.Ground, s Grid, k measure.Knobs) (rows []MatrixRow, trials []measure.Trial, err error) {
	limit := 0 // the longest request that the model takes, in tokens, if known
	if cfg.Model.Known {
		limit = cfg.Model.Arch.MaxPosition
	}
	rows = append(trafficRows(cfg, limit), sharedPrefix(cfg), productionTrace(cfg))
	for _, row := range rows {
		for _, l := range row.loads {
			k.MaxModelLen = max(k.MaxModelLen, l.workload.Longest())
		}
	}
	for i, row := range rows {
		if row.Finding == NotRun {
			continue
		}
		most := 0.0
		for j, l := range row.loads {
			l.workload.MaxLen = k.MaxModelLen
			if j == 0 {
				if most, err = rowRate(g, cfg.Objective, l.workload, k); err != nil {
					return nil, nil, err
				}
			}
			t := measure.Trial{Knobs: k, Workload: l.workload, Rate: stat.Rounded(l.share*most, 3), Objective: cfg.Objective, Whole: true, Why: l.key,
				Seed: cfg.Workload.Seed + 100*uint64(i+1)}
			if l.temperature != "" {
				t.Knobs.PrefixCaching = l.temperature != noCache
			}
			s.windows(cfg, &t, l.temperature, l.requests)
			trials = append(trials, t)
		}
	}
	return rows, trials, nil
}

// rowRate returns the predicted maximum rate of a workload: without the limits if it meets them at
// no rate, since a matrix asks what the engine does.
func rowRate(g sweep.Ground, objective measure.SLO, w *workload.Workload, k measure.Knobs) (float64, error) {
	rate, err := predictedRate(g, w, objective, k)
	if err == nil && rate <= 0 {
		rate, err = predictedRate(g, w, measure.SLO{}, k)
	}
	if err == nil && rate <= 0 {
		err = errors.New("sweep --matrix: the rates are shares of a predicted maximum, which takes model and hardware in the configuration")
	}
	return rate, err
}

func readMatrix(rows []MatrixRow, trials []measure.Measurement) []MatrixRow {
	at := byLoad{}
	for i := range trials {
		at[trials[i].Trial.Why] = &trials[i]
	}
	rows = slices.Clone(rows)
	for i := range rows {
		r := &rows[i]
		for _, l := range r.loads {
			if m := at[l.key]; m != nil {
				r.Trials = append(r.Trials, m.Trial.Number)
			}
		}
		if r.Finding != NotRun {
			r.Finding, r.Outcome = r.read(at)
		}
	}
	return rows
}

// judged is the result of a row: undecided without its figures, else whether the hypothesis holds, and by what.
func judged(known bool, figures string, holds bool, format string, args ...any) (HypothesisResult, string) {
	switch {
	case !known:
		return Unclear, fmt.Sprintf("%s is not known: a trial failed, or was too short to resolve it", figures)
	case holds:
		return Held, fmt.Sprintf(format, args...)
	}
	return Refuted, fmt.Sprintf(format, args...)
}

// enoughForMeans requests are enough for means and medians.
const enoughForMeans = 400

func plain(cfg *config.Config, name string, shapes ...workload.Shape) *workload.Workload {
	return &workload.Workload{Class: name, Shapes: shapes, Turns: 1, Arrivals: workload.Poisson, Timeout: cfg.Workload.Timeout, Seed: cfg.Workload.Seed}
}

func between(low, high int) workload.Lengths {
	return workload.Lengths{Dist: workload.Uniform, Min: low, Max: high}
}

// within shortens a length so that the rest of a request fits into the limit, too.
func within(n, limit, rest int) int {
	if limit > 0 {
		n = min(n, limit-rest)
	}
	return max(n, 1)
}

// trafficRows are the rows of short chats, long prompts, long answers, and all three at once.
func trafficRows(cfg *config.Config, limit int) []MatrixRow {
	prompt, output := within(8000, limit, 100), within(2000, limit, 200)
	chat := workload.Shape{Name: "short chat", Weight: 0.6, Prompt: between(150, 250), Output: between(50, 150)}
	prefill := workload.Shape{Name: "long prefill", Weight: 0.2, Prompt: between(prompt*7/8, prompt), Output: between(30, 70)}
	decode := workload.Shape{Name: "long decode", Weight: 0.2, Prompt: between(80, 120), Output: between(output/2, output)}
	a, b, c, d := plain(cfg, "short chat", chat), plain(cfg, "long prefill", prefill), plain(cfg, "long decode", decode), plain(cfg, "mixed", chat, prefill, decode)
	return []MatrixRow{
		{
			ID: "A", Name: "short chat",
			Question:   "Does an interactive user wait for others on a lightly loaded engine?",
			Hypothesis: "At 30 % of the predicted maximum rate p99 TTFT is below 3 times the median TTFT at 10 %.",
			loads:      []matrixLoad{{"A 10 %", a, 0.1, "", enoughForMeans}, {"A 30 %", a, 0.3, "", enoughForP99}, {"A 70 %", a, 0.7, "", enoughForP99}},
			read: func(at byLoad) (HypothesisResult, string) {
				light, idle := at.ttft("A 30 %", 0.99), at.ttft("A 10 %", 0.5)
				ratio := float64(light) / float64(idle)
				return judged(light > 0 && idle > 0, "the median at 10 % or the p99 at 30 %", ratio < 3,
					"p99 %s at 30 %%, median %s at 10 %%: %.2f times", short(light), short(idle), ratio)
			},
		}, {
			ID: "B", Name: "long prefill",
			Question:   "What does a long prompt cost before the first token?",
			Hypothesis: "At 10 % of the predicted maximum rate the median TTFT is at least 5 times that of short chat.",
			loads:      []matrixLoad{{"B 10 %", b, 0.1, "", enoughForMeans}, {"B 70 %", b, 0.7, "", enoughForMeans}},
			read: func(at byLoad) (HypothesisResult, string) {
				long, chat := at.ttft("B 10 %", 0.5), at.ttft("A 10 %", 0.5)
				ratio := float64(long) / float64(chat)
				return judged(long > 0 && chat > 0, "a median TTFT", ratio >= 5, "median %s against %s: %.1f times", short(long), short(chat), ratio)
			},
		}, {
			ID: "C", Name: "long decode",
			Question:   "Where does the time of a long answer go?",
			Hypothesis: "At 10 % of the predicted maximum rate at least 95 % of the mean E2E is behind the first token.",
			loads:      []matrixLoad{{"C 10 %", c, 0.1, "", enoughForMeans}, {"C 70 %", c, 0.7, "", enoughForMeans}},
			read: func(at byLoad) (HypothesisResult, string) {
				m := at.of("C 10 %")
				share := 1 - float64(m.TTFT.Mean)/float64(m.E2E.Mean)
				return judged(m.TTFT.Mean >= 0 && m.E2E.Mean > 0, "a mean", share >= 0.95,
					"%.1f %% of a mean of %s, at %s a token", 100*share, short(m.E2E.Mean), short(m.TPOT.Mean))
			},
		}, {
			ID: "D", Name: "mixed saturation",
			Question:   "Where does throughput stop to follow the load?",
			Hypothesis: "From 100 % to 130 % of the predicted maximum rate output tokens/s grow by less than half of what the load grows.",
			loads:      []matrixLoad{{"D 70 %", d, 0.7, "", enoughForP99}, {"D 100 %", d, 1, "", enoughForP99}, {"D 130 %", d, 1.3, "", enoughForP99}},
			read: func(at byLoad) (HypothesisResult, string) {
				full, over := at.of("D 100 %").OutputTokens, at.of("D 130 %").OutputTokens
				growth := over/full - 1
				return judged(at["D 130 %"] != nil && !(full <= 0), "a throughput", growth < 0.15,
					"%.0f tokens/s at 100 %%, %.0f at 130 %%: %+.1f %%", full, over, 100*growth)
			},
		},
	}
}

func sharedPrefix(cfg *config.Config) MatrixRow {
	shape := workload.Shape{Name: "shared prefix", Prompt: between(150, 250), Output: between(50, 150), Prefix: workload.Prefix{Groups: 10, Tokens: 2000}}
	w := plain(cfg, "shared prefix", shape)
	load := func(key, temperature string) matrixLoad {
		return matrixLoad{key: key, workload: w, share: 0.5, temperature: temperature, requests: enoughForMeans}
	}
	row := MatrixRow{
		ID: "E", Name: "warm shared prefix",
		Question:   "What is a prefix cache worth, cold and warm?",
		Hypothesis: "Warm, it halves the mean TTFT at half of the predicted maximum rate against no cache at all.",
		loads:      []matrixLoad{load("E no cache", noCache), load("E cold", coldCache), load("E warm", warmCache)},
		read: func(at byLoad) (HypothesisResult, string) {
			off, cold, warm := at.ttft("E no cache", 0), at.ttft("E cold", 0), at.ttft("E warm", 0)
			further := ""
			if cold > 0 {
				further = ", " + short(cold) + " from cold on"
			}
			if hits := at.of("E warm").Server.HitRate; hits != nil {
				further += fmt.Sprintf("; %.0f %% of the prompt tokens were hits", 100**hits)
			}
			return judged(off > 0 && warm > 0, "a mean TTFT", float64(warm)/float64(off) <= 0.5, "mean TTFT %s warm, %s without%s", short(warm), short(off), further)
		},
	}
	if !slices.Contains(cfg.Space["prefix_caching"], any(true)) {
		row.Finding, row.Outcome = NotRun, "knobs.prefix_caching is false"
	}
	return row
}

func productionTrace(cfg *config.Config) MatrixRow {
	row := MatrixRow{
		ID: "F", Name: "production trace",
		Question:   "Do real arrivals hurt more than Poisson ones of the same lengths and rate?",
		Hypothesis: "At 70 % of the predicted maximum rate p99 TTFT of the trace is at least 10 % above that of Poisson arrivals.",
	}
	if !cfg.Workload.Replayed() {
		row.Finding, row.Outcome = NotRun, "the configuration has no trace (workload.trace)"
		return row
	}
	trace := cfg.Workload
	trace.Rates = nil // both then have the same mean rate
	load := func(key string, w *workload.Workload) matrixLoad {
		return matrixLoad{key: key, workload: w, share: 0.7, requests: max(enoughForP99, float64(len(trace.Replay)))}
	}
	row.loads = []matrixLoad{load("F trace", &trace), load("F Poisson", lengthsOf(cfg))}
	row.read = func(at byLoad) (HypothesisResult, string) {
		replayed, poisson := at.ttft("F trace", 0.99), at.ttft("F Poisson", 0.99)
		ratio := float64(replayed) / float64(poisson)
		return judged(replayed > 0 && poisson > 0, "a p99 TTFT", ratio >= 1.1, "p99 TTFT %s against %s: %+.0f %%", short(replayed), short(poisson), 100*(ratio-1))
	}
	return row
}

// lengthsOf returns a workload with the lengths of the trace and Poisson arrivals; prompts and
// outputs are drawn independently and share no prefix.
func lengthsOf(cfg *config.Config) *workload.Workload {
	var prompts, outputs []int
	for _, r := range cfg.Workload.Replay {
		prompts, outputs = append(prompts, r.Prompt), append(outputs, r.Output)
	}
	slices.Sort(prompts)
	slices.Sort(outputs)
	return plain(cfg, "lengths of the trace", workload.Shape{Name: "trace lengths",
		Prompt: workload.Lengths{Dist: workload.Empirical, Samples: prompts, File: cfg.Workload.TraceFile},
		Output: workload.Lengths{Dist: workload.Empirical, Samples: outputs, File: cfg.Workload.TraceFile}})
}

func short(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
}

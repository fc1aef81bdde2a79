package design

import (
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
	// read judges the hypothesis by the measurements of all rows, which are keyed by their loads.
	read func(at map[string]*measure.Measurement) (HypothesisResult, string)
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
	rows = []MatrixRow{
		shortChat(cfg), longPrefill(cfg, limit), longDecode(cfg, limit), mixedSaturation(cfg, limit), sharedPrefix(cfg), productionTrace(cfg),
	}
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
	at := map[string]*measure.Measurement{}
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

func verdictOf(holds bool) HypothesisResult {
	if holds {
		return Held
	}
	return Refuted
}

// withoutFigures is the result of a row with missing figures.
func withoutFigures(what string) (HypothesisResult, string) {
	return Unclear, fmt.Sprintf("%s is not known: a trial failed, or was too short to resolve it", what)
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

func chatShape() workload.Shape {
	return workload.Shape{Name: "short chat", Weight: 0.6, Prompt: between(150, 250), Output: between(50, 150)}
}

func prefillShape(limit int) workload.Shape {
	n := within(8000, limit, 100)
	return workload.Shape{Name: "long prefill", Weight: 0.2, Prompt: between(n*7/8, n), Output: between(30, 70)}
}

func decodeShape(limit int) workload.Shape {
	n := within(2000, limit, 200)
	return workload.Shape{Name: "long decode", Weight: 0.2, Prompt: between(80, 120), Output: between(n/2, n)}
}

func shortChat(cfg *config.Config) MatrixRow {
	w := plain(cfg, "short chat", chatShape())
	return MatrixRow{
		ID: "A", Name: "short chat",
		Question:   "Does an interactive user wait for others on a lightly loaded engine?",
		Hypothesis: "At 30 % of the predicted maximum rate p99 TTFT is below 3 times the median TTFT at 10 %.",
		loads: []matrixLoad{{key: "A 10 %", workload: w, share: 0.1, requests: enoughForMeans}, {key: "A 30 %", workload: w, share: 0.3, requests: enoughForP99},
			{key: "A 70 %", workload: w, share: 0.7, requests: enoughForP99}},
		read: func(at map[string]*measure.Measurement) (HypothesisResult, string) {
			idle, light := at["A 10 %"], at["A 30 %"]
			if idle == nil || light == nil || idle.TTFT.P50 <= 0 || light.TTFT.P99 <= 0 {
				return withoutFigures("the median at 10 % or the p99 at 30 %")
			}
			ratio := float64(light.TTFT.P99) / float64(idle.TTFT.P50)
			return verdictOf(ratio < 3), fmt.Sprintf("p99 %s at 30 %%, median %s at 10 %%: %.2f times", short(light.TTFT.P99), short(idle.TTFT.P50), ratio)
		},
	}
}

func longPrefill(cfg *config.Config, limit int) MatrixRow {
	w := plain(cfg, "long prefill", prefillShape(limit))
	return MatrixRow{
		ID: "B", Name: "long prefill",
		Question:   "What does a long prompt cost before the first token?",
		Hypothesis: "At 10 % of the predicted maximum rate the median TTFT is at least 5 times that of short chat.",
		loads:      []matrixLoad{{key: "B 10 %", workload: w, share: 0.1, requests: enoughForMeans}, {key: "B 70 %", workload: w, share: 0.7, requests: enoughForMeans}},
		read: func(at map[string]*measure.Measurement) (HypothesisResult, string) {
			chat, long := at["A 10 %"], at["B 10 %"]
			if chat == nil || long == nil || chat.TTFT.P50 <= 0 || long.TTFT.P50 <= 0 {
				return withoutFigures("a median TTFT")
			}
			ratio := float64(long.TTFT.P50) / float64(chat.TTFT.P50)
			return verdictOf(ratio >= 5), fmt.Sprintf("median %s against %s: %.1f times", short(long.TTFT.P50), short(chat.TTFT.P50), ratio)
		},
	}
}

func longDecode(cfg *config.Config, limit int) MatrixRow {
	w := plain(cfg, "long decode", decodeShape(limit))
	return MatrixRow{
		ID: "C", Name: "long decode",
		Question:   "Where does the time of a long answer go?",
		Hypothesis: "At 10 % of the predicted maximum rate at least 95 % of the mean E2E is behind the first token.",
		loads:      []matrixLoad{{key: "C 10 %", workload: w, share: 0.1, requests: enoughForMeans}, {key: "C 70 %", workload: w, share: 0.7, requests: enoughForMeans}},
		read: func(at map[string]*measure.Measurement) (HypothesisResult, string) {
			m := at["C 10 %"]
			if m == nil || m.TTFT.Mean < 0 || m.E2E.Mean <= 0 {
				return withoutFigures("a mean")
			}
			share := 1 - float64(m.TTFT.Mean)/float64(m.E2E.Mean)
			return verdictOf(share >= 0.95), fmt.Sprintf("%.1f %% of a mean of %s, at %s a token", 100*share, short(m.E2E.Mean), short(m.TPOT.Mean))
		},
	}
}

func mixedSaturation(cfg *config.Config, limit int) MatrixRow {
	w := plain(cfg, "mixed", chatShape(), prefillShape(limit), decodeShape(limit))
	load := func(key string, share float64) matrixLoad {
		return matrixLoad{key: key, workload: w, share: share, requests: enoughForP99}
	}
	return MatrixRow{
		ID: "D", Name: "mixed saturation",
		Question:   "Where does throughput stop to follow the load?",
		Hypothesis: "From 100 % to 130 % of the predicted maximum rate output tokens/s grow by less than half of what the load grows.",
		loads:      []matrixLoad{load("D 70 %", 0.7), load("D 100 %", 1), load("D 130 %", 1.3)},
		read: func(at map[string]*measure.Measurement) (HypothesisResult, string) {
			full, over := at["D 100 %"], at["D 130 %"]
			if full == nil || over == nil || full.OutputTokens <= 0 {
				return withoutFigures("a throughput")
			}
			growth := over.OutputTokens/full.OutputTokens - 1
			return verdictOf(growth < 0.15), fmt.Sprintf("%.0f tokens/s at 100 %%, %.0f at 130 %%: %+.1f %%", full.OutputTokens, over.OutputTokens, 100*growth)
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
		read: func(at map[string]*measure.Measurement) (HypothesisResult, string) {
			off, warm := at["E no cache"], at["E warm"]
			if off == nil || warm == nil || off.TTFT.Mean <= 0 || warm.TTFT.Mean <= 0 {
				return withoutFigures("a mean TTFT")
			}
			ratio := float64(warm.TTFT.Mean) / float64(off.TTFT.Mean)
			text := fmt.Sprintf("mean TTFT %s warm, %s without", short(warm.TTFT.Mean), short(off.TTFT.Mean))
			if cold := at["E cold"]; cold != nil && cold.TTFT.Mean > 0 {
				text += ", " + short(cold.TTFT.Mean) + " from cold on"
			}
			if hits := warm.Server.HitRate; hits != nil {
				text += fmt.Sprintf("; %.0f %% of the prompt tokens were hits", 100**hits)
			}
			return verdictOf(ratio <= 0.5), text
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
	row.read = func(at map[string]*measure.Measurement) (HypothesisResult, string) {
		replayed, poisson := at["F trace"], at["F Poisson"]
		if replayed == nil || poisson == nil || replayed.TTFT.P99 <= 0 || poisson.TTFT.P99 <= 0 {
			return withoutFigures("a p99 TTFT")
		}
		ratio := float64(replayed.TTFT.P99) / float64(poisson.TTFT.P99)
		return verdictOf(ratio >= 1.1), fmt.Sprintf("p99 TTFT %s against %s: %+.0f %%", short(replayed.TTFT.P99), short(poisson.TTFT.P99), 100*(ratio-1))
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

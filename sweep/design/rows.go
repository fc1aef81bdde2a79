package design

import (
	"fmt"
	"slices"
	"time"

	"planner/internal/config"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// getter finds the measurement of a load, nil for one that brought nothing.
type getter = func(key string) *measure.Measurement

// enoughForMeans requests are enough where means and medians are read.
const enoughForMeans = 400

// matrixRows lists the rows of the matrix. Limit is the longest request that the
// model takes, 0 if it is not known.
func matrixRows(cfg *config.Config, limit int) []matrixRow {
	return []matrixRow{
		shortChat(cfg), longPrefill(cfg, limit), longDecode(cfg, limit), mixedSaturation(cfg, limit), sharedPrefix(cfg), productionTrace(cfg),
	}
}

// plain is a workload of one shape with Poisson arrivals.
func plain(cfg *config.Config, name string, shapes ...workload.Shape) *workload.Workload {
	return &workload.Workload{Class: name, Shapes: shapes, Turns: 1, Arrivals: workload.Poisson, Timeout: cfg.Workload.Timeout, Seed: cfg.Workload.Seed}
}

func between(low, high int) workload.Lengths {
	return workload.Lengths{Dist: workload.Uniform, Min: low, Max: high}
}

// within shortens a length so that it leaves room for the rest of a request.
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

func shortChat(cfg *config.Config) matrixRow {
	w := plain(cfg, "short chat", chatShape())
	return matrixRow{
		id: "A", name: "short chat",
		question:   "Does an interactive user wait for others on a lightly loaded engine?",
		hypothesis: "At 30 % of the predicted maximum rate p99 TTFT is below 3 times the median TTFT at 10 %.",
		loads: []matrixLoad{{key: "A 10 %", workload: w, share: 0.1, requests: enoughForMeans}, {key: "A 30 %", workload: w, share: 0.3, requests: enoughForP99},
			{key: "A 70 %", workload: w, share: 0.7, requests: enoughForP99}},
		read: func(get getter) (HypothesisResult, string) {
			idle, light := get("A 10 %"), get("A 30 %")
			if idle == nil || light == nil || idle.TTFT.P50 <= 0 || light.TTFT.P99 <= 0 {
				return withoutFigures("the median at 10 % or the p99 at 30 %")
			}
			ratio := float64(light.TTFT.P99) / float64(idle.TTFT.P50)
			return verdictOf(ratio < 3), fmt.Sprintf("p99 %s at 30 %%, median %s at 10 %%: %.2f times", short(light.TTFT.P99), short(idle.TTFT.P50), ratio)
		},
	}
}

func longPrefill(cfg *config.Config, limit int) matrixRow {
	w := plain(cfg, "long prefill", prefillShape(limit))
	return matrixRow{
		id: "B", name: "long prefill",
		question:   "What does a long prompt cost before the first token?",
		hypothesis: "At 10 % of the predicted maximum rate the median TTFT is at least 5 times that of short chat.",
		loads:      []matrixLoad{{key: "B 10 %", workload: w, share: 0.1, requests: enoughForMeans}, {key: "B 70 %", workload: w, share: 0.7, requests: enoughForMeans}},
		read: func(get getter) (HypothesisResult, string) {
			chat, long := get("A 10 %"), get("B 10 %")
			if chat == nil || long == nil || chat.TTFT.P50 <= 0 || long.TTFT.P50 <= 0 {
				return withoutFigures("a median TTFT")
			}
			ratio := float64(long.TTFT.P50) / float64(chat.TTFT.P50)
			return verdictOf(ratio >= 5), fmt.Sprintf("median %s against %s: %.1f times", short(long.TTFT.P50), short(chat.TTFT.P50), ratio)
		},
	}
}

func longDecode(cfg *config.Config, limit int) matrixRow {
	w := plain(cfg, "long decode", decodeShape(limit))
	return matrixRow{
		id: "C", name: "long decode",
		question:   "Where does the time of a long answer go?",
		hypothesis: "At 10 % of the predicted maximum rate at least 95 % of the mean E2E is behind the first token.",
		loads:      []matrixLoad{{key: "C 10 %", workload: w, share: 0.1, requests: enoughForMeans}, {key: "C 70 %", workload: w, share: 0.7, requests: enoughForMeans}},
		read: func(get getter) (HypothesisResult, string) {
			m := get("C 10 %")
			if m == nil || m.TTFT.Mean < 0 || m.E2E.Mean <= 0 {
				return withoutFigures("a mean")
			}
			share := 1 - float64(m.TTFT.Mean)/float64(m.E2E.Mean)
			return verdictOf(share >= 0.95), fmt.Sprintf("%.1f %% of a mean of %s, at %s a token", 100*share, short(m.E2E.Mean), short(m.TPOT.Mean))
		},
	}
}

func mixedSaturation(cfg *config.Config, limit int) matrixRow {
	w := plain(cfg, "mixed", chatShape(), prefillShape(limit), decodeShape(limit))
	load := func(key string, share float64) matrixLoad {
		return matrixLoad{key: key, workload: w, share: share, requests: enoughForP99}
	}
	return matrixRow{
		id: "D", name: "mixed saturation",
		question:   "Where does throughput stop to follow the load?",
		hypothesis: "From 100 % to 130 % of the predicted maximum rate output tokens/s grow by less than half of what the load grows.",
		loads:      []matrixLoad{load("D 70 %", 0.7), load("D 100 %", 1), load("D 130 %", 1.3)},
		read: func(get getter) (HypothesisResult, string) {
			full, over := get("D 100 %"), get("D 130 %")
			if full == nil || over == nil || full.OutputTokens <= 0 {
				return withoutFigures("a throughput")
			}
			growth := over.OutputTokens/full.OutputTokens - 1
			return verdictOf(growth < 0.15), fmt.Sprintf("%.0f tokens/s at 100 %%, %.0f at 130 %%: %+.1f %%", full.OutputTokens, over.OutputTokens, 100*growth)
		},
	}
}

func sharedPrefix(cfg *config.Config) matrixRow {
	shape := workload.Shape{Name: "shared prefix", Prompt: between(150, 250), Output: between(50, 150), Prefix: workload.Prefix{Groups: 10, Tokens: 2000}}
	w := plain(cfg, "shared prefix", shape)
	load := func(key, temperature string) matrixLoad {
		return matrixLoad{key: key, workload: w, share: 0.5, temperature: temperature, requests: enoughForMeans}
	}
	row := matrixRow{
		id: "E", name: "warm shared prefix",
		question:   "What is a prefix cache worth, cold and warm?",
		hypothesis: "Warm, it halves the mean TTFT at half of the predicted maximum rate against no cache at all.",
		loads:      []matrixLoad{load("E no cache", noCache), load("E cold", coldCache), load("E warm", warmCache)},
		read: func(get getter) (HypothesisResult, string) {
			off, warm := get("E no cache"), get("E warm")
			if off == nil || warm == nil || off.TTFT.Mean <= 0 || warm.TTFT.Mean <= 0 {
				return withoutFigures("a mean TTFT")
			}
			ratio := float64(warm.TTFT.Mean) / float64(off.TTFT.Mean)
			text := fmt.Sprintf("mean TTFT %s warm, %s without", short(warm.TTFT.Mean), short(off.TTFT.Mean))
			if cold := get("E cold"); cold != nil && cold.TTFT.Mean > 0 {
				text += ", " + short(cold.TTFT.Mean) + " from cold on"
			}
			if hits := warm.Server.HitRate; hits != nil {
				text += fmt.Sprintf("; %.0f %% of the prompt tokens were hits", 100**hits)
			}
			return verdictOf(ratio <= 0.5), text
		},
	}
	if !slices.Contains(cfg.Space["prefix_caching"], any(true)) {
		row.missing = "knobs.prefix_caching is false"
	}
	return row
}

func productionTrace(cfg *config.Config) matrixRow {
	row := matrixRow{
		id: "F", name: "production trace",
		question:   "Do real arrivals hurt more than Poisson ones of the same lengths and rate?",
		hypothesis: "At 70 % of the predicted maximum rate p99 TTFT of the trace is at least 10 % above that of Poisson arrivals.",
	}
	if !cfg.Workload.Replayed() {
		row.missing = "the configuration has no trace (workload.trace)"
		return row
	}
	trace := cfg.Workload
	trace.Rates = nil // the mean rate of both is the same
	load := func(key string, w *workload.Workload) matrixLoad {
		return matrixLoad{key: key, workload: w, share: 0.7, requests: max(enoughForP99, float64(len(trace.Replay)))}
	}
	row.loads = []matrixLoad{load("F trace", &trace), load("F Poisson", lengthsOf(cfg))}
	row.read = func(get getter) (HypothesisResult, string) {
		replayed, poisson := get("F trace"), get("F Poisson")
		if replayed == nil || poisson == nil || replayed.TTFT.P99 <= 0 || poisson.TTFT.P99 <= 0 {
			return withoutFigures("a p99 TTFT")
		}
		ratio := float64(replayed.TTFT.P99) / float64(poisson.TTFT.P99)
		return verdictOf(ratio >= 1.1), fmt.Sprintf("p99 TTFT %s against %s: %+.0f %%", short(replayed.TTFT.P99), short(poisson.TTFT.P99), 100*(ratio-1))
	}
	return row
}

// lengthsOf is a workload with the lengths of the trace and Poisson arrivals;
// prompts and outputs are drawn apart and share nothing.
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

package main

import (
	"planner/sweep/measure"
)

// listed are instances that searches once answered wrongly, each with about its
// maximum rate.
func listed() []draft {
	limit := func(m measure.Metric, quantile, factor float64) relative {
		return relative{bound: measure.Bound{Metric: m, Quantile: quantile}, factor: factor}
	}
	of := func(model, gpu string, tp, seqs, tokens int, prompt, output string, limits ...relative) draft {
		d := draft{limits: limits}
		d.set("model.name", model)
		d.set("model.weights", "bf16")
		d.set("hardware.gpu", gpu)
		d.set("engine.tensor_parallel", tp)
		d.set("knobs.max_num_seqs", seqs)
		d.set("knobs.max_num_batched_tokens", tokens)
		d.set("workload.prompt", prompt)
		d.set("workload.output", output)
		return d
	}
	bursty := func(d draft, burstiness float64) draft {
		d.set("workload.arrivals", "gamma")
		d.set("workload.burstiness", burstiness)
		return d
	}
	fixed := map[int]string{100: `{ dist = "fixed", value = 100 }`, 120: `{ dist = "fixed", value = 120 }`, 400: `{ dist = "fixed", value = 400 }`,
		1500: `{ dist = "fixed", value = 1500 }`, 3000: `{ dist = "fixed", value = 3000 }`}
	const answers = `{ dist = "lognormal", median = 400, sigma = 0.6 }`
	first := of("llama-3.1-8b", "L40S", 1, 128, 4096, `{ dist = "uniform", min = 100, max = 900 }`, `{ dist = "uniform", min = 100, max = 500 }`)
	first.set("slo.tpot.p95", "60ms")
	return []draft{
		first, // 7.9/s
		of("qwen2.5-7b", "B200 SXM", 2, 512, 512, fixed[100], fixed[400], limit(measure.TPOT, 0, 15)),                                                   // 169/s
		bursty(of("qwen3-32b", "B200 SXM", 4, 512, 512, fixed[100], fixed[120], limit(measure.TPOT, 0.99, 3)), 2),                                       // 178/s
		of("qwen3-32b", "H200 SXM", 4, 256, 8192, `{ dist = "lognormal", median = 100, sigma = 0.8 }`, answers, limit(measure.TTFT, 0.9, 1.8)),          // 0.62/s
		of("qwen3-8b", "L40S", 2, 128, 16384, fixed[3000], fixed[400], limit(measure.TTFT, 0.5, 15), limit(measure.TPOT, 0.5, 3)),                       // 1.39/s
		bursty(of("qwen2.5-7b", "L40S", 1, 512, 16384, fixed[1500], fixed[400], limit(measure.TTFT, 0.9, 15)), 0.5),                                     // 4.13/s
		bursty(of("qwen3-32b", "L40S", 4, 64, 16384, `{ dist = "lognormal", median = 3000, sigma = 0.8 }`, answers, limit(measure.E2E, 0.5, 1.3)), 0.5), // 0.253/s
	}
}

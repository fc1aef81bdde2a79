package main

import (
	"errors"

	"planner/sweep/measure"
)

// listed are drafts whose searches once went wrong, each with about its maximum rate.
func listed() ([]draft, error) {
	var failed error
	of := func(model, gpu string, tp, seqs, tokens int, prompt, output string, burstiness float64, limits ...relative) draft {
		var d draft
		d.set("model.name", model)
		d.set("model.weights", "bf16")
		d.set("hardware.gpu", gpu)
		d.set("engine.tensor_parallel", tp)
		d.set("knobs.max_num_seqs", seqs)
		d.set("knobs.max_num_batched_tokens", tokens)
		d.set("workload.prompt", prompt)
		d.set("workload.output", output)
		if burstiness > 0 {
			d.set("workload.arrivals", "gamma")
			d.set("workload.burstiness", burstiness)
		}
		failed = errors.Join(failed, d.limit(limits))
		return d
	}
	limit := func(m measure.Metric, quantile, factor float64) relative {
		return relative{bound: measure.Bound{Metric: m, Quantile: quantile}, factor: factor}
	}
	const (
		p100   = `{ dist = "fixed", value = 100 }`
		p1500  = `{ dist = "fixed", value = 1500 }`
		p3000  = `{ dist = "fixed", value = 3000 }`
		spread = `{ dist = "lognormal", median = 100, sigma = 0.8 }`
		long   = `{ dist = "lognormal", median = 3000, sigma = 0.8 }`
		o120   = `{ dist = "fixed", value = 120 }`
		o400   = `{ dist = "fixed", value = 400 }`
		uneven = `{ dist = "lognormal", median = 400, sigma = 0.6 }`
	)
	first := of("llama-3.1-8b", "L40S", 1, 128, 4096, `{ dist = "uniform", min = 100, max = 900 }`, `{ dist = "uniform", min = 100, max = 500 }`, 0)
	first.set("slo.tpot.p95", "60ms")
	return []draft{
		first, // 7.9/s
		of("qwen2.5-7b", "B200 SXM", 2, 512, 512, p100, o400, 0, limit(measure.TPOT, 0, 15)),                             // 166/s
		of("qwen3-32b", "B200 SXM", 4, 512, 512, p100, o120, 2, limit(measure.TPOT, 0.99, 3)),                            // 176/s
		of("qwen3-32b", "H200 SXM", 4, 256, 8192, spread, uneven, 0, limit(measure.TTFT, 0.9, 1.8)),                      // 9/s
		of("qwen3-8b", "L40S", 2, 128, 16384, p3000, o400, 0, limit(measure.TTFT, 0.5, 15), limit(measure.TPOT, 0.5, 3)), // 1.39/s
		of("qwen2.5-7b", "L40S", 1, 512, 16384, p1500, o400, 0.5, limit(measure.TTFT, 0.9, 15)),                          // 4.7/s
		of("qwen3-32b", "L40S", 4, 64, 16384, long, uneven, 0.5, limit(measure.E2E, 0.5, 1.3)),                           // 0.1/s
	}, failed
}

package fleet

import "sort"

// The upper bounds, in seconds, of the histogram buckets for latencies: those of llm-d's router for the time to
// first token and per token, predicted and measured, and those of vLLM for the time to first token. An
// autoscaler sees quantiles computed from them, which can be far from those of the latencies: if every token
// takes between 20 and 40 ms, the router's p90 is 38 ms.
var (
	routerTTFT = [...]float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
		120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	routerTPOT = [...]float64{0.0005, 0.00205, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8,
		1, 1.5, 2, 3, 4.5, 6, 12, 18, 24, 30, 36, 48, 60, 90, 120, 180, 270, 360}
	engineTTFT = [...]float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160,
		640, 2560}
)

// histogramQuantile is a quantile computed from bucket counts as in Prometheus: values are taken as evenly
// spread within a bucket, and those above the last bound as equal to it.
func histogramQuantile(values []float64, q float64, bounds []float64) float64 {
	counts := make([]float64, len(bounds)+1)
	for _, v := range values {
		counts[sort.SearchFloat64s(bounds, v)]++
	}
	rank, low := q*float64(len(values)), 0.0
	for i, high := range bounds {
		if rank <= counts[i] && counts[i] > 0 {
			return low + (high-low)*rank/counts[i]
		}
		rank -= counts[i]
		low = high
	}
	return low
}

package serve

import (
	"slices"
	"strconv"
)

// histogram counts values in buckets, as Prometheus wants it.
type histogram struct {
	name, help string
	bounds     []float64 // upper ends, ascending
	counts     []uint64  // one more than bounds
	sum        float64
}

func newHistogram(name, help string, bounds []float64) *histogram {
	return &histogram{name, help, bounds, make([]uint64, len(bounds)+1), 0}
}

func (h *histogram) observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v) // a bound belongs to its bucket
	h.counts[i]++
	h.sum += v
}

// The buckets of vLLM, in seconds or tokens (vllm/v1/metrics, 0.20 to 0.32).
var (
	firstTokenBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenGapBounds   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds    = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

// lengthBounds are 1, 2, 5, 10, ... up to a length.
func lengthBounds(longest int) []float64 {
	var bounds []float64
	for scale := 1; ; scale *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*scale > longest {
				return bounds
			}
			bounds = append(bounds, float64(m*scale))
		}
	}
}

// exposition writes metrics in Prometheus' text format 0.0.4, every sample with
// the same labels.
type exposition struct {
	b      []byte
	labels string // such as engine="0"
}

func (x *exposition) family(name, kind, help string) {
	x.b = append(x.b, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

func (x *exposition) sample(name, label string, v float64) {
	x.b = append(x.b, name...)
	x.b = append(x.b, '{')
	x.b = append(x.b, x.labels...)
	if label != "" {
		x.b = append(x.b, ","+label...)
	}
	x.b = append(x.b, "} "...)
	x.b = append(x.b, number(v)...)
	x.b = append(x.b, '\n')
}

func (x *exposition) value(name, kind, help string, v float64) {
	x.family(name, kind, help)
	x.sample(name, "", v)
}

func (x *exposition) histogram(h *histogram) {
	x.family(h.name, "histogram", h.help)
	total := uint64(0)
	for i, n := range h.counts {
		total += n
		le := "+Inf"
		if i < len(h.bounds) {
			le = number(h.bounds[i])
		}
		x.sample(h.name+"_bucket", `le="`+le+`"`, float64(total))
	}
	x.sample(h.name+"_count", "", float64(total))
	x.sample(h.name+"_sum", "", h.sum)
}

// number writes integers as Python does, from which scrapers of vLLM know them.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if v == float64(int64(v)) && v < 1e15 {
		s = strconv.FormatFloat(v, 'f', 1, 64)
	}
	return s
}

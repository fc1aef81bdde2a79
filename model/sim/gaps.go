package sim

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// gaps collects inter-token times.
type gaps struct {
	histogram *hdrhistogram.Histogram
	// last is when each request's newest token came, as long as its tokens are
	// looked at one by one.
	last []float64
}

// longestGap is the longest inter-token time that is told apart: an hour, in
// microseconds.
const longestGap = 3600 * 1e6

func newGaps(requests int) gaps {
	return gaps{hdrhistogram.New(1, longestGap, 3), make([]float64, requests)}
}

func (g *gaps) record(seconds float64, n int) {
	us := int64(math.Round(min(max(seconds*1e6, 1), longestGap)))
	// The value is in range, so there is no error to see.
	_ = g.histogram.RecordValues(us, int64(n))
}

// counted reports whether a request's gaps are asked for.
func (r *run) counted(id int) bool {
	due := r.records[id].Due
	return r.load.Gaps && due >= r.load.GapsFrom && due < r.load.GapsTo
}

// countGaps records the time between a request's token and the one before.
func (r *run) countGaps(c *core, e *Events) {
	if !r.load.Gaps {
		return
	}
	g := &r.gaps
	for _, id := range e.First {
		g.last[id] = c.now
	}
	for _, id := range e.Tokens {
		g.record(c.now-g.last[id], 1)
		g.last[id] = c.now
	}
	r.steadyGap(c.now-c.heard, e.Steady)
}

// steadyGap records the gap of n requests that got a token in each of the last two
// outputs.
func (r *run) steadyGap(seconds float64, n int) {
	if n > 0 {
		r.gaps.record(seconds, n)
	}
}

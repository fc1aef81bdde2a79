package engine

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
)

// metric is one of the figures that an engine's page of metrics tells.
type metric int

// What is looked for on a page. Sums and counts are those of histograms, whose
// buckets are too coarse for short requests.
const (
	runningRequests metric = iota
	waitingRequests
	kvUsage
	prefixQueries
	prefixHits
	preemptions
	promptTokens
	outputTokens
	ttftSum
	ttftCount
	queueSum
	queueCount
	numMetrics
)

// metricNames are the names that one kind of engine has for its metrics; of
// several the first one on the page counts. What is not named the engine does
// not tell.
type metricNames map[metric][]string

// reading is what one page of metrics tells. NaN is what it does not tell.
type reading [numMetrics]float64

// unread is a page that tells nothing.
func unread() (r reading) {
	for m := range r {
		r[m] = math.NaN()
	}
	return r
}

// known reports whether the page told anything.
func (r *reading) known() bool {
	return !math.IsNaN(r[runningRequests]) || !math.IsNaN(r[waitingRequests]) || !math.IsNaN(r[outputTokens])
}

// read picks a reading from a page. Values of several engines of one server
// (data parallel) are added, but for the share of the cache, whose largest
// counts.
func (names metricNames) read(page []byte) reading {
	sums, largest := map[string]float64{}, map[string]float64{}
	for series, value := range parseMetrics(page) {
		name, _, _ := strings.Cut(series, "{")
		sums[name] += value
		if old, ok := largest[name]; !ok || value > old {
			largest[name] = value
		}
	}
	r := unread()
	for m, candidates := range names {
		values := sums
		if m == kvUsage {
			values = largest
		}
		for _, name := range slices.Backward(candidates) {
			if x, ok := values[name]; ok {
				r[m] = x
			}
		}
	}
	// Some releases of some engines give percent under a name that says share.
	if r[kvUsage] > 1.5 {
		r[kvUsage] /= 100
	}
	return r
}

// parseMetrics reads the series of a page, each a name with labels in braces, and
// their values: the Prometheus text format 0.0.4, and of OpenMetrics what looks
// the same. Comments and lines that are neither are left out: a page with one
// broken line still tells the rest. So are buckets, which are most of a page.
func parseMetrics(page []byte) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for line := range bytes.Lines(page) {
			if line[0] == '#' || bytes.Contains(line, []byte("_bucket{")) {
				continue
			}
			text := strings.TrimSpace(string(line))
			fields := strings.Fields(text[seriesEnd(text):])
			if len(fields) == 0 {
				continue
			}
			value, err := strconv.ParseFloat(fields[0], 64)
			if err == nil && !yield(text[:seriesEnd(text)], value) {
				return
			}
		}
	}
}

// seriesEnd is where the name and labels end that a line begins with; all of it
// where there is no value behind them.
func seriesEnd(line string) int {
	end := strings.IndexAny(line, "{ \t")
	if end <= 0 {
		return len(line)
	}
	quoted := false
	for i := end; line[end] == '{'; i++ {
		switch {
		case i >= len(line):
			return len(line)
		case quoted && line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == '}' && !quoted:
			return i + 1
		}
	}
	return end
}

// label returns the value of a label of a series, "" if there is none.
func label(series, name string) string {
	_, rest, _ := strings.Cut(series, "{")
	for rest != "" {
		key, after, _ := strings.Cut(rest, "=")
		value, err := strconv.QuotedPrefix(after)
		if err != nil {
			return ""
		}
		if strings.Trim(key, ", ") == name {
			plain, _ := strconv.Unquote(value)
			return plain
		}
		rest = after[len(value):]
	}
	return ""
}

// readIterations picks a reading from TensorRT-LLM's page, a JSON list of the
// iterations since it was last asked for. An empty list is an idle engine.
func readIterations(page []byte) reading {
	r := unread()
	var all []struct {
		Active *float64 `json:"numActiveRequests"`
		Queued *float64 `json:"numQueuedRequests"`
		KV     struct {
			Used   float64  `json:"usedNumBlocks"`
			Most   float64  `json:"maxNumBlocks"`
			Reused *float64 `json:"reusedBlocks"`
			Missed *float64 `json:"missedBlocks"`
		} `json:"kvCacheStats"`
	}
	if json.Unmarshal(page, &all) != nil {
		return r
	}
	if len(all) == 0 {
		r[runningRequests], r[waitingRequests] = 0, 0
		return r
	}
	last := all[len(all)-1]
	if last.Active != nil {
		r[runningRequests] = *last.Active
	}
	if last.Queued != nil {
		r[waitingRequests] = *last.Queued
	}
	if last.KV.Most > 0 {
		r[kvUsage] = last.KV.Used / last.KV.Most
	}
	if last.KV.Reused != nil && last.KV.Missed != nil {
		r[prefixHits], r[prefixQueries] = *last.KV.Reused, *last.KV.Reused+*last.KV.Missed
	}
	return r
}

package engine

import (
	"bytes"
	"iter"
	"math"
	"strconv"
	"strings"
)

// sample is one line of a metrics page. labels is the text between the braces.
type sample struct {
	name, labels string
	value        float64
}

// bucket marks the lines of histograms that are most of a page and are not
// used: their bounds are too coarse for short requests, so that only sums and
// counts are.
var bucket = []byte("_bucket{")

// parseMetrics reads the Prometheus text format 0.0.4, and of OpenMetrics what
// looks the same. Comments and lines that are neither are left out: a page with
// one broken line still tells the rest.
func parseMetrics(page []byte) iter.Seq[sample] {
	return func(yield func(sample) bool) {
		for line := range bytes.Lines(page) {
			if bytes.Contains(line, bucket) {
				continue
			}
			if s, ok := parseSample(strings.TrimSpace(string(line))); ok && !yield(s) {
				return
			}
		}
	}
}

func parseSample(line string) (sample, bool) {
	if line == "" || line[0] == '#' {
		return sample{}, false
	}
	var s sample
	rest := ""
	if open := strings.IndexAny(line, "{ \t"); open < 0 {
		return sample{}, false
	} else if line[open] == '{' {
		end := labelsEnd(line[open:])
		if end < 0 {
			return sample{}, false
		}
		s.name, s.labels, rest = line[:open], line[open+1:open+end], line[open+end+1:]
	} else {
		s.name, rest = line[:open], line[open:]
	}
	fields := strings.Fields(rest)
	if s.name == "" || len(fields) == 0 {
		return sample{}, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return sample{}, false
	}
	s.value = value
	return s, true
}

// labelsEnd finds the brace that closes s[0], outside of quotes; -1 if none
// does.
func labelsEnd(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i
		}
	}
	return -1
}

// label returns the value of a label, "" if there is none.
func (s sample) label(name string) string {
	rest := s.labels
	for rest != "" {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || len(after) < 2 || after[0] != '"' {
			return ""
		}
		end := 1
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return ""
		}
		if strings.TrimSpace(key) == name {
			return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(after[1:end])
		}
		rest = strings.TrimLeft(after[end+1:], ", ")
	}
	return ""
}

// series names the metrics of one kind of engine; of several names the first
// one on the page counts. What is not named the engine does not tell.
type series struct {
	running, waiting, kv       []string
	queries, hits, preemptions []string
	prompt, generated          []string
	ttft, queue                string
}

// scrape says where an engine's metrics are and how they are called.
type scrape struct {
	path   string
	series series
	// json: the page is TensorRT-LLM's list of iterations.
	json bool
	// any: the names are those of whatever engine it turns out to be.
	any bool
}

// reading is what one page of metrics tells. NaN is what it does not tell.
type reading struct {
	running, waiting, kv       float64
	queries, hits, preemptions float64
	prompt, generated          float64
	ttftSum, ttftCount         float64
	queueSum, queueCount       float64
}

// read picks a reading from a page. Values of several engines of one server
// (data parallel) are added, but for the share of the cache, whose largest
// counts.
func (s *series) read(page []byte) reading {
	values, most := map[string]float64{}, map[string]float64{}
	for m := range parseMetrics(page) {
		values[m.name] += m.value
		if old, ok := most[m.name]; !ok || m.value > old {
			most[m.name] = m.value
		}
	}
	first := func(from map[string]float64, names ...string) float64 {
		for _, n := range names {
			if v, ok := from[n]; ok && n != "" {
				return v
			}
		}
		return math.NaN()
	}
	r := reading{
		running: first(values, s.running...), waiting: first(values, s.waiting...), kv: first(most, s.kv...),
		queries: first(values, s.queries...), hits: first(values, s.hits...), preemptions: first(values, s.preemptions...),
		prompt: first(values, s.prompt...), generated: first(values, s.generated...),
		ttftSum: first(values, s.ttft+"_sum"), ttftCount: first(values, s.ttft+"_count"),
		queueSum: first(values, s.queue+"_sum"), queueCount: first(values, s.queue+"_count"),
	}
	// Some releases of some engines give percent under a name that says share.
	if r.kv > 1.5 {
		r.kv /= 100
	}
	return r
}

// known reports whether the page told anything.
func (r reading) known() bool {
	return !math.IsNaN(r.running) || !math.IsNaN(r.waiting) || !math.IsNaN(r.generated)
}

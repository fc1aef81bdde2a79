package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"planner/internal/endpoint"
)

// Snapshot is the state of an engine at one moment, with what it did since the previous one. What
// it does not report is NaN.
type Snapshot struct {
	// At is the time since the start of the sampling.
	At time.Duration `json:"at_s"`
	// Running and Waiting count requests, KV is the share of the cache in use.
	Running float64 `json:"running"`
	Waiting float64 `json:"waiting"`
	KV      float64 `json:"kv_usage"`
	Counters
}

// Counters is what the counters of an engine say about the time between two readings. What they do
// not say is NaN, or negative for a time.
type Counters struct {
	// TTFT is the mean time to first token of FirstTokens requests as the front end sees it, Queue
	// the mean time until a request is first scheduled, both from differences of sums and counts.
	TTFT        time.Duration `json:"ttft_mean_ms"`
	Queue       time.Duration `json:"queue_mean_ms"`
	FirstTokens int           `json:"first_tokens"`
	Preemptions float64       `json:"preemptions"`
	// HitRate is the share of prompt tokens found in the prefix cache.
	HitRate float64 `json:"prefix_hit_rate"`
	// PromptRate and OutputRate are tokens per second.
	PromptRate float64 `json:"prompt_tokens_per_s"`
	OutputRate float64 `json:"output_tokens_per_s"`
}

// Metrics is what an engine reports about a period of time.
type Metrics struct {
	// Counters cover the whole period.
	Counters
	// PeakKV is the largest share of the cache in use, NaN if not reported.
	PeakKV float64 `json:"peak_kv_usage"`
	// Answered and Missed count the readings that did and did not bring known metrics.
	Answered int `json:"samples"`
	Missed   int `json:"missed"`
	// Snapshots and GPUs are the samples, and GPU sums up those of the GPUs; nil if there are none.
	Snapshots []Snapshot  `json:"-"`
	GPUs      []GPUSample `json:"-"`
	GPU       *GPUUse     `json:"-"`
}

const sampleEvery = time.Second

// Sampling reads the metrics of an engine and its GPUs about once a second. [Engine.Sample] starts
// it.
type Sampling struct {
	engine  *Engine
	cancel  context.CancelFunc
	over    sync.WaitGroup
	started time.Time
	names   metricNames

	mu sync.Mutex
	// mu guards the fields below.
	metrics     Metrics
	first, last *reading
	lastAt      time.Duration
	moved       time.Time
	// mute says that the last request for metrics got no answer.
	mute bool
}

// Sample starts to read the metrics of the engine, until Stop is called.
func (e *Engine) Sample(ctx context.Context) *Sampling {
	ctx, cancel := context.WithCancel(ctx)
	now := time.Now()
	s := &Sampling{engine: e, cancel: cancel, started: now, moved: now, names: e.adapter.metrics, metrics: Metrics{PeakKV: math.NaN(), Counters: unknownCounters}}
	s.watchGPUs(ctx)
	s.read(ctx)
	s.over.Go(func() { again(ctx, sampleEvery, func() { s.read(ctx) }) })
	return s
}

func again(ctx context.Context, period time.Duration, f func()) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

func (s *Sampling) read(ctx context.Context) {
	page, err := s.engine.call(ctx, http.MethodGet, "/metrics", nil, probeLimit)
	at := time.Since(s.started)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return // the sampling ended, not the engine
	}
	r := s.parse(page)
	s.mute = err != nil && endpoint.StatusOf(err) == 0
	if err != nil || !r.known() {
		s.metrics.Missed++
		return
	}
	now := Snapshot{At: at, Running: sound(r[runningRequests]), Waiting: sound(r[waitingRequests]), KV: share(r[kvUsage]), Counters: unknownCounters}
	if s.first == nil {
		s.first = &r
	} else if at > s.lastAt {
		now.Counters = between(s.last, &r, at-s.lastAt)
		// NaN, an unreported count, does not count as moved.
		if math.Abs(r[outputTokens]-s.last[outputTokens]) > 0 || math.Abs(r[promptTokens]-s.last[promptTokens]) > 0 {
			s.moved = time.Now()
		}
	}
	s.last, s.lastAt = &r, at
	s.metrics.Answered++
	s.metrics.Snapshots = append(s.metrics.Snapshots, now)
	s.metrics.PeakKV = larger(s.metrics.PeakKV, now.KV)
}

// parse reads a page, and finds out which kind of engine it is from if that is not known.
func (s *Sampling) parse(page []byte) reading {
	if bytes.HasPrefix(bytes.TrimSpace(page), []byte("[")) {
		return readIterations(page) // of TensorRT-LLM
	}
	model := s.engine.Facts.Model
	for i := 0; s.names == nil && i < len(adapters); i++ {
		if r := adapters[i].metrics.read(page, model); r.known() {
			s.names = adapters[i].metrics
		}
	}
	return s.names.read(page, model)
}

// Idle returns for how long the engine's token counters have not moved; false if it has none, has
// not answered yet, or is not sampled.
func (s *Sampling) Idle() (time.Duration, bool) {
	if s == nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || math.IsNaN(s.last[outputTokens]) {
		return 0, false
	}
	return time.Since(s.moved), true
}

// Mute reports whether an engine that reported metrics before no longer answers.
func (s *Sampling) Mute() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last != nil && s.mute
}

// Stop ends the sampling and returns what was seen. It takes a last reading now if the engine has
// ever answered and did so when it was last asked.
func (s *Sampling) Stop(ctx context.Context) Metrics {
	s.cancel()
	s.over.Wait()
	if s.last != nil && !s.mute {
		s.read(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.metrics
	m.GPU = sumGPU(m.GPUs)
	if s.first != nil && s.last != s.first {
		m.Counters = between(s.first, s.last, s.lastAt-m.Snapshots[0].At)
	}
	return m
}

// unknownCounters stands for counters that are not reported.
var unknownCounters = Counters{TTFT: -1, Queue: -1, Preemptions: math.NaN(), HitRate: math.NaN(), PromptRate: math.NaN(), OutputRate: math.NaN()}

// between returns what the counters of two readings say about the time between them.
func between(a, b *reading, took time.Duration) Counters {
	more := func(m int) float64 { return b[m] - a[m] }
	per := func(m int, n float64) float64 {
		if !(n > 0) {
			return math.NaN()
		}
		return sound(more(m) / n)
	}
	mean := func(sum, count int) time.Duration {
		if x := per(sum, more(count)); x >= 0 {
			return time.Duration(x * float64(time.Second))
		}
		return -1
	}
	c := Counters{
		Preemptions: sound(more(preemptions)), HitRate: share(per(prefixHits, more(prefixQueries))),
		PromptRate: per(promptTokens, took.Seconds()), OutputRate: per(outputTokens, took.Seconds()),
		TTFT: mean(ttftSum, ttftCount), Queue: mean(queueSum, queueCount),
	}
	if n := more(ttftCount); n > 0 {
		c.FirstTokens = int(n)
	}
	return c
}

// sound returns x, or NaN, which stands for unknown, if no count can have that value.
func sound(x float64) float64 {
	if x > 1<<53 || x < 0 {
		return math.NaN()
	}
	return x
}

// share returns x, or NaN if it is not a share.
func share(x float64) float64 {
	if x > 1 {
		return math.NaN()
	}
	return sound(x)
}

// larger returns the larger of two figures, either of which may be unknown.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// What is looked for on a page. Sums and counts are those of histograms, whose buckets are too
// coarse for short requests.
const (
	runningRequests = iota
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
	tpotSum
	e2eSum
	numMetrics
)

// metricNames are the names that one kind of engine has for its metrics; of several names, the
// first that the page has counts. A metric without a name is not reported by the engine.
type metricNames map[int][]string

// reading is what one page of metrics says; NaN for what it does not say.
type reading [numMetrics]float64

func unread() (r reading) {
	for m := range r {
		r[m] = math.NaN()
	}
	return r
}

func (r *reading) known() bool {
	return !math.IsNaN(r[runningRequests]) || !math.IsNaN(r[waitingRequests]) || !math.IsNaN(r[outputTokens])
}

// read picks a reading from a page. Values of several engines of one server (data parallel) are
// added, except the share of the cache in use, whose maximum counts. Series of other models are
// left out if the page has some of the given model.
func (names metricNames) read(page []byte, model string) reading {
	sums, largest := map[string]float64{}, map[string]float64{}
	ours := "model_name=" + strconv.Quote(model)
	mixed := bytes.Contains(page, []byte(ours))
	for series, value := range parseMetrics(page) {
		name, labels, _ := strings.Cut(series, "{")
		if mixed && strings.Contains(labels, "model_name=") && !strings.Contains(labels, ours) {
			continue
		}
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
	// Some releases of some engines give a percentage under a name that says share.
	if r[kvUsage] > 1.5 {
		r[kvUsage] /= 100
	}
	return r
}

// seriesLine matches a line of a page: a name with labels in braces, and a value.
var seriesLine = regexp.MustCompile(`^\s*([^#{\s][^{\s]*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?)\s+(\S+)`)

// parseMetrics yields the series of a page, each a name with labels in braces, and their values:
// the Prometheus text format 0.0.4, and those parts of OpenMetrics that look the same. Comments and
// malformed lines are skipped: a page with one broken line still tells the rest. So are buckets,
// which are most of a page.
func parseMetrics(page []byte) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for line := range bytes.Lines(page) {
			if bytes.Contains(line, []byte("_bucket{")) {
				continue
			}
			if m := seriesLine.FindSubmatch(line); m != nil {
				value, err := strconv.ParseFloat(string(m[2]), 64)
				if err == nil && !yield(string(m[1]), value) {
					return
				}
			}
		}
	}
}

// labelPair matches a label of a series and its value in quotes.
var labelPair = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*")`)

func label(series, name string) string {
	for _, m := range labelPair.FindAllStringSubmatch(series, -1) {
		if m[1] == name {
			plain, _ := strconv.Unquote(m[2])
			return plain
		}
	}
	return ""
}

// readIterations picks a reading from TensorRT-LLM's page, a JSON list of the iterations since the
// last request for it. An empty list means an idle engine.
func readIterations(page []byte) reading {
	r, nan := unread(), math.NaN()
	var all []json.RawMessage
	if json.Unmarshal(page, &all) != nil {
		return r
	}
	if len(all) == 0 {
		r[runningRequests], r[waitingRequests] = 0, 0
		return r
	}
	type blocks struct {
		Used   float64 `json:"usedNumBlocks"`
		Most   float64 `json:"maxNumBlocks"`
		Reused float64 `json:"reusedBlocks"`
		Missed float64 `json:"missedBlocks"`
	}
	last := struct {
		Active float64 `json:"numActiveRequests"`
		Queued float64 `json:"numQueuedRequests"`
		KV     blocks  `json:"kvCacheStats"`
	}{nan, nan, blocks{Reused: nan, Missed: nan}}
	if json.Unmarshal(all[len(all)-1], &last) == nil {
		r[runningRequests], r[waitingRequests], r[kvUsage] = last.Active, last.Queued, last.KV.Used/last.KV.Most
		r[prefixHits], r[prefixQueries] = last.KV.Reused, last.KV.Reused+last.KV.Missed
	}
	return r
}

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

// Snapshot is the state of an engine at one moment, with what it did since the
// one before. What it does not tell is NaN.
type Snapshot struct {
	// At counts from the start of the sampling.
	At time.Duration `json:"at_s"`
	// Running and Waiting count requests, KV is the share of the cache in use.
	Running float64 `json:"running"`
	Waiting float64 `json:"waiting"`
	KV      float64 `json:"kv_usage"`
	Counters
}

// Counters is what the counters of an engine tell of the time between two readings.
// What they do not tell is NaN, and a time that they do not tell negative.
type Counters struct {
	// TTFT and Queue are means over FirstTokens requests, by difference of sums and
	// counts: the time to first token as its front end sees it, and the time
	// until a request is first scheduled.
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

// Metrics is what an engine says of a stretch of time.
type Metrics struct {
	// Counters are of the whole stretch.
	Counters
	// PeakKV is the largest share of the cache in use, NaN where it is not told.
	PeakKV float64 `json:"peak_kv_usage"`
	// Answered and Missed count the times at which it did and did not answer.
	Answered int `json:"samples"`
	Missed   int `json:"missed"`
	// Snapshots and GPUs are the samples, and GPU sums up those of the GPUs; nil where
	// there is none that can be asked.
	Snapshots []Snapshot  `json:"-"`
	GPUs      []GPUSample `json:"-"`
	GPU       *GPUUse     `json:"-"`
}

const sampleEvery = time.Second

// Sampling reads the metrics of an engine and its GPUs once a second.
// [Engine.Sample] starts it.
type Sampling struct {
	engine  *Engine
	cancel  context.CancelFunc
	over    sync.WaitGroup
	started time.Time
	names   metricNames

	mu sync.Mutex
	// All below is guarded by mu.
	metrics     Metrics
	first, last *reading
	lastAt      time.Duration
	moved       time.Time
	// mute says that no answer came when it was last asked.
	mute bool
}

// Sample starts to read the metrics of the engine, until Stop.
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
		return // the end of the sampling, not of the engine
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
		// A count that is not told does not move.
		if math.Abs(r[outputTokens]-s.last[outputTokens]) > 0 || math.Abs(r[promptTokens]-s.last[promptTokens]) > 0 {
			s.moved = time.Now()
		}
	}
	s.last, s.lastAt = &r, at
	s.metrics.Answered++
	s.metrics.Snapshots = append(s.metrics.Snapshots, now)
	s.metrics.PeakKV = larger(s.metrics.PeakKV, now.KV)
}

// parse reads a page, and finds out whose it is where that is not known.
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

// Idle is for how long the engine's counters of tokens have not moved; false if
// it has none or did not answer at all, or nobody asks.
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

// Mute reports whether an engine that told of itself before does not answer any more.
func (s *Sampling) Mute() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last != nil && s.mute
}

// Stop ends the sampling and returns what was seen. The last reading is taken
// now, of an engine that ever answered, and did when it was last asked.
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

// unknownCounters is what an engine without counters tells.
var unknownCounters = Counters{TTFT: -1, Queue: -1, Preemptions: math.NaN(), HitRate: math.NaN(), PromptRate: math.NaN(), OutputRate: math.NaN()}

// between is what the counters of two readings tell of the time between them.
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

// sound makes what cannot be NaN, as what is not known is.
func sound(x float64) float64 {
	if x > 1<<53 || x < 0 {
		return math.NaN()
	}
	return x
}

// share makes what is no share NaN.
func share(x float64) float64 {
	if x > 1 {
		return math.NaN()
	}
	return sound(x)
}

// larger is the larger of two figures, of which either may not be known.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// What is looked for on a page. Sums and counts are those of histograms, whose
// buckets are too coarse for short requests.
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

// metricNames are the names that one kind of engine has for its metrics; of
// several the first one on the page counts. What is not named the engine does
// not tell.
type metricNames map[int][]string

// reading is what one page of metrics tells. NaN is what it does not tell.
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

// read picks a reading from a page. Values of several engines of one server
// (data parallel) are added, but for the share of the cache, whose largest
// counts; those of other models than the one given are left out where that has its own.
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
	// Some releases of some engines give percent under a name that says share.
	if r[kvUsage] > 1.5 {
		r[kvUsage] /= 100
	}
	return r
}

// seriesLine is a line of a page: a name with labels in braces, and a value.
var seriesLine = regexp.MustCompile(`^\s*([^#{\s][^{\s]*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?)\s+(\S+)`)

// parseMetrics reads the series of a page, each a name with labels in braces, and
// their values: the Prometheus text format 0.0.4, and of OpenMetrics what looks
// the same. Comments and lines that are neither are left out: a page with one
// broken line still tells the rest. So are buckets, which are most of a page.
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

// labelPair is a label of a series, and its value in quotes.
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

// readIterations picks a reading from TensorRT-LLM's page, a JSON list of the
// iterations since it was last asked for. An empty list is an idle engine.
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

package engine

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"
)

// Snapshot is the state of an engine at one moment, with what it did since the
// sample before. What it does not tell is negative.
type Snapshot struct {
	// At counts from the start of the sampling.
	At time.Duration
	// Running and Waiting count requests, KV is the share of the cache in use.
	Running, Waiting, KV float64
	Counters
}

// Counters is what the counters of an engine tell of the time between two readings.
// What they do not tell is negative.
type Counters struct {
	Preemptions float64
	// HitRate is the share of prompt tokens found in the prefix cache.
	HitRate float64
	// PromptRate and OutputRate are tokens per second.
	PromptRate, OutputRate float64
	// TTFT and Queue are means over FirstTokens requests, by difference of sums and
	// counts: the time to first token as its front end sees it, and the time
	// until a request is first scheduled.
	TTFT, Queue time.Duration
	FirstTokens int
}

// Metrics is what an engine says of a stretch of time. What it does not tell is
// negative.
type Metrics struct {
	Snapshots []Snapshot
	// Missed counts the times at which it did not answer.
	Missed int
	// PeakKV is the largest share of the cache in use.
	PeakKV float64
	// Counters are of the whole stretch.
	Counters
	// GPU sums up GPUs; nil where there is none that can be asked.
	GPU  *GPUUse
	GPUs []GPUSample
}

// sampleEvery is how often an engine's metrics are read.
const sampleEvery = time.Second

// Sampling reads the metrics of an engine once a second. [Engine.Sample] starts
// it.
type Sampling struct {
	engine  *Engine
	cancel  context.CancelFunc
	over    sync.WaitGroup
	started time.Time
	series  *series
	gpu     *gpuWatch

	mu sync.Mutex
	// All below is guarded by mu.
	samples     []Snapshot
	missed      int
	first, last *reading
	lastAt      time.Duration
	moved       time.Time
}

// Sample starts to read the metrics of the engine, until Stop.
func (e *Engine) Sample(ctx context.Context) *Sampling {
	ctx, cancel := context.WithCancel(ctx)
	now := time.Now()
	s := &Sampling{engine: e, cancel: cancel, started: now, moved: now, gpu: watchGPU(ctx, e.settings.Env)}
	if !e.adapter.scrape.any {
		s.series = &e.adapter.scrape.series
	}
	s.read(ctx)
	s.over.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.read(ctx)
			}
		}
	})
	return s
}

// read takes one sample.
func (s *Sampling) read(ctx context.Context) {
	page, err := s.engine.caller.call(ctx, http.MethodGet, s.engine.adapter.scrape.path, nil, probeLimit)
	at := time.Since(s.started)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return // the end of the sampling, not of the engine
	}
	if err != nil {
		s.missed++
		return
	}
	r := s.parse(page)
	if !r.known() {
		s.missed++
		return
	}
	sample := Snapshot{At: at, Running: orMinus(r.running), Waiting: orMinus(r.waiting), KV: orMinus(r.kv), Counters: unknownCounters}
	if s.first == nil {
		s.first = &r
	} else if at > s.lastAt {
		sample.Counters = since(s.last, &r, at-s.lastAt)
		if s.last.generated != r.generated || s.last.prompt != r.prompt {
			s.moved = time.Now()
		}
	}
	s.last, s.lastAt = &r, at
	s.samples = append(s.samples, sample)
}

// parse reads a page, and finds out whose it is where that is not known.
func (s *Sampling) parse(page []byte) reading {
	if s.engine.adapter.scrape.json {
		return readIterations(page)
	}
	if s.series == nil {
		for i := range adapters {
			if r := adapters[i].scrape.series.read(page); r.known() {
				s.series = &adapters[i].scrape.series
				return r
			}
		}
		return (&series{}).read(nil)
	}
	return s.series.read(page)
}

// Idle is for how long the engine's counters of tokens have not moved; false if
// it has none or did not answer at all.
func (s *Sampling) Idle() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || math.IsNaN(s.last.generated) {
		return 0, false
	}
	return time.Since(s.moved), true
}

// Stop ends the sampling and returns what was seen. The last reading is taken
// now.
func (s *Sampling) Stop(ctx context.Context) Metrics {
	s.cancel()
	s.over.Wait()
	s.read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	said := Metrics{Snapshots: s.samples, Missed: s.missed, PeakKV: -1, Counters: unknownCounters}
	if s.gpu != nil {
		said.GPU, said.GPUs = s.gpu.stop()
	}
	for _, x := range s.samples {
		said.PeakKV = max(said.PeakKV, x.KV)
	}
	if s.first != nil && s.last != s.first {
		said.Counters = since(s.first, s.last, s.lastAt-s.samples[0].At)
	}
	return said
}

// unknownCounters is what an engine without counters tells.
var unknownCounters = Counters{Preemptions: -1, HitRate: -1, PromptRate: -1, OutputRate: -1, TTFT: -1, Queue: -1}

// since is what two readings tell of the time between them.
func since(a, b *reading, between time.Duration) Counters {
	said := unknownCounters
	said.Preemptions = orMinus(b.preemptions - a.preemptions)
	if q := b.queries - a.queries; q > 0 {
		said.HitRate = orMinus((b.hits - a.hits) / q)
	}
	said.PromptRate = rate(a.prompt, b.prompt, between.Seconds())
	said.OutputRate = rate(a.generated, b.generated, between.Seconds())
	mean := func(sum, count float64) time.Duration {
		if count > 0 && sum >= 0 {
			return time.Duration(sum / count * float64(time.Second))
		}
		return -1
	}
	said.TTFT = mean(b.ttftSum-a.ttftSum, b.ttftCount-a.ttftCount)
	said.Queue = mean(b.queueSum-a.queueSum, b.queueCount-a.queueCount)
	if n := b.ttftCount - a.ttftCount; n > 0 {
		said.FirstTokens = int(n)
	}
	return said
}

// orMinus makes what is not known, or cannot be, negative.
func orMinus(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return -1
	}
	return x
}

func rate(a, b, seconds float64) float64 {
	if seconds <= 0 {
		return -1
	}
	return orMinus((b - a) / seconds)
}

package load

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/internal/list"
	"planner/internal/secret"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Interim is the state of a load test while it runs.
type Interim struct {
	// Elapsed counts from the start of the trial; Left is what remains of its
	// schedule, negative where that is not known (a closed loop).
	Elapsed, Left time.Duration
	// Sent counts the requests that left, Done those that ended in any way, and Failed those of
	// them that ended badly.
	Sent, Done, Failed, InFlight int
	// Rate is the requests sent per second over the last whole second.
	Rate float64
	// TTFT50 and TTFT99 are quantiles over the requests of the window that
	// ended well so far; negative before the first.
	TTFT50, TTFT99 time.Duration
}

// tokenCounts tells where the numbers of tokens come from: sums over the requests that ended well.
type tokenCounts struct {
	// counted is the number of requests whose tokens the server counted.
	counted int
	// prompted and asked are prompt tokens by the server's count and as asked
	// for, of the same requests.
	prompted, asked int
	// tokens and events are those of requests whose tokens the server counted, wanted the tokens
	// that these asked for.
	tokens, events, wanted int
	// excess is how many of these had more events than tokens.
	excess int
	// chunks and coalesced are the events of all requests and those of them that share a read with
	// another; several and bunched are the requests of two tokens and more and those of them whose
	// tokens came at once.
	chunks, coalesced, several, bunched int
	// models counts the answers that name a model, by its name, of the first mostModels.
	models map[string]int
	// texts holds the answers whose tokens nobody has counted yet, by request.
	texts map[int]uncountedAnswer
}

// uncountedAnswer is an answer without a count: its text and the number of events that it came in.
type uncountedAnswer struct {
	text   string
	events int
}

// mostModels is how many names of models are told apart.
const mostModels = 4

// recorder keeps the records and the sums of a load test. All that changes is behind one lock,
// which a request takes three times at most.
type recorder struct {
	schedule []workload.Request
	start    time.Time
	// secrets are kept out of records.
	secrets secret.Set
	// Requests due from from on, and before to, are those of the window; none is sent from end on.
	from, to, end time.Duration

	mu sync.Mutex
	// records are those of the requests that have left; the others are zero.
	records []measure.Record
	flying  map[int]*inFlight
	status  Interim
	// sentBefore is what had been sent when the present second began.
	sentBefore int
	client     Telemetry
	tokens     tokenCounts
	log        *histogramLog
	// Of the requests of the window: lag of all; ttft, and gaps, also by class, of those that ended
	// well.
	lag, ttft *hdrhistogram.Histogram
	gaps      *measure.Gaps
	classGaps []*hdrhistogram.Histogram
	// open counts the requests of the window that have not ended; after seal, quiet is closed when
	// there are none.
	open  int
	quiet chan struct{}
}

func newRecorder(t *measure.Trial, schedule []workload.Request) *recorder {
	n, classes := len(schedule), 1+list.Largest(schedule, func(r workload.Request) int { return r.Class })
	r := &recorder{
		schedule: schedule, from: t.Warmup, to: t.Warmup + t.Window, end: t.Warmup + t.Window + t.Cooldown,
		records: make([]measure.Record, n), flying: map[int]*inFlight{}, tokens: tokenCounts{texts: map[int]uncountedAnswer{}, models: map[string]int{}},
		lag: newHistogram(), ttft: newHistogram(), classGaps: list.Times(classes, func(int) *hdrhistogram.Histogram { return newHistogram() }),
	}
	if t.Closed() || t.Window <= 0 {
		r.from, r.to, r.end = 0, math.MaxInt64, t.Warmup+t.Cooldown
	}
	r.gaps = measure.NewGaps(r.from, r.to)
	if n > 0 && t.Window <= 0 {
		r.end = max(r.end, schedule[n-1].Due)
	}
	return r
}

func (r *recorder) counts(at time.Duration) bool { return at >= r.from && at < r.to }

// takes reports whether a request that becomes due at due is still sent. A trial
// without a window ends when all of its requests have.
func (r *recorder) takes(due time.Duration) bool { return due < r.end || r.to == math.MaxInt64 }

func (r *recorder) begin() {
	r.start = time.Now()
	r.log = newHistogramLog(r.start)
}

// expect notes that a request is about to leave: until it has ended the trial
// is not over.
func (r *recorder) expect(due time.Duration) {
	if !r.counts(due) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open++
}

func (r *recorder) leave(f *inFlight, index int, due time.Duration) {
	req := &r.schedule[index]
	f.index, f.start = index, r.start
	f.first.Store(int64(measure.Never))
	f.heard.Store(int64(measure.Never))
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.start)
	f.record = measure.Record{ID: req.ID, Class: req.Class, Due: due, Sent: now,
		First: measure.Never, Last: measure.Never, Prompt: req.Prompt, Asked: req.Output}
	r.records[index], r.flying[index] = f.record, f
	r.status.Sent++
	r.client.PeakInFlight = max(r.client.PeakInFlight, len(r.flying))
	if r.counts(now) {
		r.client.left++
	}
	if r.counts(due) {
		r.client.due++
		record(r.lag, now-due)
	}
}

func (r *recorder) finish(f *inFlight, rec measure.Record) {
	rec.Detail = r.secrets.Hide(rec.Detail)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[f.index] = rec
	delete(r.flying, f.index)
	if rec.Outcome != measure.InFlight {
		r.status.Done++
	}
	switch rec.Outcome {
	case measure.OK:
		r.add(f, &rec)
	case measure.InFlight:
	case measure.Dropped:
		r.client.dropped++
		r.status.Failed++
	default:
		r.status.Failed++
	}
	if !r.counts(f.record.Due) {
		return
	}
	r.open--
	if r.open == 0 && r.quiet != nil {
		close(r.quiet)
		r.quiet = nil
	}
}

func (r *recorder) add(f *inFlight, rec *measure.Record) {
	r.log.add(rec, f.answer.gaps)
	r.tokens.add(f, &r.schedule[f.index])
	if !r.counts(f.record.Due) {
		return
	}
	if d, ok := rec.TTFT(); ok {
		record(r.ttft, d)
	}
	at := rec.First
	for _, us := range f.answer.gaps {
		gap := time.Duration(us) * time.Microsecond
		at += gap
		r.gaps.Add(at, gap, 1)
		record(r.classGaps[rec.Class], gap)
	}
}

// together returns the share of the chunks that came with another in one read.
func (t *tokenCounts) together() float64 { return float64(t.coalesced) / float64(max(t.chunks, 1)) }

// perChunk returns the mean number of tokens in a chunk with any, by the server's count.
func (t *tokenCounts) perChunk() float64 { return float64(t.tokens) / float64(max(t.events, 1)) }

// atOnce returns the share of the answers whose tokens came at once.
func (t *tokenCounts) atOnce() float64 { return float64(t.bunched) / float64(max(t.several, 1)) }

func (t *tokenCounts) add(f *inFlight, req *workload.Request) {
	c := &f.answer
	n, counted := c.tokens()
	if known := t.models[string(c.model)] > 0; len(c.model) > 0 && (known || len(t.models) < mostModels) {
		t.models[string(c.model)]++
	}
	if !c.first.IsZero() {
		t.chunks += c.events
		t.coalesced += c.coalesced
	}
	if !c.first.IsZero() && n > 1 {
		t.several++
		if c.bunched(n) {
			t.bunched++
		}
	}
	if !counted {
		t.texts[f.index] = uncountedAnswer{string(c.text), c.events}
		return
	}
	t.count(n, c.events, req.Output)
	if c.events > n {
		t.excess++
	}
	if c.usage.prompt > 0 {
		t.prompted += c.usage.prompt
		t.asked += req.Prompt
	}
}

// count adds an answer of n tokens by the server's count, in so many events.
func (t *tokenCounts) count(n, events, wanted int) {
	t.counted++
	t.tokens += n
	t.wanted += wanted
	t.events += events
}

// seal says that no more requests of the window will come, and returns a channel that is closed
// once none is in flight.
func (r *recorder) seal() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	quiet := make(chan struct{})
	if r.open == 0 {
		close(quiet)
		return quiet
	}
	r.quiet = quiet
	return quiet
}

// cut ends a second of length d at now: it logs its latencies and sets its rate.
func (r *recorder) cut(now time.Time, d time.Duration) {
	r.log.cut(now.Sub(r.start))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Rate = float64(r.status.Sent-r.sentBefore) / d.Seconds()
	r.sentBefore = r.status.Sent
}

func (r *recorder) interim() Interim {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Elapsed, s.InFlight = time.Since(r.start), len(r.flying)
	s.Left = max(r.end-s.Elapsed, 0)
	s.TTFT50, s.TTFT99 = measure.Never, measure.Never
	if r.ttft.TotalCount() > 0 {
		s.TTFT50, s.TTFT99 = percentile(r.ttft, 50), percentile(r.ttft, 99)
	}
	return s
}

// sent returns the records of the requests sent so far; Last of those in flight is when any part of
// the answer last came. It holds the lock for a few records at a time, so that requests do not wait
// for it.
func (r *recorder) sent() []measure.Record {
	const piece = 256
	r.mu.Lock()
	out := make([]measure.Record, 0, r.status.Sent)
	r.mu.Unlock()
	for from := 0; from < len(r.records); from += piece {
		r.mu.Lock()
		for i := from; i < min(from+piece, len(r.records)); i++ {
			rec := r.records[i]
			if rec.Asked == 0 {
				continue // not sent: every request asks for a token
			}
			if f := r.flying[i]; f != nil {
				rec.First, rec.Last = time.Duration(f.first.Load()), time.Duration(f.heard.Load())
			}
			out = append(out, rec)
		}
		r.mu.Unlock()
	}
	return out
}

func (r *recorder) telemetry() Telemetry {
	t := r.client
	t.Lag50, t.Lag99 = percentile(r.lag, 50), percentile(r.lag, 99)
	t.Histograms = r.log.out.Bytes()
	t.openFiles = openFiles()
	return t
}

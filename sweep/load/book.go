package load

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// window is the part of a trial whose requests count.
type window struct {
	from, to time.Duration
	// end is when the schedule is over.
	end time.Duration
}

func windowOf(t *measure.Trial) window {
	if t.Closed() || t.Window <= 0 {
		return window{0, math.MaxInt64, t.Warmup + t.Cooldown}
	}
	to := t.Warmup + t.Window
	return window{t.Warmup, to, to + t.Cooldown}
}

// takes reports whether a request that becomes due at due is still sent. A trial
// without a window ends when all of its requests have.
func (w window) takes(due time.Duration) bool { return due < w.end || w.to == math.MaxInt64 }

func (w window) holds(due time.Duration) bool { return due >= w.from && due < w.to }

// flight is a request that has left.
type flight struct {
	index int
	due   time.Duration
	// record is what is known of it when it leaves.
	record measure.Record
	// first is when its first token came, negative before.
	first atomic.Int64
}

// totals are the sums of a trial.
type totals struct {
	sent, done, failed int
	// due and left count the requests due, and those sent, within the window.
	due, left int
	peak      int
	// counted are requests whose tokens the server counted.
	counted int
	// prompted and asked are prompt tokens by the server's count and as asked
	// for, of the same requests.
	prompted, asked int
	// tokens, events and coalesced are of requests whose tokens the server
	// counted, wanted the tokens asked for of these.
	tokens, events, coalesced, wanted int
}

// spread holds distributions over the requests of the window: send lags of all,
// first tokens and gaps, the latter by class, of those that ended well.
type spread struct {
	lag, ttft *hdrhistogram.Histogram
	gaps      []*hdrhistogram.Histogram
}

// book keeps the accounts of a running trial. All of it is behind one lock,
// which a request takes twice.
type book struct {
	mu       sync.Mutex
	start    time.Time
	schedule []workload.Request
	window   window
	records  []measure.Record
	left     []bool
	flying   map[int]*flight
	// texts holds what answers said whose tokens nobody has counted yet.
	texts map[int]string

	totals totals
	log    *histogramLog
	spread spread
	// open counts the requests of the window that are expected to end; quiet is closed when
	// there are none after seal.
	open  int
	quiet chan struct{}
}

func newBook(schedule []workload.Request, w window) *book {
	classes := 1
	for i := range schedule {
		classes = max(classes, schedule[i].Class+1)
	}
	gaps := make([]*hdrhistogram.Histogram, classes)
	for i := range gaps {
		gaps[i] = newHistogram()
	}
	return &book{
		schedule: schedule, window: w,
		records: make([]measure.Record, len(schedule)), left: make([]bool, len(schedule)),
		flying: map[int]*flight{}, texts: map[int]string{},
		spread: spread{newHistogram(), newHistogram(), gaps},
	}
}

// expect notes that a request is about to leave: until it has ended the trial
// is not over.
func (b *book) expect(due time.Duration) {
	if !b.window.holds(due) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
}

// begin notes that a request leaves now.
func (b *book) begin(index int, due time.Duration) *flight {
	req := &b.schedule[index]
	f := &flight{index: index, due: due}
	f.first.Store(int64(measure.Never))
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Since(b.start)
	f.record = measure.Record{ID: req.ID, Class: req.Class, Due: due, Sent: now,
		First: measure.Never, Last: measure.Never, Prompt: req.Prompt, Asked: req.Output}
	b.left[index] = true
	b.flying[index] = f
	b.totals.sent++
	b.totals.peak = max(b.totals.peak, len(b.flying))
	if b.window.holds(now) {
		b.totals.left++
	}
	if b.window.holds(due) {
		b.totals.due++
		record(b.spread.lag, now-due)
	}
	return f
}

// end files the record of a request that has ended.
func (b *book) end(f *flight, r measure.Record, g *received) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records[f.index] = r
	delete(b.flying, f.index)
	inside := b.window.holds(f.due)
	if r.Outcome != measure.InFlight {
		b.totals.done++
		b.settle(f.index, &r, g, inside)
	}
	if inside {
		b.open--
		if b.open == 0 && b.quiet != nil {
			close(b.quiet)
			b.quiet = nil
		}
	}
}

func (b *book) settle(index int, r *measure.Record, g *received, inside bool) {
	if r.Outcome != measure.OK {
		b.totals.failed++
		return
	}
	b.log.add(r, g.gaps)
	b.count(index, r, g)
	if !inside {
		return
	}
	if d, ok := r.TTFT(); ok {
		record(b.spread.ttft, d)
	}
	for _, us := range g.gaps {
		record(b.spread.gaps[r.Class], time.Duration(us)*time.Microsecond)
	}
}

// count adds up whose word the number of tokens is.
func (b *book) count(index int, r *measure.Record, g *received) {
	t := &b.totals
	t.coalesced += g.coalesced
	if _, counted := g.tokens(); !counted {
		b.texts[index] = string(g.text)
		return
	}
	t.counted++
	t.tokens += r.Output
	t.wanted += b.schedule[index].Output
	t.events += g.events
	if g.usage.prompt > 0 {
		t.prompted += g.usage.prompt
		t.asked += b.schedule[index].Prompt
	}
}

// seal says that no request of the window is to come, and returns a channel
// that is closed once none is in flight.
func (b *book) seal() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	quiet := make(chan struct{})
	if b.open == 0 {
		close(quiet)
		return quiet
	}
	b.quiet = quiet
	return quiet
}

// progress is the present state; times and rate are the caller's.
func (b *book) progress(now time.Duration) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := Status{
		Elapsed: now, Total: len(b.schedule), Sent: b.totals.sent, Done: b.totals.done, Failed: b.totals.failed,
		InFlight: len(b.flying), TTFT50: measure.Never, TTFT99: measure.Never,
	}
	if b.spread.ttft.TotalCount() > 0 {
		p.TTFT50 = time.Duration(b.spread.ttft.ValueAtPercentile(50)) * time.Microsecond
		p.TTFT99 = time.Duration(b.spread.ttft.ValueAtPercentile(99)) * time.Microsecond
	}
	return p
}

// snapshot returns the records of what was sent so far, those in flight with
// what is known of them. It holds the lock for a few records at a time: no
// request waits for it.
func (b *book) snapshot() []measure.Record {
	const piece = 256
	var out []measure.Record
	for from := 0; from < len(b.records); from += piece {
		b.mu.Lock()
		for i := from; i < min(from+piece, len(b.records)); i++ {
			if !b.left[i] {
				continue
			}
			r := b.records[i]
			if f := b.flying[i]; f != nil {
				r = f.record
				r.First = time.Duration(f.first.Load())
			}
			out = append(out, r)
		}
		b.mu.Unlock()
	}
	return out
}

// sentRecords returns the records of the requests that came due, in the order
// of the schedule.
func (b *book) sentRecords() []measure.Record {
	out := make([]measure.Record, 0, b.totals.sent)
	for i, r := range b.records {
		if b.left[i] {
			out = append(out, r)
		}
	}
	return out
}

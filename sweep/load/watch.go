package load

import (
	"sync"
	"time"
)

// askEvery is how often the client asks whether to abort.
const askEvery = 250 * time.Millisecond

// watch looks after a running trial: it cuts the histogram log each second,
// asks whether the trial is to be aborted, and notices when the process stood
// still.
type watch struct {
	run  *Run
	from reading
	quit chan struct{}
	over sync.WaitGroup
	// past are the intervals of the histogram log so far, spare the histograms
	// for the next one.
	past  []Interval
	spare *second

	mu     sync.Mutex
	stalls []Stall
	// sent and perSecond are the requests sent up to the last whole second, and
	// within it.
	sent      int
	perSecond float64
}

// newWatch starts watching r.
func newWatch(r *Run) *watch {
	w := &watch{run: r, from: read(), quit: make(chan struct{}), spare: newSecond()}
	w.over.Go(w.look)
	return w
}

func (w *watch) look() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	last, second, asked := time.Now(), time.Now(), time.Now()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
		now := time.Now()
		if late := now.Sub(last) - beat; late > stallLimit {
			w.mu.Lock()
			w.stalls = append(w.stalls, Stall{At: last.Sub(w.run.start), Length: late})
			w.mu.Unlock()
		}
		last = now
		if d := now.Sub(second); d >= time.Second {
			w.cut(now, d)
			second = now
		}
		if abort := w.run.client.Abort; abort != nil && now.Sub(asked) >= askEvery {
			asked = now
			if why := abort(now.Sub(w.run.start), w.run.book.snapshot); why != "" {
				w.run.cancel(aborted(why))
			}
		}
	}
}

// cut ends one second of length d, at now.
func (w *watch) cut(now time.Time, d time.Duration) {
	b, to := w.run.book, now.Sub(w.run.start)
	b.mu.Lock()
	full, from := b.log.swap(w.spare, to)
	sent := b.totals.sent
	b.mu.Unlock()
	w.spare = full
	w.past = append(w.past, full.encode(from, to)...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.perSecond = float64(sent-w.sent) / d.Seconds()
	w.sent = sent
}

func (w *watch) rate() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.perSecond
}

func (w *watch) stop() {
	close(w.quit)
	w.over.Wait()
}

// intervals returns those of the whole trial, the last one cut at end.
func (w *watch) intervals(end time.Duration) []Interval {
	full, from := w.run.book.log.swap(nil, end)
	return append(w.past, full.encode(from, end)...)
}

// vitals returns what the process used since the start, and its stalls.
func (w *watch) vitals() Vitals {
	v := Vitals{Stalls: w.stalls}
	v.used(w.from, read())
	return v
}

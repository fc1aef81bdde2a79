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
	run  *Test
	from reading
	quit chan struct{}
	over sync.WaitGroup

	mu     sync.Mutex
	stalls []Stall
	// sent and perSecond are the requests sent up to the last whole second, and
	// within it.
	sent      int
	perSecond float64
}

// newWatch starts watching r.
func newWatch(r *Test) *watch {
	w := &watch{run: r, from: read(), quit: make(chan struct{})}
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
	b := w.run.book
	b.log.cut(now.Sub(w.run.start))
	b.mu.Lock()
	sent := b.totals.sent
	b.mu.Unlock()
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

// telemetry returns what the process used since the start, and its stalls.
func (w *watch) telemetry() Telemetry {
	v := Telemetry{Stalls: w.stalls}
	v.used(w.from, read())
	return v
}

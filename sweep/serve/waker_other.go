//go:build !linux

package serve

import "time"

// waker wakes one goroutine at an instant, or earlier on request. The timers of the Go runtime may
// be a millisecond late; the caller spins for the rest.
type waker struct{ event chan struct{} }

// spin is how long before an instant the goroutine is woken.
const spin = 1200 * time.Microsecond

func newWaker() (*waker, error) { return &waker{make(chan struct{}, 1)}, nil }

func (w *waker) own() {}

func (w *waker) sleep(d time.Duration) {
	if d < 0 {
		<-w.event
		return
	}
	if d <= spin {
		return
	}
	t := time.NewTimer(d - spin)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.event:
	}
}

func (w *waker) wake() {
	select {
	case w.event <- struct{}{}:
	default:
	}
}

func (w *waker) close() {}

// monotonic is not available here.
func monotonic() int64 { return 0 }

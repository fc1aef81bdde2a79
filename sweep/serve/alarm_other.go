//go:build !linux

package serve

import "time"

// alarm wakes one goroutine at an instant, or earlier when somebody rings. The
// timers of the Go runtime may be a millisecond late; the rest is spun.
type alarm struct{ bell chan struct{} }

// spin is how long before an instant the goroutine is woken.
const spin = 1200 * time.Microsecond

func newAlarm() (*alarm, error) { return &alarm{make(chan struct{}, 1)}, nil }

func (a *alarm) own() {}

func (a *alarm) sleep(d time.Duration) {
	if d < 0 {
		<-a.bell
		return
	}
	if d <= spin {
		return
	}
	t := time.NewTimer(d - spin)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.bell:
	}
}

func (a *alarm) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

func (a *alarm) close() {}

// monotonic is not known here.
func monotonic() int64 { return 0 }

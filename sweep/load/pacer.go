package load

import (
	"context"
	"time"
)

// pacer waits for the instants of a schedule that is never reset: each wait is for an absolute
// time, so one that ends late does not delay those after it.
//
// A timer of the Go runtime wakes 0.5 ms late in the median, because the poller's timeouts are
// whole milliseconds. The kernel's own timers are some 0.06 ms late on an idle machine, which is
// offset by waking lead early and spinning: at 1,000 requests a second that is at most 6 % of one
// core, at 100 less than 1 %.
type pacer struct {
	// sleep sleeps for about a duration; it returns early, with false, once the
	// pacer is closed.
	sleep func(time.Duration) bool
	close func()
	lead  time.Duration
}

// until returns at t, or false when ctx ended first. A time that has passed
// returns at once.
func (p *pacer) until(ctx context.Context, t time.Time) bool {
	for {
		d := time.Until(t) - p.lead
		if d <= 0 {
			break
		}
		if !p.sleep(d) || ctx.Err() != nil {
			return false
		}
	}
	for time.Until(t) > 0 {
	}
	return ctx.Err() == nil
}

func newRuntimePacer(lead time.Duration) *pacer {
	closed := make(chan struct{})
	sleep := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-closed:
			return false
		}
	}
	return &pacer{sleep: sleep, close: func() { close(closed) }, lead: lead}
}

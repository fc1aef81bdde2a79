package load

import (
	"context"
	"fmt"
	"time"

	"planner/sweep/measure"
)

// warmConnections is how many connections are opened before the start: one a
// slot, or a few for the first requests of an open loop.
func warmConnections(t *measure.Trial, requests int) int {
	if t.Closed() {
		return min(t.Concurrency, requests, 1024)
	}
	return min(inTurn, requests)
}

// openAhead is how long before a start at a given instant connections are opened:
// long enough for that, and too short for a server to close them as idle.
const openAhead = warmLimit + 500*time.Millisecond

// awaitStart opens connections and sets the start of the trial: now, or the
// instant that was asked for, which is waited for.
func (r *Run) awaitStart(connections int) error {
	at := r.client.StartAt
	if at.IsZero() {
		r.via.warm(connections)
		r.start = time.Now()
		return nil
	}
	if err := r.sleepUntil(at.Add(-openAhead)); err != nil {
		return err
	}
	r.via.warm(connections)
	// Without its monotonic reading the time is that of the host's clock.
	now := time.Now()
	wait := at.Sub(now.Round(0))
	if wait < 0 {
		return fmt.Errorf("the trial was to start at %v, and was ready only %v later", at, -wait.Round(time.Millisecond))
	}
	r.start = now.Add(wait)
	return r.sleepUntil(at)
}

// sleepUntil waits for a time of the host's clock.
func (r *Run) sleepUntil(at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// abandon frees what a trial took that does not begin.
func (r *Run) abandon(timer *pacer, why error) {
	r.cancel(why)
	r.via.close()
	if timer != nil {
		timer.timer.close()
	}
}

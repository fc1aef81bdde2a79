//go:build realengines

package realengines

import (
	"errors"
	"testing"
	"time"

	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// rejected runs one trial that the engine cannot start for, and returns how it
// failed.
func rejected(t *testing.T, s subject, k measure.Knobs, class engine.Class) (*sweep.Live, *engine.Failure) {
	t.Helper()
	dir := t.TempDir()
	l := s.live(dir)
	var got *engine.Failure
	remark(t, l)
	say := l.See
	l.See = func(event any) {
		say(event)
		if seen, ok := event.(sweep.EngineTelemetry); ok {
			got = seen.Failure
		}
	}
	began := time.Now()
	_, err := l.Run(t.Context(), s.trial(1, k, time.Second))
	unable, ok := errors.AsType[*measure.Rejection](err)
	if !ok {
		t.Fatalf("not rejected: %v", err)
	}
	t.Logf("after %.1f s: %v", time.Since(began).Seconds(), unable)
	switch {
	case got != nil && got.Class == engine.Slow:
		tooBusy(t, "it had not come to its failure, want %s: %v", class, got)
	case got == nil || got.Class != class:
		t.Errorf("class %v, want %s", got, class)
	}
	alone(t)
	return l, got
}

package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/endpoint"
	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

const (
	// loneTries are the requests that are sent alone, one after another, until one does
	// not fail: what fails by chance, or sheds load for a moment, is not broken.
	loneTries = 3
	// lonePause lies between two of them.
	lonePause = time.Second
	// loneSilence is how long a request alone may wait for its first token, whatever the
	// workload's timeout says: what is slower than that timeout is a question of speed.
	loneSilence = 2 * time.Minute
)

// alone sends requests of the trial's own workload to an engine that has nothing else to
// do, or will have within patience. What fails there fails for no want of speed: the
// error says how. It is nil as soon as a request does not fail; done tells whether that
// one ended well.
func (l *Live) alone(ctx context.Context, e *engine.Engine, t *measure.Trial, patience time.Duration) (done bool, err error) {
	began, rest := time.Now(), lonePause
	for try := 0; try < loneTries || time.Since(began) < patience; try++ {
		if try > 0 && !pause(ctx, rest) {
			return false, context.Cause(ctx)
		}
		r, wanted, failed := l.loneRequest(ctx, e, t, uint64(try))
		if failed != nil {
			return false, failed
		}
		if err = broken(&r); err == nil || silent(&r) || engine.Final(err) || e.Failure() != nil {
			return r.Outcome == measure.OK, err
		}
		if rest = lonePause; wanted > rest && wanted <= loneSilence && try+1 < loneTries {
			rest = wanted
			l.remark("%v; the server wants to be asked again in %v", err, rest)
		}
	}
	return false, err
}

// loneRequest sends one, and tells how long the server then wants to rest.
func (l *Live) loneRequest(ctx context.Context, e *engine.Engine, t *measure.Trial, draw uint64) (r measure.Record, rest time.Duration, err error) {
	client := l.client(e)
	silence := cmp.Or(l.Hang, loneSilence)
	patient := *t.Workload
	if patient.Timeout > 0 {
		patient.Timeout = max(patient.Timeout, 2*silence)
	}
	client.Abort = func(now time.Duration, records func() []measure.Record) note.Reason {
		if now >= silence && !slices.ContainsFunc(records(), func(r measure.Record) bool { return r.First >= 0 }) {
			return note.Because(note.EngineHangs)
		}
		return note.Reason{}
	}
	lone := measure.Trial{Knobs: t.Knobs, Workload: &patient, Concurrency: 1, Requests: 1, Seed: t.Seed + 1 + draw}
	o, err := client.Run(ctx, lone, lone.Schedule())
	if err != nil {
		return r, 0, l.orBroken(ctx, e, err)
	}
	if len(o.Records) == 0 {
		return measure.Record{Outcome: measure.InFlight}, 0, nil
	}
	return o.Records[0], o.Rest, nil
}

// broken says how a request that was alone failed; nil where it did not, or was slow.
func broken(r *measure.Record) error {
	const alone = "a request of the load, alone on the engine, "
	switch {
	case r.Status() != 0:
		_, words, _ := strings.Cut(r.Detail, ": ")
		return fmt.Errorf(alone+"failed: %w", &endpoint.StatusError{Status: r.Status(), Words: words})
	case r.Broken(), r.Outcome == measure.WrongLength:
		return fmt.Errorf(alone+"ended with %s: %s", strings.ReplaceAll(r.Outcome.String(), "_", " "), r.Detail)
	case silent(r):
		return errors.New(alone + "got no token in minutes")
	}
	return nil
}

// silent reports whether a request that was alone was given up without a token.
func silent(r *measure.Record) bool { return r.Outcome == measure.InFlight && r.First < 0 }

// pause waits; false if ctx ends meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

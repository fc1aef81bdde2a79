package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"planner/internal/endpoint"
	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// silent returns the error of a server from which nothing came for so long.
func silent(d time.Duration) error {
	return endpoint.TooLate(fmt.Sprintf("nothing came in %v; a longer workload.timeout or search.budget waits longer", d.Round(time.Second)))
}

// overdue returns the error of what had not ended when the trial had to.
func overdue(limit time.Duration) error {
	return endpoint.TooLate(note.New(note.TrialLimit, limit).String())
}

// silenceOf returns how long nothing may come of what a server was sent in a trial before it counts
// as hanging: a tenth of the workload's timeout, but three minutes at least, as what misses a short
// timeout is a matter of speed. It is at most a quarter of the trial's limit, or all of the limit
// if it is not known how long a request took alone on an idle engine; though not less than 30 s,
// nor than three times that. given, if it is not 0, takes its place.
func silenceOf(t *measure.Trial, alone, given time.Duration) time.Duration {
	long := max(3*time.Minute, t.Workload.Timeout/10)
	const short = 30 * time.Second
	switch {
	case t.Limit > 0 && alone > 0:
		long = min(long, max(t.Limit/4, short, 3*alone))
	case t.Limit > 0:
		long = min(long, max(t.Limit, short))
	}
	return cmp.Or(given, long)
}

// within returns the context of all that a trial waits for besides its load: it ends after the
// trial's limit, if there is one, and the silence in which a server shows that nothing comes.
func within(ctx context.Context, limit, silence time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit+silence, overdue(limit))
}

// late reports whether a context of [within] ended because its time was over.
func late(ctx context.Context) bool {
	_, is := errors.AsType[endpoint.TooLate](context.Cause(ctx))
	return is
}

// alone sends requests of the trial's own workload to an engine that has nothing else to do, or is
// busy with what is left of a load. What fails there does not fail for lack of speed: the error
// says how. It is nil as soon as a request does not fail; done tells whether that one ended well.
func (l *Live) alone(ctx context.Context, e *engine.Engine, t *measure.Trial, silence time.Duration, busy func() bool) (done bool, err error) {
	draw := t.Seed
	var last error
	err = e.Insist(ctx, backlog, busy, l.rests, func() (err error) {
		draw++
		if done, err = l.loneRequest(ctx, e, t, silence, draw); last == nil || !late(ctx) {
			last = err
		}
		rest, status := max(endpoint.RestOf(err), time.Second), endpoint.StatusOf(err)
		if (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && rest <= restAhead {
			l.Client.Rest = rest // what was asked ahead of it may be why it was refused
		}
		return last // a request that was cut short tells nothing
	})
	return done, err
}

// restAhead is the longest pause before what a server is asked ahead of a load.
const restAhead = 10 * time.Second

func (l *Live) rests(err error, rest time.Duration) { l.remark(askedAgain, err, rest) }

// askedAgain says why a server is asked again, and when.
const askedAgain = "%v; it is asked again in %v"

// loneRequest sends one request; done tells whether it ended well.
func (l *Live) loneRequest(ctx context.Context, e *engine.Engine, t *measure.Trial, silence time.Duration, seed uint64) (done bool, err error) {
	client := l.client(e)
	patient := *t.Workload
	if patient.Timeout > 0 {
		patient.Timeout = max(patient.Timeout, 2*silence)
	}
	lone := measure.Trial{Knobs: t.Knobs, Workload: &patient, Concurrency: 1, Requests: 1, Seed: seed}
	if t.Limit > 0 {
		lone.Limit = max(t.Limit, silence)
	}
	client.Abort = (&watchdog{trial: &lone, silence: silence, stream: client.Stream}).looks
	o, err := client.Run(ctx, lone, lone.Schedule())
	switch {
	case err != nil:
		return false, l.orBroken(ctx, e, err)
	case len(o.Records) == 0:
		return false, silent(silence)
	case o.Aborted.Note.Kind == note.TrialLimit && o.Records[0].First >= 0:
		return false, fmt.Errorf("a request of the load, alone on the engine: %w", overdue(lone.Limit))
	}
	return o.Records[0].Outcome == measure.OK, broken(&o.Records[0], o.Rest, silence)
}

// broken returns how a request that was alone failed; nil if it did not, or was slow.
func broken(r *measure.Record, rest, silence time.Duration) error {
	const alone = "a request of the load, alone on the engine, "
	switch {
	case r.Status() != 0:
		_, words, _ := strings.Cut(r.Detail, ": ")
		return fmt.Errorf(alone+"failed: %w", &endpoint.StatusError{Status: r.Status(), Words: words, Rest: rest})
	case r.Broken():
		return errors.New(strings.TrimSuffix(alone+"ended with "+strings.ReplaceAll(r.Outcome.String(), "_", " ")+": "+r.Detail, ": "))
	case r.Outcome == measure.InFlight:
		return fmt.Errorf(alone+"got no answer: %w", silent(silence))
	}
	return nil
}

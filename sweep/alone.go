package sweep

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"planner/internal/endpoint"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// silent is the error of a server of which nothing came for so long.
type silent time.Duration

// silenceOf is how long a server may answer nothing of what it was sent in a trial before it
// hangs: a tenth of what the workload gives a request, and minutes at least, as what is
// slower than a short timeout is a question of speed; a quarter of what the trial may take,
// where that is less, though more than an idle engine took, alone, for a request. given, if
// it is not 0, takes its place.
func silenceOf(t *measure.Trial, alone, given time.Duration) silent {
	long := max(3*time.Minute, t.Workload.Timeout/10)
	if t.Limit > 0 && alone > 0 {
		long = min(long, max(t.Limit/4, 30*time.Second, 3*alone))
	}
	return silent(cmp.Or(given, long))
}

// Error says what was seen, and what it is held against.
func (d silent) Error() string {
	return fmt.Sprintf("nothing came in %v; a longer workload.timeout or search.budget waits longer", time.Duration(d).Round(time.Second))
}

// Is makes it an answer that did not come in time.
func (d silent) Is(target error) bool { return target == context.DeadlineExceeded }

// alone sends requests of the trial's own workload to an engine that has nothing else to
// do, or is busy with what is left of a load. What fails there fails for no want of speed:
// the error says how. It is nil as soon as a request does not fail; done tells whether that
// one ended well.
func (l *Live) alone(ctx context.Context, e *engine.Engine, t *measure.Trial, silence silent, busy func() bool) (done bool, err error) {
	draw := t.Seed
	err = e.Insist(ctx, backlog, busy, l.rests, func() (err error) {
		draw++
		done, err = l.loneRequest(ctx, e, t, silence, draw)
		return err
	})
	return done, err
}

func (l *Live) rests(err error, rest time.Duration) { l.remark(askedAgain, err, rest) }

// askedAgain says why a server is asked again, and when.
const askedAgain = "%v; it is asked again in %v"

// loneRequest sends one; done tells whether it ended well.
func (l *Live) loneRequest(ctx context.Context, e *engine.Engine, t *measure.Trial, silence silent, seed uint64) (done bool, err error) {
	client := l.client(e)
	patient := *t.Workload
	if patient.Timeout > 0 {
		patient.Timeout = max(patient.Timeout, 2*time.Duration(silence))
	}
	client.Abort = (&watchdog{silence: silence, stream: client.Stream}).looks
	lone := measure.Trial{Knobs: t.Knobs, Workload: &patient, Concurrency: 1, Requests: 1, Seed: seed}
	o, err := client.Run(ctx, lone, lone.Schedule())
	if err != nil {
		return false, l.orBroken(ctx, e, err)
	}
	if len(o.Records) == 0 {
		return false, silence
	}
	return o.Records[0].Outcome == measure.OK, broken(&o.Records[0], o.Rest, silence)
}

// broken says how a request that was alone failed; nil where it did not, or was slow.
func broken(r *measure.Record, rest time.Duration, silence silent) error {
	const alone = "a request of the load, alone on the engine, "
	switch {
	case r.Status() != 0:
		_, words, _ := strings.Cut(r.Detail, ": ")
		return fmt.Errorf(alone+"failed: %w", &endpoint.StatusError{Status: r.Status(), Words: words, Rest: rest})
	case r.Broken(), r.Outcome == measure.WrongLength:
		return fmt.Errorf(alone+"ended with %s: %s", strings.ReplaceAll(r.Outcome.String(), "_", " "), r.Detail)
	case r.Outcome == measure.InFlight:
		return fmt.Errorf(alone+"got no answer: %w", silence)
	}
	return nil
}

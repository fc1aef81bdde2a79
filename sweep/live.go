package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// Live runs trials on real engines, one after another. It keeps the engine of
// the last trial running while the knobs stay the same, and starts another when
// they change. Settings and Client are needed, the zero value of every other
// field is a sensible default. Close must be called at the end.
type Live struct {
	// Settings say how to start an engine, or where one listens.
	Settings engine.Settings
	// Client is the load generator; address and model are filled in, and the dialect if it is not
	// given: that of the engine, or what a server of unknown kind says of itself.
	Client load.Client
	// Hang is how long nothing may come from an engine with requests in flight before it is asked
	// for a sign of life; 0 means what silenceOf gives.
	Hang time.Duration
	// Bare measures a server that runs already as it is: no counted trial is repeated, and requests
	// that fail are measured as failures.
	Bare bool
	// See, if set, is told what happens to engines and trials.
	See Watcher
	// Folder, if set, takes what was seen of the engines in each trial.
	Folder *Folder

	mu sync.Mutex
	// current is the engine that runs, nil for none; failures are those of all
	// engines so far, served the knobs of those that got to serve. All are guarded
	// by mu.
	current  *engine.Engine
	failures []*engine.Failure
	served   []measure.Knobs
	// answers says that a request of the load has ended well, loneTook how long one took on an idle
	// engine. Both are guarded by mu.
	answers  bool
	loneTook time.Duration
	// fell has the knobs of each trial in which the engine broke down under the load for good, falls
	// the lives of those that had kept up with it, stood the lives of engines at the end of each trial
	// that was completed. well is how many requests of loads the current one answered well, since it
	// served first at since. All are guarded by mu.
	fell         []measure.Knobs
	falls, stood []life
	well         int
	since        time.Time
	// reported is the engine of the last trial that was reported, unreported the time that trials
	// without a number took since. Both are guarded by mu.
	reported   *engine.Engine
	unreported time.Duration
}

// Run is a [Runner]. A configuration whose engine cannot be started, or breaks down whatever the
// load, is an error of type *[measure.Rejection]. A trial without a number is not reported; its
// time is counted with the next one's.
func (l *Live) Run(ctx context.Context, t measure.Trial) (measure.Observation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unable := l.condemned(t.Knobs); unable != nil {
		return measure.Observation{}, unable
	}
	began := time.Now()
	seen := newEngineTelemetry(&t)
	run := l.attempt
	if l.Bare {
		run = l.bare
	}
	o, err := run(ctx, &t, &seen)
	seen.EngineTime = l.unreported + time.Since(began)
	switch {
	case ctx.Err() != nil:
	case t.Number == 0:
		l.unreported = seen.EngineTime
	case seen.Engine.Kind == "" && seen.Failure == nil: // a server of which nothing is known
		if l.Folder != nil && err == nil {
			err = l.Folder.WriteHistograms(t.Number, seen.Client.Histograms)
		}
	default:
		l.unreported, l.reported = 0, l.current
		if l.Folder != nil {
			if kept := l.Folder.WriteEngineTelemetry(seen); kept != nil {
				l.remark("keep what the engine said in trial %d: %v", t.Number, kept)
			}
		}
		l.See.See(seen)
	}
	return o, err
}

// tryAlone sends one request of the load ahead of it, until one has ended well in this run: an
// engine that fails every request is found out at once.
func (l *Live) tryAlone(ctx context.Context, e *engine.Engine, t *measure.Trial) (err error) {
	if l.answers {
		return nil
	}
	began, silence := time.Now(), silenceOf(t, 0, l.Hang)
	short, cancel := within(ctx, t.Limit, silence)
	defer cancel()
	l.answers, err = l.alone(short, e, t, silence, nil)
	l.loneTook = time.Since(began)
	return l.orFailure(short, e, err)
}

// orFailure returns the failure of an engine on which a request failed that was alone.
func (l *Live) orFailure(ctx context.Context, e *engine.Engine, err error) error {
	var known *engine.Failure
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case ctx.Err() != nil && !late(ctx):
		return context.Cause(ctx)
	case ended(e):
		return e.Failure()
	}
	return e.Failing(err)
}

// Ground runs trials on the engines of l and tells l.See what happens. Predict is the simulated
// engine of the same model and hardware, nil if these are not known.
func (l *Live) Ground(predict *Simulated) Ground {
	l.Settings.Launching = func(c engine.Command) { l.See.See(c) }
	return Ground{Run: l.Run, Owned: l.Settings.Kind != "attach", Predict: predict, Recall: l.Recall, Close: l.Close}
}

// Recall takes in the trials of an earlier process, so that a run that is resumed also knows which
// knobs serve.
func (l *Live) Recall(seen []measure.Measurement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range seen {
		if seen[i].Ran() {
			l.served = append(l.served, seen[i].Trial.Knobs)
			l.answers = l.answers || seen[i].Requests > seen[i].Failed
			if seen[i].Aborted.Note.Kind == note.EngineBroke {
				l.fell = append(l.fell, seen[i].Trial.Knobs)
			} else {
				l.stood = append(l.stood, life{knobs: seen[i].Trial.Knobs})
			}
		}
	}
}

// Close stops the engine that runs.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(0)
}

// ensure returns a running engine for a trial. One that it starts names its files by name, which it
// changes for the next one. A server that runs already must answer within the trial's limit.
func (l *Live) ensure(ctx context.Context, t *measure.Trial, name *string, seen *EngineTelemetry) (*engine.Engine, error) {
	k, settings := t.Knobs, l.Settings
	if settings.Kind == "attach" && t.Limit > 0 {
		settings.Timeouts = settings.Timeouts.Within(t.Limit)
	}
	var failed *engine.Failure
	if e := l.current; e != nil {
		if failed = e.Failure(); e.Done() == nil || e.Knobs == k && failed == nil {
			return e, nil
		}
		l.drop(0)
	}
	for range attempts {
		if failed != nil && failed.Knobs == k {
			l.remark("the engine is started once more: %v", failed)
			seen.note(note.EngineStartedAgain, failed)
		}
		l.unlink(*name)
		e, err := engine.Start(ctx, settings, k, *name, func(stage, line string, elapsed time.Duration) { l.See.See(Starting{stage, line, elapsed}) })
		*name += again
		if err == nil {
			l.current, l.well, l.since = e, 0, time.Now()
			l.served = append(l.served, k)
			l.announce(e)
			return e, nil
		}
		if ctx.Err() != nil || !errors.As(err, &failed) {
			return nil, err
		}
		if !failed.Retry {
			break
		}
	}
	return nil, l.unable(k, failed, seen)
}

func (l *Live) announce(e *engine.Engine) {
	l.See.See(e)
	for _, knob := range e.Command.Without {
		l.remark("%s has no option for %s; it is not applied", e.Kind, knob)
	}
	for _, c := range e.Facts.Formats {
		l.remark("%s serves in other number formats: %s", e.Kind, c)
	}
	if e.Done() == nil {
		for _, c := range e.Facts.Changed {
			l.remark("the server runs with other knobs: %s", c)
		}
	}
	if e.Unprobed != nil {
		l.remark("warning: the server answers requests, and not whether it is well: %v", e.Unprobed)
	}
}

// drop stops the engine that runs, if any, which may take grace to end (0: the limit of the
// settings). What it leaves behind is reported but does not stop the run: the next engine has
// another port, and says so if memory is short.
func (l *Live) drop(grace time.Duration) {
	e := l.current
	if e == nil {
		return
	}
	l.current = nil
	err := e.Stop(grace)
	if strays := e.Strays(); len(strays) > 0 {
		l.remark("the engine left processes behind, which were killed: %v", strays)
	}
	if err != nil {
		l.remark("stop the engine: %v", err)
	}
}

// unable remembers a failure for other knobs that share it, and rejects k.
func (l *Live) unable(k measure.Knobs, f *engine.Failure, seen *EngineTelemetry) *measure.Rejection {
	l.failures = append(l.failures, f)
	seen.Failure = f
	return &measure.Rejection{Knobs: k, Reason: f.Reason()}
}

// condemned rejects knobs that are bound to fail as others did. A failure that would also condemn
// knobs with which an engine has served is not what it seems, and tells nothing about other knobs.
func (l *Live) condemned(k measure.Knobs) *measure.Rejection {
	if f := l.alike(); f != nil {
		return &measure.Rejection{Knobs: k, Reason: note.Because(note.EngineAlike, enoughAlike, f)}
	}
	for _, f := range l.failures {
		switch {
		case f.Knobs == k:
			return &measure.Rejection{Knobs: k, Reason: f.Reason()}
		case f.Condemns(k) && !slices.ContainsFunc(l.served, func(s measure.Knobs) bool { return s != f.Knobs && f.Condemns(s) }):
			return &measure.Rejection{Knobs: k, Reason: note.Because(note.EngineCondemned, f)}
		}
	}
	return nil
}

// enoughAlike is how many starts must fail alike, before any engine served, for that to be the
// machine's doing.
const enoughAlike = 3

// alike returns the last failure if that many starts failed alike and no engine has served,
// otherwise nil.
func (l *Live) alike() *engine.Failure {
	n := len(l.failures)
	if n < enoughAlike || len(l.served) > 0 {
		return nil
	}
	last := l.failures[n-1]
	for _, f := range l.failures[n-enoughAlike:] {
		if f.Class != last.Class || !f.OfMachine() {
			return nil
		}
	}
	return last
}

func (l *Live) remark(format string, args ...any) {
	l.See.See(fmt.Sprintf(format, args...))
}

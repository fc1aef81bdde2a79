// Package sweep runs trials on real or simulated engines, and keeps the journal.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"planner/internal/list"
	"planner/internal/parallel"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// A Source chooses trials and is told their measurements.
type Source interface {
	// Next proposes trials that may run side by side; none means that the
	// source has finished. It is called again only after all of them were
	// observed.
	Next() []measure.Trial
	// Observe takes the measurement of a proposed trial, in the order of
	// proposal.
	Observe(measure.Measurement)
}

// A Runner runs one trial. An error of type *measure.Rejection says that the configuration
// cannot run; the sweep goes on without it. Any other error ends the sweep.
type Runner func(ctx context.Context, t measure.Trial) (measure.Observation, error)

// ErrInterrupted says that a sweep was stopped before its source had finished.
// What was measured is in the journal.
var ErrInterrupted = errors.New("interrupted")

// Loop drives a source to its end.
type Loop struct {
	Source Source
	Run    Runner
	// Fetch, if set, takes the place of Run where another process measures the trials.
	Fetch func(context.Context, measure.Trial) (measure.Measurement, error)
	// Journal keeps what was measured, and answers for trials that an earlier
	// process measured; nil keeps nothing.
	Journal *Journal
	// Parallel is how many trials of one proposal run side by side; 0 means 1.
	Parallel int
	// Keep, if set, stores what a trial brought before it is reduced; trials
	// that run side by side call it side by side.
	Keep func(measure.Trial, measure.Observation) error
	// Stop, if set, is asked before proposed trials run; the sweep then ends between
	// trials, with ErrInterrupted.
	Stop func() bool
	// See, if set, is told of the trials that run next, and of each measurement, in
	// order.
	See Watcher

	trials int
}

// Drive runs trials until the source has no more or ctx ends. When ctx ends in
// mid-trial, that trial is dropped and the error wraps ErrInterrupted.
func (l *Loop) Drive(ctx context.Context) error {
	for {
		batch := l.Source.Next()
		if len(batch) == 0 {
			return nil
		}
		if l.Stop != nil && l.Stop() {
			return fmt.Errorf("%w after %d trials", ErrInterrupted, l.trials)
		}
		for i := range batch {
			l.trials++
			batch[i].Number = l.trials
		}
		if err := l.step(ctx, batch); err != nil {
			return err
		}
	}
}

// step runs the trials of one proposal side by side and observes them in
// order. Trials that the journal holds come first and are not run again.
func (l *Loop) step(ctx context.Context, batch []measure.Trial) error {
	for len(batch) > 0 && l.Journal.Held() > 0 {
		m, err := l.Journal.recall(batch[0])
		if err != nil {
			return err
		}
		l.tell(m)
		batch = batch[1:]
	}
	if len(batch) > 0 {
		l.See.See(batch)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	brought := make([]journalLine, len(batch))
	done := list.Times(len(batch), func(int) chan error { return make(chan error, 1) })
	go parallel.DoAtMost(max(l.Parallel, 1), len(batch), func(i int) error {
		m, err := l.measure(ctx, batch[i])
		if err == nil {
			if brought[i], err = newJournalLine(m); err != nil {
				err = fmt.Errorf("trial %d: %w", m.Trial.Number, err)
			}
		}
		done[i] <- err
		return err
	})
	// Every result is waited for, so that no trial outlives its sweep; after the first failure they
	// are dropped.
	var failed error
	for i, t := range batch {
		if err := <-done[i]; failed == nil {
			failed = err
		}
		if failed == nil {
			failed = l.observe(t, brought[i])
		}
		if failed != nil {
			cancel()
		}
	}
	return failed
}

func (l *Loop) measure(ctx context.Context, t measure.Trial) (m measure.Measurement, err error) {
	if ctx.Err() != nil {
		return m, fmt.Errorf("%w before trial %d", ErrInterrupted, t.Number)
	}
	if l.Fetch != nil {
		return l.Fetch(ctx, t)
	}
	o, err := l.Run(ctx, t)
	if ctx.Err() != nil { // what a trial that was cut short says of its engine is not known to be so
		return m, fmt.Errorf("%w in trial %d", ErrInterrupted, t.Number)
	}
	if unable, ok := errors.AsType[*measure.Rejection](err); ok {
		return measure.Measurement{Trial: t, Rejected: unable.Reason}, nil
	}
	if err == nil && l.Keep != nil {
		err = l.Keep(t, o)
	}
	if err != nil {
		return m, fmt.Errorf("trial %d: %w", t.Number, err)
	}
	return measure.Reduce(t, o), nil
}

// observe journals a measurement and passes on what the journal would give
// back, so that a resumed run sees exactly what this one saw.
func (l *Loop) observe(t measure.Trial, e journalLine) error {
	if err := l.Journal.write(e); err != nil {
		return fmt.Errorf("trial %d: %w", t.Number, err)
	}
	e.back.Trial = t
	l.tell(e.back)
	return nil
}

func (l *Loop) tell(m measure.Measurement) {
	l.Source.Observe(m)
	l.See.See(m)
}

// Ground is where trials run: the simulated engine, or real ones.
type Ground struct {
	// Run runs a trial.
	Run Runner
	// Fetch, if set, takes the place of Run where another process measures the trials.
	Fetch func(context.Context, measure.Trial) (measure.Measurement, error)
	// Parallel is how many trials run side by side; 0 means 1.
	Parallel int
	// Virtual says that trials run in virtual time, and can be run again to the byte.
	Virtual bool
	// Owned says that planner starts and stops the engine: trials of other knobs are
	// other starts.
	Owned bool
	// Predict is the simulated engine of the same model and hardware; nil where
	// these are not known.
	Predict *Simulated
	// Records keeps the records of virtual trials too.
	Records bool
	// Recall, if set, is told of the trials of an earlier process before any is run.
	Recall func([]measure.Measurement)
	// Confirm, if set, is called before the journal is written: it fails if another process has
	// taken the run over.
	Confirm func() error
	// Close stops whatever was started; nil if nothing was.
	Close func()
}

// SimulatedGround runs trials in virtual time, parallel of them side by side.
func SimulatedGround(s *Simulated, parallel int) Ground {
	run := func(ctx context.Context, t measure.Trial) (measure.Observation, error) {
		return Interruptible(ctx, func() (measure.Observation, error) { return s.Run(ctx, t) })
	}
	return Ground{Run: run, Parallel: parallel, Virtual: true, Owned: true, Predict: s}
}

// Watcher is told what happens while trials run: a []measure.Trial that runs next, the
// measure.Measurement of each, and on real engines the engine.Command that is started, [Starting]
// while it does, the *engine.Engine that serves, the *load.Test of a trial, the [EngineTelemetry]
// after it, and remarks as strings. It may be called from several goroutines.
type Watcher func(event any)

// Starting is how far the start of an engine is: its stage, the last line of its log,
// and the time since it began.
type Starting struct {
	Stage, Line string
	Elapsed     time.Duration
}

// See tells an event to a watcher, which may be nil.
func (w Watcher) See(event any) {
	if w != nil {
		w(event)
	}
}

// Drive runs a study on a ground until it has an answer, stop asks for an end between two trials,
// or ctx ends; in the last two cases the error wraps [ErrInterrupted], and the answer is what is
// known by then, but empty if ctx ended and the folder keeps it: an answer may take long. What the
// journal of the folder holds is not run again. Without a folder nothing is kept.
func Drive(ctx context.Context, f *Folder, g Ground, s Study, stop func() bool, see Watcher) (Answer, error) {
	var j *Journal
	if f != nil {
		var err error
		if j, err = openJournal(f.File(JournalFile)); err != nil {
			return Answer{}, err
		}
		defer j.Close()
		j.confirm = g.Confirm
		if err = f.Tidy(); err != nil {
			return Answer{}, err
		}
		if g.Recall != nil {
			g.Recall(j.held)
		}
	}
	return j.answer(ctx, Loop{Source: s, Run: g.Run, Fetch: g.Fetch, Journal: j, Parallel: g.Parallel, Keep: g.keeper(f), Stop: stop, See: see}, s)
}

// Replay tells a study what a journal holds, without running anything, and asks
// for its answer.
func Replay(trials []measure.Measurement, s Study) (Answer, error) {
	j := &Journal{held: trials}
	missing := func(_ context.Context, t measure.Trial) (measure.Observation, error) {
		return measure.Observation{}, fmt.Errorf("%w: the journal ends before trial %d", ErrInterrupted, t.Number)
	}
	answer, err := j.answer(context.Background(), Loop{Source: s, Run: missing, Journal: j}, s)
	if errors.Is(err, ErrInterrupted) {
		err = nil
	}
	return answer, err
}

// answer drives a loop to its end and asks the study for its answer.
func (j *Journal) answer(ctx context.Context, l Loop, s Study) (Answer, error) {
	stopped := j.reject(s.Rejected())
	if stopped == nil {
		stopped = l.Drive(ctx)
	}
	if j == nil {
		ctx = context.WithoutCancel(ctx)
	}
	if stopped != nil && (!errors.Is(stopped, ErrInterrupted) || ctx.Err() != nil) {
		return Answer{}, stopped
	}
	answer, err := Interruptible(ctx, s.Answer)
	if stopped != nil {
		answer.State, err = Unfinished, errors.Join(stopped, err)
	}
	return answer, err
}

// Interruptible returns what f does, or [ErrInterrupted] as soon as ctx ends. f needs no cleanup: it ends with the
// process.
func Interruptible[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case <-ctx.Done():
		return *new(T), ErrInterrupted
	case r := <-done:
		return r.value, r.err
	}
}

// keeper returns the function that stores the records of trials: always those of real engines;
// those of the simulated one, with their histograms, if they are wanted.
func (g Ground) keeper(f *Folder) func(measure.Trial, measure.Observation) error {
	if f == nil || g.Virtual && !g.Records {
		return nil
	}
	return func(t measure.Trial, o measure.Observation) error {
		if err := f.WriteRecords(t.Number, o.Records); err != nil || !g.Virtual {
			return err
		}
		return f.WriteHistograms(t.Number, load.HistogramLog(o.Records))
	}
}

package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"planner/sweep/load"
	"planner/sweep/measure"
)

// Ground is where trials run: the simulated engine, or real ones.
type Ground struct {
	// Run runs a trial.
	Run Runner
	// Fetch, if set, takes the place of Run where trials are measured elsewhere.
	Fetch Fetcher
	// Parallel is how many trials run side by side; 0 means 1.
	Parallel int
	// Virtual says that time costs nothing and that a trial can be run again to the
	// byte.
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
	// Confirm, if set, is asked before the journal is written: it is an error where
	// another process has taken the run over.
	Confirm func() error
	// Close stops whatever was started; nil where nothing is.
	Close func() error
}

// SimulatedGround runs trials in virtual time, parallel of them side by side.
func SimulatedGround(s *Simulated, parallel int) Ground {
	return Ground{Run: s.Run, Parallel: parallel, Virtual: true, Owned: true, Predict: s}
}

// Watcher is told what happens while trials run: a []measure.Trial that runs next,
// the measure.Measurement of each, and on real engines the engine.Command that
// is started, [Starting] while it does, the *engine.Engine that serves, the
// *load.Test of a trial, the [EngineTelemetry] behind it, and remarks as strings. It may
// be called from several goroutines.
type Watcher func(event any)

// Starting is how far the start of an engine is: its stage, the last line of its log,
// and the time since it began.
type Starting struct {
	Stage, Line string
	Elapsed     time.Duration
}

// See tells a watcher that may be nil.
func (w Watcher) See(event any) {
	if w != nil {
		w(event)
	}
}

// Drive runs a study on a ground until it has an answer, stop asks for an end
// between two trials, or ctx ends; the error wraps [ErrInterrupted] then, and the
// answer is what is known by that time. What the journal of the folder holds is
// not run again. Without a folder nothing is kept.
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
	if stopped != nil && !errors.Is(stopped, ErrInterrupted) {
		return Answer{}, stopped
	}
	answer, err := s.Answer()
	if stopped != nil {
		answer.State = Unfinished
	}
	return answer, errors.Join(stopped, err)
}

// keeper stores the records of trials: always those of real engines, of the
// simulated one, with their histograms, where they are wanted.
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

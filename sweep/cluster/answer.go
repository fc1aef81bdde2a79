package cluster

import (
	"context"
	"fmt"
	"slices"

	"planner/internal/note"
	"planner/sweep"
	"planner/sweep/measure"
)

// ask waits for the measurement of a trial.
type ask struct {
	ctx    context.Context
	trial  measure.Trial
	answer chan sweep.Brought
}

// Fetch waits for the measurement of a trial.
func (f *Follower) Fetch(ctx context.Context, t measure.Trial) (measure.Measurement, error) {
	a := ask{ctx, t, make(chan sweep.Brought, 1)}
	select {
	case f.asks <- a:
	case <-f.ended:
		return measure.Measurement{}, fmt.Errorf("%w in trial %d", sweep.ErrInterrupted, t.Number)
	}
	select {
	case got := <-a.answer:
		return got.Measurement, got.Err
	case <-f.ended:
		return measure.Measurement{}, fmt.Errorf("%w in trial %d", sweep.ErrInterrupted, t.Number)
	}
}

// reply answers what a part has measured, or will not measure any more.
func (f *Follower) reply(p *partRun) bool {
	before := len(p.waiting)
	p.waiting = slices.DeleteFunc(p.waiting, func(a ask) bool {
		got, ready := f.find(p, a.trial)
		if a.ctx.Err() != nil {
			got, ready = sweep.Brought{Err: fmt.Errorf("%w in trial %d", sweep.ErrInterrupted, a.trial.Number)}, true
		}
		if ready {
			a.answer <- got
		}
		return ready
	})
	return len(p.waiting) != before
}

// find is what is known of a trial, if anything is.
func (f *Follower) find(p *partRun, t measure.Trial) (sweep.Brought, bool) {
	if m := p.take(&t); m != nil {
		if m.Rejected.Text == "" || m.Trial.Number > 0 {
			seen, err := f.Folder.Gather(p.Name, m.Trial.Number, t.Number)
			if err != nil {
				return sweep.Brought{Err: err}, true
			}
			if seen != nil {
				f.See.See(*seen)
			}
		}
		m.Trial = t
		return sweep.Brought{Measurement: *m}, true
	}
	switch {
	case p.failed != "":
		return sweep.Brought{Measurement: measure.Measurement{Trial: t, Rejected: note.Because(note.NotPlaced, f.Launcher, p.failed)}}, true
	case p.cut != "" && f.active() == 0:
		return sweep.Brought{Err: fmt.Errorf("%w: %s", sweep.ErrInterrupted, p.cut)}, true
	}
	return sweep.Brought{}, false
}

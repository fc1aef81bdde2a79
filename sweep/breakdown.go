package sweep

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// attempts is how often a trial, or the start of an engine, is tried if the engine breaks down.
const attempts = 2

// again is added to the names of the files of an engine that is started in place of one that
// failed, whose log is kept.
const again = "-again"

// attempt runs a trial, and a second time on a new engine, or the same server, if the engine broke
// down in it, unless it has done so under load with these knobs before or too little of the limit
// is left.
func (l *Live) attempt(ctx context.Context, t *measure.Trial, seen *EngineTelemetry) (measure.Observation, error) {
	// Files of an engine are named after the first trial that it serves.
	name := fileName(max(t.Number, 1))
	began, limit, length := time.Now(), t.Limit, t.Warmup+t.Window+t.Cooldown
	for try := 1; ; try++ {
		e, err := l.ensure(ctx, t, &name, seen)
		if err != nil {
			return measure.Observation{}, err
		}
		fell := slices.Contains(l.fell, t.Knobs)
		if try == 1 && e.Done() != nil && !fell {
			began = time.Now() // the start of an engine is no part of a trial, except in place of one that broke down
		}
		seen.serve(e, e != l.reported)
		lived := time.Since(l.since)
		o, err := l.once(ctx, e, t, seen)
		took := time.Since(began)
		repeat := try < attempts && (o.End == 0 || !fell) && (limit == 0 || limit-took >= length)
		if err == nil {
			err = l.refused(e, t, &o, repeat)
		}
		o.Took = took
		last, good, kept := progress(o.Records)
		l.well += good
		now := life{t.Knobs, t.Rate, l.well, lived + last}
		failed, broke := errors.AsType[*engine.Failure](err)
		if !broke {
			if err == nil {
				l.stood = append(l.stood, now)
			}
			return o, err
		}
		if o.End > 0 {
			failed.Rate = t.Rate
		}
		if back := l.leave(ctx, e, t, failed, o.End > 0, limit-took); !repeat || failed.Final() || !back {
			o.Took = time.Since(began)
			return l.overloaded(t, o, failed, now, kept, back, seen)
		}
		kind, where := note.EngineRepeated, "a new engine"
		if e.Done() == nil {
			kind, where = note.TrialRepeated, "the same server"
		}
		l.remark("trial %d is repeated on %s: %v", t.Number, where, failed)
		seen.note(kind, failed)
		if limit > 0 {
			t.Limit = max(limit-took, length)
		}
	}
}

// once runs a trial on an engine, and again if the engine compiled kernels meanwhile and as much
// time is left of the limit; if that fails the first run stands. An observation without an End is
// one of which the load did not run.
func (l *Live) once(ctx context.Context, e *engine.Engine, t *measure.Trial, seen *EngineTelemetry) (measure.Observation, error) {
	if err := l.tryAlone(ctx, e, t); err != nil {
		return measure.Observation{}, err
	}
	before, compiled, began := *seen, e.Compiled(), time.Now()
	first, err := l.trial(ctx, e, *t, seen)
	took := time.Since(began)
	if err != nil || e.Compiled() == compiled || t.Limit > 0 && t.Limit < 2*took {
		return first, err
	}
	l.remark("trial %d is repeated: the engine compiled kernels in it", t.Number)
	again, kept := *t, *seen
	again.Limit = max(0, t.Limit-took)
	*seen = before
	seen.note(note.KernelsCompiled)
	o, err := l.trial(ctx, e, again, seen)
	if err != nil {
		*seen = kept
		return first, nil
	}
	return o, nil
}

// refused returns the failure of a server that refused connections, or for which a proxy did, in a
// trial that can be repeated: it may be starting again. It is nil for any other.
func (l *Live) refused(e *engine.Engine, t *measure.Trial, o *measure.Observation, repeat bool) error {
	i := slices.IndexFunc(o.Records, func(r measure.Record) bool { return r.Outcome == measure.Refused })
	if i < 0 && e.Done() == nil {
		i = outage(o.Records)
	}
	switch {
	case i < 0:
		return nil
	case repeat:
		return e.Gone(o.Records[i].Detail)
	}
	l.fell = append(l.fell, t.Knobs) // nor is the next one repeated
	return nil
}

// outage returns the index of the first of the requests to which a proxy said for a while that
// there was no server, while none that ended well was under way; -1 for none. A server that sheds
// load has others under way.
func outage(records []measure.Record) int {
	const long = 2 * time.Second
	absent := func(r measure.Record) bool {
		return r.Status() == http.StatusBadGateway || r.Status() == http.StatusServiceUnavailable
	}
	for i := 0; i < len(records); i++ {
		end := i
		for end < len(records) && absent(records[end]) {
			end++
		}
		if end-i < enoughRefusals {
			continue
		}
		from, to := records[i].Sent, records[end-1].Sent
		served := func(r measure.Record) bool { return r.Outcome == measure.OK && r.Sent <= to && r.Last >= from }
		if to-from >= long && !slices.ContainsFunc(records, served) {
			return i
		}
		i = end
	}
	return -1
}

// leave gives up an engine that broke down, and reports whether there is one for the next load, as
// always if planner starts it. A server that somebody else started may be started again, if it fell
// under a load: it is waited for as long as it may be silent, but no longer than is left of the
// trial's limit.
func (l *Live) leave(ctx context.Context, e *engine.Engine, t *measure.Trial, failed *engine.Failure, loaded bool, left time.Duration) (back bool) {
	l.drop(engine.HastyGrace)
	l.answers = false
	if e.Done() != nil || !loaded || failed.Final() {
		return e.Done() != nil
	}
	wait := silenceOf(t, l.loneTook, l.Hang)
	if t.Limit > 0 {
		wait = min(wait, max(left, justSent))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return e.Insist(ctx, wait, func() bool { return true }, l.rests, func() error { return e.Check(ctx, signOfLife) }) == nil
}

// overloaded returns what comes of a trial whose engine broke down. If it did so under the load,
// and there is an engine for another, the objective is missed at this rate: a smaller load may be
// met. Knobs with which that happens enoughAlike times, and no trial was completed, cannot run; nor
// can those with which engines die alike at any rate, having kept up.
func (l *Live) overloaded(t *measure.Trial, o measure.Observation, failed *engine.Failure, ended life, kept, back bool, seen *EngineTelemetry) (measure.Observation, error) {
	missed := back && o.End > 0 && t.Rate > 0 && !t.Objective.Empty() && !failed.Final()
	if missed {
		l.fell = append(l.fell, t.Knobs)
		falls := list.Count(l.fell, func(k measure.Knobs) bool { return k == t.Knobs })
		missed = falls < enoughAlike || slices.ContainsFunc(l.stood, func(s life) bool { return s.knobs == t.Knobs })
		if kept {
			if was, ok := list.Find(l.falls, func(f life) bool { return ended.regardless(f, l.stood) }); ok {
				failed.Cause += fmt.Sprintf("; after %d requests in %.0f s, as after %d in %.0f s under %.3g requests/s: the rate is not why",
					ended.served, ended.lived.Seconds(), was.served, was.lived.Seconds(), was.rate)
				missed = false
			}
			l.falls = append(l.falls, ended)
		}
	}
	if !missed {
		return measure.Observation{}, l.unable(t.Knobs, failed, seen)
	}
	l.remark("trial %d counts as missed: %v", t.Number, failed)
	cutOff(t, &o, failed)
	o.Remarks = append(o.Remarks, seen.Notes...)
	return o, nil
}

// life is what an engine had done by the end of a trial, or when it broke down in it.
type life struct {
	knobs  measure.Knobs
	rate   float64       // of the trial
	served int           // requests of loads that it answered well
	lived  time.Duration // from when it served first to the last of these
}

// regardless reports whether two engines that had kept up with their loads broke down after as many
// requests, or as long a time, under rates that differ, and no other with their knobs got further:
// then the rate is not why.
func (a life) regardless(b life, others []life) bool {
	const enough, apart = 50, 1.5
	if a.knobs != b.knobs || min(a.served, b.served) < enough || max(a.rate, b.rate) <= apart*min(a.rate, b.rate) {
		return false
	}
	alike := func(of func(life) float64) bool {
		most := 1.1 * min(of(a), of(b))
		return max(of(a), of(b)) < most && !slices.ContainsFunc(others, func(o life) bool { return o.knobs == a.knobs && of(o) > most })
	}
	return alike(func(l life) float64 { return float64(l.served) }) || alike(func(l life) float64 { return l.lived.Seconds() })
}

// progress returns when the last request that ended well did, how many there were, and whether an
// engine that had so many kept up: nearly all that it was sent until then ended well.
func progress(records []measure.Record) (last time.Duration, good int, kept bool) {
	for i := range records {
		if r := &records[i]; r.Outcome == measure.OK {
			last, good = max(last, r.Last), good+1
		}
	}
	sent := list.Count(records, func(r measure.Record) bool { return r.Sent >= 0 && r.Sent <= last })
	const enough = 20
	return last, good, good >= enough && 10*good >= 9*sent
}

// cutOff turns into failures the requests that were in flight when an engine broke down, and those
// that would have come until the end of the window.
func cutOff(t *measure.Trial, o *measure.Observation, failed *engine.Failure) {
	why, inFlight := failed.Error(), measure.Timeout
	if failed.Ended() {
		inFlight = measure.Reset
	}
	sent := map[int]bool{}
	for i := range o.Records {
		r := &o.Records[i]
		switch sent[r.ID] = true; r.Outcome {
		case measure.InFlight:
			r.Outcome, r.Detail = inFlight, why
		case measure.Refused:
			r.Detail = why
		}
	}
	end := t.Warmup + t.Window
	for _, r := range t.Schedule() {
		if r.Due < end && !sent[r.ID] {
			o.Records = append(o.Records, measure.Record{ID: r.ID, Class: r.Class, Due: r.Due, Sent: measure.Never, First: measure.Never, Last: measure.Never,
				Prompt: r.Prompt, Asked: r.Output, Outcome: measure.Refused, Detail: why})
		}
	}
	o.End, o.Aborted = max(o.End, end), note.Because(note.EngineBroke, why)
}

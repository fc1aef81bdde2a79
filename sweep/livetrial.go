package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"planner/internal/endpoint"
	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// trial runs one trial on an engine that serves. An error of type
// *engine.Failure says that the engine broke down.
func (l *Live) trial(ctx context.Context, e *engine.Engine, t measure.Trial, seen *EngineTelemetry) (measure.Observation, error) {
	l.link(e, t.Number)
	seen.RoundTrip = e.RoundTrip(ctx)
	switch can, err := e.ResetCache(ctx); {
	case !can:
		seen.note(note.CacheNotEmptied)
	case err != nil:
		seen.note(note.CacheNotEmptiedAs, err)
	}
	sampling := e.Sample(ctx)
	w := &watchdog{engine: e, sampling: sampling, trial: &t, limit: cmp.Or(l.Hang, time.Minute), look: t.NextLook(0), remark: l.remark}
	if l.Client.Stream {
		w.patience = cmp.Or(l.Hang, loneSilence)
	}
	client := l.client(e)
	client.Abort = w.ask
	run, err := client.Start(ctx, t, t.Schedule())
	if err != nil {
		sampling.Stop(ctx)
		return measure.Observation{}, l.orBroken(ctx, e, err)
	}
	l.See.See(run)
	o, err := run.Wait()
	seen.hear(sampling.Stop(ctx))
	if err != nil {
		return o, err
	}
	if len(seen.Said.Snapshots) == 0 {
		seen.note(note.NoMetrics)
	}
	r := run.Telemetry()
	seen.used(r)
	if f := w.breakdown(ctx, &o); f != nil {
		return o, f
	}
	if slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Broken() }) {
		patience := time.Duration(0)
		if leftOver(o.Records, o.End) {
			patience = w.limit
		}
		_, err := l.alone(ctx, e, &t, patience)
		if err := l.orFailure(ctx, e, err); err != nil {
			return o, err
		}
	}
	o.Server = serverOf(e, &seen.Said)
	seen.compare(o.Records, r)
	o.Remarks = append(o.Remarks, seen.Notes...)
	return o, nil
}

func (l *Live) client(e *engine.Engine) load.Client {
	c := l.Client
	c.URL, c.Model = e.URL, cmp.Or(e.Facts.Model, c.Model)
	c.Engine = cmp.Or(c.Engine, e.Facts.Dialect)
	return c
}

// orBroken turns the error of a trial that did not begin into the breakdown of
// its engine, if that is what it was.
func (l *Live) orBroken(ctx context.Context, e *engine.Engine, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f := e.Failure(); f != nil {
		return f
	}
	if bad := e.Check(ctx, signOfLife); bad != nil && ctx.Err() == nil {
		return e.Broken(bad)
	}
	return err
}

// serverOf is what the engine said, as a measurement keeps it.
func serverOf(e *engine.Engine, said *engine.Metrics) measure.Server {
	s := measure.Server{
		Engine:   measure.Software{Kind: e.Kind, Version: e.Facts.Version},
		KVBlocks: from(1, e.Facts.KVBlocks), BlockTokens: from(1, e.Facts.BlockTokens), HitRate: from(0, said.HitRate), PeakKV: from(0, said.PeakKV),
	}
	if n := said.Preemptions; n >= 0 {
		s.Preemptions = new(int(n))
	}
	return s
}

// from is x, nil where it is no number or less than the least that is a figure.
func from[T int | float64 | time.Duration](least, x T) *T {
	if x >= least {
		return &x
	}
	return nil
}

// signOfLife is how long an engine without load may take for one token.
const signOfLife = 20 * time.Second

// watchdog watches one trial: it ends the trial when it is hopeless and when its
// engine is dead or hangs.
type watchdog struct {
	engine   *engine.Engine
	sampling *engine.Sampling
	trial    *measure.Trial
	limit    time.Duration
	remark   func(format string, args ...any)
	// look is when the records are looked at next for a hopeless trial.
	look time.Duration
	// moved is when something last came, seen what had come by then, and counted when
	// that was last looked at; heard is when one token came that was asked for beside.
	moved, counted, heard time.Duration
	// patience is how long a load may then still bring nothing; 0 means that it may for
	// ever: an answer that is not streamed shows nothing before its end.
	patience time.Duration
	seen     arrivals
	// refused says that the engine refused whatever ended between two looks.
	refused bool
	// sign is the state of the question for a sign of life.
	sign atomic.Int32
	last error
}

// States of the question for a sign of life.
const (
	notAsked int32 = iota
	asking
	alive
	dead
)

// ask is called by the load generator a few times a second.
func (v *watchdog) ask(now time.Duration, records func() []measure.Record) note.Reason {
	select {
	case <-v.engine.Done():
		return note.Because(note.EngineEnded)
	default:
	}
	if v.hangs(now, records) {
		return note.Because(note.EngineHangs)
	}
	if v.refused {
		return note.Because(note.EngineRefuses)
	}
	t := v.trial
	if t.Objective.Empty() || t.Window <= 0 || now < v.look {
		return note.Reason{}
	}
	v.look = t.NextLook(now)
	return measure.Hopeless(t, records(), now)
}

// hangs reports whether the engine is dead though it runs: with requests in
// flight nothing came for the limit, its counters of tokens stand still, and one
// token more does not come either.
func (v *watchdog) hangs(now time.Duration, records func() []measure.Record) bool {
	switch v.sign.Load() {
	case dead:
		return true
	case asking:
		return false
	case alive:
		v.heard = now
		v.sign.Store(notAsked)
	}
	// A look at all records is not free, so it is rare where the limit allows.
	if now-v.counted < v.limit/10 {
		return false
	}
	v.counted = now
	before := v.seen
	v.seen = tally(records())
	v.refused = v.refused || v.seen.refusals-before.refusals >= enoughRefusals && v.seen.good == before.good
	if v.seen.events != before.events || !v.seen.waiting {
		v.moved = now
	}
	if now-max(v.moved, v.heard) < v.limit {
		return false
	}
	idle, known := v.sampling.Idle()
	switch silent := now - v.moved; {
	case known && idle < v.limit:
		return false
	case v.patience > 0 && !v.seen.begun && silent >= v.limit+v.patience:
		v.last = fmt.Errorf("one token comes when asked for, but nothing of the load in %v", silent.Round(time.Second))
		v.sign.Store(dead)
		return true
	}
	v.sign.Store(asking)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), v.limit)
		defer cancel()
		if v.last = v.engine.Check(ctx, v.limit); v.last != nil {
			v.sign.Store(dead)
			return
		}
		v.sign.Store(alive)
	}()
	return false
}

// arrivals counts what came: first tokens and ends, and of these what is good, first
// tokens and good ends, and the refusals. waiting says whether requests are in flight, begun
// whether any of them has its first token: the others of a long answer are not counted.
type arrivals struct {
	events, good, refusals int
	waiting, begun         bool
}

// enoughRefusals between two looks, and nothing good beside them, end a trial.
const enoughRefusals = 3

// tally counts what came.
func tally(records []measure.Record) (seen arrivals) {
	for i := range records {
		r := &records[i]
		if r.First >= 0 {
			seen.events++
			seen.good++
		}
		switch r.Outcome {
		case measure.InFlight:
			seen.waiting, seen.begun = true, seen.begun || r.First >= 0
			continue
		case measure.OK:
			seen.good++
		case measure.Refused:
			seen.refusals++
		case measure.HTTPStatus:
			if engine.Final(&endpoint.StatusError{Status: r.Status()}) {
				seen.refusals++
			}
		}
		seen.events++
	}
	return seen
}

// breakdown decides after a trial whether its engine broke down in it: it ended,
// it hung, or requests failed and it gives no sign of life any more.
func (v *watchdog) breakdown(ctx context.Context, o *measure.Observation) *engine.Failure {
	if v.sign.Load() == dead {
		return v.engine.Broken(fmt.Errorf("it stopped answering with requests in flight: %w", v.last))
	}
	failed := slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Broken() || r.Outcome == measure.Timeout })
	if !failed && o.Aborted.Text == "" {
		return v.engine.Failure()
	}
	if ended(v.engine) {
		return v.engine.Failure()
	}
	if err := v.answers(ctx, leftOver(o.Records, o.End)); err != nil && ctx.Err() == nil {
		return v.engine.Broken(err)
	}
	return nil
}

// leftOver reports whether an engine may still be busy with requests behind a trial that
// was over at end. One that had just been sent may as well be refused as those before it:
// an engine with a backlog has older ones, too.
func leftOver(records []measure.Record, end time.Duration) bool {
	return slices.ContainsFunc(records, func(r measure.Record) bool {
		return r.Outcome == measure.Timeout || r.Outcome == measure.InFlight && (r.First >= 0 || r.Sent >= 0 && end-r.Sent > justSent)
	})
}

// justSent is how long a server that refuses takes for it, at most.
const justSent = time.Second

// ended reports whether the process of an engine has ended. One that breaks its
// connections does so a moment later.
func ended(e *engine.Engine) bool {
	select {
	case <-e.Done():
	case <-time.After(500 * time.Millisecond):
	}
	return e.Failure() != nil
}

// backlog is how long at most an engine may work off what nobody waits for any
// more.
const backlog = 5 * time.Minute

// answers asks the engine for one token behind a trial. What was left of the load may
// still be under way, though the trial was ended early: as long as it computes, or for
// as long as silence is no hang where it does not tell, it is asked again. So it is once
// the time is over for which a server that limits rates wants to rest.
func (v *watchdog) answers(ctx context.Context, left bool) error {
	counters := v.engine.Sample(ctx)
	defer counters.Stop(ctx)
	for tries, began := 1, time.Now(); ; tries++ {
		err := v.engine.Check(ctx, signOfLife)
		if err == nil || engine.Final(err) || ctx.Err() != nil || v.engine.Failure() != nil || !left && tries >= loneTries {
			return err
		}
		idle, known := counters.Idle()
		took, rest := time.Since(began), endpoint.RestOf(err)
		hangs := known && idle >= signOfLife || !known && took >= v.limit
		switch {
		case took+rest >= backlog, hangs && (rest <= lonePause || tries >= loneTries):
			return err
		case rest > lonePause:
			v.remark("behind trial %d one token fails; the server wants to be asked again in %v: %v", v.trial.Number, rest, err)
		case left && tries == 1:
			v.remark("behind trial %d one token fails; what is left of the load may be under way, so it is asked for again: %v", v.trial.Number, err)
		}
		if !pause(ctx, max(rest, lonePause)) {
			return err
		}
	}
}

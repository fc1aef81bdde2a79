package sweep

import (
	"context"
	"errors"
	"slices"
	"time"

	"planner/sweep/engine"
	"planner/sweep/measure"
)

// factsWithin bounds how long a server that is measured as it is may take to say what it is.
const factsWithin = 15 * time.Second

// bare runs a trial against a server that is measured as it is: see [Live.Bare].
func (l *Live) bare(ctx context.Context, t *measure.Trial, seen *EngineTelemetry) (o measure.Observation, err error) {
	e := l.reach(ctx, t.Knobs)
	switch {
	case ctx.Err() != nil:
		return o, context.Cause(ctx)
	case t.Number == 0:
		o, err = l.probe(ctx, e, t)
	default:
		if l.current != nil {
			seen.serve(e, e != l.reported)
		}
		o, err = l.trial(ctx, e, *t, seen)
	}
	if failed, broke := errors.AsType[*engine.Failure](err); broke {
		return measure.Observation{}, l.unable(t.Knobs, failed, seen)
	}
	return o, err
}

// reach asks the server what it is and for one token, as any engine. A server that says nothing
// about itself is measured all the same.
func (l *Live) reach(ctx context.Context, k measure.Knobs) *engine.Engine {
	if l.current != nil {
		return l.current
	}
	short, cancel := context.WithTimeout(ctx, factsWithin)
	defer cancel()
	e, err := engine.Start(short, l.Settings, k, "", nil)
	switch {
	case err == nil:
		l.current = e
		l.announce(e)
	case ctx.Err() == nil:
		l.remark("warning: ask the server what it is: %v", err)
		e.Facts = engine.ServerFacts{Dialect: e.Facts.Dialect}
	}
	return e
}

// probe runs a trial that is not counted; again, as [engine.Engine.Insist] says, if none of its
// requests ended well.
func (l *Live) probe(ctx context.Context, e *engine.Engine, t *measure.Trial) (o measure.Observation, err error) {
	client := l.client(e)
	w := &watchdog{trial: t, silence: silenceOf(t, 0, l.Hang), stream: client.Stream}
	client.Abort = w.looks
	_ = e.Insist(ctx, l.Settings.Timeouts.Ready, nil, l.rests, func() error {
		o, err = client.Run(ctx, *t, t.Schedule())
		if n := len(o.Records); err == nil && n > 0 && !slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Outcome == measure.OK }) {
			return broken(&o.Records[n-1], o.Rest, w.silence)
		}
		return err
	})
	if err == nil && w.hung {
		err = l.stillHangs(ctx, e, w, &o)
	}
	if w.lost {
		giveUp(&o, w.silence)
	}
	return o, err
}

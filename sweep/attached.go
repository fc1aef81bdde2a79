package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// Attached runs trials against a server that runs already and takes what comes: it
// starts nothing, repeats nothing, and measures a server that fails as one that fails.
type Attached struct {
	// Settings say where the server listens, Client sends the load.
	Settings engine.Settings
	Client   load.Client
	// See, if set, is told what happens.
	See Watcher
	// Hang, if set, takes the place of the time in which something of a load must come.
	Hang time.Duration
	// Folder, if set, takes the latencies of each trial, and what was seen of the
	// server where it says something of itself.
	Folder *Folder

	// asked says that the server was asked which engine it is.
	asked bool
}

// factsWithin bounds how long a server is asked for what it says of itself.
const factsWithin = 15 * time.Second

// Run is a [Runner]. A trial without a number leaves no files.
func (e *Attached) Run(ctx context.Context, t measure.Trial) (measure.Observation, error) {
	e.learnDialect(ctx)
	client := e.Client
	w := &watchdog{silence: silenceOf(&t, e.Hang), stream: client.Stream}
	client.Abort = w.looks
	if t.Number == 0 {
		return e.probe(ctx, &client, t, w)
	}
	seen := newEngineTelemetry(&t)
	server := e.ask(ctx, t.Knobs, &seen)
	began := time.Now()
	if server != nil {
		w.sampling = server.Sample(ctx)
	}
	run, err := client.Start(ctx, t, t.Schedule())
	if err != nil {
		if server != nil {
			w.sampling.Stop(ctx)
		}
		return measure.Observation{}, err
	}
	e.See.See(run)
	o, err := run.Wait()
	if server != nil {
		seen.hear(w.sampling.Stop(ctx))
	}
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	r := run.Telemetry()
	seen.used(r)
	seen.EngineTime = time.Since(began)
	if err := w.rejection(t.Knobs); err != nil {
		return o, errors.Join(err, e.keep(seen, server != nil))
	}
	if len(seen.Said.Snapshots) > 0 {
		o.Server = serverOf(server, &seen.Said)
		seen.compare(o.Records, r)
	}
	o.Remarks = append(o.Remarks, seen.Notes...)
	return o, e.keep(seen, server != nil)
}

// probe runs a trial that is not counted; again, as [engine.Engine.Insist] says, where
// none of its requests ended well.
func (e *Attached) probe(ctx context.Context, client *load.Client, t measure.Trial, w *watchdog) (o measure.Observation, err error) {
	rests := func(err error, rest time.Duration) { e.See.See(fmt.Sprintf(askedAgain, err, rest)) }
	_ = (&engine.Engine{}).Insist(ctx, e.Settings.Timeouts.Ready, nil, rests, func() error {
		o, err = client.Run(ctx, t, t.Schedule())
		if n := len(o.Records); err == nil && n > 0 && !slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Outcome == measure.OK }) {
			return broken(&o.Records[n-1], o.Rest, w.silence)
		}
		return err
	})
	return o, cmp.Or(err, w.rejection(t.Knobs))
}

// rejection is the error of a trial in which the server hung.
func (v *watchdog) rejection(k measure.Knobs) error {
	if !v.hung {
		return nil
	}
	f := (&engine.Engine{Knobs: k}).Broken(fmt.Errorf("of the load %w", v.silence))
	return &measure.Rejection{Knobs: k, Reason: f.Reason()}
}

// learnDialect asks the server once which engine it is, unless that is known: prompts
// have exact lengths then, and outputs too, where the engine has a way.
func (e *Attached) learnDialect(ctx context.Context) {
	if e.asked || e.Client.Engine != "" {
		return
	}
	e.asked = true
	if e.Client.Engine = engine.Dialect(ctx, e.Settings); e.Client.Engine != "" {
		e.See.See(fmt.Sprintf("the server says it is %s: requests are in its dialect", e.Client.Engine))
	}
}

// ask asks the server what it is and for one token, as any engine. One that says
// nothing of itself need not stop anybody from measuring it.
func (e *Attached) ask(ctx context.Context, k measure.Knobs, seen *EngineTelemetry) *engine.Engine {
	short, cancel := context.WithTimeout(ctx, factsWithin)
	defer cancel()
	server, err := engine.Start(short, e.Settings, k, "", nil)
	if err != nil {
		if ctx.Err() == nil {
			e.See.See(fmt.Sprintf("warning: ask the server what it is: %v", err))
		}
		return nil
	}
	seen.serve(server, true)
	seen.RoundTrip = server.RoundTrip(short)
	return server
}

// keep writes what was seen of a trial into the run folder.
func (e *Attached) keep(seen EngineTelemetry, known bool) error {
	if known {
		e.See.See(seen)
	}
	switch {
	case e.Folder == nil:
		return nil
	case known:
		return e.Folder.WriteEngineTelemetry(seen)
	}
	return e.Folder.WriteHistograms(seen.Trial, seen.histograms)
}

package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
	silence := silenceOf(&t, l.loneTook, l.Hang)
	short, cancel := within(ctx, t.Limit, 2*silence)
	defer cancel()
	l.link(e, t.Number)
	seen.RoundTrip = e.RoundTrip(short)
	switch can, err := e.ResetCache(short); {
	case !can && l.Bare: // nobody asked for it
	case !can:
		seen.note(note.CacheNotEmptied)
	case err != nil:
		seen.note(note.CacheNotEmptiedAs, err)
	}
	if n := e.Facts.Listed; n > 0 {
		seen.note(note.FirstModel, n, e.Facts.Model)
	}
	if as := e.Facts.AnswersAs; as != "" {
		seen.note(note.AnswersAsOther, as, e.Facts.Model)
	}
	sampling := e.Sample(ctx)
	w := &watchdog{engine: e, sampling: sampling, trial: &t, silence: silence, stream: l.Client.Stream, look: t.NextLook(0), wait: l.rests}
	client := l.client(e)
	client.Abort = w.ask
	if l.Bare {
		client.Abort = w.looks
	}
	run, err := client.Start(ctx, t, t.Schedule())
	if err != nil {
		sampling.Stop(ctx)
		return measure.Observation{}, l.orBroken(short, e, err)
	}
	l.See.See(run)
	o, err := run.Wait()
	seen.Said = sampling.Stop(ctx)
	seen.GPU = seen.Said.GPU
	if err != nil {
		return o, err
	}
	r := run.Telemetry()
	seen.Client = &r
	if err := l.standing(short, e, w, &o); err != nil {
		return o, err
	}
	if len(seen.Said.Snapshots) > 0 || !l.Bare {
		o.Server = serverOf(e, &seen.Said)
		seen.compare(o.Records, r)
	}
	if len(seen.Said.Snapshots) == 0 && !l.Bare {
		seen.note(note.NoMetrics)
	}
	o.Remarks = append(o.Remarks, seen.Notes...)
	return o, nil
}

// standing returns the failure of an engine that broke down in a trial, or that fails requests
// alone as it did those of the load; nil if it still stands.
func (l *Live) standing(ctx context.Context, e *engine.Engine, w *watchdog, o *measure.Observation) error {
	if w.hung {
		if err := l.stillHangs(ctx, e, w, o); err != nil {
			return err
		}
	}
	if w.lost {
		giveUp(o, w.silence)
	}
	if l.Bare {
		return nil
	}
	came := w.moved >= o.End/2 || slices.ContainsFunc(o.Records, func(r measure.Record) bool { return max(r.First, r.Last) >= o.End/2 })
	var busy func() bool
	if leftOver(o.Records, o.End) && !w.sampling.Mute() {
		left := e.Sample(ctx)
		defer left.Stop(ctx)
		busy = w.works(left, w.patience(o))
	}
	if f := w.breakdown(ctx, o, busy, came); f != nil {
		return f
	}
	if o.Aborted.Text != "" && !came || slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Broken() }) {
		_, err := l.alone(ctx, e, w.trial, w.silence, busy)
		if late(ctx) && came {
			return nil // it may be slow
		}
		return l.orFailure(ctx, e, err)
	}
	return nil
}

// stillHangs returns the failure of an engine from which nothing came for so long, unless it has
// answered requests of the load and answers another one now: then it has lost some requests, but
// serves.
func (l *Live) stillHangs(ctx context.Context, e *engine.Engine, w *watchdog, o *measure.Observation) error {
	answered := slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Outcome == measure.OK })
	if answered && !w.sampling.Mute() && e.Check(ctx, min(signOfLife, 4*w.silence)) == nil { // less only where Hang is short
		if done, _ := l.alone(ctx, e, w.trial, min(signOfLife, w.silence), nil); done {
			return nil
		}
	}
	if ctx.Err() != nil && !late(ctx) {
		return context.Cause(ctx)
	}
	return e.Broken(fmt.Errorf("with requests in flight %w", silent(w.silence)))
}

// giveUp turns requests that have been in flight for at least silence when a hanging trial ends
// into timeouts: they would never end.
func giveUp(o *measure.Observation, silence time.Duration) {
	for i := range o.Records {
		if r := &o.Records[i]; r.Outcome == measure.InFlight && r.Sent >= 0 && o.End-r.Sent >= silence {
			r.Outcome, r.Detail = measure.Timeout, fmt.Sprintf("nothing more in %v", silence.Round(time.Second))
		}
	}
}

// client returns the client of the next load. Its prompts are others even where a trial is repeated
// on a server that may still hold those of the first time.
func (l *Live) client(e *engine.Engine) load.Client {
	l.Client.Salt++
	c := l.Client
	c.URL, c.Model = e.URL, cmp.Or(e.Facts.Model, c.Model)
	c.Engine = cmp.Or(c.Engine, e.Facts.Dialect)
	return c
}

// orBroken turns the error of a trial that did not begin into the breakdown of its engine, if that
// is what it was.
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

func serverOf(e *engine.Engine, said *engine.Metrics) measure.Server {
	s := measure.Server{
		Engine:   measure.Software{Kind: e.Kind, Version: e.Facts.Version},
		KVBlocks: from(1, e.Facts.KVBlocks), BlockTokens: from(1, e.Facts.BlockTokens), HitRate: from(0, said.HitRate), PeakKV: from(0, said.PeakKV),
	}
	if n := said.Preemptions; n >= 0 {
		s.Preemptions = new(int(n))
	}
	for _, f := range e.Facts.Flags {
		n, _ := strconv.Atoi(f.Value)
		switch f.Name {
		case "max_num_seqs":
			s.MaxNumSeqs = from(1, n)
		case "max_num_batched_tokens":
			s.MaxNumBatchedTokens = from(1, n)
		}
	}
	return s
}

// from returns x, nil if it is NaN or below the least that is a figure.
func from[T int | float64 | time.Duration](least, x T) *T {
	if x >= least {
		return &x
	}
	return nil
}

// signOfLife is how long an engine without load may take for one token.
const signOfLife = 20 * time.Second

// watchdog watches one trial: it ends the trial if it is hopeless, or if its engine is dead or
// hangs.
type watchdog struct {
	engine   *engine.Engine
	sampling *engine.Sampling
	trial    *measure.Trial
	// silence is how long nothing may come of the load; stream says that answers show progress
	// before their end.
	silence time.Duration
	stream  bool
	// wait is told when the engine is asked again.
	wait func(err error, rest time.Duration)
	// look is when the records are next examined for a hopeless trial.
	look time.Duration
	// moved is when something last came, seen what had come by the last look, and counted when that
	// was.
	moved, counted time.Duration
	seen           arrivals
	// refused says that the engine refused whatever ended between two looks, hung that it hangs,
	// lost that nothing of the load came for as long as silence.
	refused, hung, lost bool
}

// ask is called by the load generator a few times a second.
func (v *watchdog) ask(now time.Duration, records func() []measure.Record) note.Reason {
	select {
	case <-v.engine.Done():
		return note.Because(note.EngineEnded)
	default:
	}
	if why := v.looks(now, records); why.Text != "" {
		return why
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

// looks is the part of ask that applies to any load. With requests in flight, something must come
// before silence is over, or the engine's token counters must move. Without counters this is not
// held against answers that are not streamed, which show nothing before their end. A trial also
// ends at its limit.
func (v *watchdog) looks(now time.Duration, records func() []measure.Record) (why note.Reason) {
	// A look at all records is not free, so it is rare if silence allows.
	if now-v.counted < v.silence/30 {
		return why
	}
	v.counted = now
	before := v.seen
	v.seen = tally(records())
	v.refused = v.refused || v.seen.refusals-before.refusals >= enoughRefusals && v.seen.good == before.good
	if v.seen != before || !v.seen.waiting {
		v.moved = now
	}
	idle, known := v.sampling.Idle()
	quiet := now-v.moved >= v.silence
	v.hung = quiet && (known && idle >= v.silence || !known && v.stream)
	v.lost = v.hung || quiet && v.stream
	if v.hung {
		why = note.Because(note.EngineHangs)
	} else if v.trial != nil && v.trial.Limit > 0 && now >= v.trial.Limit {
		why = note.Because(note.TrialLimit, v.trial.Limit)
	}
	return why
}

// arrivals counts what came: events are first tokens and ends except timeouts, good the first
// tokens and good ends, refusals the ends by refusal. last is when any part of an answer under way
// last came, waiting says whether requests are in flight.
type arrivals struct {
	events, good, refusals int
	last                   time.Duration
	waiting                bool
}

// enoughRefusals is how many refusals between two looks, with nothing good besides, end a trial.
const enoughRefusals = 3

func tally(records []measure.Record) (seen arrivals) {
	for i := range records {
		r := &records[i]
		if r.First >= 0 {
			seen.events++
			seen.good++
		}
		switch r.Outcome {
		case measure.InFlight:
			seen.waiting, seen.last = true, max(seen.last, r.Last)
			continue
		case measure.Timeout:
			continue // the client gave up, so nothing came
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

// breakdown decides after a trial whether its engine broke down in it: it ended, or requests failed
// and it gives no sign of life any more. An engine from which something came until the end may
// merely be too slow to give one before the trial must be over.
func (v *watchdog) breakdown(ctx context.Context, o *measure.Observation, busy func() bool, came bool) *engine.Failure {
	failed := slices.ContainsFunc(o.Records, func(r measure.Record) bool { return r.Broken() || r.Outcome == measure.Timeout })
	if !failed && o.Aborted.Text == "" && busy == nil {
		return v.engine.Failure()
	}
	if ended(v.engine) {
		return v.engine.Failure()
	}
	err := v.engine.Insist(ctx, backlog, busy, v.wait, func() error { return v.engine.Check(ctx, signOfLife) })
	if err != nil && (ctx.Err() == nil || late(ctx) && !came) {
		return v.engine.Broken(err)
	}
	return nil
}

// leftOver reports whether an engine may still be busy with requests after a trial that was over at
// end. A request that had just been sent may as well be refused as those before it: an engine with
// a backlog has older ones, too.
func leftOver(records []measure.Record, end time.Duration) bool {
	return slices.ContainsFunc(records, func(r measure.Record) bool {
		return r.Outcome == measure.Timeout || r.Outcome == measure.InFlight && (r.First >= 0 || r.Sent >= 0 && end-r.Sent > justSent)
	})
}

// justSent is the longest that a server takes to refuse a request.
const justSent = time.Second

// ended reports whether the process of an engine has ended, which may be a moment after its
// connections broke.
func ended(e *engine.Engine) bool {
	select {
	case <-e.Done():
	case <-time.After(500 * time.Millisecond):
	}
	return e.Failure() != nil
}

// backlog is the longest that an engine may take to work off requests that nobody waits for any
// more.
const backlog = 5 * time.Minute

// unmoved is how long counters of tokens may stand still while an engine works.
const unmoved = time.Minute

// patience returns for how long after a trial an engine without counters may be at work on what it
// was sent and did not answer, if it goes on with requests that nobody waits for any more. This
// counts from the last sign of it: as long as these take at its pace until then, and up to a minute
// more; or, if no answer tells its pace, as long as silence.
func (v *watchdog) patience(o *measure.Observation) time.Duration {
	last, done, left, most := v.seen.last, 0, 0, v.silence
	for i := range o.Records {
		r := &o.Records[i]
		last = max(last, r.First, r.Last)
		switch {
		case r.Outcome == measure.OK:
			done++
		case (r.Outcome == measure.InFlight || r.Outcome == measure.Timeout) && r.Sent >= 0:
			left++
		}
	}
	if done > 0 {
		most = min(v.silence, unmoved) + time.Duration(float64(last)*float64(left)/float64(done))
	}
	return most - (o.End - last)
}

// works returns a function that tells whether an engine may still be at work on what is left of a
// trial: as long as its counters move or, if it has none, for the time patience.
func (v *watchdog) works(counters *engine.Sampling, patience time.Duration) func() bool {
	began := time.Now()
	return func() bool {
		if idle, known := counters.Idle(); known {
			return idle < min(v.silence, unmoved)
		}
		return time.Since(began) < patience
	}
}

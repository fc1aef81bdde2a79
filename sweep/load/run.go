package load

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Test is a load test: a trial that is under way.
type Test struct {
	client   *Client
	endpoint *endpoint
	trial    measure.Trial
	start    time.Time
	ctx      context.Context
	cancel   context.CancelCauseFunc
	encoder  *encoder
	prepared <-chan *message
	via      transport
	book     *book
	// receivers lends out the buffers of answers.
	receivers sync.Pool
	turns     *turns
	watch     *watch
	flying    sync.WaitGroup
	result    *result
}

// result is what a trial leaves behind; it may be read once done is closed.
type result struct {
	done      chan struct{}
	obs       measure.Observation
	telemetry Telemetry
	err       error
	// notes are doubts that arose before the start.
	notes []string
}

// errOver cuts what is still in flight when a trial is over.
var errOver = errors.New("the trial is over")

// aborted is the reason for which a trial was ended early.
type aborted string

// Error is the reason.
func (a aborted) Error() string { return string(a) }

func newTest(parent context.Context, c *Client, e *endpoint, trial measure.Trial, schedule []workload.Request) (*Test, error) {
	r := &Test{client: c, endpoint: e, trial: trial, turns: newTurns(schedule), result: &result{done: make(chan struct{})}}
	if err := r.newEncoder(parent); err != nil {
		return nil, err
	}
	var timer *pacer
	if !trial.Closed() {
		var err error
		if timer, err = c.pacer(); err != nil {
			return nil, err
		}
	}
	w := windowOf(&trial)
	if n := len(schedule); n > 0 && trial.Window <= 0 {
		w.end = max(w.end, schedule[n-1].Due)
	}
	r.book = newBook(schedule, w)
	r.ctx, r.cancel = context.WithCancelCause(parent)
	r.via = r.newTransport()
	ready := make(chan struct{})
	r.prepare(schedule, ready)
	<-ready
	r.via.warm(warmConnections(&trial, len(schedule)))
	r.start = time.Now()
	r.book.start, r.book.log = r.start, newHistogramLog(r.start)
	r.watch = newWatch(r)
	go r.drive(timer)
	return r, nil
}

func (c *Client) pacer() (*pacer, error) {
	if c.plainTimer {
		return &pacer{timer: newPlainSleeper()}, nil
	}
	return newPacer()
}

// newEncoder settles how prompts are written. Texts are measured first.
func (r *Test) newEncoder(ctx context.Context) error {
	c, e := r.client, r.endpoint
	p := &prompter{salt: mix(mix(c.Salt+uint64(r.trial.Number)) ^ r.trial.Seed), answers: &echo{}}
	r.encoder = newEncoder(e.model, c.Chat, c.Stream, e.dialect, p)
	r.encoder.line = headLine(e.url, e.header)
	if r.encoder.tokens {
		return nil
	}
	scale, err := e.measureText(ctx, r.encoder)
	e.http.CloseIdleConnections()
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.result.notes = append(r.result.notes, "prompts: their length is a guess of one token a word: "+oneLine(err.Error()))
	}
	p.text = scale
	return nil
}

func (r *Test) newTransport() transport {
	e := r.endpoint
	if e.url.Scheme == "https" {
		return newSecure(r.ctx, e.url.String(), e.header, r.client.TLS, e.dial)
	}
	address := e.url.Host
	if e.url.Port() == "" {
		address = net.JoinHostPort(strings.Trim(e.url.Hostname(), "[]"), "80")
	}
	return &pool{ctx: r.ctx, dial: func(ctx context.Context) (net.Conn, error) { return e.dial(ctx, "tcp", address) }}
}

// warmConnections is how many connections are opened before the start: one a
// slot, or a few for the first requests of an open loop.
func warmConnections(t *measure.Trial, requests int) int {
	if t.Closed() {
		return min(t.Concurrency, requests, 1024)
	}
	return min(inTurn, requests)
}

// prepare encodes the schedule ahead of time, as far as 64 MiB hold, and closes
// ready when so much is done. Later turns of a conversation are left blank: they
// carry an answer that has not come.
func (r *Test) prepare(schedule []workload.Request, ready chan<- struct{}) {
	longest := 0
	for i := range schedule {
		longest = max(longest, schedule[i].Prompt)
	}
	ahead := min(max(64<<20/(8*longest+512), 8), 512)
	out := make(chan *message, ahead)
	r.prepared = out
	go func() {
		defer close(out)
		if len(schedule) < ahead {
			ahead = len(schedule)
		}
		for i := range schedule {
			if i == ahead {
				close(ready)
			}
			m := r.encoder.blank(i)
			if schedule[i].Parent == 0 {
				r.encoder.encode(m, &schedule[i], r.turns.awaits(schedule[i].ID))
			}
			select {
			case out <- m:
			case <-r.ctx.Done():
				if i < ahead {
					close(ready)
				}
				return
			}
		}
		if len(schedule) == ahead {
			close(ready)
		}
	}()
}

// drive runs the trial from start to end.
func (r *Test) drive(timer *pacer) {
	defer close(r.result.done)
	if r.trial.Closed() {
		r.closedLoop()
	} else {
		context.AfterFunc(r.ctx, timer.timer.close)
		r.openLoop(timer)
	}
	end := time.Since(r.start)
	r.cancel(errOver)
	r.flying.Wait()
	r.via.close()
	r.watch.stop()
	r.settle(end)
}

// openLoop sends each request when it is due, whatever became of those before.
func (r *Test) openLoop(timer *pacer) {
	schedule := r.book.schedule
	for m := range r.prepared {
		req := &schedule[m.index]
		if !timer.until(r.ctx, r.start.Add(req.Due)) {
			return
		}
		if !r.turns.hold(req.Parent, m) {
			r.launch(m, req.Due)
		}
	}
	if !timer.until(r.ctx, r.start.Add(r.book.window.end)) {
		return
	}
	quiet := r.book.seal()
	var limit <-chan time.Time
	if r.client.Drain > 0 {
		limit = time.After(r.client.Drain)
	}
	select {
	case <-quiet:
	case <-limit:
	case <-r.ctx.Done():
	}
}

// launch sends a request on a goroutine of its own.
func (r *Test) launch(m *message, due time.Duration) {
	r.book.expect(due)
	r.flying.Go(func() {
		rc, _ := r.receivers.Get().(*receiver)
		if rc == nil {
			rc = &receiver{}
		}
		r.fly(m, due, rc)
		r.receivers.Put(rc)
	})
}

// closedLoop keeps as many requests in flight as there are slots. A request is
// due when its slot becomes free.
func (r *Test) closedLoop() {
	for range min(r.trial.Concurrency, len(r.book.schedule)) {
		r.flying.Go(func() {
			rc, free := &receiver{}, time.Duration(0)
			for r.ctx.Err() == nil {
				m, ok := <-r.prepared
				if !ok {
					return
				}
				r.book.expect(free)
				free = r.fly(m, free, rc)
			}
		})
	}
	r.flying.Wait()
}

// fly sends one request, reads its answer and files the record. It returns when
// that was over, counted from the start.
func (r *Test) fly(m *message, due time.Duration, rc *receiver) time.Duration {
	req := &r.book.schedule[m.index]
	if len(m.buf) == 0 {
		r.encoder.encode(m, req, r.turns.awaits(req.ID))
	}
	f := r.book.begin(m.index, due)
	rc.onFirst = func(at time.Time) { f.first.Store(int64(at.Sub(r.start))) }
	a, err := r.via.send(m, r.deadline(due))
	r.encoder.release(m)
	var g *received
	if err != nil {
		g = rc.none(failureOfError(err))
	} else {
		g = rc.receive(a, req.Output, r.client.Stream)
		a.body.close()
	}
	over := time.Since(r.start)
	if g.fail != nil && r.ctx.Err() != nil {
		g.fail = failed(measure.InFlight, "")
	}
	if r.turns.awaits(req.ID) {
		r.encoder.prompts.answers.keep(req, g)
	}
	for _, next := range r.turns.end(req.ID, over) {
		if r.ctx.Err() == nil && r.book.window.takes(over) {
			r.launch(next, over)
		}
	}
	r.book.end(f, r.recordOf(f, req, g), g)
	return over
}

// deadline is when a request due at due is given up; the zero time for never.
func (r *Test) deadline(due time.Duration) time.Time {
	if r.trial.Workload == nil || r.trial.Workload.Timeout <= 0 {
		return time.Time{}
	}
	return r.start.Add(due + r.trial.Workload.Timeout)
}

// recordOf judges an answer.
func (r *Test) recordOf(f *flight, req *workload.Request, g *received) measure.Record {
	rec := f.record
	if !g.first.IsZero() {
		rec.First = g.first.Sub(r.start)
	}
	if g.usage.known && g.usage.prompt > 0 {
		rec.Prompt, rec.Cached = g.usage.prompt, g.usage.cached
	}
	rec.Output, _ = g.tokens()
	rec.Outcome = measure.OK
	if f := judge(g, req.Output, r.endpoint.dialect.exact()); f != nil {
		rec.Outcome, rec.Detail = f.outcome, f.detail
	}
	if !g.last.IsZero() && rec.Outcome != measure.InFlight {
		rec.Last = g.last.Sub(r.start)
	}
	return rec
}

// Status returns the present state.
func (r *Test) Status() Status {
	now := time.Since(r.start)
	p := r.book.progress(now)
	p.Rate = r.watch.rate()
	p.Left = -1
	if !r.trial.Closed() && r.book.window.end < math.MaxInt64 {
		p.Left = max(r.book.window.end-now, 0)
	}
	return p
}

// Wait returns what was observed once the trial is over.
func (r *Test) Wait() (measure.Observation, error) {
	<-r.result.done
	return r.result.obs, r.result.err
}

// Telemetry returns what the client says of itself, once the trial is over.
func (r *Test) Telemetry() Telemetry {
	<-r.result.done
	return r.result.telemetry
}

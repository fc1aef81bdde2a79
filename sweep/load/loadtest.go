package load

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Test is a load test: a trial that is under way.
type Test struct {
	client   *Client
	target   *target
	trial    measure.Trial
	ctx      context.Context
	cancel   context.CancelCauseFunc
	encoder  *encoder
	prepared chan *message
	via      transport
	recorder *recorder
	// idle lends out the buffers of requests.
	idle          sync.Pool
	conversations *conversations
	flying        sync.WaitGroup
	// rest is how long, in nanoseconds, the server's last answer asked not to be called again.
	rest  atomic.Int64
	reuse reuse

	// guessed says why the lengths of prompts are a guess, which the server's own counts may confirm.
	guessed note.Notes
	// aborted is why the client wants the trial to end early.
	aborted note.Reason

	// done is closed when the trial is over; what came of it may be read then.
	done      chan struct{}
	observed  measure.Observation
	telemetry Telemetry
	err       error
}

// Causes for which what is still in flight is cut.
var (
	errOver    = errors.New("the trial is over")
	errAborted = errors.New("the trial was aborted")
)

func (c *Client) pacer() (*pacer, error) {
	if c.plainTimer {
		return newRuntimePacer(0), nil
	}
	return newPacer()
}

// newEncoder decides how the prompts of a schedule are written. For texts, their tokens are
// measured first.
func (t *Test) newEncoder(ctx context.Context, schedule []workload.Request) error {
	c, e := t.client, t.target
	p := &prompter{salt: workload.Mix64(workload.Mix64(c.Salt+uint64(t.trial.Number)) ^ t.trial.Seed), vocab: c.Vocab, perWord: 1, conversations: t.conversations}
	t.encoder = newEncoder(e, c.Chat, c.Stream, p)
	if t.encoder.tokens {
		return nil
	}
	err := e.measureText(ctx, t.encoder, longestPrompt(schedule))
	e.http.CloseIdleConnections()
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.guessed = note.Notes{note.New(note.PromptsGuessed, oneLine(e.secrets.Hide(err.Error())))}
	}
	return nil
}

func longestPrompt(schedule []workload.Request) int {
	return list.Largest(schedule, func(r workload.Request) int { return r.Prompt })
}

func (t *Test) newTransport() transport {
	e := t.target
	if e.url.Scheme == "https" {
		return newHTTPSTransport(t)
	}
	address := e.url.Host
	if e.url.Port() == "" {
		address = net.JoinHostPort(strings.Trim(e.url.Hostname(), "[]"), "80")
	}
	return &connPool{ctx: t.ctx, reuse: &t.reuse, dial: func(ctx context.Context) (net.Conn, error) { return e.dial(ctx, "tcp", address) }}
}

// prepare encodes the schedule ahead of time, as far as it fits into 64 MiB, and goes on while the
// trial runs. Later turns of a conversation are left blank: they carry an answer that has not come.
func (t *Test) prepare(schedule []workload.Request) {
	ahead := min(max(64<<20/(8*longestPrompt(schedule)+512), 8), 512, len(schedule))
	t.prepared = make(chan *message, ahead)
	next := func(i int) *message {
		m := t.encoder.blank(i)
		if schedule[i].Parent == 0 {
			t.encode(m)
		}
		return m
	}
	for i := range ahead {
		t.prepared <- next(i)
	}
	go func() {
		defer close(t.prepared)
		for i := ahead; i < len(schedule); i++ {
			select {
			case t.prepared <- next(i):
			case <-t.ctx.Done():
				return
			}
		}
	}()
}

func (t *Test) encode(m *message) {
	req := &t.recorder.schedule[m.index]
	t.encoder.encode(m, req, t.conversations.awaited[req.ID+1])
}

func (t *Test) drive(timer *pacer, spent func(*Telemetry)) {
	defer close(t.done)
	context.AfterFunc(t.ctx, timer.close)
	var watch sync.WaitGroup
	quit := make(chan struct{})
	watch.Go(func() { t.watch(quit) })
	if t.trial.Closed() {
		t.closedLoop()
	} else {
		t.openLoop(timer)
	}
	end := time.Since(t.recorder.start)
	t.cancel(errOver)
	t.flying.Wait()
	t.via.close()
	close(quit)
	watch.Wait()
	t.settle(end, spent)
}

// openLoop sends each request when it is due, whatever became of those before.
func (t *Test) openLoop(timer *pacer) {
	r := t.recorder
	for m := range t.prepared {
		req := &r.schedule[m.index]
		if !timer.until(t.ctx, r.start.Add(req.Due)) {
			return
		}
		if !t.conversations.hold(req.Parent, m) {
			t.launch(m, req.Due)
		}
	}
	if !timer.until(t.ctx, r.start.Add(r.end)) {
		return
	}
	select {
	case <-r.seal():
	case <-t.ctx.Done():
	}
}

func (t *Test) launch(m *message, due time.Duration) {
	t.recorder.expect(due)
	t.flying.Go(func() {
		f := t.idle.Get().(*inFlight)
		t.fly(f, m, due)
		t.idle.Put(f)
	})
}

// closedLoop keeps as many requests in flight as there are slots. A request is
// due when its slot becomes free.
func (t *Test) closedLoop() {
	for range min(t.trial.Concurrency, len(t.recorder.schedule)) {
		t.flying.Go(func() {
			f, free := &inFlight{}, time.Duration(0)
			for t.ctx.Err() == nil {
				m, ok := <-t.prepared
				if !ok {
					return
				}
				t.recorder.expect(free)
				free = t.fly(f, m, free)
			}
		})
	}
	t.flying.Wait()
}

// fly sends one request, reads its answer and files the record. It returns the time at which that
// was over, from the start of the trial.
func (t *Test) fly(f *inFlight, m *message, due time.Duration) time.Duration {
	req := &t.recorder.schedule[m.index]
	if len(m.body) == 0 {
		t.encode(m)
	}
	t.recorder.leave(f, m.index, due)
	r, err := t.via.send(m, t.deadline(due))
	if !r.sending {
		t.encoder.free.Put(m)
	}
	if err != nil {
		f.fail(err)
	} else {
		t.rest.Store(int64(r.rest))
		f.receive(r, req.Output, t.client.Stream)
		r.body.close()
	}
	over := time.Since(t.recorder.start)
	if f.answer.err != nil && t.ctx.Err() != nil {
		f.answer.err = failed(measure.InFlight, "")
	}
	for _, next := range t.conversations.end(req, &f.answer) {
		if t.ctx.Err() == nil && t.recorder.takes(over) {
			t.launch(next, over)
		}
	}
	t.recorder.finish(f, f.outcome(req.Output, t.target.dialect.ignoreEOS))
	return over
}

// deadline is when a request due at due is given up; the zero time for never.
func (t *Test) deadline(due time.Duration) time.Time {
	if t.trial.Workload == nil || t.trial.Workload.Timeout <= 0 {
		return time.Time{}
	}
	return t.recorder.start.Add(due + t.trial.Workload.Timeout)
}

// Interim returns the present state.
func (t *Test) Interim() Interim {
	s := t.recorder.interim()
	if t.trial.Closed() {
		s.Left = -1
	}
	return s
}

// Wait returns what was observed once the trial is over.
func (t *Test) Wait() (measure.Observation, error) {
	<-t.done
	return t.observed, t.err
}

// Telemetry returns how the client itself fared, once the trial is over.
func (t *Test) Telemetry() Telemetry {
	<-t.done
	return t.telemetry
}

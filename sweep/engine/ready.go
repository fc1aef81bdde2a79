package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// await waits until the engine's own probe is good, watching that it gets on.
func (e *Engine) await(ctx context.Context, watch func(Progress)) error {
	limits, t, p := e.settings.Limits, e.run.tail, e.run.process
	started, told := time.Now(), time.Time{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.exited:
			return e.failed()
		case <-tick.C:
		}
		s, elapsed := t.state(), time.Since(started)
		if watch != nil && time.Since(told) >= time.Second {
			told = time.Now()
			watch(Progress{Stage: s.stage, Line: s.line, Elapsed: elapsed})
		}
		if err := e.probe(ctx); err == nil {
			return nil
		} else if elapsed > limits.Ready {
			return e.late(Slow, fmt.Sprintf("not ready after %v: %v", limits.Ready, err))
		} else if s.quiet > limits.Stall {
			return e.late(Stalled, fmt.Sprintf("nothing new in the log for %v: %v", limits.Stall, err))
		}
	}
}

// late is the failure of an engine that still runs but will not do. A cause that
// is in its log already counts more.
func (e *Engine) late(c Class, seen string) error {
	f := e.failed()
	if f.Class == Unknown {
		if f.Cause != "" {
			seen += "; last line: " + f.Cause
		}
		f.Class, f.Cause = c, seen
	}
	f.again = false
	return f
}

// probe asks whether the engine says that it is ready. One of an unknown kind
// counts as ready when it answers anything but a server error.
func (e *Engine) probe(ctx context.Context) error {
	path := e.adapter.health
	if path == "" {
		path = "/health"
	}
	_, err := e.alive(ctx, http.MethodGet, path, nil, probeLimit)
	var status *statusError
	if e.adapter.health == "" && errors.As(err, &status) && status.status < 500 {
		return nil
	}
	return err
}

// alive is a call that ends early when the process does.
func (e *Engine) alive(ctx context.Context, method, path string, body []byte, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if done := e.Done(); done != nil {
		go func() {
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return e.caller.call(ctx, method, path, body, limit)
}

// promptKind is what a completion is asked with.
type promptKind int

const (
	promptUnknown promptKind = iota
	promptText
	promptTokens
	promptChat
)

// examine asks a ready engine for facts and one token.
func (e *Engine) examine(ctx context.Context) error {
	if err := e.owns(); err != nil {
		return err
	}
	q := &question{caller: e.caller, ctx: ctx, facts: map[string]string{}}
	e.adapter.describe(q)
	var logged map[string]string
	if e.run != nil {
		logged = e.run.tail.state().facts
	}
	e.Facts = factsOf(e.Kind, q.facts, logged, e.Knobs, e.settings.Format)
	if err := e.settleModel(strings.Split(q.facts["models"], "\n")); err != nil {
		return err
	}
	if err := e.firstToken(ctx); err != nil {
		return err
	}
	if e.run == nil {
		return nil
	}
	e.run.tail.ready()
	e.Stages = e.run.tail.state().stages
	if len(e.Facts.Changed) > 0 {
		return e.fault(Drifted, "the engine changed what it was given: "+strings.Join(e.Facts.Changed, "; "))
	}
	return nil
}

// owns checks that it is this engine that answers on its port.
func (e *Engine) owns() error {
	if e.run == nil || !stranger(e.run.process.guard.Process.Pid, e.run.port) {
		return nil
	}
	// A process that is about to end may have closed its port already.
	select {
	case <-e.run.process.exited:
		return e.failed()
	case <-time.After(settle):
	}
	if !stranger(e.run.process.guard.Process.Pid, e.run.port) {
		return nil
	}
	f := e.fault(PortTaken, fmt.Sprintf("another process listens on port %d", e.run.port))
	f.again = true
	return f
}

// settle is how long after its connections a process is seen to have ended.
const settle = 500 * time.Millisecond

// settleModel decides which name is sent in requests. An engine that planner
// started must list the name it was given; a server that ran already may know
// more names than it lists.
func (e *Engine) settleModel(served []string) error {
	name := e.settings.ServedName
	if name == "" {
		if e.Facts.Model == "" {
			e.Facts.Model = e.settings.Model
		}
		return nil
	}
	if e.run != nil && served[0] != "" && !slices.Contains(served, name) {
		return e.fault(WrongModel, fmt.Sprintf("no model is called %q here, only %s", name, strings.Join(served, ", ")))
	}
	e.Facts.Model = name
	return nil
}

// fault is a failure of an engine that runs.
func (e *Engine) fault(c Class, cause string) *Failure {
	return &Failure{Class: c, Knobs: e.Knobs, Stage: stageReady, Cause: oneLine(cause), Log: e.Log, reach: self}
}

// firstToken asks for one token, with a prompt of text and, where that is
// refused, of token ids; an engine of which it is known takes ids at once, as it
// may have no tokenizer.
func (e *Engine) firstToken(ctx context.Context) error {
	kinds := []promptKind{promptText, promptTokens}
	switch {
	case e.settings.Chat:
		kinds = []promptKind{promptChat}
	case e.adapter.tokens:
		kinds = []promptKind{promptTokens, promptText}
	}
	var failed error
	for _, kind := range kinds {
		err := e.completion(ctx, kind, e.settings.Limits.Probe)
		if err == nil {
			e.prompt = kind
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed == nil {
			failed = err
		}
		var status *statusError
		if !errors.As(err, &status) || status.status != http.StatusBadRequest && status.status != http.StatusUnprocessableEntity {
			break
		}
	}
	return e.unanswered(failed)
}

// unanswered is the failure of an engine that did not answer a request.
func (e *Engine) unanswered(err error) error {
	if e.run != nil {
		// A process that dies under a request is seen a moment later.
		select {
		case <-e.run.process.exited:
			return e.failed()
		case <-time.After(settle):
		}
	}
	var status *statusError
	if errors.As(err, &status) && status.status == http.StatusNotFound {
		return e.fault(WrongModel, err.Error())
	}
	return e.fault(Mute, "it says that it is ready, but a request for one token failed: "+err.Error())
}

// completion asks for one token.
func (e *Engine) completion(ctx context.Context, kind promptKind, limit time.Duration) error {
	request := map[string]any{"model": e.Facts.Model, "max_tokens": 1, "temperature": 0}
	path := "/v1/completions"
	switch kind {
	case promptTokens:
		request["prompt"] = []int{100, 101, 102, 103}
	case promptChat:
		path = "/v1/chat/completions"
		request["messages"] = []map[string]string{{"role": "user", "content": "Hello"}}
	default:
		request["prompt"] = "Hello"
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	data, err := e.alive(ctx, http.MethodPost, path, body, limit)
	if err != nil {
		return err
	}
	var answer struct{ Choices []json.RawMessage }
	if err := json.Unmarshal(data, &answer); err != nil || len(answer.Choices) == 0 {
		return fmt.Errorf("POST %s: no choice in the answer: %s", path, oneLine(string(data)))
	}
	return nil
}

// reach checks on a server that is to run already.
func (e *Engine) reach(ctx context.Context) error {
	started := time.Now()
	if err := e.probe(ctx); err != nil {
		var status *statusError
		if !errors.As(err, &status) {
			f := e.fault(Unreachable, err.Error())
			f.reach = reach{}
			return f
		}
	}
	err := e.examine(ctx)
	e.Cold = time.Since(started)
	return err
}

// Check asks a running engine for a sign of life: its probe, and one token
// within limit.
func (e *Engine) Check(ctx context.Context, limit time.Duration) error {
	if err := e.probe(ctx); err != nil && e.adapter.health != "" {
		return fmt.Errorf("engine: its probe: %w", err)
	}
	if err := e.completion(ctx, e.prompt, limit); err != nil {
		return fmt.Errorf("engine: one token: %w", err)
	}
	return nil
}

// Broken is the failure of an engine that no longer answers as it should, for
// the reason err, though its process runs.
func (e *Engine) Broken(err error) *Failure {
	f := e.fault(Hung, err.Error())
	f.Stage = stageServing
	if e.run == nil {
		return f
	}
	// What its log tells counts more than what was seen from outside.
	if logged := e.failed(); logged.Class != Unknown {
		return logged
	}
	return f
}

// Hung is the failure of an engine that stopped answering in the middle of its
// work.
func (e *Engine) Hung(err error) *Failure {
	return e.Broken(fmt.Errorf("it stopped answering with requests in flight: %w", err))
}

package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"planner/internal/endpoint"
	"planner/internal/printable"
)

// await waits until the engine's own probe succeeds, as long as the start makes progress.
func (e *Engine) await(ctx context.Context, watch func(stage, line string, elapsed time.Duration)) error {
	limits := e.settings.Timeouts
	started, told := time.Now(), time.Time{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.Done():
			return e.failed()
		case <-tick.C:
		}
		s, elapsed := e.process.log.read(), time.Since(started)
		if watch != nil && time.Since(told) >= time.Second {
			told = time.Now()
			watch(stageOrder[s.stage], s.line, elapsed)
		}
		err := e.probe(ctx)
		switch quiet := time.Since(s.grown); {
		case err == nil:
			return nil
		case elapsed > limits.Ready:
			return e.late(Slow, fmt.Sprintf("not ready after %v: %v", limits.Ready, err))
		case quiet > limits.Stall:
			return e.late(stalled, fmt.Sprintf("nothing new in the log for %v: %v", limits.Stall, err))
		}
	}
}

// late returns the failure of an engine that still runs but is given up. A cause found in its log
// takes precedence.
func (e *Engine) late(c Class, seen string) error {
	f := e.failed()
	if f.Class == unknownCause {
		if f.Cause != "" {
			seen += "; last line: " + f.Cause
		}
		f.Class, f.Cause = c, seen
	}
	f.Retry = false
	return f
}

func (e *Engine) fault(c Class, cause string) *Failure {
	f := &Failure{Class: c, Knobs: e.Knobs, Stage: stageReady, Cause: printable.Line(cause, mostWords), Log: e.Log, scope: sameKnobs}
	if f.Final() {
		f.scope = ""
	}
	return f
}

// probe asks whether the engine is ready. One of an unknown kind counts as ready when it answers
// with anything but a server error.
func (e *Engine) probe(ctx context.Context) error {
	_, err := e.call(ctx, http.MethodGet, "/health", nil, probeLimit)
	if status := endpoint.StatusOf(err); !e.adapter.known() && status > 0 && status < 500 {
		return nil
	}
	return err
}

// examine asks a ready engine for its facts and for one token.
func (e *Engine) examine(ctx context.Context, watch func(stage, line string, elapsed time.Duration)) error {
	q := e.query(ctx)
	q.describe(e.adapter)
	var logged map[string]string
	if e.process != nil {
		logged = e.process.log.read().facts
	}
	e.Facts = factsOf(e.adapter, q.facts, logged, e.Knobs, e.settings.Format)
	if err := e.settleModel(strings.Split(q.facts["models"], "\n")); err != nil {
		return err
	}
	if err := e.firstToken(ctx, e.waits(watch)); err != nil {
		return err
	}
	e.served = true
	if e.process == nil {
		return nil
	}
	e.Stages = e.process.log.ready()
	if len(e.Facts.Changed) > 0 {
		return e.fault(drifted, "the engine changed what it was given: "+strings.Join(e.Facts.Changed, "; "))
	}
	return nil
}

// waits tells watch of the pauses before an engine is asked again.
func (e *Engine) waits(watch func(stage, line string, elapsed time.Duration)) func(err error, rest time.Duration) {
	began := time.Now()
	return func(err error, rest time.Duration) {
		if watch != nil {
			watch(stageReady, fmt.Sprintf("%v; it is asked again in %v", err, rest), time.Since(began))
		}
	}
}

// settleModel decides which model name is sent in requests. An engine that planner started must
// list the name it was given; a server that was running already may accept more names than it
// lists.
func (e *Engine) settleModel(served []string) error {
	name := e.settings.ServedName
	if name == "" {
		e.Facts.Model = cmp.Or(e.Facts.Model, e.settings.Model)
		if len(served) > 1 {
			e.Facts.Listed = len(served)
		}
		return nil
	}
	if e.process != nil && served[0] != "" && !slices.Contains(served, name) {
		return e.fault(wrongModel, fmt.Sprintf("no model is called %q here, only %s", name, strings.Join(served, ", ")))
	}
	e.Facts.Model = name
	return nil
}

// firstToken asks for one token, with a text prompt and, if that is refused, one of token ids; an
// engine known to take ids gets them first, as it may have no tokenizer.
func (e *Engine) firstToken(ctx context.Context, wait func(err error, rest time.Duration)) error {
	prompts := []any{"Hello", []int{100, 101, 102, 103}}
	switch {
	case e.settings.Chat:
		prompts = prompts[:1]
	case e.adapter.tokens:
		slices.Reverse(prompts)
	}
	var failed error
	for _, e.prompt = range prompts {
		err := e.Insist(ctx, e.settings.Timeouts.Ready, nil, wait, func() error { return e.completion(ctx, e.settings.Timeouts.Probe) })
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed = cmp.Or(failed, err)
		if status := endpoint.StatusOf(err); status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
			break
		}
	}
	// That a process died during a request is seen a moment later.
	select {
	case <-e.Done():
		return e.failed()
	case <-time.After(500 * time.Millisecond):
	}
	seen := "it says that it is ready, but a request for one token failed: "
	if e.Unprobed != nil {
		seen = "it takes connections, and answers neither its probe nor a request for one token: "
	}
	return e.fault(classOf(failed, mute), seen+failed.Error())
}

func classOf(err error, other Class) Class {
	switch endpoint.StatusOf(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return denied
	case http.StatusNotFound:
		return wrongModel
	}
	if endpoint.StatusOf(err) == 0 && Final(err) {
		return unreachable
	}
	return other
}

// Final reports whether asking an engine again would bring the same error: it denies access or
// refuses the request, shows an invalid certificate, or nobody listens any more.
func Final(err error) bool {
	status := endpoint.StatusOf(err)
	_, uncertified := errors.AsType[*tls.CertificateVerificationError](err)
	return uncertified || errors.Is(err, syscall.ECONNREFUSED) || status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// tries is how often a failing request is tried: an engine that fails by chance, or sheds load for
// a moment, is not broken.
const tries = 3

// Insist calls ask until it succeeds or its error is final: at most three times, or until one gets
// no answer in time, and from then on, if busy is given, within limit while the engine is busy. An
// engine that says when to ask again is asked then, as often as fits within limit. wait is told of
// a pause at most once a minute.
func (e *Engine) Insist(ctx context.Context, limit time.Duration, busy func() bool, wait func(err error, rest time.Duration), ask func() error) error {
	began, told := time.Now(), time.Time{}
	for try := 1; ; try++ {
		err := ask()
		took, rest := time.Since(began), max(endpoint.RestOf(err), time.Second)
		wanted := endpoint.RestOf(err) > 0 && rest <= limit-took
		lasts := !wanted && (try >= tries || errors.Is(err, context.DeadlineExceeded))
		final := Final(err) && !(e.served && errors.Is(err, syscall.ECONNREFUSED)) // an engine that served may be restarting
		if err == nil || final || ctx.Err() != nil || lasts && (busy == nil || took >= limit || !busy()) {
			return err
		}
		if !wanted {
			rest = time.Second
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			wait(err, rest)
		}
		select {
		case <-ctx.Done():
			return err
		case <-e.Done():
			return err
		case <-time.After(rest):
		}
	}
}

func (e *Engine) completion(ctx context.Context, limit time.Duration) error {
	request := map[string]any{"model": e.Facts.Model, "max_tokens": 1, "temperature": 0}
	path := "/v1/completions"
	if e.settings.Chat {
		path = "/v1/chat/completions"
		request["messages"] = []map[string]any{{"role": "user", "content": e.prompt}}
	} else {
		request["prompt"] = e.prompt
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	data, err := e.call(ctx, http.MethodPost, path, body, limit)
	if err != nil {
		return err
	}
	var answer struct {
		Model   string
		Choices []json.RawMessage
	}
	_ = json.NewDecoder(bytes.NewReader(data)).Decode(&answer)
	// Some servers stream whether asked to or not, and send events without choices too.
	for line := range bytes.Lines(data) {
		if event, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(answer.Choices) == 0 {
			_ = json.Unmarshal(event, &answer)
		}
	}
	if len(answer.Choices) == 0 {
		return fmt.Errorf("POST %s: no choice in the answer: %s", path, printable.Line(string(data), mostWords))
	}
	if e.Facts.AnswersAs = printable.Line(answer.Model, mostWords); e.Facts.Model == "" || e.Facts.AnswersAs == e.Facts.Model {
		e.Facts.AnswersAs = ""
	}
	return nil
}

// attach checks a server that should be running already. One that takes connections but never
// answers its probe may still answer requests, and is asked for a token at once.
func (e *Engine) attach(ctx context.Context, watch func(stage, line string, elapsed time.Duration)) error {
	started := time.Now()
	err := e.Insist(ctx, e.settings.Timeouts.Ready, nil, e.waits(watch), func() error { return e.probe(ctx) })
	mute := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && dial(ctx, e.URL, probeLimit) == nil
	switch {
	case mute:
		e.Unprobed = err
		e.settings.Timeouts.Probe = min(e.settings.Timeouts.Probe, factLimit)
	case err != nil && endpoint.StatusOf(err) == 0:
		f := e.fault(unreachable, err.Error())
		f.scope = ""
		return f
	}
	if err = e.examine(ctx, watch); err == nil {
		e.Cold = time.Since(started)
	}
	return err
}

// Check asks a running engine for a sign of life: its probe, if it is known to have one, and one
// token within limit.
func (e *Engine) Check(ctx context.Context, limit time.Duration) error {
	if e.adapter.known() {
		if err := e.probe(ctx); err != nil {
			return fmt.Errorf("engine: its probe: %w", err)
		}
	}
	if err := e.completion(ctx, limit); err != nil {
		return fmt.Errorf("engine: one token: %w", err)
	}
	return nil
}

// Broken is the failure of an engine that no longer answers as it should, by err, though its
// process runs. A cause found in its log takes precedence.
func (e *Engine) Broken(err error) *Failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return e.serving(hung, err)
	}
	return e.Failing(err)
}

// Failing is the failure of an engine that answers a request with an error though it has nothing
// else to do. A cause found in its log takes precedence.
func (e *Engine) Failing(err error) *Failure { return e.serving(failing, err) }

// Gone is the failure of a server that refused connections for a while, as seen describes.
func (e *Engine) Gone(seen string) *Failure { return e.serving(unreachable, errors.New(seen)) }

func (e *Engine) serving(c Class, err error) *Failure {
	if e.process != nil {
		if logged := e.failed(); logged.Class != unknownCause {
			return logged
		}
	}
	f := e.fault(classOf(err, c), err.Error())
	f.Stage = stageServing
	return f
}

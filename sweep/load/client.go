// Package load sends a schedule to an HTTP endpoint, open loop or closed loop,
// and records when each request was due, when it left and when its tokens came.
package load

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/endpoint"
	"planner/internal/note"
	"planner/internal/secret"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Client is a load generator for one endpoint. It needs URL; the zero value of every other field is
// a sensible default, except for Stream, which measuring a first token needs. A Client may run
// several trials, one after another.
type Client struct {
	// URL is the server's address, with or without the final /v1.
	URL string
	// Model is the name that the server knows; "" means the first of its list.
	Model string
	// Chat sends to /v1/chat/completions instead of /v1/completions, Stream asks
	// for an answer token by token.
	Chat, Stream bool
	// Engine names the dialect: vllm, sglang, trtllm, tgi, llama-server, lmdeploy, transformers,
	// simulated; "", generic, attach and command mean the plain OpenAI dialect, and any other name
	// is an error.
	Engine string
	// Headers are added to every request.
	Headers map[string]string
	// APIKeyEnv names the environment variable that holds the key; the key
	// itself goes into requests and nowhere else.
	APIKeyEnv string
	// Salt makes the prompts of this run differ from those of others that the server may still have
	// in its prefix cache.
	Salt uint64
	// Vocab is the size of the model's vocabulary, which bounds the token ids that prompts are
	// drawn from; 0 where it is not known.
	Vocab int
	// Rest is how long a server that limits rates is left alone before whatever it is asked ahead of
	// the load, and before the load.
	Rest time.Duration
	// Abort, where it is set, is asked every 250 ms; a reason ends the trial.
	// records gives what is known at now of every request that was sent, those
	// in flight included, so that their age can be judged.
	Abort func(now time.Duration, records func() []measure.Record) note.Reason

	// For tests: dial opens connections, nil means TCP; tls configures https, nil
	// means the system's trust; plainTimer paces on the runtime's timers alone,
	// where the clock is not the kernel's.
	dial       func(ctx context.Context, network, address string) (net.Conn, error)
	tls        *tls.Config
	plainTimer bool
}

// Run sends the schedule of a trial and returns what was observed, once every
// request due in the trial's window has ended and the schedule is over;
// requests of the cool-down that are still in flight then are cut and recorded
// as such. When ctx ends early, the observation so far comes with its cause as
// the error. A turn of a conversation whose parent never ended never came due,
// and has no record.
func (c *Client) Run(ctx context.Context, trial measure.Trial, schedule []workload.Request) (measure.Observation, error) {
	r, err := c.Start(ctx, trial, schedule)
	if err != nil {
		return measure.Observation{}, err
	}
	return r.Wait()
}

// Start begins a trial, as Run does, and returns once the first request is
// about to leave.
func (c *Client) Start(ctx context.Context, trial measure.Trial, schedule []workload.Request) (*Test, error) {
	e, err := c.target(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkSchedule(&trial, schedule); err != nil {
		return nil, err
	}
	t := &Test{
		client: c, target: e, trial: trial, recorder: newRecorder(&trial, schedule), conversations: newConversations(schedule),
		idle: sync.Pool{New: func() any { return &inFlight{} }}, done: make(chan struct{}),
	}
	t.recorder.secrets = e.secrets
	if err := t.newEncoder(ctx, schedule); err != nil {
		return nil, err
	}
	timer, err := c.pacer()
	if err != nil {
		return nil, err
	}
	if err := e.pause(ctx); err != nil {
		return nil, err
	}
	e.rest = 0 // what is asked behind the load is nobody's neighbour
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.via = t.newTransport()
	t.prepare(schedule)
	if p, ok := t.via.(*connPool); ok {
		first := inTurn // requests of an open loop
		if trial.Closed() {
			first = min(trial.Concurrency, 1024)
		}
		p.warm(min(first, len(schedule)))
	}
	t.recorder.begin()
	go t.drive(timer, spending())
	return t, nil
}

// Check reports what is wrong with the client before anything is sent: an address
// that is none, an unknown dialect, a header or an API key that cannot be sent.
func (c *Client) Check() error {
	_, err := c.resolve()
	return err
}

func checkSchedule(trial *measure.Trial, schedule []workload.Request) error {
	last := time.Duration(0)
	for i := range schedule {
		r := &schedule[i]
		switch {
		case r.Prompt < 1 || r.Output < 1:
			return fmt.Errorf("request %d: prompt of %d and output of %d tokens; both must be 1 at least", r.ID, r.Prompt, r.Output)
		case r.Due < last:
			return fmt.Errorf("request %d: due at %v, before the one ahead of it", r.ID, r.Due)
		case trial.Closed() && r.Parent > 0:
			return fmt.Errorf("request %d: a closed loop has no conversations", r.ID)
		}
		last = r.Due
	}
	// Spare files are for the journal, logs and what the process has open.
	const spare = 64
	slots := min(trial.Concurrency, len(schedule))
	if limit := openFiles(); limit > 0 && slots+spare > limit {
		return fmt.Errorf("concurrency %d needs %d open files, the limit is %d (ulimit -n)", slots, slots+spare, limit)
	}
	return nil
}

// target is a Client's configuration, checked and resolved.
type target struct {
	endpoint.Endpoint
	url     *url.URL
	header  http.Header
	model   string
	dialect *dialect
	// secrets must not be repeated, whatever servers say.
	secrets secret.Set
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// http serves the calls that are not part of the load; rest is [Client.Rest].
	http *http.Client
	rest time.Duration
}

// target resolves the configuration, asking the server for the model's name if that is not given.
func (c *Client) target(ctx context.Context) (*target, error) {
	t, err := c.resolve()
	if err != nil || t.model != "" {
		return t, err
	}
	defer t.http.CloseIdleConnections()
	v, err := t.call(ctx, http.MethodGet, "/v1/models", nil)
	if t.model = string(v.GetStringBytes("data", "0", "id")); err == nil && t.model == "" {
		err = errors.New("GET /v1/models: no model in the list")
	}
	if err != nil {
		return nil, fmt.Errorf("find the model's name, as engine.served_name (of bench: --model) gives none: %w", t.secrets.Error(err))
	}
	return t, nil
}

func (c *Client) resolve() (*target, error) {
	to := endpoint.Endpoint{URL: c.URL, Headers: c.Headers, APIKeyEnv: c.APIKeyEnv}
	path := "/v1/completions"
	if c.Chat {
		path = "/v1/chat/completions"
	}
	u, err := url.Parse(to.Base() + path)
	if err != nil {
		return nil, fmt.Errorf("parse URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("URL %q: want http://HOST or https://HOST", c.URL)
	}
	t := &target{Endpoint: to, url: u, model: c.Model, secrets: c.secrets(), dial: c.dial, rest: c.Rest}
	if t.dialect, err = dialectOf(c.Engine); err != nil {
		return nil, err
	}
	if t.header, err = to.Header(); err != nil {
		return nil, err
	}
	if t.header.Get("Accept") == "" {
		t.header.Set("Accept", map[bool]string{false: "application/json", true: "text/event-stream"}[c.Stream])
	}
	if t.dial == nil {
		t.dial = (&net.Dialer{}).DialContext
	}
	t.http = &http.Client{Transport: newHTTPTransport(c.tls, t.dial), Timeout: 30 * time.Second, CheckRedirect: endpoint.Stay}
	return t, nil
}

// secrets returns the secrets in the environment, as far as they are known.
func (c *Client) secrets() secret.Set {
	names := secret.References(slices.Collect(maps.Values(c.Headers))...)
	return secret.In(os.Environ(), append(names, c.APIKeyEnv)...)
}

// Limits of answers that are not part of the load, such as the list of the tokens of a long text.
const (
	maxFacts      = 4 << 20
	maxFactValues = 1 << 19
)

// pause leaves the server alone for t.rest.
func (t *target) pause(ctx context.Context) error {
	if t.rest <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t.rest):
		return nil
	}
}

// call sends one request that is not part of the load and decodes its answer.
func (t *target) call(ctx context.Context, method, path string, in []byte) (*fastjson.Value, error) {
	if err := t.pause(ctx); err != nil {
		return nil, err
	}
	b, err := t.Call(ctx, t.http, method, path, in, maxFacts)
	if err != nil {
		return nil, err
	}
	v, err := (&decoder{values: maxFactValues}).parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return v, nil
}

// tooLong reports whether an error may be that of a prompt longer than the context, for which
// engines use several statuses.
func tooLong(err error) bool {
	return slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, endpoint.StatusOf(err))
}

// tokenize counts the tokens of a text with the engine's own tokenizer, without the special ones
// that begin a prompt if the engine can leave them out.
func (t *target) tokenize(ctx context.Context, text string) (int, error) {
	field := t.dialect.tokenize
	if field == "" {
		return 0, errors.New("the engine has no /tokenize")
	}
	body := map[string]any{field: text}
	if field == "prompt" {
		body["model"], body["add_special_tokens"] = t.model, false
	}
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	v, err := t.call(ctx, http.MethodPost, "/tokenize", b)
	if err != nil {
		return 0, err
	}
	// vLLM and SGLang give a count and the tokens, llama-server the tokens, TGI
	// the bare list.
	n := max(v.GetInt("count"), len(v.GetArray("tokens")), len(v.GetArray()))
	if n == 0 && !v.Exists("tokens") && v.Type() != fastjson.TypeArray {
		return 0, errors.New("POST /tokenize: neither a count nor a list in the answer")
	}
	return n, nil
}

// measureText finds how many tokens texts of words have on this server, by requests for one output
// token each: from the server's count of prompt tokens, chat template included, or else from its
// tokenizer. An engine's context may hold no more than the longest request of the trial, so the
// texts have at most longest words, and are halved while the server refuses them.
func (t *target) measureText(ctx context.Context, enc *encoder, longest int) error {
	const most, least = 320, 5
	for words := max(least, min(most, longest)); ; words /= 2 {
		err := t.measureWords(ctx, enc, words/5, words)
		if err == nil || !tooLong(err) || words/2 < least {
			return err
		}
	}
}

func (t *target) measureWords(ctx context.Context, enc *encoder, short, long int) error {
	count := func(words int) (int, error) {
		probe := &prompter{salt: workload.Mix64(enc.prompts.salt + uint64(words)), perWord: 1}
		r := workload.Request{ID: -1, Prompt: words, Output: 1}
		whole := &encoder{prompts: probe, chat: enc.chat, dialect: &dialect{}, before: enc.before, behind: []byte(`,"temperature":0}`)}
		v, err := t.call(ctx, http.MethodPost, strings.TrimPrefix(t.url.String(), t.Base()), whole.appendBody(nil, &r))
		if err != nil {
			return 0, err
		}
		if n := v.GetInt("usage", "prompt_tokens"); n > 0 {
			return n, nil
		}
		return t.tokenize(ctx, strings.Trim(string(probe.appendText(nil, &r, false)), `"`))
	}
	b, err := count(long)
	if err != nil {
		return err
	}
	a, err := count(short)
	if err != nil {
		return err
	}
	perWord := float64(b-a) / float64(long-short)
	if perWord < 0.2 || perWord > 20 {
		return fmt.Errorf("%d words count %d tokens, %d words %d", short, a, long, b)
	}
	enc.prompts.perWord, enc.prompts.overhead = perWord, float64(a)-float64(short)*perWord
	return nil
}

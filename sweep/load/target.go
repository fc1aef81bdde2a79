package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"planner/internal/secret"
	"planner/sweep/workload"

	"github.com/valyala/fastjson"
)

// target is a Client's configuration, checked and resolved.
type target struct {
	base    string
	url     *url.URL
	header  http.Header
	model   string
	dialect *dialect
	// secrets are not to be told again, whatever servers say.
	secrets secret.Set
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// http serves the calls that are not part of the load.
	http *http.Client
}

// target resolves the configuration, and the model's name with the server's
// help where it is not given.
func (c *Client) target(ctx context.Context) (*target, error) {
	t, err := c.resolve()
	if err != nil || t.model != "" {
		return t, err
	}
	defer t.http.CloseIdleConnections()
	if t.model, err = t.firstModel(ctx); err != nil {
		return nil, fmt.Errorf("find the model's name: %w", t.secrets.Error(err))
	}
	return t, nil
}

func (c *Client) resolve() (*target, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(c.URL, "/"), "/v1")
	path := "/v1/completions"
	if c.Chat {
		path = "/v1/chat/completions"
	}
	u, err := url.Parse(base + path)
	if err != nil {
		return nil, fmt.Errorf("parse URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("URL %q: want http://HOST or https://HOST", c.URL)
	}
	t := &target{base: base, url: u, model: c.Model, header: http.Header{}, secrets: c.secrets(), dial: c.dial}
	if t.dialect, err = dialectOf(c.Engine); err != nil {
		return nil, err
	}
	if err := c.headers(t.header); err != nil {
		return nil, err
	}
	if t.dial == nil {
		t.dial = (&net.Dialer{}).DialContext
	}
	t.http = &http.Client{Transport: newHTTPTransport(c.tls, t.dial), Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return t, nil
}

// secrets are those in the environment, as far as they are known.
func (c *Client) secrets() secret.Set {
	names := secret.References(slices.Collect(maps.Values(c.Headers))...)
	return secret.In(os.Environ(), append(names, c.APIKeyEnv)...)
}

func (c *Client) headers(h http.Header) error {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "planner")
	h.Set("Accept", "application/json")
	if c.Stream {
		h.Set("Accept", "text/event-stream")
	}
	for k, v := range c.Headers {
		v, err := secret.Expand(v, os.LookupEnv)
		if err != nil {
			return fmt.Errorf("header %s: %w", k, err)
		}
		if strings.ContainsAny(k, "\r\n: ") || strings.ContainsAny(v, "\r\n") || k == "" {
			return fmt.Errorf("header %q: not a header", k)
		}
		h.Set(k, v)
	}
	if c.APIKeyEnv != "" {
		key := os.Getenv(c.APIKeyEnv)
		if key == "" {
			return fmt.Errorf("environment variable %s: no API key in it", c.APIKeyEnv)
		}
		if strings.ContainsAny(key, "\r\n") {
			return fmt.Errorf("environment variable %s: the API key has a line break", c.APIKeyEnv)
		}
		h.Set("Authorization", "Bearer "+key)
	}
	return nil
}

// Limits of answers that are not part of the load: lists of the tokens of a long text.
const (
	maxFacts      = 4 << 20
	maxFactValues = 1 << 19
)

// call sends one request that is not part of the load and decodes its answer.
func (t *target) call(ctx context.Context, method, path string, in []byte) (*fastjson.Value, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.base+path, bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	req.Header = t.header.Clone()
	req.Header.Set("Accept", "application/json")
	// Not sent: it tells net/http to try again where a kept connection was closed.
	req.Header["Idempotency-Key"] = nil
	res, err := t.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxFacts))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode != http.StatusOK {
		where := redirected(placeOf(res.Header.Get("Location")))
		return nil, &refusal{res.StatusCode, fmt.Sprintf("%s %s: status %d%s: %s", method, path, res.StatusCode, where, oneLine(string(b)))}
	}
	v, err := (&decoder{values: maxFactValues}).parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return v, nil
}

// refusal is an answer of another status than the one that was hoped for.
type refusal struct {
	status int
	text   string
}

// Error names the call, the status and what came with it.
func (r *refusal) Error() string { return r.text }

// tooLong reports whether an error may be that of a prompt beyond the context, for
// which engines have several statuses.
func tooLong(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, r.status)
}

// firstModel asks for the name of the model that is served.
func (t *target) firstModel(ctx context.Context) (string, error) {
	v, err := t.call(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return "", err
	}
	name := string(v.GetStringBytes("data", "0", "id"))
	if name == "" {
		return "", errors.New("GET /v1/models: no model in the list")
	}
	return name, nil
}

// tokenize counts the tokens of a text with the engine's own tokenizer, without
// the special ones that begin a prompt where the engine can leave them out.
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

// measureText finds how many tokens texts of words have on this server, with
// requests for one token each: from the prompt tokens that the server counts, chat
// template included, else from its tokenizer. An engine's context may hold no more
// than the longest request of the trial, so the texts have at most longest words, and
// are halved while the server refuses them.
func (t *target) measureText(ctx context.Context, enc *encoder, longest int) error {
	const most, least = 320, 5
	for words := max(least, min(most, longest)); ; words /= 2 {
		err := t.measureWords(ctx, enc, words/5, words)
		if err == nil || !tooLong(err) || words/2 < least {
			return err
		}
	}
}

// measureWords compares a short text with a long one.
func (t *target) measureWords(ctx context.Context, enc *encoder, short, long int) error {
	count := func(words int) (int, error) {
		probe := &prompter{salt: workload.Mix64(enc.prompts.salt + uint64(words)), perWord: 1}
		r := workload.Request{ID: -1, Prompt: words, Output: 1}
		whole := &encoder{prompts: probe, chat: enc.chat, dialect: &dialect{}, before: enc.before, behind: []byte(`,"temperature":0}`)}
		v, err := t.call(ctx, http.MethodPost, strings.TrimPrefix(t.url.String(), t.base), whole.appendBody(nil, &r))
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

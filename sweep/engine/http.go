package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"planner/internal/secret"
)

// The requests to an engine that are not load. Each opens a connection of its own:
// one kept alive from before says little about whether a server still accepts any. No
// redirect is followed: the key goes to the server that was named and nowhere else.
var client = http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Limits of requests that a live engine answers at once.
const (
	factLimit  = 10 * time.Second
	probeLimit = 5 * time.Second
)

const maxAnswer = 8 << 20

type statusError struct {
	status int
	body   string
}

// Error gives the status and what came with it.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// statusOf is the status of an answer that is the reason of an error, 0 if none is.
func statusOf(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	return 0
}

// call sends one request and reads the answer of at most limit, which has no secret in it
// whatever the server says. It ends early when the engine's process does.
func (e *Engine) call(ctx context.Context, method, path string, body []byte, limit time.Duration) ([]byte, error) {
	data, err := e.exchange(ctx, method, path, body, limit)
	secrets := e.settings.secrets()
	return []byte(secrets.Hide(string(data))), secrets.Error(err)
}

func (e *Engine) exchange(ctx context.Context, method, path string, body []byte, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() {
		select {
		case <-e.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	base := strings.TrimSuffix(strings.TrimSuffix(e.URL, "/"), "/v1")
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "planner")
	for k, v := range e.settings.Headers {
		if v, err = secret.Expand(v, os.LookupEnv); err != nil {
			return nil, fmt.Errorf("header %s: %w", k, err)
		}
		req.Header.Set(k, v)
	}
	if name := e.settings.APIKeyEnv; name != "" {
		req.Header.Set("Authorization", "Bearer "+os.Getenv(name))
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil && res.StatusCode != http.StatusOK {
		err = &statusError{res.StatusCode, oneLine(redirect(res) + string(data))}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return data, nil
}

// redirect names where an answer points to, without what may be secret; empty if nowhere.
func redirect(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return ""
	}
	to.User, to.RawQuery, to.Fragment = nil, "", ""
	return fmt.Sprintf("a redirect to %s, which is not followed: ", to)
}

// query asks a running engine for facts. The first answer to a fact counts.
type query struct {
	engine *Engine
	ctx    context.Context
	facts  map[string]string
}

func (e *Engine) query(ctx context.Context) *query {
	return &query{engine: e, ctx: ctx, facts: map[string]string{}}
}

func (q *query) call(method, path string) ([]byte, error) {
	return q.engine.call(q.ctx, method, path, nil, factLimit)
}

func (q *query) fact(name, value string) {
	if _, ok := q.facts[name]; !ok && value != "" {
		q.facts[name] = value
	}
}

// object reads a JSON object; it is empty if there is none.
func (q *query) object(path string) (object map[string]any) {
	data, err := q.call(http.MethodGet, path)
	if err != nil || json.Unmarshal(data, &object) != nil {
		return nil
	}
	return object
}

// copy takes a plain value of an object for a fact.
func (q *query) copy(from map[string]any, key, fact string) {
	switch v := from[key].(type) {
	case string, bool:
		q.fact(fact, fmt.Sprint(v))
	case float64:
		q.fact(fact, strconv.FormatFloat(v, 'f', -1, 64))
	}
}

// unquantised notes that an engine's own description of its model names no method
// of quantisation: the key is there and holds nothing.
func (q *query) unquantised(model map[string]any) {
	if value, ok := model["quantization"]; ok && value == nil {
		q.fact("quantization", noQuantisation)
	}
}

// version asks for it where most engines tell it.
func (q *query) version() { q.copy(q.object("/version"), "version", "version") }

// models asks for the name of the model and its longest sequence.
func (q *query) models() {
	list, _ := q.object("/v1/models")["data"].([]any)
	for i, entry := range list {
		model, _ := entry.(map[string]any)
		if i == 0 {
			q.copy(model, "id", "model")
			q.copy(model, "owned_by", "owner")
			q.copy(model, "max_model_len", "max_model_len")
		}
		if id, ok := model["id"].(string); ok {
			q.facts["models"] = strings.TrimPrefix(q.facts["models"]+"\n"+id, "\n")
		}
	}
}

// oneLine makes text fit for a message: at most 300 bytes without breaks.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = s[:300] + "..."
	}
	return strings.ToValidUTF8(s, "")
}

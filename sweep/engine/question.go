package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// caller sends the few requests to an engine that are not load.
type caller struct {
	base   string
	header http.Header
	http   *http.Client
}

func newCaller(base string, s *Settings) *caller {
	c := &caller{
		base:   strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1"),
		header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"planner"}},
		// Every request opens a connection of its own: one kept alive from
		// before says little about whether a server still accepts any.
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	for k, v := range s.Headers {
		c.header.Set(k, v)
	}
	if s.APIKeyEnv != "" {
		c.header.Set("Authorization", "Bearer "+os.Getenv(s.APIKeyEnv))
	}
	return c
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// statusError is an answer other than 200.
type statusError struct {
	status int
	body   string
}

// Error gives the status and what came with it.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// call sends one request and reads the answer of at most limit.
func (c *caller) call(ctx context.Context, method, path string, body []byte, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = c.header.Clone()
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode != http.StatusOK {
		return data, fmt.Errorf("%s %s: %w", method, path, &statusError{res.StatusCode, oneLine(string(data))})
	}
	return data, nil
}

// Limits of requests that a live engine answers at once.
const (
	factLimit  = 10 * time.Second
	probeLimit = 5 * time.Second
)

// question asks a running engine for facts. The first answer to a fact counts.
type question struct {
	*caller
	ctx   context.Context
	facts map[string]string
}

func (q *question) get(path string) ([]byte, error) {
	return q.call(q.ctx, http.MethodGet, path, nil, factLimit)
}

func (q *question) post(path string, body []byte) ([]byte, error) {
	return q.call(q.ctx, http.MethodPost, path, body, factLimit)
}

func (q *question) fact(name, value string) {
	if _, ok := q.facts[name]; !ok && value != "" {
		q.facts[name] = value
	}
}

// object reads a JSON object; it is empty if there is none.
func (q *question) object(path string) map[string]any {
	data, err := q.get(path)
	if err != nil {
		return nil
	}
	var out map[string]any
	if json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

// copy takes a plain value of an object for a fact.
func (q *question) copy(from map[string]any, key, fact string) {
	switch v := from[key].(type) {
	case string:
		q.fact(fact, v)
	case float64:
		q.fact(fact, strconv.FormatFloat(v, 'f', -1, 64))
	case bool:
		q.fact(fact, strconv.FormatBool(v))
	}
}

// unquantised notes that an engine's own description of its model names no method
// of quantisation: the key is there and holds nothing.
func (q *question) unquantised(model map[string]any) {
	if value, ok := model["quantization"]; ok && value == nil {
		q.fact("quantization", noQuantisation)
	}
}

func (q *question) version(path, key string) { q.copy(q.object(path), key, "version") }

// models asks for the name of the model and its longest sequence.
func (q *question) models() {
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

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"planner/internal/endpoint"
)

// The requests to an engine that are not load. Each opens a connection of its own:
// one kept alive from before says little about whether a server still accepts any.
var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: endpoint.Stay}

// Limits of requests that a live engine answers at once.
const (
	factLimit  = 10 * time.Second
	probeLimit = 5 * time.Second
)

const (
	maxAnswer = 8 << 20
	mostWords = 300 // of a server or a log in a message, in bytes
)

// call sends one request and reads the answer of at most limit, which has no secret in it
// whatever the server says. It ends early when the engine's process does.
func (e *Engine) call(ctx context.Context, method, path string, body []byte, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() {
		select {
		case <-e.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	to := e.settings.Endpoint
	to.URL = e.URL
	data, err := to.Call(ctx, &client, method, path, body, maxAnswer)
	secrets := e.settings.secrets()
	return []byte(secrets.Hide(string(data))), secrets.Error(err)
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

func (q *query) object(path string) (object map[string]any) {
	data, err := q.call(http.MethodGet, path)
	if err != nil || json.Unmarshal(data, &object) != nil {
		return nil
	}
	return object
}

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

package engine

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/endpoint"
	"planner/internal/list"
)

// client sends the requests to an engine that are not load. Each opens a connection of its own: one
// that was kept alive says little about whether a server still accepts any.
var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: endpoint.Stay}

// Time limits of requests that a live engine answers at once.
const (
	factLimit  = 10 * time.Second
	probeLimit = 5 * time.Second
)

const (
	maxAnswer = 8 << 20
	mostWords = 300 // of a server or a log quoted in a message, in bytes
)

// call sends one request and reads the answer, with secrets removed whatever the server says,
// within limit. It ends early if the engine's process does.
func (e *Engine) call(ctx context.Context, method, path string, body []byte, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, endpoint.TooLate(fmt.Sprintf("no answer in %v", limit)))
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

// query asks a running engine for facts. The first answer for a fact counts.
type query struct {
	engine *Engine
	ctx    context.Context
	facts  map[string]string
	pages  map[string]*fastjson.Value
}

func (e *Engine) query(ctx context.Context) *query {
	return &query{engine: e, ctx: ctx, facts: map[string]string{}, pages: map[string]*fastjson.Value{}}
}

// factPlace says under which key of a page an engine reports a fact. Keys of nested objects are
// joined by dots; an exclamation mark before the key says that the fact is its negation.
type factPlace struct{ page, key, fact string }

// toldByMost is what most engines report, including the names of all their models.
var toldByMost = []factPlace{
	{"/version", "version", "version"}, {"/v1/models", "data.0.id", "model"}, {"/v1/models", "data.0.owned_by", "owner"},
	{"/v1/models", "data.0.max_model_len", "max_model_len"}, {"/v1/models", "data", "models"},
}

func (q *query) call(method, path string) ([]byte, error) {
	return q.engine.call(q.ctx, method, path, nil, factLimit)
}

func (q *query) fact(name, value string) {
	if _, ok := q.facts[name]; !ok && value != "" {
		q.facts[name] = value
	}
}

// ask fetches pages, each once and all at the same time, so that several that do not come cost no
// more time than one.
func (q *query) ask(told []factPlace) {
	var pages []string
	for _, t := range told {
		if _, asked := q.pages[t.page]; !asked {
			q.pages[t.page] = nil
			pages = append(pages, t.page)
		}
	}
	answers := make([]*fastjson.Value, len(pages))
	var asked sync.WaitGroup
	for i, page := range pages {
		asked.Go(func() {
			if data, err := q.call(http.MethodGet, page); err == nil {
				answers[i], _ = fastjson.ParseBytes(data)
			}
		})
	}
	asked.Wait()
	for i, page := range pages {
		q.pages[page] = answers[i]
	}
}

func (q *query) describe(a *adapter) {
	q.ask(a.told)
	for _, t := range a.told {
		key, contrary := strings.CutPrefix(t.key, "!")
		v := q.pages[t.page].Get(strings.Split(key, ".")...)
		switch {
		case v == nil:
		case v.Type() == fastjson.TypeString:
			q.fact(t.fact, string(v.GetStringBytes()))
		case v.Type() == fastjson.TypeNumber:
			q.fact(t.fact, strconv.FormatFloat(v.GetFloat64(), 'f', -1, 64))
		case v.Type() == fastjson.TypeTrue || v.Type() == fastjson.TypeFalse:
			q.fact(t.fact, strconv.FormatBool(v.GetBool() != contrary))
		case v.Type() == fastjson.TypeArray:
			q.fact(t.fact, strings.Join(list.Map(v.GetArray(), func(x *fastjson.Value) string { return string(x.GetStringBytes("id")) }), "\n"))
		case v.Type() == fastjson.TypeNull && t.fact == "quantization":
			q.fact(t.fact, noQuantisation) // the key is present and null
		}
	}
	if a.describe != nil {
		a.describe(q)
	}
}

package serve

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	jsonType    = "application/json"
	textType    = "text/plain; charset=utf-8"
	metricsType = "text/plain; version=0.0.4; charset=utf-8"
)

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Unknown"
}

// answer answers a request and reports whether the connection may be used again.
func (c *client) answer(req *http.Request, body []byte, arrived time.Duration, keep bool) bool {
	s := c.server
	path, get, post := req.URL.Path, req.Method == http.MethodGet, req.Method == http.MethodPost
	switch {
	case path == "/v1/completions" && post:
		return c.generate(req, body, arrived, false, keep)
	case path == "/v1/chat/completions" && post:
		return c.generate(req, body, arrived, true, keep)
	case path == "/health" && get, path == "/ping" && (get || post):
		c.say(answer(http.StatusOK, "", keep, nil, ""))
	case path == "/version" && get:
		c.json(keep, map[string]string{"version": s.config.Version})
	case path == "/v1/models" && get:
		c.json(keep, s.models())
	case path == "/metrics" && get:
		c.say(answer(http.StatusOK, metricsType, keep, s.desk.meter.expose(), ""))
	case path == "/tokenize" && post:
		return c.tokenize(body, keep)
	case path == "/detokenize" && post:
		return c.detokenize(body, keep)
	case path == "/reset_prefix_cache" && post:
		c.json(keep, map[string]bool{"success": s.resetCache()})
	case known[path]:
		c.say(answer(http.StatusMethodNotAllowed, jsonType, keep, []byte(`{"detail":"Method Not Allowed"}`), ""))
	default:
		c.say(answer(http.StatusNotFound, jsonType, keep, []byte(`{"detail":"Not Found"}`), ""))
	}
	return true
}

// known lists the paths that exist, for requests with a wrong method.
var known = map[string]bool{
	"/v1/completions": true, "/v1/chat/completions": true, "/v1/models": true, "/health": true, "/ping": true, "/version": true,
	"/metrics": true, "/tokenize": true, "/detokenize": true, "/reset_prefix_cache": true,
}

func (c *client) json(keep bool, v any) {
	c.say(answer(http.StatusOK, jsonType, keep, marshal(v), ""))
}

// models is the list of the one model.
func (s *serving) models() any {
	type model struct {
		ID          string  `json:"id"`
		Object      string  `json:"object"`
		Created     int64   `json:"created"`
		OwnedBy     string  `json:"owned_by"`
		Root        string  `json:"root"`
		Parent      *string `json:"parent"`
		MaxModelLen int     `json:"max_model_len"`
	}
	m := model{ID: s.config.Model, Object: "model", Created: s.desk.start.Unix(), OwnedBy: "vllm", Root: s.config.Model, MaxModelLen: s.terms.modelLen}
	return struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{m}}
}

// tokenize counts the tokens of a text or a chat.
func (c *client) tokenize(body []byte, keep bool) bool {
	var f struct {
		Model    string    `json:"model"`
		Prompt   string    `json:"prompt"`
		Messages []message `json:"messages"`
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return c.refuse(badRequest("", "cannot read the body: %v", err), keep)
	}
	ids := tokenize([]int32{}, f.Prompt)
	if len(f.Messages) > 0 {
		var err error
		if ids, err = chatPrompt(f.Messages); err != nil {
			return c.refuse(err, keep)
		}
	}
	c.json(keep, map[string]any{"count": len(ids), "max_model_len": c.server.terms.modelLen, "tokens": ids, "token_strs": nil})
	return true
}

// detokenize turns token ids into a text of as many tokens.
func (c *client) detokenize(body []byte, keep bool) bool {
	var f struct {
		Tokens json.RawMessage `json:"tokens"`
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return c.refuse(badRequest("", "cannot read the body: %v", err), keep)
	}
	if len(f.Tokens) < 2 || f.Tokens[0] != '[' || !startsNumber(f.Tokens[1:]) {
		return c.refuse(badRequest("tokens", "tokens must be a list of token ids."), keep)
	}
	ids, err := parseIDs(f.Tokens)
	if err != nil {
		return c.refuse(err, keep)
	}
	var text []byte
	for _, id := range ids {
		text = appendWord(text, id)
	}
	c.json(keep, map[string]string{"prompt": string(text)})
	return true
}

package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	jsonType    = "application/json"
	textType    = "text/plain; charset=utf-8"
	metricsType = "text/plain; version=0.0.4; charset=utf-8"
)

var routes = map[string]func(*session){
	"POST /v1/completions":      func(s *session) { s.complete(false) },
	"POST /v1/chat/completions": func(s *session) { s.complete(true) },
	"GET /health":               func(s *session) { s.respond(http.StatusOK, "", nil) },
	"GET /ping":                 func(s *session) { s.respond(http.StatusOK, "", nil) },
	"POST /ping":                func(s *session) { s.respond(http.StatusOK, "", nil) },
	"GET /version":              func(s *session) { s.respondJSON(map[string]string{"version": s.server.Version}) },
	"GET /v1/models":            func(s *session) { s.respondJSON(map[string]any{"object": "list", "data": []any{s.server.card()}}) },
	"GET /metrics":              func(s *session) { s.respond(http.StatusOK, metricsType, s.server.loop.metrics.expose()) },
	"POST /tokenize":            (*session).tokenize,
	"POST /detokenize":          (*session).detokenize,
	"POST /reset_prefix_cache":  func(s *session) { s.respondJSON(map[string]bool{"success": s.server.resetCache()}) },
}

func (s *session) route() {
	path := s.req.URL.Path
	id, model := strings.CutPrefix(s.req.Method+" "+path, "GET /v1/models/")
	switch answer := routes[s.req.Method+" "+path]; {
	case answer != nil:
		answer(s)
	case model && id == s.server.Model:
		s.respondJSON(s.server.card())
	case model:
		s.refuse(noModel(id))
	case routes["GET "+path] != nil || routes["POST "+path] != nil:
		s.respond(http.StatusMethodNotAllowed, jsonType, []byte(`{"detail":"Method Not Allowed"}`))
	default:
		s.respond(http.StatusNotFound, jsonType, []byte(`{"detail":"Not Found"}`))
	}
}

func (v *service) card() any {
	return map[string]any{
		"id": v.Model, "object": "model", "created": v.loop.start.Unix(), "owned_by": "vllm", "root": v.Model, "parent": nil, "max_model_len": v.MaxModelLen,
	}
}

func (s *session) tokenize() {
	var q struct {
		Prompt   string        `json:"prompt"`
		Messages []chatMessage `json:"messages"`
	}
	if err := json.Unmarshal(s.body, &q); err != nil {
		s.refuse(badRequest("", "cannot read the body: %v", err))
		return
	}
	ids := tokenize([]int32{}, q.Prompt)
	if len(q.Messages) > 0 {
		var err error
		if ids, err = chatPrompt(q.Messages); err != nil {
			s.refuse(err)
			return
		}
	}
	s.respondJSON(map[string]any{"count": len(ids), "max_model_len": s.server.MaxModelLen, "tokens": ids, "token_strs": nil})
}

func (s *session) detokenize() {
	var q struct {
		Tokens []int32 `json:"tokens"`
	}
	if err := json.Unmarshal(s.body, &q); err != nil || len(q.Tokens) == 0 || slices.Min(q.Tokens) < 0 {
		s.refuse(badRequest("tokens", "tokens must be a list of token ids."))
		return
	}
	var text []byte
	for _, id := range q.Tokens {
		text = appendWord(text, id)
	}
	s.respondJSON(map[string]string{"prompt": string(text)})
}

func answer(status int, contentType string, keepAlive bool, body []byte) []byte {
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", status, cmp.Or(http.StatusText(status), "Unknown"))
	if contentType != "" {
		b = append(b, "Content-Type: "+contentType+"\r\n"...)
	}
	b = append(b, "Content-Length: "+strconv.Itoa(len(body))+"\r\n"...)
	if !keepAlive {
		b = append(b, "Connection: close\r\n"...)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		b = append(b, "Retry-After: 1\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, body...)
}

// apiError is a refusal as vLLM reports it.
type apiError struct {
	status  int
	param   string // the parameter of the request; "" for none
	message string
}

// Error returns the message that the client reads.
func (e *apiError) Error() string { return e.message }

func noModel(name string) *apiError {
	return &apiError{http.StatusNotFound, "model", fmt.Sprintf("The model `%s` does not exist.", name)}
}

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, param, fmt.Sprintf(format, args...)}
}

// errorTypes maps statuses to vLLM's names for them.
var errorTypes = map[int]string{
	http.StatusBadRequest: "BadRequestError", http.StatusNotFound: "NotFoundError", http.StatusTooManyRequests: "RateLimitError",
	http.StatusServiceUnavailable: "ServiceUnavailableError",
}

// body returns the JSON of an error answer, or of an event that takes the place of a token.
func (e *apiError) body() []byte {
	param := any(nil)
	if e.param != "" {
		param = e.param
	}
	return marshal(map[string]any{"error": map[string]any{
		"message": e.message, "type": cmp.Or(errorTypes[e.status], "InternalServerError"), "param": param, "code": e.status,
	}})
}

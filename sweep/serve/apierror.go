package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// apiError is a refusal in the form in which vLLM gives it.
type apiError struct {
	status  int
	param   string // of the request; "" for none
	message string
}

// Error is the message that the client reads.
func (e *apiError) Error() string { return e.message }

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, param, fmt.Sprintf(format, args...)}
}

// kind is vLLM's name for a status.
func (e *apiError) kind() string {
	switch e.status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusTooManyRequests:
		return "RateLimitError"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableError"
	}
	return "InternalServerError"
}

// body is the JSON that stands in an answer, and in the event that stands for a
// token.
func (e *apiError) body() []byte {
	param := any(nil)
	if e.param != "" {
		param = e.param
	}
	return marshal(map[string]any{"error": map[string]any{
		"message": e.message, "type": e.kind(), "param": param, "code": e.status,
	}})
}

// marshal encodes what is known to be encodable: keys in order of the alphabet.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("serve: " + err.Error())
	}
	return b
}

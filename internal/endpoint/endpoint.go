// Package endpoint sends requests to OpenAI-compatible servers outside of a load test.
package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/printable"
	"planner/internal/secret"
)

// Endpoint is a server and what is sent with each request to it.
type Endpoint struct {
	// URL is the server's address, with or without a trailing /v1.
	URL string
	// Headers may contain values of environment variables as {env:NAME}.
	Headers map[string]string
	// APIKeyEnv names the environment variable that holds the key; the key
	// itself goes into requests and nowhere else.
	APIKeyEnv string
}

// Base returns the address to which paths beginning with /v1 are appended.
func (e Endpoint) Base() string {
	return strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v1")
}

// Header returns the headers of each request; a Host in it replaces that of the URL.
func (e Endpoint) Header() (http.Header, error) {
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"planner"}}
	for k, v := range e.Headers {
		v, err := secret.Expand(v, os.LookupEnv)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", k, err)
		}
		if strings.ContainsAny(k, "\r\n: ") || strings.ContainsAny(v, "\r\n") || k == "" {
			return nil, fmt.Errorf("header %q: not a header", k)
		}
		if slices.ContainsFunc([]string{"Content-Length", "Transfer-Encoding"}, func(own string) bool { return strings.EqualFold(own, k) }) {
			return nil, fmt.Errorf("header %s: each request has its own", k)
		}
		h.Set(k, v)
	}
	if e.APIKeyEnv != "" {
		key := os.Getenv(e.APIKeyEnv)
		if key == "" {
			return nil, fmt.Errorf("environment variable %s: no API key in it", e.APIKeyEnv)
		}
		if strings.ContainsAny(key, "\r\n") {
			return nil, fmt.Errorf("environment variable %s: the API key has a line break", e.APIKeyEnv)
		}
		h.Set("Authorization", "Bearer "+key)
	}
	return h, nil
}

// Stay is the redirect policy of clients: redirects are not followed, so that the key goes only to the named
// server.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Call sends one request and reads at most most bytes of the answer. A status other than 200 is an error, which
// [StatusOf] reads.
func (e Endpoint) Call(ctx context.Context, client *http.Client, method, path string, body []byte, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.Base()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if req.Header, err = e.Header(); err != nil {
		return nil, err
	}
	req.Host = req.Header.Get("Host")
	// Not sent: it lets net/http retry if an idle connection was closed.
	req.Header["Idempotency-Key"] = nil
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err == nil && res.StatusCode != http.StatusOK {
		err = &StatusError{res.StatusCode, printable.Line(string(data), 300), RetryAfter(res.Header), Redirected(res.Header.Get("Location"))}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return data, nil
}

// TooLate is the error of an answer that did not come in time: what was seen, and the limit.
type TooLate string

// Error returns the text.
func (w TooLate) Error() string { return string(w) }

// Is makes it a [context.DeadlineExceeded].
func (w TooLate) Is(target error) bool { return target == context.DeadlineExceeded }

// StatusError is an answer with an unexpected status.
type StatusError struct {
	Status int
	Words  string // the server's answer
	// Rest is how long the server asks to wait before a retry, 0 if it does not say.
	Rest time.Duration
	// redirect is the result of [Redirected].
	redirect string
}

// RetryAfter reads the Retry-After header, in seconds or as a date; 0 if there is none.
func RetryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// RestOf returns how long a server that answered with an error asks to wait before a retry, 0 if it did not
// say.
func RestOf(err error) time.Duration {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Rest
	}
	return 0
}

// Error returns the status and the server's answer.
func (e *StatusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("status %d%s: %s", e.Status, e.redirect, e.Words), ": ")
}

// StatusOf returns the status of the answer that caused an error, 0 if none did.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

// Redirected describes a redirect to a location, without parts that may be secret; "" if there is none.
func Redirected(location string) string {
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return ", a redirect to " + u.String()
}

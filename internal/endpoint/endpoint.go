// Package endpoint sends requests to OpenAI-compatible servers that are not part of a load.
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

// Endpoint is a server and what goes with each request to it.
type Endpoint struct {
	// URL is the server's address, with or without the /v1 behind it.
	URL string
	// Headers may have the values of variables in them, as {env:NAME}.
	Headers map[string]string
	// APIKeyEnv names the environment variable that holds the key; the key
	// itself goes into requests and nowhere else.
	APIKeyEnv string
}

// Base is the address to which paths from /v1 on are added.
func (e Endpoint) Base() string {
	return strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v1")
}

// Header is what goes with each request; a Host in it takes the place of that of the URL.
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

// Stay is the redirect policy of clients: none is followed, as the key goes to the server
// that was named and nowhere else.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Call sends one request and reads at most so many bytes of its answer. Another status
// than 200 is an error, of which [StatusOf] tells the status.
func (e Endpoint) Call(ctx context.Context, client *http.Client, method, path string, body []byte, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.Base()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if req.Header, err = e.Header(); err != nil {
		return nil, err
	}
	req.Host = req.Header.Get("Host")
	// Not sent: it tells net/http to try again where a kept connection was closed.
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

// TooLate is the error of an answer that did not come in time: what was seen, and what it is
// held against.
type TooLate string

// Error is the words.
func (w TooLate) Error() string { return string(w) }

// Is makes it a deadline that has passed.
func (w TooLate) Is(target error) bool { return target == context.DeadlineExceeded }

// StatusError is an answer of another status than was hoped for.
type StatusError struct {
	Status int
	Words  string // of the server
	// Rest is how long the server wants not to be asked again, 0 where it does not say.
	Rest time.Duration
	// redirect is what [Redirected] says.
	redirect string
}

// RetryAfter reads the header of that name, of seconds or of a date; 0 where there is none.
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

// RestOf is how long a server wants not to be asked again that answered with an error, 0
// where it did not say.
func RestOf(err error) time.Duration {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Rest
	}
	return 0
}

// Error gives the status and what came with it.
func (e *StatusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("status %d%s: %s", e.Status, e.redirect, e.Words), ": ")
}

// StatusOf is the status of an answer that is the reason of an error, 0 if none is.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

// Redirected tells of a redirect to a location, without what may be secret in it; "" of
// none.
func Redirected(location string) string {
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return ", a redirect to " + u.String()
}

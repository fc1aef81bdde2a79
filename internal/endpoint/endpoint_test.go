package endpoint

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A virtual host is asked for by its name; a body has the length that it has.
func TestHost(t *testing.T) {
	host := ""
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host = r.Host }))
	defer s.Close()
	e := Endpoint{URL: s.URL, Headers: map[string]string{"host": "virtual"}}
	if _, err := e.Call(t.Context(), s.Client(), http.MethodGet, "/health", nil, 1); err != nil || host != "virtual" {
		t.Errorf("host %q, %v, want virtual", host, err)
	}
	e.Headers = map[string]string{"content-length": "5"}
	if _, err := e.Header(); err == nil {
		t.Error("a length of its own was taken")
	}
}

// A status without words of the server is told without a colon.
func TestStatusWithoutWords(t *testing.T) {
	for words, want := range map[string]string{"": "status 418", "no tea": "status 418: no tea"} {
		if got := (&StatusError{Status: 418, Words: words}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

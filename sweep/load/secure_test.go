package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// streamTo is a net/http handler that streams the tokens asked for.
func streamTo(seen func(*http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		body, _ := io.ReadAll(r.Body)
		n := 0
		_, rest, _ := strings.Cut(string(body), `"max_tokens":`)
		fmt.Sscan(strings.FieldsFunc(rest, func(r rune) bool { return r == ',' || r == '}' })[0], &n)
		w.Header().Set("Content-Type", eventStream)
		for i := range n {
			io.WriteString(w, tokenEvent(" w", 8, i+1))
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, finishEvent()+usageEvent(8, n)+doneEvent)
	}
}

// TestSecure speaks TLS, HTTP/2 where it is offered and HTTP/1.1 where not.
func TestSecure(t *testing.T) {
	for _, h2 := range []bool{true, false} {
		t.Run(fmt.Sprintf("http2=%v", h2), func(t *testing.T) {
			var mu sync.Mutex
			protocols := map[string]int{}
			s := httptest.NewUnstartedServer(streamTo(func(r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				protocols[r.Proto]++
			}))
			s.EnableHTTP2 = h2
			s.StartTLS()
			defer s.Close()
			roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			c := &Client{URL: s.URL + "/v1", Model: "m", Stream: true, Engine: "vllm", tls: &tls.Config{RootCAs: roots}}
			obs := observe(t, c, measure.Trial{Concurrency: 4, Requests: 40}, requests(40, 8, 5, 0))
			for _, r := range obs.Records {
				if r.Outcome != measure.OK || r.Output != 5 || r.First < r.Sent || r.Last < r.First {
					t.Errorf("%+v", r)
				}
			}
			want := "HTTP/1.1"
			if h2 {
				want = "HTTP/2.0"
			}
			if protocols[want] != 40 {
				t.Errorf("protocols %v, want %s", protocols, want)
			}
			c.tls = nil
			if r := one(t, c, time.Second); r.Outcome != measure.Refused {
				t.Errorf("unknown authority: %v %q, want refused", r.Outcome, r.Detail)
			}
		})
	}
}

func TestSecureFaults(t *testing.T) {
	for name, f := range map[string]struct {
		h       http.HandlerFunc
		outcome measure.Outcome
	}{
		"status":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }, measure.HTTPStatus},
		"cut":       {func(w http.ResponseWriter, _ *http.Request) { cutStream(w) }, measure.Reset},
		"stall":     {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, measure.Timeout},
		"empty":     {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", eventStream) }, measure.Empty},
		"no finish": {func(w http.ResponseWriter, _ *http.Request) { noFinish(w) }, measure.Truncated},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(f.h)
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			if r := one(t, &Client{URL: s.URL, tls: &tls.Config{RootCAs: roots}}, 300*time.Millisecond); r.Outcome != f.outcome {
				t.Errorf("%v %q, want %v", r.Outcome, r.Detail, f.outcome)
			}
		})
	}
}

// TestSecureTerms: a server that is not what it says, or wants more than it is given, is
// refused for the reason; one that ends its connections, or takes a stream at a time, is not.
func TestSecureTerms(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(s *httptest.Server, client *tls.Config)
		detail string
	}{
		"expired": {func(_ *httptest.Server, c *tls.Config) {
			c.Time = func() time.Time { return time.Now().AddDate(100, 0, 0) }
		}, "certificate has expired"},
		"another host": {func(_ *httptest.Server, c *tls.Config) { c.ServerName = "elsewhere.test" }, "not elsewhere.test"},
		"old TLS":      {func(s *httptest.Server, _ *tls.Config) { s.TLS.MaxVersion = tls.VersionTLS10 }, "protocol version not supported"},
		"who are you": {func(s *httptest.Server, _ *tls.Config) {
			s.EnableHTTP2, s.TLS.ClientAuth = false, tls.RequireAnyClientCert
		}, "certificate required"},
		"goes away":     {func(s *httptest.Server, _ *tls.Config) { s.Config.SetKeepAlivesEnabled(false) }, ""},
		"one at a time": {func(s *httptest.Server, _ *tls.Config) { s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(streamTo(func(*http.Request) {}))
			s.EnableHTTP2, s.TLS = true, &tls.Config{}
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			conf := &tls.Config{}
			c.spoil(s, conf)
			s.StartTLS()
			defer s.Close()
			conf.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			client := &Client{URL: s.URL, Model: "m", Stream: true, Engine: "vllm", tls: conf}
			obs := observe(t, client, measure.Trial{Concurrency: 4, Requests: 20}, requests(20, 8, 4, 0))
			for _, r := range obs.Records {
				if bad := c.detail != ""; bad != (r.Outcome == measure.Refused) || bad == (r.Outcome == measure.OK) || !strings.Contains(r.Detail, c.detail) {
					t.Fatalf("%v %q, want %q", r.Outcome, r.Detail, c.detail)
				}
			}
		})
	}
}

// TestBrokenHTTP2: requests that broke alike say the same, and do not name the client.
func TestBrokenHTTP2(t *testing.T) {
	for said, want := range map[string]string{
		"stream error: stream ID 107; INTERNAL_ERROR; received from peer":                                  "stream error: INTERNAL_ERROR; received from peer",
		`http2: server sent GOAWAY and closed the connection; LastStreamID=21, ErrCode=NO_ERROR, debug=""`: `http2: server sent GOAWAY and closed the connection; ErrCode=NO_ERROR, debug=""`,
		"http2: client connection force closed via ClientConn.Close":                                       "http2: the connection broke",
	} {
		if outcome, detail := outcomeOf(errors.New(said)); outcome != measure.Reset || detail != want {
			t.Errorf("%v %q, want %q", outcome, detail, want)
		}
	}
}

func noFinish(w http.ResponseWriter) {
	w.Header().Set("Content-Type", eventStream)
	io.WriteString(w, tokenEvent(" w", 8, 1))
	w.(http.Flusher).Flush()
}

func cutStream(w http.ResponseWriter) {
	noFinish(w)
	panic(http.ErrAbortHandler)
}

// TestHeaders: what is configured arrives, by both transports, and the key does
// not leave the header.
func TestHeaders(t *testing.T) {
	const key = "sk-very-secret"
	t.Setenv("TEST_API_KEY", key)
	for _, secure := range []bool{false, true} {
		got := make(chan http.Header, 1)
		h := streamTo(func(r *http.Request) { got <- r.Header.Clone() })
		s := httptest.NewUnstartedServer(h)
		c := &Client{Headers: map[string]string{"x-route": "a b"}, APIKeyEnv: "TEST_API_KEY"}
		if secure {
			s.StartTLS()
			c.tls = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
		} else {
			s.Start()
		}
		c.URL = s.URL
		rec := one(t, c, time.Second)
		s.Close()
		if rec.Outcome != measure.OK {
			t.Fatalf("%v %q", rec.Outcome, rec.Detail)
		}
		head := <-got
		if head.Get("Authorization") != "Bearer "+key || head.Get("X-Route") != "a b" || head.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", head)
		}
		if s := fmt.Sprintf("%+v %+v", c, rec); strings.Contains(s, key) {
			t.Error("the key shows")
		}
	}
}

func TestClientRefuses(t *testing.T) {
	good := requests(2, 8, 4, 1)
	late := requests(2, 8, 4, 1)
	late[0].Due = time.Hour
	turns := requests(2, 8, 4, 0)
	turns[1].Parent = 1
	t.Setenv("EMPTY_KEY", "")
	for name, c := range map[string]struct {
		client   Client
		trial    measure.Trial
		schedule []workload.Request
		want     string
	}{
		"no URL":            {Client{Model: "m"}, measure.Trial{}, good, "want http://HOST"},
		"other scheme":      {Client{URL: "ftp://x", Model: "m"}, measure.Trial{}, good, "want http://HOST"},
		"unknown engine":    {Client{URL: "http://x", Model: "m", Engine: "llvm"}, measure.Trial{}, good, "unknown engine dialect"},
		"key not set":       {Client{URL: "http://x", Model: "m", APIKeyEnv: "EMPTY_KEY"}, measure.Trial{}, good, "EMPTY_KEY: no API key"},
		"header of lines":   {Client{URL: "http://x", Model: "m", Headers: map[string]string{"A": "b\r\nC: d"}}, measure.Trial{}, good, "not a header"},
		"no tokens":         {Client{URL: "http://x", Model: "m"}, measure.Trial{}, requests(1, 8, 0, 0), "must be 1 at least"},
		"out of order":      {Client{URL: "http://x", Model: "m"}, measure.Trial{}, late, "before the one ahead"},
		"turns in a loop":   {Client{URL: "http://x", Model: "m"}, measure.Trial{Concurrency: 2}, turns, "no conversations"},
		"no list of models": {Client{URL: serve(t, say(whole("404 Not Found", "text/plain", "no")))}, measure.Trial{}, good, "engine.served_name"},
	} {
		_, err := c.client.Run(t.Context(), c.trial, c.schedule)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

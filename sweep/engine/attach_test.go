package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"planner/internal/endpoint"
	"planner/internal/evidence/must"
)

// attachTo reaches a server that runs a handler and answers one token.
func attachTo(t *testing.T, pages http.HandlerFunc, token http.HandlerFunc) (*Engine, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			token(w, r)
			return
		}
		pages(w, r)
	}))
	t.Cleanup(server.Close)
	return Start(t.Context(), Settings{Kind: "attach", Endpoint: endpoint.Endpoint{URL: server.URL}}, someKnobs(), "", nil)
}

func oneToken(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"choices":[{"text":"a"}]}`) }

// A server that streams what was not to be streamed is reached by its first choice, whatever comes ahead of it.
func TestAttachStreams(t *testing.T) {
	t.Parallel()
	for _, ahead := range []string{"", ": ping\n\n", "event: message\nid: 1\n", `data: {"choices":[],"usage":null}` + "\r\n\r\n"} {
		if _, err := attachTo(t, http.NotFound, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "%sdata:{\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n", ahead)
		}); err != nil {
			t.Errorf("behind %q: %v", ahead, err)
		}
	}
}

// Of several models that a server lists the first is asked for, which is said.
func TestFirstModel(t *testing.T) {
	t.Parallel()
	for ids, want := range map[string]int{`{"id":"a"}`: 0, `{"id":"a"},{"id":"b"}`: 2} {
		e, err := attachTo(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"data":[%s]}`, ids) }, oneToken)
		if err != nil || e.Facts.Model != "a" || e.Facts.Listed != want {
			t.Errorf("%s: %v, %+v", ids, err, e.Facts)
		}
	}
}

// A server that never says whether it is well is reached if it answers requests, and soon.
func TestAttachWithoutProbe(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for the limit of a probe")
	}
	e, err := attachTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			<-r.Context().Done()
		}
		http.NotFound(w, r)
	}, oneToken)
	if err != nil || e.Unprobed == nil || e.settings.Timeouts.Probe != factLimit {
		t.Errorf("%v; its probe: %v, the limit of a token %v", err, e.Unprobed, e.settings.Timeouts.Probe)
	}
}

// What a server did not answer in time, or not to the end, is told in words, and is a deadline that has passed.
func TestNoAnswerIsTold(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{"", `{"choices":`} {
		var asked atomic.Bool
		e := must.Get(attachTo(t, http.NotFound, func(w http.ResponseWriter, r *http.Request) {
			if !asked.Swap(true) {
				oneToken(w, r)
				return
			}
			io.Copy(io.Discard, r.Body) // or the server does not notice who leaves
			fmt.Fprint(w, begin)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		err := e.Check(t.Context(), 100*time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ": no answer in 100ms") {
			t.Errorf("behind %q: %v", begin, err)
		}
	}
}

// A server is asked for all that it may tell at the same time, so that one page which hangs
// takes no longer than its limit.
func TestPagesAreAskedTogether(t *testing.T) {
	t.Parallel()
	var open atomic.Int64
	both := make(chan struct{})
	_, err := attachTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" || r.URL.Path == "/v1/models" {
			defer open.Add(-1)
			if open.Add(1) == 2 {
				close(both)
			}
			select {
			case <-both:
			case <-time.After(3 * time.Second):
			}
		}
		http.NotFound(w, r)
	}, oneToken)
	if err != nil {
		t.Error(err)
	}
	select {
	case <-both:
	default:
		t.Error("one page was waited for before the next")
	}
}

// An engine that told of itself is mute once no answer comes any more.
func TestMute(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	e := must.Get(attachTo(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/metrics":
			http.NotFound(w, r)
		case gone.Load():
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprintln(w, "vllm:num_requests_running 0")
		}
	}, oneToken))
	s := e.Sample(t.Context())
	if s.Mute() {
		t.Error("mute before it was")
	}
	gone.Store(true)
	for began := time.Now(); !s.Mute() && time.Since(began) < 10*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	if said := s.Stop(t.Context()); !s.Mute() || said.Answered == 0 || said.Missed != 1 {
		t.Errorf("mute %t: %+v", s.Mute(), said)
	}
}

// What serves is named by what is known of it.
func TestFactsName(t *testing.T) {
	for want, f := range map[string]ServerFacts{"vllm 0.19.0": {Dialect: "vllm", Version: "0.19.0"}, "sglang": {Dialect: "sglang"}, "a server of unknown kind": {}} {
		if got := f.Name("attach"); got != want {
			t.Errorf("%+v is named %q, want %q", f, got, want)
		}
	}
}

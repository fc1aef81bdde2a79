package sweep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// judgedTrial is a trial at a rate that has an objective.
func judgedTrial(number int, rate float64) measure.Trial {
	t := liveTrial(badSeqs, number)
	t.Rate = rate
	t.Objective = measure.SLO{Bounds: []measure.Bound{{Metric: measure.E2E, Quantile: 0.9, Limit: 5 * time.Second}}, Errors: 0.001}
	return t
}

// TestDiesOnlyUnderLoad: a load under which an engine dies misses its objective, and smaller ones
// are measured; an engine that dies under any load cannot run.
func TestDiesOnlyUnderLoad(t *testing.T) {
	t.Parallel()
	for misbehave, want := range map[string][]string{
		// What became of trials at 20, 2,000, 2,000 and 20 requests a second.
		"dies-loaded": {"met", "missed", "missed", "met"},
		"dies":        {"missed", "missed", "rejected", "rejected"},
	} {
		t.Run(misbehave, func(t *testing.T) {
			t.Parallel()
			l, mark := fakeLive(t.TempDir(), misbehave)
			source := &given{}
			for i, rate := range []float64{20, 2000, 2000, 20} {
				source.trials = append(source.trials, judgedTrial(i+1, rate))
				if misbehave == "dies" {
					source.trials[i].Window = time.Second // enough requests to die of
				}
			}
			must.OK((&Loop{Source: source, Run: l.Run}).Drive(t.Context()))
			l.Close()
			enginetest.NothingLeft(t, mark, 0)
			for i := range source.seen {
				m := &source.seen[i]
				got := "rejected"
				if m.Rejected.Text == "" {
					if got = m.Verdict.State.String(); m.Failed == 0 && m.Aborted.Text == "" {
						got = "met" // few requests prove no small share of failures
					}
				}
				if got != want[i] {
					t.Errorf("trial %d: %s (%v, %s), want %s", i+1, got, m.Failures, m.Rejected.Text, want[i])
				}
				if broke := m.Aborted.Note.Kind == note.EngineBroke && strings.Contains(m.Complaint(), "(mem.kill) in stage serving under "); broke != (got == "missed") {
					t.Errorf("trial %d: aborted %q, complaint %q", i+1, m.Aborted.Text, m.Complaint())
				}
			}
		})
	}
}

// TestDiesWhateverTheRate: an engine that dies after as many requests at one rate as at another
// cannot run, though it serves fewer, and its death is no miss of a rate. It is not run beside other tests: the engine
// has to keep up.
func TestDiesWhateverTheRate(t *testing.T) {
	l, mark := fakeLive(t.TempDir(), "dies-late")
	source := &given{trials: []measure.Trial{judgedTrial(1, 20), judgedTrial(2, 200), judgedTrial(3, 80), judgedTrial(4, 20)}}
	for i := range source.trials {
		source.trials[i].Window = []time.Duration{time.Second, 3 * time.Second, 6 * time.Second, time.Second}[i]
	}
	must.OK((&Loop{Source: source, Run: l.Run}).Drive(t.Context()))
	l.Close()
	enginetest.NothingLeft(t, mark, 0)
	for i, want := range []string{"", "", "(mem.kill) in stage serving under 80 requests/s", "(mem.kill) in stage serving under 80 requests/s"} {
		m := &source.seen[i]
		if got := m.Rejected.Text; !strings.Contains(got, want) || (want == "") != (got == "") || want != "" && !strings.Contains(got, "the rate is not why") {
			t.Errorf("trial %d: %q, want %q", i+1, got, want)
		}
	}
	if m := &source.seen[1]; m.Aborted.Note.Kind != note.EngineBroke {
		t.Errorf("the first death under load: %+v", m.Aborted)
	}
}

// Engines die regardless of the rate if they kept up, got as far at rates that differ, and none got further.
func TestLivesRegardlessOfTheRate(t *testing.T) {
	a := life{rate: 60, served: 300, lived: 9 * time.Second}
	for _, c := range []struct {
		b, other life
		want     bool
	}{
		{life{rate: 20, served: 310, lived: 40 * time.Second}, life{served: 305}, true},
		{life{rate: 20, served: 100, lived: 9 * time.Second}, life{served: 900, lived: 8 * time.Second}, true},
		{life{rate: 20, served: 310, lived: 40 * time.Second}, life{served: 900}, false},
		{life{rate: 50, served: 310, lived: 40 * time.Second}, life{}, false},
		{life{rate: 20, served: 600, lived: 40 * time.Second}, life{}, false},
		{life{rate: 20, served: 40, lived: 9 * time.Second}, life{}, false},
		{life{knobs: measure.Knobs{MaxNumSeqs: 8}, rate: 20, served: 300}, life{}, false},
	} {
		if got := a.regardless(c.b, []life{c.other}); got != c.want {
			t.Errorf("%+v beside %+v: %v", c.b, c.other, got)
		}
	}
	late := measure.Record{Sent: time.Second, Outcome: measure.Reset}
	if _, _, kept := progress(slices.Repeat([]measure.Record{late}, 40)); kept {
		t.Error("an engine that answered nothing kept up")
	}
}

// restarting is a server at which nobody listens for a while, after so many requests of a load.
func restarting(t *testing.T, requests int64, gone time.Duration) (url string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	address := l.Addr().String()
	var server atomic.Pointer[http.Server]
	var handler http.Handler
	var restarts sync.WaitGroup
	restart := func() {
		server.Load().Close()
		time.Sleep(gone)
		server.Store(&http.Server{Handler: handler})
		go server.Load().Serve(must.Get(net.Listen("tcp", address)))
	}
	handler, _ = failingHandler(func(n, _ int64) int {
		if n == requests {
			restarts.Go(restart)
		}
		return 0
	})
	server.Store(&http.Server{Handler: handler})
	go server.Load().Serve(l)
	t.Cleanup(func() {
		restarts.Wait()
		server.Load().Close()
	})
	return "http://" + address
}

// TestServerRestarts: a trial in which a server was started again is repeated once it is back,
// however long that took; a server that does not come back is given up.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]time.Duration{"soon": 300 * time.Millisecond, "late": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := attached(t, restarting(t, 10, gone), 5*time.Second)
			trial := liveTrial(goodSeqs, 1)
			trial.Window = time.Second
			o, err := l.Run(t.Context(), trial)
			m := measure.Reduce(trial, o)
			if err != nil || m.Failed > 0 || m.Requests < 90 || !m.Warnings.Has(note.TrialRepeated) {
				t.Errorf("%v: %d of %d requests failed, %v: %v", err, m.Failed, m.Requests, m.Failures, m.Warnings.Texts())
			}
		})
	}
}

// TestInterruptedWait: who ends a run while it waits for a server to come back has interrupted it; the
// server is not given up.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	l := attached(t, restarting(t, 10, 8*time.Second), time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	trial := liveTrial(goodSeqs, 1)
	trial.Window = time.Second
	source := &given{trials: []measure.Trial{trial}}
	waits := 0
	l.See = func(event any) {
		if said, ok := event.(string); ok && strings.Contains(said, "asked again") {
			if waits++; waits == 2 { // the first is for a sign of life
				cancel()
			}
		}
	}
	loop := Loop{Source: source, Run: l.Run}
	if err := loop.Drive(ctx); !errors.Is(err, ErrInterrupted) || len(source.seen) > 0 {
		t.Errorf("%v, %+v", err, source.seen)
	}
}

// TestServerRestartsBehindAProxy: a trial in which a proxy said for a while that there was no
// server is repeated, with other prompts, as the server may still hold those of the first time; one
// in which a server sheds load, while it serves the rest, is not.
func TestServerRestartsBehindAProxy(t *testing.T) {
	t.Parallel()
	for name, sheds := range map[string]bool{"restarts": false, "sheds": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var begun atomic.Int64
			handler, _ := failingHandler(func(n, flying int64) int {
				if n == 20 {
					begun.Store(time.Now().UnixNano())
				}
				since := time.Duration(time.Now().UnixNano() - begun.Load())
				switch {
				case sheds && flying > 1:
					return http.StatusServiceUnavailable
				case !sheds && n >= 20 && since < 3500*time.Millisecond:
					return http.StatusBadGateway
				case sheds:
					return slow
				}
				return 0
			})
			var mu sync.Mutex
			loads := map[string]int{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), `"stream":true`) {
					mu.Lock()
					loads[string(body)]++
					mu.Unlock()
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				handler.ServeHTTP(w, r)
			}))
			defer server.Close()
			l := attached(t, server.URL, 5*time.Second)
			trial := liveTrial(goodSeqs, 1)
			trial.Rate, trial.Window = 20, 5*time.Second
			o, err := l.Run(t.Context(), trial)
			m := measure.Reduce(trial, o)
			if err != nil || m.Failed > 0 != sheds || m.Requests < 50 || m.Warnings.Has(note.TrialRepeated) == sheds {
				t.Errorf("%v: %d of %d requests failed, %v: %v", err, m.Failed, m.Requests, m.Failures, m.Warnings.Texts())
			}
			for body, n := range loads {
				if n > 1 {
					t.Errorf("sent %d times: %s", n, body)
				}
			}
		})
	}
}

// TestEndlessAnswers: a server that never ends an answer is waited for as long as the trial
// may take, and no longer.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	url, asked := failingServer(t, behind(0, endless))
	l := attached(t, url, time.Second)
	trial := liveTrial(goodSeqs, 1)
	trial.Limit = 2 * time.Second
	began := time.Now()
	_, err := l.Run(t.Context(), trial)
	r, rejected := errors.AsType[*measure.Rejection](err)
	if took := time.Since(began); !rejected || !strings.Contains(r.Reason.Text, "alone on the engine: not over after 2s") || took > 10*time.Second || asked.Load() > 1 {
		t.Errorf("%v after %v and %d requests", err, took, asked.Load())
	}
}

// TestCutOff: what was in flight when an engine broke down counts as reset if the engine ended, and
// as unanswered if it only hangs.
func TestCutOff(t *testing.T) {
	t.Parallel()
	trial := liveTrial(goodSeqs, 1)
	for want, failed := range map[measure.Outcome]engine.Failure{
		measure.Timeout: {Class: "hang"}, measure.Reset: {Class: "crash", Exit: "signal 11"},
	} {
		o := measure.Observation{Records: []measure.Record{{Outcome: measure.InFlight}}}
		cutOff(&trial, &o, &failed)
		if got := o.Records[0].Outcome; got != want {
			t.Errorf("%v: %v, want %v", &failed, got, want)
		}
	}
}

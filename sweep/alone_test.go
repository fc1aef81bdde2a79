package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"planner/internal/endpoint"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// silence stands for no answer at all, slow for a good one that takes half a second a token,
// stalling for one that ends in silence, endless for one that never ends.
const silence, slow, stalling, endless = -1, -2, -3, -4

// failingServer is a server with a failingHandler.
func failingServer(t *testing.T, fails func(n, flying int64) (status int)) (url string, asked *atomic.Int64) {
	handler, asked := failingHandler(fails)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, asked
}

// failingHandler answers questions about itself, and requests for one token, as a server
// that is well. What is asked for more tokens fails as fails says, which is given the
// requests so far and those in flight.
func failingHandler(fails func(n, flying int64) (status int)) (h http.Handler, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	var flying atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Tokens int  `json:"max_tokens"`
			Stream bool `json:"stream"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		pace, stalls := 2*time.Millisecond, false
		if in.Tokens > 1 {
			defer flying.Add(-1)
			switch status := fails(asked.Add(1), flying.Add(1)); status {
			case 0:
			case slow:
				pace = 500 * time.Millisecond
			case stalling:
				stalls = true
			case endless:
				pace, in.Tokens = 50*time.Millisecond, 1<<20
			case silence:
				<-r.Context().Done()
				return
			default:
				http.Error(w, `{"error":{"message":"not today"}}`, status)
				return
			}
		}
		if in.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for i := 1; i <= in.Tokens && r.Context().Err() == nil; i++ {
			time.Sleep(pace)
			if !in.Stream {
				continue
			}
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":%d}}\n\n", i)
			w.(http.Flusher).Flush()
		}
		if stalls {
			<-r.Context().Done()
		}
		if in.Stream {
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		fmt.Fprintf(w, `{"choices":[{"text":"a"}],"usage":{"prompt_tokens":4,"completion_tokens":%d}}`, in.Tokens)
	})
	return mux, asked
}

// attached is a runner for a server that runs already, which counts as hanging if nothing comes for
// so long.
func attached(t *testing.T, url string, hang time.Duration) *Live {
	l := &Live{Settings: engine.Settings{Kind: "attach", Model: "m", Endpoint: endpoint.Endpoint{URL: url}}, Client: load.Client{Stream: true}, Hang: hang}
	t.Cleanup(func() { l.Close() })
	return l
}

// behind answers n requests of a load, and all after them with a status.
func behind(n int64, status int) func(n, flying int64) int {
	return func(at, _ int64) int {
		if at > n {
			return status
		}
		return 0
	}
}

// A failure of a request that is alone is not a matter of speed, and is known before the load or
// soon after it began; failures under load only are failures of the trial.
func TestFailingAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails func(n, flying int64) int
		// rejected is in the reason; "" where the trial is measured with failures.
		rejected string
		// most is how many requests of the load may be sent.
		most int64
	}{
		"denied":      {behind(0, 401), "(net.denied) in stage serving: a request of the load, alone on the engine, failed: status 401: not today (engine.api_key_env names the environment variable that holds its key)", 1},
		"no model":    {behind(0, 404), "(args.model)", 1},
		"unavailable": {behind(0, 503), "(serve.failing)", 7},
		"silent":      {behind(0, silence), "(serve.failing) in stage serving: a request of the load, alone on the engine, got no answer: nothing came in 1s", 2},
		"key expires": {behind(20, 403), "(net.denied)", 2000},
		"sheds load": {func(_, flying int64) int {
			if flying > 1 {
				return 429
			}
			return 0
		}, "", 2000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := failingServer(t, c.fails)
			l := attached(t, url, time.Second)
			trial := liveTrial(goodSeqs, 1)
			if c.rejected != "" {
				trial.Window = time.Minute
				hasty := *trial.Workload
				hasty.Timeout = 300 * time.Millisecond // less than what tells silence from slowness
				trial.Workload = &hasty
			}
			began := time.Now()
			o, err := l.Run(t.Context(), trial)
			if n := asked.Load(); n > c.most || time.Since(began) > 30*time.Second {
				t.Errorf("%d requests in %v", n, time.Since(began))
			}
			if c.rejected == "" {
				m := measure.Reduce(trial, o)
				if err != nil || m.Failures["http_status"] == 0 || !strings.Contains(m.Complaint(), "429: not today") {
					t.Errorf("%v: %v, %s", err, m.Failures, m.Complaint())
				}
				return
			}
			if r, ok := errors.AsType[*measure.Rejection](err); !ok || !strings.Contains(r.Reason.Text, c.rejected) {
				t.Errorf("%v, want %s", err, c.rejected)
			}
		})
	}
}

// TestHalfHung: a server that answers one token that is asked for, and nothing more of the
// load, hangs, whatever the time-out of the load.
func TestHalfHung(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"silent": silence, "stalled": stalling} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var remarks []string
			url, _ := failingServer(t, behind(10, status))
			l := attached(t, url, time.Second)
			l.See = func(what any) {
				mu.Lock()
				defer mu.Unlock()
				if remark, ok := what.(string); ok {
					remarks = append(remarks, remark)
				}
			}
			trial := liveTrial(goodSeqs, 1)
			trial.Rate, trial.Concurrency, trial.Requests = 0, 1, 40
			_, err := l.Run(t.Context(), trial)
			if r, ok := errors.AsType[*measure.Rejection](err); !ok || !strings.Contains(r.Reason.Text, "got no answer: nothing came in 1s") {
				t.Errorf("%v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if said := strings.Join(remarks, "\n"); !strings.Contains(said, "repeated on the same server") || strings.Contains(said, "new engine") {
				t.Error(said)
			}
		})
	}
}

// TestLostRequests: a server that loses some requests, and answers those after them, is measured
// with these as failures, by load points too.
func TestLostRequests(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprint("load point ", bare), func(t *testing.T) {
			t.Parallel()
			var lost atomic.Int64
			url, _ := failingServer(t, func(n, _ int64) int {
				if n%10 == 5 && n < 50 {
					lost.Add(1)
					return stalling
				}
				return 0
			})
			l := attached(t, url, time.Second)
			l.Client.Engine, l.Bare = "vllm", bare
			trial := liveTrial(goodSeqs, 1)
			m := measure.Reduce(trial, must.Get(l.Run(t.Context(), trial)))
			if n := int(lost.Load()); n == 0 || m.Requests < 39 || m.Failed != n || m.Failures["timeout"] != n || !strings.Contains(m.Complaint(), "nothing more in 1s") {
				t.Errorf("%d of %d requests failed, %d were lost: %v, %s", m.Failed, m.Requests, n, m.Failures, m.Complaint())
			}
		})
	}
}

// TestLimitOfTrial: a trial ends at its limit. That says nothing about the engine if something came
// until the end; if nothing did, it is asked.
func TestLimitOfTrial(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		good int64
		kind int
	}{"slow": {1, slow}, "silent": {1, silence}, "silent after some": {10, silence}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := failingServer(t, behind(c.good, c.kind))
			l := attached(t, url, 3*time.Second)
			trial := liveTrial(goodSeqs, 1)
			trial.Rate, trial.Window, trial.Concurrency, trial.Requests, trial.Limit = 0, 0, 1, 20, 2*time.Second
			began := time.Now()
			o, err := l.Run(t.Context(), trial)
			r, rejected := errors.AsType[*measure.Rejection](err)
			switch {
			case c.kind == slow && (err != nil || o.Aborted.Note.Kind != note.TrialLimit || o.Took < trial.Limit || time.Since(began) > 20*time.Second):
				t.Errorf("%v after %v of %v: %+v", err, o.Took, time.Since(began), o.Aborted)
			case c.kind == silence && (!rejected || !strings.Contains(r.Reason.Text, "got no answer: nothing came in 3s")):
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTimeoutsAreNoSignOfLife: a server from which nothing comes but the client's own time-outs
// hangs, and one from which first tokens still come does not.
func TestTimeoutsAreNoSignOfLife(t *testing.T) {
	t.Parallel()
	for name, lives := range map[string]bool{"frozen": false, "slow": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &watchdog{trial: &measure.Trial{}, silence: 30 * time.Second, stream: true}
			var hung time.Duration
			for now := time.Duration(0); now < 2*time.Minute && hung == 0; now += 250 * time.Millisecond {
				records := []measure.Record{{Outcome: measure.OK, Sent: 0, First: time.Second, Last: time.Second}}
				for sent := time.Second; sent <= now; sent += 3 * time.Second {
					r := measure.Record{Outcome: measure.Timeout, Sent: sent, First: measure.Never, Last: measure.Never}
					if sent+3*time.Second > now {
						r.Outcome = measure.InFlight
					}
					if lives && now > sent+time.Second {
						r.First = sent + time.Second
					}
					records = append(records, r)
				}
				if why := w.looks(now, func() []measure.Record { return records }); why.Note.Kind == note.EngineHangs {
					hung = now
				}
			}
			if hung > 40*time.Second || hung > 0 == lives {
				t.Errorf("hangs at %v", hung)
			}
		})
	}
}

// TestFrozen: a server that answers nothing any more, nor a question about itself, is broken, even
// if the trial's limit comes before the silence that shows it. No load counts as missed by that,
// and it is not waited for much longer than the trial may take.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]float64{"one at a time": 0, "under a rate": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var frozen atomic.Bool
			well, _ := failingHandler(func(n, _ int64) int {
				frozen.Store(n > 10)
				if n > 10 {
					return silence
				}
				return 0
			})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if frozen.Load() {
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
					return
				}
				well.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			l := attached(t, server.URL, time.Second)
			trial := judgedTrial(1, rate)
			hasty := *trial.Workload
			hasty.Timeout = 300 * time.Millisecond
			trial.Workload, trial.Limit = &hasty, time.Second
			if rate == 0 {
				trial.Window, trial.Concurrency, trial.Requests = 0, 1, 40
			}
			began := time.Now()
			_, err := l.Run(t.Context(), trial)
			if r, ok := errors.AsType[*measure.Rejection](err); !ok || !measure.Broke(r.Reason) || time.Since(began) > 12*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	}
}

// TestSilenceOf: with a longer timeout for requests, the wait for a sign of life is longer too.
func TestSilenceOf(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{0: 3 * time.Minute, 5 * time.Second: 3 * time.Minute, 30 * time.Minute: 3 * time.Minute, 2 * time.Hour: 12 * time.Minute} {
		trial := measure.Trial{Workload: &workload.Workload{Timeout: timeout}}
		if got := silenceOf(&trial, time.Second, 0); got != want {
			t.Errorf("%v with a time-out of %v, want %v", got, timeout, want)
		}
	}
	for left, want := range map[time.Duration]time.Duration{time.Minute: 30 * time.Second, 5 * time.Minute: 75 * time.Second, time.Hour: 3 * time.Minute} {
		trial := measure.Trial{Workload: &workload.Workload{}, Limit: left}
		if got := silenceOf(&trial, time.Second, 0); got != want {
			t.Errorf("%v with %v of the budget left, want %v", got, left, want)
		}
	}
	short := measure.Trial{Workload: &workload.Workload{}, Limit: time.Minute}
	for alone, want := range map[time.Duration]time.Duration{0: time.Minute, 40 * time.Second: 2 * time.Minute} {
		if got := silenceOf(&short, alone, 0); got != want {
			t.Errorf("%v where a request alone took %v, want %v", got, alone, want)
		}
	}
}

// TestSilentBench: a load point on a server from which nothing comes ends as on a hanging one, and
// one on a server that answers one request goes on.
func TestSilentBench(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]int{"silent": silence, "slow": slow, "stalling": stalling} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := failingServer(t, behind(0, first))
			l := attached(t, url, time.Second)
			l.Client.Engine, l.Bare = "vllm", true
			trial := liveTrial(goodSeqs, 1)
			trial.Rate, trial.Window, trial.Concurrency, trial.Requests = 0, 0, 1, 1
			o, err := l.Run(t.Context(), trial)
			r, rejected := errors.AsType[*measure.Rejection](err)
			switch {
			case first == slow && (err != nil || measure.Reduce(trial, o).Failed > 0):
				t.Errorf("%v: %+v", err, o.Records)
			case first != slow && (!rejected || !measure.Broke(r.Reason) || !strings.Contains(r.Reason.Text, "(hang) in stage serving: with requests in flight nothing came in 1s")):
				t.Errorf("%v", err)
			}
		})
	}
}

// TestSlowAnswers: a server that takes its time for a long answer, token by token or as a
// whole, does not hang.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			url, _ := failingServer(t, behind(1, slow))
			l := attached(t, url, time.Second)
			l.Client.Stream = stream
			trial := liveTrial(goodSeqs, 1)
			trial.Rate, trial.Window, trial.Concurrency, trial.Requests = 0, 0, 1, 1
			o, err := l.Run(t.Context(), trial)
			if m := measure.Reduce(trial, o); err != nil || m.Failed > 0 || m.Requests != 1 {
				t.Errorf("%v: %d requests, failed: %v", err, m.Requests, m.Failures)
			}
		})
	}
}

// TestRest: a server that limits rates is asked again when it wants to be, before a load and for
// what a load point needs to know.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, point := range []bool{false, true} {
		t.Run(fmt.Sprint("load point ", point), func(t *testing.T) {
			t.Parallel()
			var asked []time.Time
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					return
				}
				if body, _ := io.ReadAll(r.Body); !bytes.Contains(body, []byte(`"stream":true`)) {
					fmt.Fprint(w, `{"choices":[{"text":"a"}]}`)
					return
				}
				asked = append(asked, time.Now())
				if len(asked) < 3 {
					w.Header().Set("Retry-After", "2")
					http.Error(w, "slow down", http.StatusTooManyRequests)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":8}}\n\ndata: [DONE]\n\n")
			}))
			defer server.Close()
			client := load.Client{URL: server.URL, Model: "m", Stream: true, Engine: "vllm"}
			trial := liveTrial(goodSeqs, 1)
			var done bool
			var err error
			if point {
				trial.Number, trial.Rate, trial.Window, trial.Concurrency, trial.Requests = 0, 0, 0, 1, 1
				at := endpoint.Endpoint{URL: server.URL}
				e := &Live{Settings: engine.Settings{Kind: "attach", Endpoint: at, Timeouts: engine.Timeouts{Ready: time.Minute}}, Client: client, Bare: true}
				var o measure.Observation
				o, err = e.Run(t.Context(), trial)
				done = err == nil && o.Records[0].Outcome == measure.OK
			} else {
				done, err = (&Live{Client: client}).alone(t.Context(), &engine.Engine{URL: server.URL}, &trial, silenceOf(&trial, time.Second, 0), nil)
			}
			if !done || err != nil || len(asked) != 3 || asked[2].Sub(asked[1]) < 2*time.Second {
				t.Errorf("%v, %v: asked at %v", done, err, asked)
			}
		})
	}
}

// TestTokenBucket: a server that allows a request every 100 ms does not fail alone, though what
// measures texts comes just ahead of the request.
func TestTokenBucket(t *testing.T) {
	t.Parallel()
	well, _ := failingHandler(behind(1, 0))
	var mu sync.Mutex
	var last time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now := time.Now()
		full := now.Sub(last) < 100*time.Millisecond
		if !full {
			last = now
		}
		mu.Unlock()
		if full {
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		well.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	trial := liveTrial(goodSeqs, 1)
	l := &Live{Client: load.Client{URL: server.URL, Model: "m", Stream: true}}
	if done, err := l.alone(t.Context(), &engine.Engine{URL: server.URL}, &trial, time.Minute, nil); !done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
}

// Starts that fail alike, for what no knob can change, are not repeated for every set of knobs.
func TestStartsThatFailAlikeEnd(t *testing.T) {
	t.Parallel()
	l, _ := fakeLive(t.TempDir(), "no-choices")
	var trials []measure.Trial
	for i := range enoughAlike + 2 {
		trials = append(trials, liveTrial(badSeqs, i+1))
		trials[i].Knobs.MaxNumBatchedTokens = 512 << i
	}
	source := &given{trials: trials}
	must.OK((&Loop{Source: source, Run: l.Run}).Drive(t.Context()))
	for i, m := range source.seen {
		if started := strings.HasPrefix(m.Rejected.Text, "engine failed (start.mute)"); started != (i < enoughAlike) || !measure.Broke(m.Rejected) {
			t.Errorf("set %d: %q", i+1, m.Rejected.Text)
		}
	}
}

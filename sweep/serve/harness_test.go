package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/model/sim"
)

// running is a server at work in a test.
type running struct {
	url  string
	log  *bytes.Buffer
	stop func() error
}

// run serves on a free loopback port until the test ends, or stop is called.
func run(t testing.TB, s *Simulator) *running {
	t.Helper()
	log := &bytes.Buffer{}
	s.Addr, s.Log = "127.0.0.1:0", log
	must.OK(s.Listen())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-served:
			return err
		case <-time.After(5 * time.Second):
			t.Fatal("server does not stop")
			return nil
		}
	})
	t.Cleanup(func() { _ = stop() })
	return &running{s.URL(), log, stop}
}

// emissions stops the server and reads its log.
func (r *running) emissions(t testing.TB) []Emission {
	t.Helper()
	must.OK(r.stop())
	lines := json.NewDecoder(r.log)
	var start LogStart
	must.OK(lines.Decode(&start))
	var all []Emission
	for lines.More() {
		var e Emission
		must.OK(lines.Decode(&e))
		all = append(all, e)
	}
	return all
}

// lateness is by how much tokens left after they were due, in ascending order.
func lateness(all []Emission) []time.Duration {
	var late []time.Duration
	for _, e := range all {
		for i, left := range e.Left {
			late = append(late, left-e.Due[i])
		}
	}
	slices.Sort(late)
	return late
}

// post sends a JSON body and returns the status and the whole answer.
func post(t testing.TB, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(b) + err.Error()
	}
	return resp.StatusCode, string(b)
}

func get(url string) (int, string) {
	resp := must.Get(http.Get(url))
	defer resp.Body.Close()
	return resp.StatusCode, string(must.Get(io.ReadAll(resp.Body)))
}

// event is one chunk of a stream, in the form that both endpoints share.
type event struct {
	ID, Object, Model string
	Choices           []struct {
		Text         *string
		Delta        *struct{ Role, Content *string }
		FinishReason *string `json:"finish_reason"`
		TokenIDs     []int32 `json:"token_ids"`
		Prompt       []int32 `json:"prompt_token_ids"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Error *struct {
		Message, Type string
		Code          int
	}
}

// events cuts a stream into its chunks and checks that it is nothing else.
func events(t testing.TB, stream string) (all []event, done bool) {
	t.Helper()
	s := bufio.NewScanner(strings.NewReader(stream))
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		line := s.Text()
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case line == "":
		case !ok || done:
			t.Fatalf("unexpected line %q", line)
		case data == "[DONE]":
			done = true
		default:
			var e event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatalf("event %q: %v", data, err)
			}
			all = append(all, e)
		}
	}
	return all, done
}

// text joins what a stream says.
func text(all []event) string {
	var b strings.Builder
	for _, e := range all {
		for _, c := range e.Choices {
			if c.Text != nil {
				b.WriteString(*c.Text)
			}
			if c.Delta != nil && c.Delta.Content != nil {
				b.WriteString(*c.Delta.Content)
			}
		}
	}
	return b.String()
}

// steady is a timer whose steps all take the same time.
type steady struct{ step, frontend float64 }

func (s steady) Step(model.Batch) model.StepTime { return model.StepTime{Total: s.step} }

func (s steady) Growth(model.Batch) float64 { return 0 }

func (s steady) Frontend(int) float64 { return s.frontend }

// constant is the distribution of a duration that never varies.
func constant(d time.Duration) Distribution {
	return func(*rand.Rand) time.Duration { return d }
}

// small is an engine of 1,000 blocks of 16 tokens.
func small() sim.Config {
	return sim.Config{
		Rules: sim.RulesFor(model.Version{}),
		Seqs:  64, BatchTokens: 2048, ModelLen: 4096, PrefixCaching: true, Blocks: 1000, Layout: model.KVLayout{BlockTokens: 16},
	}
}

package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/sweep/workload"
)

func testPrompter(salt uint64) *prompter {
	return &prompter{salt: salt, perWord: 1}
}

func ids(t *testing.T, p *prompter, r *workload.Request) []int {
	t.Helper()
	var out []int
	must.OK(json.Unmarshal(p.appendTokens(nil, r), &out))
	if len(out) != r.Prompt {
		t.Fatalf("%d ids for a prompt of %d tokens", len(out), r.Prompt)
	}
	return out
}

// alike returns the number of leading elements that two prompts share.
func alike[T comparable](a, b []T) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// TestVocabulary: prompts have no id that the model does not have.
func TestVocabulary(t *testing.T) {
	r := workload.Request{ID: 1, Prompt: 5000, Output: 1, Shared: []workload.Segment{{Content: 77, Tokens: 1000}}}
	for vocab, want := range map[int][2]int{0: {1000, 30_000}, 128_256: {1000, 30_000}, 2048: {1000, 2048}, 300: {150, 300}, 2: {1, 2}, 1: {0, 1}} {
		drawn := ids(t, &prompter{vocab: vocab, perWord: 1}, &r)
		low, high := slices.Min(drawn), slices.Max(drawn)+1
		if low < want[0] || high > want[1] || high-low < (want[1]-want[0])*9/10 {
			t.Errorf("vocabulary of %d: ids from %d to %d, want %v", vocab, low, high, want)
		}
	}
}

// TestPrompts: prompts have their exact length, share what they are to share
// and nothing else, and another trial's prompts share nothing with them.
func TestPrompts(t *testing.T) {
	p := testPrompter(1)
	shared := []workload.Segment{{Content: 77, Tokens: 40}, {Content: 78, Tokens: 24}}
	a := workload.Request{ID: 1, Prompt: 100, Output: 1, Shared: shared}
	b := workload.Request{ID: 2, Prompt: 90, Output: 1, Shared: shared}
	half := workload.Request{ID: 3, Prompt: 90, Output: 1, Shared: []workload.Segment{{Content: 77, Tokens: 40}}}
	cut := workload.Request{ID: 4, Prompt: 50, Output: 1, Shared: shared}
	for _, c := range []struct {
		name string
		x, y []int
		want int
	}{
		{"both segments", ids(t, p, &a), ids(t, p, &b), 64},
		{"one segment", ids(t, p, &a), ids(t, p, &half), 40},
		{"cut in the second", ids(t, p, &a), ids(t, p, &cut), 50},
		{"the same request", ids(t, p, &a), ids(t, p, &a), 100},
		{"another trial", ids(t, p, &a), ids(t, testPrompter(2), &a), 0},
	} {
		if got := alike(c.x, c.y); got != c.want {
			t.Errorf("%s: %d tokens alike, want %d", c.name, got, c.want)
		}
	}
	for _, id := range ids(t, p, &a) {
		if id < 1000 || id >= 30000 {
			t.Errorf("id %d out of range", id)
		}
	}
}

// TestConversationPrompt: the prompt of a later turn begins with the whole of
// the one before it.
func TestConversationPrompt(t *testing.T) {
	w := fixedLengths(30, 20, workload.Constant)
	w.Turns = 3
	schedule := w.Schedule(3, 1000000000, 4)
	p := testPrompter(1)
	for i := range schedule {
		r := &schedule[i]
		if r.Parent == 0 {
			continue
		}
		before := &schedule[r.Parent-1]
		if n := alike(ids(t, p, before), ids(t, p, r)); n != before.Prompt {
			t.Errorf("turn %d shares %d tokens with turn %d of %d", r.ID, n, before.ID, before.Prompt)
		}
		if r.Prompt != before.Prompt+before.Output+30 {
			t.Errorf("turn %d has %d tokens behind %d + %d", r.ID, r.Prompt, before.Prompt, before.Output)
		}
	}
}

// TestTextPrompts: texts scale by the measured tokens per word, and equal contents are equal texts.
func TestTextPrompts(t *testing.T) {
	shared := []workload.Segment{{Content: 77, Tokens: 60}}
	for _, p := range []prompter{{perWord: 1}, {perWord: 1.5}, {perWord: 0.8, overhead: 12}} {
		p.salt = 1
		var prompts [2][]string
		for i := range prompts {
			r := workload.Request{ID: i, Prompt: 120, Output: 1, Shared: shared}
			var s string
			must.OK(json.Unmarshal(p.appendText(nil, &r, false), &s))
			prompts[i] = strings.Fields(s)
			if tokens := p.overhead + p.perWord*float64(len(prompts[i])); tokens < 119 || tokens > 121 {
				t.Errorf("%+v: %v tokens, want 120", &p, tokens)
			}
		}
		want := int(60/p.perWord + 0.5)
		if n := alike(prompts[0], prompts[1]); n < want || n > want+2 {
			t.Errorf("%+v: %d words alike, want %d", &p, n, want)
		}
	}
}

// TestBodies: every dialect's body is JSON with the fields that its engine knows, after a head with
// the right length.
func TestBodies(t *testing.T) {
	all := []string{"prompt", "max_tokens", "model", "temperature"}
	for _, c := range []struct {
		engine string
		chat   bool
		stream bool
		want   []string
	}{
		{"vllm", false, true, []string{"stream", "stream_options", "ignore_eos", "min_tokens"}},
		{"trtllm", false, false, []string{"ignore_eos", "min_tokens"}},
		{"sglang", true, true, []string{"stream", "stream_options", "ignore_eos", "min_tokens"}},
		{"tgi", true, true, []string{"stream", "stream_options"}},
		{"llama-server", false, true, []string{"stream", "stream_options", "ignore_eos"}},
		{"lmdeploy", false, true, []string{"stream", "stream_options", "ignore_eos", "min_new_tokens"}},
		{"transformers", true, true, []string{"stream"}},
		{"", false, true, []string{"stream", "stream_options"}},
	} {
		d := must.Get(dialectOf(c.engine))
		u, _ := url.Parse("http://host:8000/v1/some")
		to := &target{url: u, header: http.Header{"Host": {"virtual"}, "X-A": {"b"}}, model: `a "quoted" model`, dialect: d}
		e := newEncoder(to, c.chat, c.stream, testPrompter(1))
		for _, prompt := range []int{1, 9, 2000} {
			r := workload.Request{ID: 3, Prompt: prompt, Output: 17}
			m := e.blank(3)
			e.encode(m, &r, false)
			body := string(m.body)
			head, ok := strings.CutSuffix(string(m.head), "\r\n\r\n")
			if !ok || !strings.HasSuffix(head, fmt.Sprintf("Content-Length: %d", len(body))) {
				t.Fatalf("%s: %q", c.engine, m.head)
			}
			if !strings.HasPrefix(head, "POST /v1/some HTTP/1.1\r\nHost: virtual\r\nX-A: b\r\n") {
				t.Errorf("%s: head %q", c.engine, head)
			}
			var fields map[string]any
			if err := json.Unmarshal([]byte(body), &fields); err != nil {
				t.Fatalf("%s: %v in %s", c.engine, err, body)
			}
			want := append(slices.Clone(all), c.want...)
			if c.chat {
				want[0] = "messages"
			}
			for _, k := range want {
				if _, ok := fields[k]; !ok {
					t.Errorf("%s: no %s", c.engine, k)
				}
			}
			if len(fields) != len(want) || fields["max_tokens"] != 17.0 || fields["model"] != `a "quoted" model` {
				t.Errorf("%s: %s", c.engine, body)
			}
			if _, list := fields["prompt"].([]any); list != (d.tokenPrompts && !c.chat) {
				t.Errorf("%s: prompt %T", c.engine, fields["prompt"])
			}
			e.free.Put(m)
		}
	}
}

package load

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// wordServer counts three tokens for two words and a template of 10, and
// answers with or without usage.
func wordServer(usage, tokenizer bool) handler {
	return func(c net.Conn, a asked) bool {
		path, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a.head, "POST "), "GET "), " ")
		var in struct {
			Prompt   string
			Inputs   string
			Messages []struct{ Content string }
			Stream   bool
		}
		if len(a.body) > 0 {
			if err := json.Unmarshal(a.body, &in); err != nil {
				return say(whole("400 Bad Request", "text/plain", err.Error()))(c, a)
			}
		}
		switch {
		case path == "/v1/models":
			say(whole("200 OK", "application/json", `{"object":"list","data":[{"id":"served"}]}`))(c, a)
			return true
		case path == "/tokenize" && tokenizer:
			list := strings.TrimSuffix(strings.Repeat(`{"id":1},`, len(strings.Fields(in.Inputs+in.Prompt))), ",")
			say(whole("200 OK", "application/json", "["+list+"]"))(c, a)
			return true
		case path == "/tokenize":
			say(whole("404 Not Found", "text/plain", "no"))(c, a)
			return true
		}
		words := len(strings.Fields(in.Prompt))
		if len(in.Messages) > 0 {
			words = len(strings.Fields(in.Messages[0].Content))
		}
		count := ""
		if usage {
			count = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, 10+words*3/2, a.tokens)
		}
		if !in.Stream {
			say(whole("200 OK", "application/json", `{"choices":[{"text":"`+strings.Repeat(" a", a.tokens)+`","finish_reason":"length"}]`+count+`}`))(c, a)
			return true
		}
		var b strings.Builder
		b.WriteString(streamHead)
		for range a.tokens {
			b.WriteString(chunked(`data: {"choices":[{"delta":{"content":" a"}}]}` + "\n\n"))
		}
		b.WriteString(chunked(`data: {"choices":[{"delta":{},"finish_reason":"length"}]` + count + "}\n\n"))
		b.WriteString(chunked(doneEvent) + lastChunk)
		say(b.String())(c, a)
		return true
	}
}

// TestMeasuredText: prompts that are texts have the wanted length by the server's own count, and
// the model's name is the server's.
func TestMeasuredText(t *testing.T) {
	for _, chat := range []bool{false, true} {
		c := &Client{URL: serve(t, wordServer(true, false)), Chat: chat, Stream: true}
		obs := observe(t, c, measure.Trial{Concurrency: 2, Requests: 6}, requests(6, 400, 3, 0))
		for _, r := range obs.Records {
			if r.Outcome != measure.OK || r.Output != 3 || r.Prompt < 398 || r.Prompt > 402 {
				t.Errorf("%+v, want a prompt of 400", r)
			}
		}
	}
}

// TestTextInAShortContext: an engine whose context holds the longest request and no
// more has its texts measured all the same, whatever its tokenizer makes of a word.
func TestTextInAShortContext(t *testing.T) {
	const context, longest = 60, 49
	inner := wordServer(true, false)
	limited := func(c net.Conn, a asked) bool {
		if words := strings.Count(string(a.body), " "); 10+words*3/2+a.tokens > context {
			say(whole("400 Bad Request", "application/json", `{"error":{"message":"exceeds the available context size"}}`))(c, a)
			return true
		}
		return inner(c, a)
	}
	c := &Client{URL: serve(t, limited), Model: "m", Stream: true}
	obs := observe(t, c, measure.Trial{Concurrency: 2, Requests: 6}, requests(6, longest, 3, 0))
	if obs.Doubts.Has(note.PromptsGuessed) { // others are of the machine
		t.Errorf("doubts: %v", obs.Doubts)
	}
	for _, r := range obs.Records {
		if r.Outcome != measure.OK || r.Prompt < longest-1 || r.Prompt > longest+1 {
			t.Errorf("%+v, want a prompt of %d", r, longest)
		}
	}
}

// TestTokensWithoutUsage: the tokenizer's count stands in for the server's, and
// the number of events, marked, for both.
func TestTokensWithoutUsage(t *testing.T) {
	for _, tokenizer := range []bool{true, false} {
		c := &Client{URL: serve(t, wordServer(false, tokenizer)), Engine: "tgi", Stream: true}
		obs := observe(t, c, measure.Trial{Concurrency: 2, Requests: 6}, requests(6, 40, 3, 0))
		for _, rec := range obs.Records {
			if rec.Outcome != measure.OK || rec.Output != 3 {
				t.Errorf("%+v", rec)
			}
		}
		doubts := obs.Doubts.String()
		switch {
		case tokenizer && strings.Contains(doubts, "no count"):
			t.Errorf("with a tokenizer: %s", doubts)
		case !tokenizer && !strings.Contains(doubts, "6 of 6 requests have no count"):
			t.Errorf("without: %s", doubts)
		case !tokenizer && !strings.Contains(doubts, "their length is a guess"):
			t.Errorf("prompts were not measured, but %s", doubts)
		}
	}
}

// TestTokenizerCounts: what the tokenizer counts tells of chunks of several tokens and of short
// answers, as the server's own count does.
func TestTokenizerCounts(t *testing.T) {
	inner := wordServer(false, true)
	for text, kinds := range map[string][]note.Kind{" a": nil, " a a": {note.TokensPerChunk},
		" a a a": {note.TokensBunched, note.TokensPerChunk, note.ShorterAnswers}} {
		c := &Client{Model: "m", Engine: "tgi", Stream: true}
		c.URL = serve(t, func(conn net.Conn, a asked) bool {
			if a.tokens != 4 { // it is not of the load
				return inner(conn, a)
			}
			say(streamHead)(conn, a)
			for range 4 / len(strings.Fields(text)) {
				time.Sleep(5 * time.Millisecond)
				say(chunked(`data: {"choices":[{"text":"`+text+`"}]}`+"\n\n"))(conn, a)
			}
			say(chunked(finishEvent()), chunked(doneEvent), lastChunk)(conn, a)
			return true
		})
		obs := observe(t, c, measure.Trial{Concurrency: 1, Requests: 3}, requests(3, 40, 4, 0))
		if got := list.Map(obs.Remarks, func(n note.Note) note.Kind { return n.Kind }); !slices.Equal(got, kinds) {
			t.Errorf("chunks of %q: %s", text, obs.Remarks)
		}
	}
}

// TestOnlyStreams: a server that streams whether it is asked to or not cannot be asked how long a text
// is, and says it of each request: where that is what was asked for, nothing is guessed.
func TestOnlyStreams(t *testing.T) {
	for count, doubted := range map[int]bool{40: false, 55: true} {
		events := fmt.Sprintf(`data: {"choices":[{"text":"a","finish_reason":"length"}],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, count) + "\n\n" + doneEvent
		c := &Client{URL: serve(t, say(streamHead, chunked(events), lastChunk)), Model: "m", Stream: true}
		obs := observe(t, c, measure.Trial{Concurrency: 2, Requests: 6}, requests(6, 40, 1, 0))
		if obs.Doubts.Has(note.PromptsGuessed) || obs.Doubts.Has(note.PromptsOff) != doubted {
			t.Errorf("prompts of %d by the server's count: %v", count, obs.Doubts)
		}
	}
}

// TestNotStreamed: a whole answer has an end and no first token.
func TestNotStreamed(t *testing.T) {
	c := &Client{URL: serve(t, wordServer(true, false))}
	obs := observe(t, c, measure.Trial{Concurrency: 1, Requests: 2}, requests(2, 40, 5, 0))
	for _, r := range obs.Records {
		if _, ok := r.TTFT(); ok || r.Outcome != measure.OK || r.Output != 5 || r.Last < r.Sent {
			t.Errorf("%+v", r)
		}
	}
}

func TestTokenizeForms(t *testing.T) {
	for body, want := range map[string]int{
		`{"count":3,"max_model_len":10,"tokens":[1,2,3]}`: 3,
		`{"tokens":[4,5]}`:               2,
		`[{"id":1,"text":"a"},{"id":2}]`: 2,
		`{"tokens":[]}`:                  0,
		`{"detail":"no"}`:                -1,
		`"x"`:                            -1,
	} {
		c := Client{URL: serve(t, say(whole("200 OK", "application/json", body))), Model: "m", Engine: "vllm"}
		e := must.Get(c.target(t.Context()))
		e.http.Timeout = time.Second
		if n, err := e.tokenize(t.Context(), "a"); n != max(want, 0) || (err != nil) != (want < 0) {
			t.Errorf("%s: %d, %v, want %d", body, n, err, want)
		}
	}
}

// TestRedirects: neither the load nor the calls before it go where a server redirects them, least
// of all with the key.
func TestRedirects(t *testing.T) {
	t.Setenv("TEST_API_KEY", "sk-very-secret")
	var gone atomic.Int64
	elsewhere := serve(t, func(c net.Conn, a asked) bool {
		gone.Add(1)
		return wordServer(true, true)(c, a)
	})
	for _, status := range []string{"301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"} {
		url := serve(t, say("HTTP/1.1 "+status+"\r\nLocation: "+elsewhere+"/v1/x?key=secret\r\nContent-Length: 0\r\n\r\n"))
		told := "a redirect to " + elsewhere + "/v1/x"
		c := &Client{URL: url, APIKeyEnv: "TEST_API_KEY"}
		if _, err := c.target(t.Context()); err == nil || !strings.Contains(err.Error(), told) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the list of models: %v", status, err)
		}
		if r := one(t, c, 10*time.Second); r.Outcome != measure.HTTPStatus || r.Detail != status[:3]+", "+told {
			t.Errorf("%s: %v %q", status, r.Outcome, r.Detail)
		}
	}
	if n := gone.Load(); n > 0 {
		t.Errorf("%d requests went where they were sent to", n)
	}
}

// A single-threaded server answers one connection until it ends: each call that is not part of the
// load leaves it free for the next.
func TestCallsLeaveTheServerFree(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answerAll(c, wordServer(true, true))
		}
	}()
	c := &Client{URL: "http://" + l.Addr().String()}
	began := time.Now()
	for range 3 {
		if e, err := c.target(t.Context()); err != nil || e.model != "served" {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if took := time.Since(began); took > idleLimit/2 {
		t.Errorf("three calls took %v", took)
	}
}

package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

// quick answers at once.
func quick() *Simulator { return &Simulator{Model: "m", MaxModelLen: 100} }

func TestCompletionStream(t *testing.T) {
	r := run(t, quick())
	status, body := post(t, r.url+"/v1/completions", `{"model":"m","prompt":[5,6,7],"max_tokens":4,"ignore_eos":true,"stream":true,"return_token_ids":true,
		"stop":["never"],"seed":1,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, "X-Request-Id", "mine")
	all, done := events(t, body)
	if status != 200 || !done || len(all) != 5 {
		t.Fatalf("status %d, done %v, %d events:\n%s", status, done, len(all), body)
	}
	var ids []int32
	for i, e := range all {
		if e.ID != "cmpl-mine" || e.Model != "m" || e.Object != "text_completion" {
			t.Errorf("event %d is of %+v", i, e)
		}
		if e.Usage == nil || e.Usage.Prompt != 3 || e.Usage.Completion != min(i+1, 4) || e.Usage.Total != 3+min(i+1, 4) {
			t.Errorf("event %d counts %+v", i, e.Usage)
		}
		if i == 4 {
			if len(e.Choices) != 0 {
				t.Errorf("the event that counts has choices: %+v", e)
			}
			break
		}
		c := e.Choices[0]
		ids = append(ids, c.TokenIDs...)
		if (i == 0) != slices.Equal(c.Prompt, []int32{5, 6, 7}) || (i == 3) != (c.FinishReason != nil) {
			t.Errorf("event %d: %+v", i, c)
		}
	}
	if got := tokenize(nil, text(all)); len(ids) != 4 || !slices.Equal(got, ids) {
		t.Errorf("the text %q has the tokens %v, the events %v", text(all), got, ids)
	}
}

// TestChatStream: the role comes in an event of its own with the first token, and
// no counts come that nobody asked for.
func TestChatStream(t *testing.T) {
	r := run(t, quick())
	_, body := post(t, r.url+"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"max_completion_tokens":3,"ignore_eos":true,"stream":true}`)
	all, done := events(t, body)
	if !done || len(all) != 4 {
		t.Fatalf("done %v, %d events:\n%s", done, len(all), body)
	}
	first := all[0].Choices[0].Delta
	if first.Role == nil || *first.Role != "assistant" || first.Content == nil || *first.Content != "" {
		t.Errorf("first event %s", body)
	}
	for i, e := range all {
		if e.Usage != nil || e.Object != "chat.completion.chunk" || !strings.HasPrefix(e.ID, "chatcmpl-") {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if f := all[3].Choices[0].FinishReason; f == nil || *f != "length" {
		t.Errorf("the last event gives no reason:\n%s", body)
	}
	if n := len(tokenize(nil, text(all))); n != 3 {
		t.Errorf("%d tokens in %q", n, text(all))
	}
}

// TestWhole: an answer that is not streamed says the same as the stream.
func TestWhole(t *testing.T) {
	r := run(t, quick())
	const ask = `{"prompt":"the same text","max_tokens":9,"ignore_eos":true,"stream":%v}`
	_, streamed := post(t, r.url+"/v1/completions", fmt.Sprintf(ask, true))
	all, _ := events(t, streamed)
	_, whole := post(t, r.url+"/v1/completions", fmt.Sprintf(ask, false))
	if want := fmt.Sprintf(`"text":"%s"`, text(all)); !strings.Contains(whole, want) {
		t.Errorf("%s\nhas no %s", whole, want)
	}
	_, chat := post(t, r.url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"max_tokens":2,"ignore_eos":true,"return_token_ids":true}`)
	for _, want := range []string{`"object":"chat.completion"`, `"role":"assistant"`, `"completion_tokens":2`, `"token_ids":[`, `"prompt_token_ids":[`} {
		if !strings.Contains(chat, want) {
			t.Errorf("%s\nhas no %s", chat, want)
		}
	}
}

// TestEnds: without ignore_eos a reply ends by itself, with a token that has no
// text, but not before min_tokens.
func TestEnds(t *testing.T) {
	s := quick()
	s.reply = 5
	r := run(t, s)
	for _, c := range []struct {
		options string
		tokens  int
		reason  string
	}{
		{`"max_tokens":20`, 5, "stop"},
		{`"max_tokens":20,"min_tokens":8`, 9, "stop"},
		{`"max_tokens":20,"min_tokens":20`, 20, "length"},
		{`"max_tokens":4`, 4, "length"},
		{`"max_tokens":20,"ignore_eos":true`, 20, "length"},
	} {
		_, body := post(t, r.url+"/v1/completions", `{"prompt":"x","stream":true,"stream_options":{"include_usage":true},`+c.options+`}`)
		all, _ := events(t, body)
		n := all[len(all)-1].Usage.Completion
		reason := all[len(all)-2].Choices[0].FinishReason
		words := len(tokenize(nil, text(all)))
		if c.reason == "stop" {
			words++
		}
		if n != c.tokens || words != n || reason == nil || *reason != c.reason {
			t.Errorf("%s: %d tokens, %d words, want %d by %s:\n%s", c.options, n, words, c.tokens, c.reason, body)
		}
	}
}

func TestRefusals(t *testing.T) {
	r := run(t, quick())
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"completions", `{"model":"other","prompt":"x"}`, 404, "The model `other` does not exist."},
		{"completions", `{"prompt":"x","n":2}`, 400, "n=2 is not served"},
		{"completions", `{"prompt":"x","max_tokens":0}`, 400, "max_tokens must be at least 1, got 0."},
		{"completions", `{"prompt":[1,2,3],"max_tokens":98}`, 400, "This model's maximum context length is 100 tokens. However, you requested 98 output tokens and your prompt contains at least 3 input tokens, for a total of at least 101 tokens."},
		{"completions", `{"prompt":[1],"min_tokens":17}`, 400, "min_tokens must be from 0 to max_tokens=16"},
		{"completions", `{"prompt":"x","stream_options":{"include_usage":true}}`, 400, "Stream options can only be defined when `stream=True`."},
		{"completions", `{"prompt":[[1],[2]]}`, 400, "a list of 2 prompts is not served"},
		{"completions", `{"prompt":[1,-2]}`, 400, "not negative"},
		{"completions", `{"prompt":[1,2.5]}`, 400, "list of token ids"},
		{"completions", `{"prompt":[1,"a"]}`, 400, "list of token ids"},
		{"completions", `{"prompt":""}`, 400, "at least one token"},
		{"completions", `{"prompt":[]}`, 400, "at least one token"},
		{"completions", `{"prompt":{}}`, 400, "a text or a list"},
		{"completions", `{}`, 400, "prompt is missing"},
		{"completions", `{"prompt":`, 400, "cannot read the body"},
		{"chat/completions", `{"messages":[]}`, 400, "at least one message"},
		{"chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "only text"},
		{"chat/completions", `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 100) + `"}]}`, 400, "maximum context length is 100 tokens"},
	} {
		status, body := post(t, r.url+"/v1/"+c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) || !strings.Contains(body, fmt.Sprintf(`"code":%d`, c.status)) {
			t.Errorf("%.60s: %d %s, want %d %q", c.body, status, body, c.status, c.want)
		}
	}
	if n := len(r.emissions(t)); n != 0 {
		t.Errorf("%d refused requests in the log", n)
	}
}

// TestPromptForms: a list of one prompt is that prompt.
func TestPromptForms(t *testing.T) {
	r := run(t, quick())
	answers := map[string]bool{}
	for _, prompt := range []string{`[1, 2 ,3]`, `[[1,2,3]]`, `[ [1,2,3] ]`} {
		_, body := post(t, r.url+"/v1/completions", `{"ignore_eos":true,"prompt":`+prompt+`}`)
		_, rest, found := strings.Cut(body, `"choices"`)
		answers[rest] = found
	}
	if len(answers) != 1 {
		t.Errorf("answers differ: %v", answers)
	}
}

func TestSideEndpoints(t *testing.T) {
	s := quick()
	s.Version = "0.32.0"
	r := run(t, s)
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/health", 200, ""},
		{"/ping", 200, ""},
		{"/version", 200, `{"version":"0.32.0"}`},
		{"/v1/models", 200, `"max_model_len":100`},
		{"/metrics", 200, "vllm:num_requests_running"},
		{"/v1/completions", 405, "Method Not Allowed"},
		{"/nothing", 404, "Not Found"},
	} {
		if status, body := get(r.url + c.path); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %q, want %d %q", c.path, status, body, c.status, c.want)
		}
	}
	if _, body := post(t, r.url+"/tokenize", `{"prompt":"Hello wide world"}`); body != `{"count":6,"max_model_len":100,"token_strs":null,"tokens":`+ids("Hello wide world")+`}` {
		t.Errorf("tokenize: %s", body)
	}
	if _, body := post(t, r.url+"/detokenize", `{"tokens":[0,1,17575]}`); body != `{"prompt":" aaa aab zzz"}` {
		t.Errorf("detokenize: %s", body)
	}
	if _, body := post(t, r.url+"/reset_prefix_cache", ``); body != `{"success":true}` {
		t.Errorf("reset: %s", body)
	}
}

func ids(text string) string {
	return strings.ReplaceAll(fmt.Sprint(tokenize(nil, text)), " ", ",")
}

// TestRawHTTP talks to the server byte by byte: several requests on one
// connection, also sent ahead, bodies in chunks, HTTP/1.0, and a client that waits
// to be told to go on.
func TestRawHTTP(t *testing.T) {
	r := run(t, quick())
	const ask = `{"prompt":[1],"max_tokens":2,"ignore_eos":true,"stream":true}`
	plain := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(ask), ask)
	for name, c := range map[string]struct {
		request string
		answers int // bodies that end with [DONE]
		closed  bool
	}{
		"keep-alive": {plain, 1, false},
		"pipelined":  {plain + plain + "GET /health HTTP/1.1\r\nHost: x\r\n\r\n" + plain, 3, false},
		"chunked":    {fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(ask), ask), 1, false},
		"close":      {strings.Replace(plain, "Host: x", "Host: x\r\nConnection: close", 1), 1, true},
		"1.0":        {strings.Replace(plain, "HTTP/1.1", "HTTP/1.0", 1), 1, true},
		"expect":     {strings.Replace(plain, "Host: x", "Host: x\r\nExpect: 100-continue", 1), 1, false},
		"garbage":    {"nonsense\r\n\r\n", 0, true},
	} {
		conn := must.Get(net.Dial("tcp", strings.TrimPrefix(r.url, "http://")))
		fmt.Fprint(conn, c.request)
		var got strings.Builder
		_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
		b := bufio.NewReader(conn)
		for strings.Count(got.String(), "[DONE]\n\n\r\n0\r\n\r\n") < c.answers || c.closed {
			line, err := b.ReadString('\n')
			got.WriteString(line)
			if err == io.EOF && c.closed {
				break
			}
			if err != nil {
				t.Errorf("%s: %v after\n%s", name, err, got.String())
				break
			}
		}
		conn.Close()
		if n := strings.Count(got.String(), "data: [DONE]"); n != c.answers {
			t.Errorf("%s: %d answers:\n%s", name, n, got.String())
		}
		if name == "expect" && !strings.HasPrefix(got.String(), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n") {
			t.Errorf("%s:\n%s", name, got.String())
		}
		if name == "1.0" && strings.Contains(got.String(), "chunked") {
			t.Errorf("%s: framed in chunks", name)
		}
	}
}

// TestTooLarge: a body beyond the limit is refused without being read.
func TestTooLarge(t *testing.T) {
	r := run(t, quick())
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(r.url, "http://")))
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", maxBody+1)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestStopTexts: a text that no reply can hold is taken, one that a reply may hold is
// refused, as nobody would look for it.
func TestStopTexts(t *testing.T) {
	r := run(t, quick())
	for stop, want := range map[string]int{
		`"stop":"\n"`: 200, `"stop":["###","User:","never"," tw o"]`: 200, `"stop":""`: 200, `"stop":null`: 200, `"stop":[]`: 200, `"stop_token_ids":[17576,90000]`: 200,
		`"stop":" the"`: 400, `"stop":["\n","a b"]`: 400, `"stop":"c abc abc d"`: 400, `"stop":7`: 400, `"stop_token_ids":[5]`: 400,
	} {
		if status, body := post(t, r.url+"/v1/completions", `{"prompt":"x","max_tokens":2,`+stop+`}`); status != want {
			t.Errorf("%s: status %d, want %d: %s", stop, status, want, body)
		}
	}
}

// TestModelByName: the one model is found by its name, with its slashes.
func TestModelByName(t *testing.T) {
	r := run(t, &Simulator{Model: "org/m", MaxModelLen: 100})
	for path, want := range map[string]int{"/v1/models/org/m": 200, "/v1/models/org%2Fm": 200, "/v1/models/m": 404, "/v1/models/": 404} {
		if status, body := get(r.url + path); status != want || want == 200 && !strings.Contains(body, `"id":"org/m"`) {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
}

package load

import (
	"encoding/json"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
)

// TestDecodeDelta reads the events that the engines are known to send.
func TestDecodeDelta(t *testing.T) {
	cases := []struct {
		name, in string
		want     delta
		text     string
	}{
		{"vLLM completions", `{"id":"c","object":"text_completion","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null}],"usage":null}`,
			delta{content: true, choice: true}, " a"},
		{"vLLM running usage", `{"choices":[{"index":0,"text":"","finish_reason":null}],"usage":{"prompt_tokens":9,"total_tokens":10,"completion_tokens":1}}`,
			delta{choice: true, usage: usage{prompt: 9, completion: 1, known: true}}, ""},
		{"vLLM role", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
			delta{choice: true}, ""},
		{"llama-server role", `{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]}`,
			delta{choice: true}, ""},
		{"chat text", `{"choices":[{"index":0,"delta":{"content":"h\u00e9\n"},"finish_reason":null}]}`,
			delta{content: true, choice: true}, "hé\n"},
		{"reasoning_content", `{"choices":[{"delta":{"content":null,"reasoning_content":"so"}}]}`, delta{content: true, choice: true}, "so"},
		{"reasoning", `{"choices":[{"delta":{"content":"","reasoning":"so"}}]}`, delta{content: true, choice: true}, "so"},
		{"tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`, delta{content: true, choice: true}, ""},
		{"empty tool calls", `{"choices":[{"delta":{"tool_calls":[]}}]}`, delta{choice: true}, ""},
		{"thinking", `{"choices":[{"delta":{"role":"assistant","content":null,"thinking":"so"}}]}`, delta{content: true, choice: true}, ""},
		{"refusal", `{"choices":[{"delta":{"content":null,"refusal":"no"}}]}`, delta{content: true, choice: true}, ""},
		{"parts", `{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}`, delta{content: true, choice: true}, ""},
		{"role among what is nothing", `{"choices":[{"delta":{"role":"assistant","content":"","refusal":null,"tool_calls":[],"index":1,"prefix":true}}]}`, delta{choice: true}, ""},
		{"what is no token", `{"choices":[{"delta":{"role":"assistant","name":"a","audio":{"id":"x"},"annotations":[{"type":"url"}],"provider_specific_fields":{"a":1},"function_call":{}}}]}`, delta{choice: true}, ""},
		{"speech", `{"choices":[{"delta":{"audio":{"transcript":"so"}}}]}`, delta{content: true, choice: true}, ""},
		{"token ids without text", `{"choices":[{"index":0,"text":"","token_ids":[17]}]}`, delta{content: true, choice: true}, ""},
		{"token ids in a delta", `{"choices":[{"index":0,"delta":{"token_ids":[17]}}]}`, delta{content: true, choice: true}, ""},
		{"finish", `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, delta{choice: true, finish: true}, ""},
		{"last text and finish", `{"choices":[{"index":0,"text":"z","finish_reason":"length"}]}`, delta{content: true, choice: true, finish: true}, "z"},
		{"usage alone", `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3.0,"prompt_tokens_details":{"cached_tokens":4}}}`,
			delta{usage: usage{prompt: 7, cached: 4, completion: 3, known: true}}, ""},
		{"cached beyond all", `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4000}}}`,
			delta{usage: usage{prompt: 7, cached: 7, completion: 3, known: true}}, ""},
		{"counts beyond all numbers", `{"choices":[],"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":NaN}}`,
			delta{usage: usage{prompt: 1 << 40, known: true}}, ""},
		{"cached unknown", `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":null}}`,
			delta{usage: usage{prompt: 7, completion: 3, known: true}}, ""},
		{"not streamed", `{"choices":[{"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			delta{content: true, choice: true, finish: true, usage: usage{prompt: 1, completion: 1, known: true}}, "all"},
		{"error object", `{"error":{"message":"out of memory","code":500}}`, delta{}, "out of memory"},
		{"error text", `{"error":"overloaded","error_type":"overloaded"}`, delta{}, "overloaded"},
		{"error without message", `{"error":{"code":500}}`, delta{}, `{"code":500}`},
		{"old vLLM error", `{"object":"error","message":"too long","code":400}`, delta{}, "too long"},
		{"error of a choice", `{"choices":[{"index":0,"text":"","error":{"message":"worker died"},"finish_reason":null}]}`, delta{}, "worker died"},
		{"error of FastAPI", `{"detail":"Internal Server Error"}`, delta{}, "Internal Server Error"},
		{"errors of FastAPI", `{"detail":[{"loc":["body"],"msg":"field required"}]}`, delta{}, "field required"},
		{"list of errors", `{"errors":[{"message":"no"}]}`, delta{}, "no"},
		{"event that calls itself an error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, delta{}, "Overloaded"},
		{"bare message", `{"message":"no such route","code":404}`, delta{}, "no such route"},
		{"end by abort", `{"choices":[{"index":0,"text":" a","finish_reason":"abort"}]}`, delta{}, "finish reason abort"},
		{"end by error", `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`, delta{}, "finish reason error"},
		{"end by abort with words", `{"choices":[{"text":"","finish_reason":{"type":"abort","message":"out of memory"}}]}`, delta{}, "finish reason abort: out of memory"},
		{"end as an object", `{"choices":[{"text":"","finish_reason":{"type":"length","length":4}}]}`, delta{choice: true, finish: true}, ""},
		{"no error", `{"error":false,"detail":"","choices":[{"text":"a"}]}`, delta{content: true, choice: true}, "a"},
		{"null error", `{"error":null,"choices":[{"text":"a"}]}`, delta{content: true, choice: true}, "a"},
	}
	p := decoder{values: 1000}
	for _, c := range cases {
		got, err := p.decode([]byte(c.in))
		text := string(got.text)
		if err != nil {
			outcome, detail := outcomeOf(err)
			if text = detail; outcome != measure.StreamError {
				t.Errorf("%s: %v %s", c.name, outcome, detail)
			}
		}
		if text != c.text || got.content != c.want.content || got.choice != c.want.choice ||
			got.finish != c.want.finish || got.usage != c.want.usage {
			t.Errorf("%s: %+v %q, %v, want %+v %q", c.name, got, text, err, c.want, c.text)
		}
	}
	for _, bad := range []string{``, `{`, `{"choices":[{"text":"a"}]`, `{"choices":[{"text":"a]}`, `null`, `[1]`, `17`, `{"a":1}}`, `data`, `{"choices":[{"text":"a"}]} x`} {
		if c, err := p.decode([]byte(bad)); err == nil {
			t.Errorf("%q: %+v, want an error", bad, c)
		}
	}
}

// FuzzDecodeDelta: nothing panics, and nothing that encoding/json reads as an
// object is refused.
func FuzzDecodeDelta(f *testing.F) {
	f.Add([]byte(`{"choices":[{"index":0,"text":" a","finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`))
	f.Add([]byte(`{"choices":[{"delta":{"content":"\ud83d\ude00","tool_calls":[{}]},"finish_reason":"stop"}]}`))
	f.Add([]byte(`{"error":{"message":5}}`))
	f.Add([]byte(`{"choices":{"0":{"text":"a"}},"usage":[]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		p := decoder{values: len(in)}
		// fastjson refuses what is nested deeper than 300.
		_, err := p.decode(in)
		if err == nil || err == errNoObject || !json.Valid(in) || deep(in) {
			return
		}
		if outcome, _ := outcomeOf(err); outcome != measure.StreamError {
			t.Fatalf("%q: %v", in, err)
		}
	})
}

func deep(in []byte) bool {
	n := 0
	for _, b := range in {
		if b == '[' || b == '{' {
			n++
		}
	}
	return n > 200
}

// TestCountBehindTheEnd: a usage with an empty choice, after the end of an answer, is not a token.
func TestCountBehindTheEnd(t *testing.T) {
	f := &inFlight{limit: 1 << 16}
	f.decoder.reset(1000)
	began := time.Now()
	for i, event := range []string{`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"","finish_reason":"length"}]}`,
		`{"choices":[{"text":""}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`} {
		must.OK(f.take([]byte(event), began.Add(time.Duration(i)*time.Second)))
	}
	if a := &f.answer; a.events != 1 || !a.last.Equal(began) {
		t.Errorf("%d tokens, the last after %v", a.events, a.last.Sub(began))
	}
}

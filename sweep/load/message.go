package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"planner/internal/list"
	"planner/sweep/workload"
)

// message is one request of HTTP/1.1, encoded; its parts leave in one write.
type message struct {
	index      int
	head, body []byte
}

// encoder turns requests of a schedule into messages.
type encoder struct {
	prompts *prompter
	chat    bool
	tokens  bool
	dialect *dialect
	// before and behind surround the prompt and the lengths in every body.
	before, behind []byte
	// line is the head up to the value of Content-Length.
	line []byte
	free sync.Pool
}

func newEncoder(to *target, chat, stream bool, p *prompter) *encoder {
	d := to.dialect
	e := &encoder{prompts: p, chat: chat, dialect: d, tokens: d.tokenPrompts && !chat, free: sync.Pool{New: func() any { return &message{} }}}
	name, _ := json.Marshal(to.model)
	e.before = fmt.Appendf(nil, `{"model":%s,`, name)
	e.behind = []byte(`,"temperature":0`)
	if d.ignoreEOS {
		e.behind = append(e.behind, `,"ignore_eos":true`...)
	}
	if stream {
		e.behind = append(append(e.behind, `,"stream":true`...), d.streamOptions...)
	}
	e.behind = append(e.behind, '}')
	e.line = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\n", to.url.RequestURI(), cmp.Or(to.header.Get("Host"), to.url.Host))
	for _, k := range slices.Sorted(maps.Keys(to.header)) {
		if k != "Host" {
			e.line = fmt.Appendf(e.line, "%s: %s\r\n", k, to.header.Get(k))
		}
	}
	e.line = append(e.line, "Content-Length: "...)
	return e
}

// blank returns an empty message, to be filled by encode; the caller puts it back
// into free once nobody reads it any more.
func (e *encoder) blank(index int) *message {
	m := e.free.Get().(*message)
	m.index, m.head, m.body = index, m.head[:0], m.body[:0]
	return m
}

// encode writes the message of a request. ids asks for the token ids of its answer.
func (e *encoder) encode(m *message, r *workload.Request, ids bool) {
	if m.body == nil {
		m.body = make([]byte, 0, 512+8*r.Prompt)
	}
	m.body = e.appendBody(m.body[:0], r)
	if ids && e.tokens && e.dialect.returnIDs {
		m.body = append(m.body[:len(m.body)-1], `,"return_token_ids":true}`...)
	}
	m.head = strconv.AppendInt(append(m.head[:0], e.line...), int64(len(m.body)), 10)
	m.head = append(m.head, "\r\n\r\n"...)
}

func (e *encoder) appendBody(b []byte, r *workload.Request) []byte {
	b = append(b, e.before...)
	switch {
	case e.chat:
		b = append(b, `"messages":[{"role":"user","content":`...)
		b = e.prompts.appendText(b, r, true)
		b = append(b, `}]`...)
	case e.tokens:
		b = append(b, `"prompt":`...)
		b = e.prompts.appendTokens(b, r)
	default:
		b = append(b, `"prompt":`...)
		b = e.prompts.appendText(b, r, false)
	}
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(r.Output), 10)
	if e.dialect.minTokens != "" {
		b = append(b, `,"`...)
		b = append(b, e.dialect.minTokens...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, int64(r.Output), 10)
	}
	return append(b, e.behind...)
}

// dialect is what one engine takes beyond the plain OpenAI request. A field
// that an engine does not know is not sent to it: some refuse the whole request
// for it (TensorRT-LLM, transformers serve).
type dialect struct {
	engine string
	// tokenPrompts: /v1/completions takes a list of token ids as its prompt.
	tokenPrompts bool
	// ignoreEOS and minTokens ("" for none) make outputs exactly as long as
	// asked for.
	ignoreEOS bool
	minTokens string
	// streamOptions are the stream_options that make the engine count tokens, as they appear in a
	// body.
	streamOptions string
	// returnIDs: return_token_ids makes it stream the ids of what it generates.
	returnIDs bool
	// tokenize names the field of POST /tokenize that holds the text; "" when
	// there is no such endpoint.
	tokenize string
}

// The stream_options of engines that count tokens at the end of a stream, and in
// every event.
const (
	countOnce   = `,"stream_options":{"include_usage":true}`
	countAlways = `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
)

// dialects is read from the request schemas of vLLM (main, 2026-08), SGLang
// (2026-07), TensorRT-LLM (2026), TGI 3.3.7, llama.cpp (2026-04), LMDeploy
// (2026-08) and transformers 5.
var dialects = []dialect{
	{engine: "generic", streamOptions: countOnce},
	{engine: "simulated", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways, returnIDs: true, tokenize: "prompt"},
	{engine: "vllm", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways, returnIDs: true, tokenize: "prompt"},
	{engine: "sglang", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways, tokenize: "prompt"},
	{engine: "trtllm", tokenPrompts: true, ignoreEOS: true, minTokens: "min_tokens", streamOptions: countAlways},
	{engine: "tgi", streamOptions: countOnce, tokenize: "inputs"},
	{engine: "llama-server", ignoreEOS: true, streamOptions: countOnce, tokenize: "content"},
	{engine: "lmdeploy", ignoreEOS: true, minTokens: "min_new_tokens", streamOptions: countOnce},
	{engine: "transformers"},
}

// dialectOf finds an engine's dialect; "" and the kinds that name no engine are
// generic.
func dialectOf(engine string) (*dialect, error) {
	switch engine {
	case "", "attach", "command":
		engine = "generic"
	}
	if i := slices.IndexFunc(dialects, func(d dialect) bool { return strings.EqualFold(d.engine, engine) }); i >= 0 {
		return &dialects[i], nil
	}
	names := list.Map(dialects, func(d dialect) string { return d.engine })
	return nil, fmt.Errorf("unknown engine dialect %q; allowed: %s", engine, strings.Join(names, ", "))
}

package serve

import (
	"encoding/json"
	"strconv"
)

// frames makes the bytes of one reply. What all its events have in common is
// made once; an event is then put together without an allocation.
type frames struct {
	ask *ask
	id  string
	// chunked: the body is framed in chunks (HTTP/1.1).
	chunked, keepAlive bool
	// begin stands before the text of every event and behind before what may
	// follow the reason to end.
	begin []byte
	// envelope is what begins every object of the reply: id, type, time, model.
	envelope []byte
	cached   int // prompt tokens, -1 if unknown
	// event is used again for every event.
	event []byte
}

func newFrames(a *ask, id, model string, created int64) *frames {
	object := "text_completion"
	switch {
	case a.chat && a.stream:
		object = "chat.completion.chunk"
	case a.chat:
		object = "chat.completion"
	}
	f := &frames{ask: a, id: id, cached: -1}
	f.envelope = append(f.envelope, `{"id":`...)
	f.envelope = appendJSON(f.envelope, id)
	f.envelope = append(f.envelope, `,"object":"`+object+`","created":`...)
	f.envelope = strconv.AppendInt(f.envelope, created, 10)
	f.envelope = append(f.envelope, `,"model":`...)
	f.envelope = appendJSON(f.envelope, model)
	f.begin = append(append([]byte("data: "), f.envelope...), `,"choices":[{"index":0,`...)
	if a.chat {
		f.begin = append(f.begin, `"delta":{"content":"`...)
	} else {
		f.begin = append(f.begin, `"text":"`...)
	}
	return f
}

func appendJSON(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // strings always encode
	return append(b, quoted...)
}

// head is the head of a stream's answer.
func (f *frames) head(b []byte) []byte {
	b = append(b, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"...)
	if f.chunked {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if !f.keepAlive {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// frame appends a piece of the body.
func (f *frames) frame(b, piece []byte) []byte {
	if !f.chunked {
		return append(b, piece...)
	}
	b = strconv.AppendInt(b, int64(len(piece)), 16)
	b = append(b, "\r\n"...)
	b = append(b, piece...)
	return append(b, "\r\n"...)
}

// last appends what ends the body.
func (f *frames) last(b []byte) []byte {
	if f.chunked {
		b = append(b, "0\r\n\r\n"...)
	}
	return b
}

// role appends the event that opens a chat, or an event without text.
func (f *frames) role(b []byte) []byte {
	e := append(f.event[:0], "data: "...)
	e = append(e, f.envelope...)
	if f.ask.chat {
		e = append(e, `,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		if f.ask.ids {
			e = f.promptIDs(e)
		}
	} else {
		e = append(e, `,"choices":[{"index":0,"text":"","logprobs":null,"finish_reason":null}]`...)
	}
	if f.ask.running {
		e = f.counts(e, 0)
	}
	f.event = append(e, "}\n\n"...)
	return f.frame(b, f.event)
}

// tokens appends the event of the tokens from one to another, excluded.
func (f *frames) tokens(b []byte, from, to int) []byte {
	a := f.ask
	e := append(f.event[:0], f.begin...)
	for k := from; k < to; k++ {
		e = appendWord(e, a.token(k))
	}
	e = append(e, '"')
	if a.chat {
		e = append(e, '}')
	}
	e = append(e, `,"logprobs":null,"finish_reason":`...)
	if to == a.output {
		e = append(e, '"')
		e = append(e, a.reason()...)
		e = append(e, '"')
	} else {
		e = append(e, "null"...)
	}
	e = append(e, `,"stop_reason":null`...)
	if a.ids {
		e = f.tokenIDs(e, from, to)
		if !a.chat && from == 0 {
			e = f.promptIDs(e)
		}
	}
	e = append(e, "}]"...)
	if a.running {
		e = f.counts(e, to)
	}
	f.event = append(e, "}\n\n"...)
	return f.frame(b, f.event)
}

func (f *frames) tokenIDs(e []byte, from, to int) []byte {
	e = append(e, `,"token_ids":[`...)
	for k := from; k < to; k++ {
		if k > from {
			e = append(e, ',')
		}
		e = strconv.AppendInt(e, int64(f.ask.token(k)), 10)
	}
	return append(e, ']')
}

func (f *frames) promptIDs(e []byte) []byte {
	e = append(e, `,"prompt_token_ids":[`...)
	for i, id := range f.ask.prompt {
		if i > 0 {
			e = append(e, ',')
		}
		e = strconv.AppendInt(e, int64(id), 10)
	}
	return append(e, ']')
}

// counts appends the usage behind so many tokens.
func (f *frames) counts(e []byte, tokens int) []byte {
	prompt := int64(len(f.ask.prompt))
	e = append(e, `,"usage":{"prompt_tokens":`...)
	e = strconv.AppendInt(e, prompt, 10)
	e = append(e, `,"total_tokens":`...)
	e = strconv.AppendInt(e, prompt+int64(tokens), 10)
	e = append(e, `,"completion_tokens":`...)
	e = strconv.AppendInt(e, int64(tokens), 10)
	if f.cached >= 0 {
		e = append(e, `,"prompt_tokens_details":{"cached_tokens":`...)
		e = strconv.AppendInt(e, int64(f.cached), 10)
		e = append(e, '}')
	}
	return append(e, '}')
}

// usage appends the event that counts, and done the one that ends a stream.
func (f *frames) usage(b []byte, tokens int) []byte {
	e := append(f.event[:0], "data: "...)
	e = append(e, f.envelope...)
	e = append(e, `,"choices":[]`...)
	e = f.counts(e, tokens)
	f.event = append(e, "}\n\n"...)
	return f.frame(b, f.event)
}

func (f *frames) done(b []byte) []byte { return f.frame(b, []byte("data: [DONE]\n\n")) }

// whole is the object of a reply that is not streamed.
func (f *frames) whole(tokens int) []byte {
	a := f.ask
	e := append([]byte(nil), f.envelope...)
	e = append(e, `,"choices":[{"index":0,`...)
	if a.chat {
		e = append(e, `"message":{"role":"assistant","content":"`...)
	} else {
		e = append(e, `"text":"`...)
	}
	for k := range tokens {
		e = appendWord(e, a.token(k))
	}
	e = append(e, '"')
	if a.chat {
		e = append(e, `,"refusal":null,"tool_calls":[]}`...)
	}
	e = append(e, `,"logprobs":null,"finish_reason":"`...)
	e = append(e, a.reason()...)
	e = append(e, `","stop_reason":null`...)
	if a.ids {
		e = f.tokenIDs(e, 0, tokens)
		if !a.chat {
			e = f.promptIDs(e)
		}
	}
	e = append(e, "}]"...)
	if a.ids && a.chat {
		e = f.promptIDs(e)
	}
	return append(f.counts(e, tokens), '}')
}

// answer is a whole answer with its head.
func answer(status int, kind string, keepAlive bool, body []byte, extra string) []byte {
	b := append([]byte("HTTP/1.1 "), strconv.Itoa(status)...)
	b = append(b, ' ')
	b = append(b, statusText(status)...)
	if kind != "" {
		b = append(b, "\r\nContent-Type: "...)
		b = append(b, kind...)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	if !keepAlive {
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(b, extra...)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

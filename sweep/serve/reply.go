package serve

import (
	"encoding/json"
	"strconv"
	"time"

	"planner/sweep/workload"
)

// reply is the answer to one request while it is generated. It belongs to the loop from its
// submission to its end, which closes done.
type reply struct {
	*completion
	Emission                  // so far
	request  workload.Request // what the backend must know
	fault    Fault
	out      *sendBuffer
	// chunked: the body uses chunked transfer encoding (HTTP/1.1); caching: the backend has a
	// prefix cache.
	chunked, keepAlive, caching bool

	// number is the backend's, -1 if it has none.
	number int
	ended  bool
	done   chan struct{}

	// envelope is the start of every object of the reply: id, type, time, model. begin precedes the
	// text of every event. What all events have in common is built once; an event is then assembled
	// in a buffer that is reused, without an allocation.
	envelope, begin, event []byte
}

func newReply(c *completion, id, model string, created int64) *reply {
	object := "text_completion"
	switch {
	case c.chat && c.Stream:
		object = "chat.completion.chunk"
	case c.chat:
		object = "chat.completion"
	}
	if c.chat {
		id = "chat" + id
	}
	r := &reply{completion: c, number: -1, done: make(chan struct{})}
	r.ID, r.Emission.Prompt, r.Asked = id, len(c.prompt), c.output
	r.Due, r.Left = make([]time.Duration, 0, min(c.output, 1024)), make([]time.Duration, 0, min(c.output, 1024))
	r.envelope = append(r.envelope, `{"id":`...)
	r.envelope = append(r.envelope, marshal(id)...)
	r.envelope = append(r.envelope, `,"object":"`+object+`","created":`...)
	r.envelope = strconv.AppendInt(r.envelope, created, 10)
	r.envelope = append(r.envelope, `,"model":`...)
	r.envelope = append(r.envelope, marshal(model)...)
	r.begin = append(append([]byte("data: "), r.envelope...), `,"choices":[{"index":0,`...)
	if c.chat {
		r.begin = append(r.begin, `"delta":{"content":"`...)
	} else {
		r.begin = append(r.begin, `"text":"`...)
	}
	return r
}

// marshal encodes what is known to be encodable, with keys in alphabetical order.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("serve: " + err.Error())
	}
	return b
}

// breaks reports whether a fault ends the reply after the tokens that are due.
func (r *reply) breaks() bool {
	switch r.fault.kind {
	case faultCut, faultReset, faultEvent:
		return len(r.Due) >= r.fault.at(r.output)
	}
	return false
}

// hangUp makes the connection's goroutine find the connection at its end: at once, without what was
// kept, if the reply was broken off.
func (r *reply) hangUp(abrupt bool) {
	conn := r.out.conn
	if !abrupt {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection is at its end too
		return
	}
	if r.fault.kind == faultReset {
		_ = conn.SetLinger(0) // otherwise the client would see an end instead of a reset
	}
	conn.Close()
}

// rest bounds the time in which another request may follow the reply.
func (r *reply) rest(idle time.Duration) {
	_ = r.out.conn.SetReadDeadline(time.Now().Add(idle)) // a closed connection is noticed anyway
}

func (r *reply) head(b []byte) []byte {
	b = append(b, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"...)
	if r.chunked {
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if !r.keepAlive {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

func (r *reply) frame(b, piece []byte) []byte {
	if !r.chunked {
		return append(b, piece...)
	}
	b = strconv.AppendInt(b, int64(len(piece)), 16)
	b = append(b, "\r\n"...)
	b = append(b, piece...)
	return append(b, "\r\n"...)
}

func (r *reply) last(b []byte) []byte {
	if r.chunked {
		b = append(b, "0\r\n\r\n"...)
	}
	return b
}

// send appends an event, whose object has been begun in e.
func (r *reply) send(b, e []byte) []byte {
	r.event = append(e, "}\n\n"...)
	return r.frame(b, r.event)
}

func (r *reply) role(b []byte) []byte {
	e := append(append(r.event[:0], "data: "...), r.envelope...)
	e = append(e, `,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	if r.TokenIDs {
		e = r.promptIDs(e)
	}
	if r.running() {
		e = r.counts(e, 0)
	}
	return r.send(b, e)
}

// token appends the event of the k-th token, with what precedes the first one and what a fault
// sends after it.
func (r *reply) token(b []byte, k int) []byte {
	if k == 0 && r.chat {
		b = r.role(b)
	}
	e := append(r.event[:0], r.begin...)
	e = append(appendWord(e, r.tokenID(k)), '"')
	if r.chat {
		e = append(e, '}')
	}
	e = r.choice(e, k, k+1)
	if r.running() {
		e = r.counts(e, k+1)
	}
	b = r.send(b, e)
	if r.fault.kind == faultMalformed && k+1 == r.fault.at(r.output) {
		b = r.frame(b, []byte("data: {\"id\":\"broken\",\"choices\":[{\"ind\n\n"))
	}
	return b
}

// choice appends what follows the text of the one choice, which has the tokens of the range [from,
// to), and ends the list of choices.
func (r *reply) choice(e []byte, from, to int) []byte {
	e = append(e, `,"logprobs":null,"finish_reason":`...)
	if to == r.output {
		e = append(e, '"')
		e = append(e, r.reason()...)
		e = append(e, '"')
	} else {
		e = append(e, "null"...)
	}
	e = append(e, `,"stop_reason":null`...)
	if r.TokenIDs {
		e = r.tokenIDs(e, from, to)
		if !r.chat && from == 0 {
			e = r.promptIDs(e)
		}
	}
	return append(e, "}]"...)
}

func (r *reply) tokenIDs(e []byte, from, to int) []byte {
	return appendIDs(e, `,"token_ids":[`, to-from, func(k int) int32 { return r.tokenID(from + k) })
}

func (r *reply) promptIDs(e []byte) []byte {
	return appendIDs(e, `,"prompt_token_ids":[`, len(r.prompt), func(k int) int32 { return r.prompt[k] })
}

func appendIDs(e []byte, begin string, n int, id func(k int) int32) []byte {
	e = append(e, begin...)
	for k := range n {
		if k > 0 {
			e = append(e, ',')
		}
		e = strconv.AppendInt(e, int64(id(k)), 10)
	}
	return append(e, ']')
}

func (r *reply) counts(e []byte, tokens int) []byte {
	prompt := int64(len(r.prompt))
	e = append(e, `,"usage":{"prompt_tokens":`...)
	e = strconv.AppendInt(e, prompt, 10)
	e = append(e, `,"total_tokens":`...)
	e = strconv.AppendInt(e, prompt+int64(tokens), 10)
	e = append(e, `,"completion_tokens":`...)
	e = strconv.AppendInt(e, int64(tokens), 10)
	if r.caching {
		e = append(e, `,"prompt_tokens_details":{"cached_tokens":`...)
		e = strconv.AppendInt(e, int64(r.Cached), 10)
		e = append(e, '}')
	}
	return append(e, '}')
}

// ending appends what ends a stream: the event with the usage, if asked for, and the one that marks
// the end.
func (r *reply) ending(b []byte) []byte {
	if r.usage() {
		e := append(append(r.event[:0], "data: "...), r.envelope...)
		e = append(e, `,"choices":[]`...)
		b = r.send(b, r.counts(e, len(r.Due)))
	}
	return r.last(r.frame(b, []byte("data: [DONE]\n\n")))
}

var simulatedFailure = &apiError{status: 500, message: "simulated failure"}

func (r *reply) breakOff(b []byte) []byte {
	if r.fault.kind != faultEvent {
		return b
	}
	b = r.frame(b, append(append([]byte("data: "), simulatedFailure.body()...), "\n\n"...))
	return r.last(r.frame(b, []byte("data: [DONE]\n\n")))
}

func (r *reply) object() []byte {
	e := append([]byte(nil), r.envelope...)
	e = append(e, `,"choices":[{"index":0,`...)
	if r.chat {
		e = append(e, `"message":{"role":"assistant","content":"`...)
	} else {
		e = append(e, `"text":"`...)
	}
	for k := range r.Due {
		e = appendWord(e, r.tokenID(k))
	}
	e = append(e, '"')
	if r.chat {
		e = append(e, `,"refusal":null,"tool_calls":[]}`...)
	}
	e = r.choice(e, 0, len(r.Due))
	if r.TokenIDs && r.chat {
		e = r.promptIDs(e)
	}
	return append(r.counts(e, len(r.Due)), '}')
}

func (r *reply) whole() []byte {
	body := r.object()
	switch r.fault.kind {
	case faultMalformed:
		body = body[:len(body)/2]
	case faultEvent:
		body = simulatedFailure.body()
	}
	b := answer(200, jsonType, r.keepAlive, body)
	if r.fault.kind == faultCut || r.fault.kind == faultReset {
		b = b[:len(b)-len(body)/2]
	}
	return b
}

package load

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/valyala/fastjson"
)

// usage is what a server says of the tokens of a request. Known is false when
// it said nothing.
type usage struct {
	prompt, cached, completion int
	known                      bool
}

// chunk is what one event of a stream, or the body of an answer that is not
// streamed, says. Its text is valid until the parser's next use.
type chunk struct {
	// content: it carries text, reasoning, a tool call or token ids.
	content bool
	// text is the visible text and the reasoning of the chunk, as far as it is
	// of one kind.
	text []byte
	// ids are the token ids of the chunk, where the server gives them.
	ids []*fastjson.Value
	// choice: it belongs to a choice; a chunk that only counts does not.
	choice bool
	// finish: the server says why it ended.
	finish bool
	usage  usage
	// failure is the message of an error that stands in place of a chunk.
	failure string
}

var errNoObject = errors.New("not a JSON object")

// isDone recognises the end marker of the OpenAI dialect.
func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// decodeChunk reads one event of /v1/completions or /v1/chat/completions, in
// the form in which any engine sends it, streamed or whole. Only the first
// choice is read: planner never asks for more than one.
func decodeChunk(p *fastjson.Parser, data []byte) (chunk, error) {
	v, err := p.ParseBytes(data)
	if err != nil {
		return chunk{}, fmt.Errorf("decode chunk: %w", err)
	}
	if v.Type() != fastjson.TypeObject {
		return chunk{}, errNoObject
	}
	var c chunk
	if c.failure = failureOf(v); c.failure != "" {
		return c, nil
	}
	c.usage = usageOf(v.Get("usage"))
	if choice := v.Get("choices", "0"); choice != nil {
		c.choice = true
		c.readChoice(choice)
	}
	return c, nil
}

func (c *chunk) readChoice(v *fastjson.Value) {
	if f := v.Get("finish_reason"); f != nil && f.Type() == fastjson.TypeString {
		c.finish = true
	}
	c.text = v.GetStringBytes("text")
	delta := v.Get("delta")
	if delta == nil {
		delta = v.Get("message")
	}
	if delta != nil && len(c.text) == 0 {
		c.readDelta(delta)
	}
	if c.ids == nil {
		c.ids = v.GetArray("token_ids")
	}
	c.content = c.content || len(c.text) > 0 || len(c.ids) > 0
}

// readDelta takes the first of the channels that a reasoning or tool-calling
// model answers on.
func (c *chunk) readDelta(v *fastjson.Value) {
	for _, key := range [...]string{"content", "reasoning_content", "reasoning"} {
		if c.text = v.GetStringBytes(key); len(c.text) > 0 {
			return
		}
	}
	c.ids = v.GetArray("token_ids")
	c.content = len(v.GetArray("tool_calls")) > 0 || v.GetObject("function_call") != nil
}

func usageOf(v *fastjson.Value) usage {
	if v == nil || v.Type() != fastjson.TypeObject {
		return usage{}
	}
	completion := v.Get("completion_tokens")
	if completion == nil {
		return usage{}
	}
	return usage{
		prompt: v.GetInt("prompt_tokens"), completion: completion.GetInt(),
		cached: v.GetInt("prompt_tokens_details", "cached_tokens"), known: true,
	}
}

// failureOf finds the error that some servers put into an answer of status 200:
// an object or a text under "error", or an object that calls itself one.
func failureOf(v *fastjson.Value) string {
	e := v.Get("error")
	if e == nil || e.Type() == fastjson.TypeNull {
		if string(v.GetStringBytes("object")) != "error" {
			return ""
		}
		e = v
	}
	switch e.Type() {
	case fastjson.TypeString:
		if s, _ := e.StringBytes(); len(s) > 0 {
			return string(s)
		}
	case fastjson.TypeObject:
		if s := e.GetStringBytes("message"); len(s) > 0 {
			return string(s)
		}
	}
	return "error without a message"
}

package load

import (
	"bytes"

	"github.com/valyala/fastjson"

	"planner/sweep/measure"
)

// usage is what a server says of the tokens of a request. Known is false when
// it said nothing.
type usage struct {
	prompt, cached, completion int
	known                      bool
}

// delta is what one event of a stream, or the body of an answer that is not
// streamed, adds to a completion. Its text is valid until the parser's next use.
type delta struct {
	// content: it carries text, reasoning, a tool call or token ids.
	content bool
	// text is its visible text and reasoning, as far as it is
	// of one kind.
	text []byte
	// ids are its token ids, where the server gives them.
	ids []*fastjson.Value
	// choice: it belongs to a choice; a delta that only counts does not.
	choice bool
	// finish: the server says why it ended.
	finish bool
	usage  usage
}

var errNoObject = failed(measure.Malformed, "not a JSON object")

// isDone recognises the end marker of the OpenAI dialect.
func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// decodeDelta reads one event of /v1/completions or /v1/chat/completions, in
// the form in which any engine sends it, streamed or whole. Only the first
// choice is read: planner never asks for more than one.
func decodeDelta(p *fastjson.Parser, data []byte) (delta, error) {
	v, err := p.ParseBytes(data)
	if err != nil {
		return delta{}, failed(measure.Malformed, "decode chunk: "+err.Error())
	}
	if v.Type() != fastjson.TypeObject {
		return delta{}, errNoObject
	}
	if text := errorOf(v); text != "" {
		return delta{}, failed(measure.StreamError, text)
	}
	d := delta{usage: usageOf(v)}
	if choice := v.Get("choices", "0"); choice != nil {
		d.choice = true
		if err := d.readChoice(choice); err != nil {
			return delta{}, err
		}
	}
	return d, nil
}

func (d *delta) readChoice(v *fastjson.Value) error {
	if err := d.readFinish(v); err != nil {
		return err
	}
	d.text = v.GetStringBytes("text")
	message := v.Get("delta")
	if message == nil {
		message = v.Get("message")
	}
	if len(d.text) == 0 {
		d.readMessage(message)
	}
	if d.ids == nil {
		d.ids = v.GetArray("token_ids")
	}
	d.content = d.content || len(d.text) > 0 || len(d.ids) > 0
	return nil
}

// readFinish reads why a choice ended, which may be an error.
func (d *delta) readFinish(v *fastjson.Value) error {
	why := v.Get("finish_reason")
	finish, bad := finishOf(why)
	d.finish = finish
	if e := v.Get("error"); says(e) {
		return failed(measure.StreamError, wordsOf(e))
	}
	if bad == "" {
		return nil
	}
	if words := innerWords(why); words != nil {
		bad += ": " + wordsOf(words)
	}
	return failed(measure.StreamError, bad)
}

// readMessage takes the first of the channels that a reasoning or tool-calling
// model answers on.
func (d *delta) readMessage(v *fastjson.Value) {
	for _, key := range [...]string{"content", "reasoning_content", "reasoning"} {
		if d.text = v.GetStringBytes(key); len(d.text) > 0 {
			return
		}
	}
	d.ids = v.GetArray("token_ids")
	d.content = len(v.GetArray("tool_calls")) > 0 || v.GetObject("function_call") != nil
}

func usageOf(v *fastjson.Value) usage {
	u := v.Get("usage")
	completion := u.Get("completion_tokens")
	if completion == nil {
		return usage{}
	}
	return usage{
		prompt: u.GetInt("prompt_tokens"), completion: completion.GetInt(),
		cached: u.GetInt("prompt_tokens_details", "cached_tokens"), known: true,
	}
}

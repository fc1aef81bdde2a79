package load

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/valyala/fastjson"

	"planner/sweep/measure"
)

// usage is what a server counts of the tokens of a request. known is false if it gave no counts.
type usage struct {
	prompt, cached, completion int
	known                      bool
}

// delta is what one event of a stream, or the body of an answer that is not
// streamed, adds to a completion. Its text is valid until the parser's next use.
type delta struct {
	// content: it carries text, reasoning, a tool call or token ids.
	content bool
	// text is its visible text or reasoning, whichever comes first.
	text []byte
	// ids are its token ids, where the server gives them.
	ids []*fastjson.Value
	// choice: it belongs to a choice; a delta that only counts does not. model is what that names as
	// the model.
	choice bool
	model  []byte
	// finish: the server says why it ended; full: because it has the length that was asked for.
	finish, full bool
	usage        usage
}

var errNoObject = failed(measure.Malformed, "not a JSON object")

// decoder reads a server's JSON within bounded memory: a parsed value may take fifty times its
// text.
type decoder struct {
	parser fastjson.Parser
	// values is how many values a text may have; used is the length of the longest so far, in
	// bytes.
	values, used int
}

// reset makes the decoder ready for an answer of so many values. It keeps its memory,
// unless that has become large.
func (d *decoder) reset(values int) {
	if d.used > keepSize {
		*d = decoder{}
	}
	d.values = values
}

func (d *decoder) parse(data []byte) (*fastjson.Value, error) {
	d.used = max(d.used, len(data))
	// A value takes two bytes at least, with the sign that separates it from the others.
	if len(data) > 2*d.values && bytes.Count(data, []byte{','})+bytes.Count(data, []byte{'['})+bytes.Count(data, []byte{'{'}) > d.values {
		return nil, failed(measure.Malformed, fmt.Sprintf("more than %d values in a JSON text", d.values))
	}
	v, err := d.parser.ParseBytes(data)
	if err != nil {
		return nil, failed(measure.Malformed, fmt.Sprintf("not JSON: %s", data[:min(len(data), maxWords)]))
	}
	return v, nil
}

// decode reads one event of /v1/completions or /v1/chat/completions, in the form in which any
// engine sends it, streamed or whole. Only the first choice is read: planner never asks for more
// than one.
func (d *decoder) decode(data []byte) (delta, error) {
	v, err := d.parse(data)
	if err != nil {
		return delta{}, err
	}
	if v.Type() != fastjson.TypeObject {
		return delta{}, errNoObject
	}
	choice := v.Get("choices", "0")
	if text := errorOf(v, choice); text != "" {
		return delta{}, failed(measure.StreamError, text)
	}
	out := delta{usage: usageOf(v)}
	if choice != nil {
		out.choice, out.model = true, v.GetStringBytes("model")
		if err := out.readChoice(choice); err != nil {
			return delta{}, err
		}
	}
	return out, nil
}

func (d *delta) readChoice(v *fastjson.Value) error {
	if err := d.readFinish(v); err != nil {
		return err
	}
	if d.text = v.GetStringBytes("text"); len(d.text) == 0 {
		d.readMessage(cmp.Or(v.Get("delta"), v.Get("message")))
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
	reason, bad := finishOf(why)
	d.finish, d.full = reason != "", reason == "length"
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

// readMessage takes the text of the first channel that has any, of those that a reasoning model
// answers on. Otherwise only what stands for tokens is content: names, annotations and what a
// provider adds come without any.
func (d *delta) readMessage(v *fastjson.Value) {
	for _, key := range [...]string{"content", "reasoning_content", "reasoning"} {
		if d.text = v.GetStringBytes(key); len(d.text) > 0 {
			return
		}
	}
	d.ids = v.GetArray("token_ids")
	for _, path := range [...][]string{{"content"}, {"refusal"}, {"tool_calls"}, {"function_call"},
		{"reasoning"}, {"reasoning_content"}, {"reasoning_details"}, {"reasoning_text"}, {"thinking"}, {"thinking_blocks"}, {"audio", "data"}, {"audio", "transcript"}} {
		part := v.Get(path...)
		d.content = d.content || says(part) && (part.Type() != fastjson.TypeObject || part.GetObject().Len() > 0)
	}
}

func usageOf(v *fastjson.Value) usage {
	u := v.Get("usage")
	completion := u.Get("completion_tokens")
	if completion == nil {
		return usage{}
	}
	// Clamped, so that sums of counts do not overflow, whatever a server says.
	count := func(v *fastjson.Value) int {
		if n := v.GetFloat64(); n > 0 { // not NaN
			return int(min(n, 1<<40))
		}
		return 0
	}
	prompt := count(u.Get("prompt_tokens"))
	return usage{prompt: prompt, completion: count(completion), cached: min(count(u.Get("prompt_tokens_details", "cached_tokens")), prompt), known: true}
}

// wordKeys are the fields in which servers put the text of an error, in objects that may be nested.
var wordKeys = [...]string{"message", "detail", "msg", "error", "errors", "error_message", "description", "reason"}

// errorOf finds the error that a server puts into an answer of status 200: a value under "error",
// an object that says it is one, or one that has neither choices nor usage and holds what only
// errors do ("detail" of FastAPI, "errors", a "message"). If there is a choice, only "error" is
// looked for.
func errorOf(v, choice *fastjson.Value) string {
	if e := v.Get("error"); says(e) {
		return wordsOf(e)
	}
	if choice != nil {
		return ""
	}
	if string(v.GetStringBytes("object")) == "error" || string(v.GetStringBytes("type")) == "error" {
		return wordsOf(v)
	}
	if v.Get("choices") != nil || v.Get("usage") != nil {
		return ""
	}
	for _, key := range [...]string{"errors", "detail", "error_message", "message"} {
		if says(v.Get(key)) {
			return wordsOf(v)
		}
	}
	return ""
}

func says(v *fastjson.Value) bool {
	if v == nil {
		return false
	}
	switch v.Type() {
	case fastjson.TypeNull, fastjson.TypeFalse:
		return false
	case fastjson.TypeString:
		return len(v.GetStringBytes()) > 0
	case fastjson.TypeArray:
		return len(v.GetArray()) > 0
	}
	return true
}

// wordsOf returns the text of an error, or all of its JSON if none is found.
func wordsOf(v *fastjson.Value) string {
	inner := v
	for inner.Type() != fastjson.TypeString {
		next := innerWords(inner)
		if next == nil {
			return string(v.MarshalTo(nil))
		}
		inner = next
	}
	return string(inner.GetStringBytes())
}

// innerWords returns the part of a value that holds the text of an error, nil if none does.
func innerWords(v *fastjson.Value) *fastjson.Value {
	if list := v.GetArray(); len(list) > 0 {
		return list[0]
	}
	for _, key := range wordKeys {
		if part := v.Get(key); says(part) {
			return part
		}
	}
	return nil
}

// wordsIn finds the message of an error in a text that may be JSON.
func (d *decoder) wordsIn(text []byte) string {
	v, err := d.parse(text)
	switch {
	case err != nil:
		return string(text)
	case v.Type() == fastjson.TypeObject:
		if s := errorOf(v, nil); s != "" {
			return s
		}
	case v.Type() == fastjson.TypeString:
		return string(v.GetStringBytes())
	}
	return string(text)
}

// badEnds are parts of the finish reasons of answers that did not end well: "error" and "abort" of
// vLLM and SGLang, and what other servers call these, such as "content_filter" and
// "insufficient_system_resource".
var badEnds = [...]string{"error", "abort", "cancel", "fail", "timeout", "timed_out", "filter", "insufficient", "interrupt"}

// finishOf reads a finish reason, a text or an object with a type, "" for none; bad describes one
// that is a failure.
func finishOf(v *fastjson.Value) (reason, bad string) {
	if v == nil {
		return "", ""
	}
	if v.Type() == fastjson.TypeObject {
		v = v.Get("type")
	}
	reason = string(v.GetStringBytes())
	for _, end := range badEnds {
		if strings.Contains(strings.ToLower(reason), end) {
			return reason, "finish reason " + reason
		}
	}
	return reason, ""
}

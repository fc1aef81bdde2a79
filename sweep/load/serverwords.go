package load

import (
	"strings"

	"github.com/valyala/fastjson"
)

// Where servers put the words of an error, in objects that may hold one another.
var wordKeys = [...]string{"message", "detail", "msg", "error", "errors", "error_message", "description", "reason"}

// errorOf finds the error that a server puts into an answer of status 200: a value
// under "error", an object that calls itself one, or one that has neither choices nor
// usage and holds what only errors do ("detail" of FastAPI, "errors", a "message").
// Where there is a choice, only the first is looked for.
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

// says reports whether a value is one that means something.
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

// wordsOf is the text of an error, or all of it where none is found.
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

// innerWords is the part of a value that holds the words of an error, nil if none.
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

// wordsIn finds the words of an error in a text that may be JSON.
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

// badEnds are parts of the finish reasons of answers that did not end well: "error"
// and "abort" of vLLM and SGLang, and what others say for them, such as "content_filter"
// and "insufficient_system_resource".
var badEnds = [...]string{"error", "abort", "cancel", "fail", "timeout", "timed_out", "filter", "insufficient", "interrupt"}

// finishOf reads the reason of an end, a text or an object with a type; bad is what it
// says of one that is not good.
func finishOf(v *fastjson.Value) (finish bool, bad string) {
	if v == nil {
		return false, ""
	}
	reason := v.GetStringBytes()
	if v.Type() == fastjson.TypeObject {
		reason = v.GetStringBytes("type")
	}
	if v.Type() == fastjson.TypeNull || len(reason) == 0 {
		return false, ""
	}
	for _, end := range badEnds {
		if strings.Contains(strings.ToLower(string(reason)), end) {
			return true, "finish reason " + string(reason)
		}
	}
	return true, ""
}

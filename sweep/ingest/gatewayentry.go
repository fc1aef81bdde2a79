package ingest

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"
)

// logEntry is what one line of a request log says. Of texts only the number of
// characters is taken.
type logEntry struct {
	// found holds the most telling value of each role.
	found [roles]logValue
	// chars counts the characters of prompt and output texts.
	promptChars, outputChars int
}

// logValue is a value with how telling it is.
type logValue struct {
	ok          bool
	rank, depth int
	unit        time.Duration
	// number is set for numbers, also when written as a string; text otherwise.
	number  float64
	numeric bool
	text    string
}

// deepest is how far a line is searched.
const deepest = 8

// read walks an object in its own order.
func (e *logEntry) read(o *fastjson.Object, depth int, within role) {
	if depth > deepest {
		return
	}
	o.Visit(func(key []byte, v *fastjson.Value) {
		k := classify(string(key))
		switch {
		case k.role == noRole || k.role == promptText || k.role == outputText:
			inner := within
			if k.role != noRole {
				inner = k.role
			} else if !isText(string(key)) {
				inner = noRole
			}
			e.descend(v, depth, inner, within)
		default:
			e.take(k, v, depth)
		}
	})
}

func isText(key string) bool {
	name := plainKey(key)
	for _, t := range textKeys {
		if t == name {
			return true
		}
	}
	return false
}

// descend looks into a value that is no figure itself. Text counts for the role
// that it stands within.
func (e *logEntry) descend(v *fastjson.Value, depth int, inner, outer role) {
	switch v.Type() {
	case fastjson.TypeString:
		e.count(inner, v.GetStringBytes())
	case fastjson.TypeObject:
		// What is neither text nor a known key, such as a choice's index or a
		// message's role, passes the role of the whole on to what is within it.
		if inner == noRole {
			inner = outer
		}
		e.read(v.GetObject(), depth+1, inner)
	case fastjson.TypeArray:
		if depth > deepest {
			return
		}
		for _, item := range v.GetArray() {
			e.descend(item, depth+1, inner, outer)
		}
	}
}

func (e *logEntry) count(r role, text []byte) {
	switch r {
	case promptText:
		e.promptChars += utf8.RuneCount(text)
	case outputText:
		e.outputChars += utf8.RuneCount(text)
	}
}

// take keeps the more telling of two values of a role. Of counts of tokens it
// is the one with the better name; of times and states the one that is less deep,
// which is the gateway's own and not the engine's.
func (e *logEntry) take(k logKey, v *fastjson.Value, depth int) {
	value := logValue{ok: true, rank: k.rank, depth: depth, unit: k.unit}
	switch v.Type() {
	case fastjson.TypeNumber:
		value.number, value.numeric = v.GetFloat64(), true
	case fastjson.TypeString:
		value.text = strings.TrimSpace(string(v.GetStringBytes()))
		if value.text == "" {
			return
		}
		if x, err := strconv.ParseFloat(value.text, 64); err == nil {
			value.number, value.numeric = x, true
		}
	case fastjson.TypeTrue:
		if k.role != errorRole {
			return
		}
	case fastjson.TypeObject:
		if k.role == errorRole && v.GetObject().Len() > 0 {
			break
		}
		e.read(v.GetObject(), depth+1, noRole)
		return
	default:
		return
	}
	at := &e.found[k.role]
	if k.role == cachedRole && at.ok && at.depth == depth {
		at.number += value.number
		return
	}
	if !at.ok || value.ahead(at, k.role == promptRole || k.role == outputRole) {
		*at = value
	}
}

// ahead reports whether a value is more telling than another.
func (v *logValue) ahead(other *logValue, byName bool) bool {
	if byName {
		return cmp.Or(cmp.Compare(v.rank, other.rank), cmp.Compare(v.depth, other.depth)) < 0
	}
	return cmp.Or(cmp.Compare(v.depth, other.depth), cmp.Compare(v.rank, other.rank)) < 0
}

// tokens is the number of prompt and output tokens. Where there are texts alone
// they are estimated.
func (e *logEntry) tokens() (prompt, output int, estimated, ok bool) {
	in, out, total := e.found[promptRole], e.found[outputRole], e.found[totalRole]
	if in.numeric && !out.numeric && total.numeric {
		out.number, out.numeric = total.number-in.number, true
	}
	if in.numeric && e.found[cachedRole].numeric {
		in.number += e.found[cachedRole].number
	}
	if in.numeric && out.numeric {
		if !(in.number >= 0 && in.number <= mostTokens && out.number >= 0 && out.number <= mostTokens) {
			return 0, 0, false, false
		}
		return int(in.number), int(out.number), false, true
	}
	if e.promptChars == 0 && e.outputChars == 0 {
		return 0, 0, false, false
	}
	return tokensOf(e.promptChars), tokensOf(e.outputChars), true, true
}

func tokensOf(chars int) int {
	if chars == 0 {
		return 0
	}
	return max(1, int(float64(chars)/CharsPerToken+0.5))
}

// failed reports whether the log says that the request failed.
func (e *logEntry) failed() bool {
	if s := e.found[statusRole]; s.ok {
		if s.numeric {
			return s.number >= 400 || s.number < 0
		}
		switch strings.ToLower(s.text) {
		case "error", "failed", "failure", "timeout", "cancelled", "canceled", "rejected", "aborted":
			return true
		}
	}
	return e.found[errorRole].ok
}

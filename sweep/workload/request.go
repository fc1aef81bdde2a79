// Package workload says what users ask of an engine, and when.
package workload

import "time"

// Request is one request of a schedule: when it is due, how long it is, and
// which of its tokens other requests share.
type Request struct {
	// ID numbers the requests of a schedule from zero in order of Due.
	ID int
	// Due is the intended time, counted from the start of the trial. A request
	// with a parent is due at the later of Due and the parent's end.
	Due time.Duration
	// Prompt is the number of prompt tokens, shared ones included.
	Prompt int
	// Output is the number of tokens to generate.
	Output int
	// Shared lists the leading parts of the prompt, and of the output where that is known, whose
	// content other requests may have too. The tokens after them belong to this request alone.
	Shared []Segment
	// Own and Generated identify the prompt tokens after Shared and the tokens that the request
	// generates, where a later turn carries them in its prompt; 0 means that no other request does.
	Own, Generated Content
	// Parent is 1 + the ID of the request whose end this one waits for, as a
	// turn of a conversation does; 0 means none.
	Parent int
	// Class indexes Workload.Names: which component of a mix it came from.
	Class int
}

// Segment is a run of prompt tokens with an identity: token k of one segment
// equals token k of any other segment with the same Content.
type Segment struct {
	Content Content
	Tokens  int
}

// Content identifies the text of a segment across the requests of a schedule
// and, because it is drawn from a key and not from a counter, across schedules
// of one workload.
type Content uint64

// Kinds of content. The kind is a part of the hashed key, so a group's prefix
// can never be taken for a request's own tokens.
const (
	kindPrefix uint64 = 1 + iota
	kindBody
	kindOwn
	kindOutput
	kindTrace
)

// contentOf hashes a kind and two keys, so that different keys give different contents.
func contentOf(kind, a, b uint64) Content {
	x := Draw64(a, kind)
	return Content(Mix64(x ^ Mix64(b+0x632be59bd9b4e019)))
}

// Mix64 is the first number that SplitMix64 (Steele, Lea, Flood 2014) draws from x: different
// inputs give different outputs, which look random.
func Mix64(x uint64) uint64 { return Draw64(x, 0) }

// Draw64 is the k-th number that SplitMix64 draws from a seed.
func Draw64(seed, k uint64) uint64 {
	x := seed + (k+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// TraceContent identifies the text that a trace names by its own key, such as
// the hash of a block.
func TraceContent(key uint64) Content { return contentOf(kindTrace, key, 0) }

// NamedContent identifies the text that a trace calls by a name.
func NamedContent(name string) Content { return TraceContent(hashName(name)) }

// SharedTokens returns the number of leading prompt tokens that the request's segments cover.
func (r *Request) SharedTokens() int {
	n := 0
	for _, s := range r.Shared {
		n += s.Tokens
	}
	return n
}

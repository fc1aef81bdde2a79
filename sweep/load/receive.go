package load

import (
	"fmt"
	"io"
	"time"

	"github.com/valyala/fastjson"

	"planner/sweep/measure"
)

// maxAnswer is the longest answer that is read whole: one that is not streamed,
// or the message of an error.
const maxAnswer = 16 << 20

// receiver reads one answer after another and keeps its buffers between them.
type receiver struct {
	parser fastjson.Parser
	sse    sseReader
	whole  []byte
	got    received
	// onFirst is called at the first token.
	onFirst func(time.Time)
}

// received is what was seen of one answer.
type received struct {
	first, last time.Time
	// events counts the events that carried tokens, coalesced those of them
	// that came with another in one read and share its time.
	events, coalesced int
	usage             usage
	// gaps holds the microseconds between successive token events.
	gaps []uint32
	// text is what the answer says, as long as the server counts no tokens.
	text []byte
	// ids are the generated tokens, where the server names them.
	ids []int32
	// finish: the server said why it ended; done: it said [DONE].
	finish, done bool
	fail         *failure
}

// tokens is the number of generated tokens, and whether the server counted
// them. Without that each event is taken for one token; so it is where the server
// counts none in an answer that has text.
func (g *received) tokens() (n int, counted bool) {
	if g.usage.known && (g.usage.completion > 0 || g.events == 0) {
		return g.usage.completion, true
	}
	return g.events, false
}

// receive reads an answer to its end. want is the number of tokens asked for,
// stream whether they were asked for one by one.
func (rc *receiver) receive(a answer, want int, stream bool) *received {
	g := &rc.got
	rc.none(nil)
	switch {
	case a.status != 200:
		g.fail = failedStatus(a.status, rc.message(a.body))
	case !a.stream:
		g.fail = rc.readWhole(a.body, stream)
	default:
		g.fail = rc.readStream(a.body, want)
	}
	return g
}

// none is what was received when no answer came.
func (rc *receiver) none(f *failure) *received {
	rc.got = received{gaps: rc.got.gaps[:0], text: rc.got.text[:0], ids: rc.got.ids[:0], fail: f}
	return &rc.got
}

// judge says why an answer that was read is a failure; nil when it is none. An
// engine that generates exactly as many tokens as it is told has no excuse for
// fewer, and no engine has one for more.
func judge(g *received, want int, exact bool) *failure {
	if g.fail != nil {
		return g.fail
	}
	n, counted := g.tokens()
	switch {
	case n == 0 || g.events == 0:
		return failed(measure.Empty, "")
	case counted && (n > want || exact && n < want):
		return failed(measure.WrongLength, lengths(n, want, g.events))
	}
	return nil
}

// lengths says how many tokens the server counted for those asked for, and in
// how many events they came where these contradict it.
func lengths(n, want, events int) string {
	if n > want && events <= want {
		return fmt.Sprintf("%d tokens for %d by the server's count, in %d events", n, want, events)
	}
	return fmt.Sprintf("%d tokens for %d", n, want)
}

// message is the beginning of the body of an error.
func (rc *receiver) message(b body) []byte {
	rc.whole = rc.whole[:0]
	for len(rc.whole) < 64<<10 {
		span, _, err := b.next()
		rc.whole = append(rc.whole, span...)
		if err != nil {
			break
		}
	}
	if v, err := rc.parser.ParseBytes(rc.whole); err == nil && v.Type() == fastjson.TypeObject {
		if s := failureOf(v); s != "" {
			return []byte(s)
		}
	}
	return rc.whole[:min(len(rc.whole), 200)]
}

// readWhole reads an answer that is one JSON object. It has a last time and no
// first: when its first token was made is not known.
func (rc *receiver) readWhole(b body, stream bool) *failure {
	rc.whole = rc.whole[:0]
	for {
		span, at, err := b.next()
		rc.whole = append(rc.whole, span...)
		if len(rc.whole) > maxAnswer {
			return failed(measure.Malformed, "endless answer")
		}
		rc.got.last = at
		if err == io.EOF {
			break
		}
		if err != nil {
			return failureOfError(err)
		}
	}
	if len(rc.whole) == 0 {
		return failed(measure.Empty, "no body")
	}
	c, err := decodeChunk(&rc.parser, rc.whole)
	switch {
	case err != nil:
		return failed(measure.Malformed, err.Error())
	case c.failure != "":
		return failed(measure.StreamError, c.failure)
	case stream:
		return failed(measure.Malformed, "no stream, though asked for")
	case !c.choice:
		return failed(measure.Empty, "no choice")
	}
	g := &rc.got
	g.usage, g.finish, g.done = c.usage, c.finish, true
	g.keep(&c)
	if c.content {
		g.events = 1
	}
	return nil
}

// readStream reads server-sent events.
func (rc *receiver) readStream(b body, want int) *failure {
	rc.sse.reset()
	g := &rc.got
	for {
		span, at, err := b.next()
		rc.sse.feed(span)
		for {
			ev, ok, serr := rc.sse.next()
			if serr != nil {
				return failed(measure.Malformed, serr.Error())
			}
			if !ok {
				break
			}
			if f := rc.take(ev, at); f != nil {
				return f
			}
		}
		// A server that never stops must not fill the memory.
		if g.events > 4*want+1000 {
			return failed(measure.WrongLength, fmt.Sprintf("more than %d tokens for %d", g.events, want))
		}
		if err != nil {
			return rc.ended(err, at)
		}
	}
}

// ended judges the end of a stream. What comes behind [DONE] does not matter.
func (rc *receiver) ended(err error, at time.Time) *failure {
	g := &rc.got
	if ev, ok, serr := rc.sse.end(); serr == nil && ok && err == io.EOF {
		if f := rc.take(ev, at); f != nil {
			return f
		}
	}
	switch {
	case g.done:
		return nil
	case err != io.EOF:
		return failureOfError(err)
	case !g.finish && g.events == 0:
		return failed(measure.Empty, "")
	case !g.finish:
		return failed(measure.Truncated, "")
	}
	return nil
}

// take takes one event that came with the read at at.
func (rc *receiver) take(ev event, at time.Time) *failure {
	g := &rc.got
	if ev.failure {
		return failed(measure.StreamError, string(ev.data))
	}
	if g.done || len(ev.data) == 0 {
		return nil
	}
	if isDone(ev.data) {
		g.done = true
		return nil
	}
	c, err := decodeChunk(&rc.parser, ev.data)
	if err != nil {
		return failed(measure.Malformed, err.Error())
	}
	if c.failure != "" {
		return failed(measure.StreamError, c.failure)
	}
	// A running count that grows is a token, whose text may still be held back
	// for the rest of a character; the count behind the last choice is a sum.
	grown := c.usage.known && c.usage.completion > g.usage.completion && c.choice && !c.finish
	if c.usage.known {
		g.usage = c.usage
	}
	g.finish = g.finish || c.finish
	if c.content || grown {
		rc.token(at)
	}
	g.keep(&c)
	return nil
}

// keep keeps what a chunk says.
func (g *received) keep(c *chunk) {
	if len(g.text) < maxEvent {
		g.text = append(g.text, c.text...)
	}
	if len(g.ids) < maxEvent {
		for _, v := range c.ids {
			g.ids = append(g.ids, int32(v.GetInt()))
		}
	}
}

func (rc *receiver) token(at time.Time) {
	g := &rc.got
	switch {
	case g.events == 0:
		g.first = at
		if rc.onFirst != nil {
			rc.onFirst(at)
		}
	default:
		gap := at.Sub(g.last)
		g.gaps = append(g.gaps, uint32(min(gap.Microseconds(), 1<<32-1)))
		if at.Equal(g.last) {
			g.coalesced++
		}
	}
	g.events++
	g.last = at
}

package load

import (
	"cmp"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/valyala/fastjson"

	"planner/sweep/measure"
)

// maxAnswer is the longest answer that is read whole: one that is not streamed,
// or the message of an error.
const maxAnswer = 16 << 20

// inFlight is a request on its way, and its answer as it arrives. Its buffers are
// kept from one request to the next.
type inFlight struct {
	parser fastjson.Parser
	sse    sseReader
	whole  []byte

	index int
	// start is the zero of the trial's times.
	start time.Time
	// record is what was known of the request when it left.
	record measure.Record
	// first is when its first token came, negative before.
	first  atomic.Int64
	answer received
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
	// err is why it did not end well.
	err error
}

// tokens is the number of generated tokens, and whether the server counted
// them. Without that each event is taken for one token; so it is where the server
// counts none in an answer that has text.
func (c *received) tokens() (n int, counted bool) {
	if c.usage.known && (c.usage.completion > 0 || c.events == 0) {
		return c.usage.completion, true
	}
	return c.events, false
}

// receive reads an answer to its end. want is the number of tokens asked for,
// stream whether they were asked for one by one.
func (f *inFlight) receive(r response, want int, stream bool) {
	f.fail(nil)
	c := &f.answer
	switch {
	case r.status != 200:
		c.err = failed(measure.HTTPStatus, fmt.Sprint(r.status)+f.message(r.body))
	case !r.stream:
		c.err = f.readWhole(r.body, stream)
	default:
		c.err = f.readStream(r.body, want)
	}
}

// fail makes the answer one of which nothing came, for the reason err.
func (f *inFlight) fail(err error) {
	c := &f.answer
	*c = received{gaps: c.gaps[:0], text: c.text[:0], ids: c.ids[:0], err: err}
}

// outcome is the record of the request, whose answer was read. An engine that
// generates exactly as many tokens as it is told has no excuse for fewer than
// want, and no engine has one for more.
func (f *inFlight) outcome(want int, exact bool) measure.Record {
	c, rec := &f.answer, f.record
	if !c.first.IsZero() {
		rec.First = c.first.Sub(f.start)
	}
	if c.usage.known && c.usage.prompt > 0 {
		rec.Prompt, rec.Cached = c.usage.prompt, c.usage.cached
	}
	n, counted := c.tokens()
	switch {
	case c.err != nil:
	case n == 0 || c.events == 0:
		c.err = failed(measure.Empty, "")
	case counted && (n > want || exact && n < want):
		c.err = failed(measure.WrongLength, lengths(n, want, c.events))
	}
	rec.Output, rec.Outcome = n, measure.OK
	if c.err != nil {
		rec.Outcome, rec.Detail = outcomeOf(c.err)
	}
	if !c.last.IsZero() && rec.Outcome != measure.InFlight {
		rec.Last = c.last.Sub(f.start)
	}
	return rec
}

// lengths says how many tokens the server counted for those asked for, and in
// how many events they came where these contradict it.
func lengths(n, want, events int) string {
	if n > want && events <= want {
		return fmt.Sprintf("%d tokens for %d by the server's count, in %d events", n, want, events)
	}
	return fmt.Sprintf("%d tokens for %d", n, want)
}

// message is the beginning of the body of an error, behind a colon.
func (f *inFlight) message(b body) string {
	f.readBody(b, 64<<10)
	if len(f.whole) == 0 {
		return ""
	}
	return ": " + wordsIn(&f.parser, f.whole)
}

// readBody reads a body whole, or as far as limit, and returns when the last of
// it came.
func (f *inFlight) readBody(b body, limit int) (at time.Time, err error) {
	f.whole = f.whole[:0]
	for err == nil && len(f.whole) <= limit {
		var span []byte
		span, at, err = b.next()
		f.whole = append(f.whole, span...)
	}
	if err == io.EOF {
		err = nil
	}
	return at, err
}

// readWhole reads an answer that is one JSON object. It has a last time and no
// first: when its first token was made is not known.
func (f *inFlight) readWhole(b body, stream bool) (err error) {
	c := &f.answer
	c.last, err = f.readBody(b, maxAnswer)
	switch {
	case err != nil:
		return err
	case len(f.whole) > maxAnswer:
		return failed(measure.Malformed, "endless answer")
	case len(f.whole) == 0:
		return failed(measure.Empty, "no body")
	}
	d, err := decodeDelta(&f.parser, f.whole)
	switch {
	case err != nil:
		return err
	case stream:
		return failed(measure.Malformed, "no stream, though asked for")
	case !d.choice:
		return failed(measure.Empty, "no choice")
	}
	c.usage, c.finish, c.done = d.usage, d.finish, true
	c.keep(&d)
	if d.content {
		c.events = 1
	}
	return nil
}

// readStream reads server-sent events.
func (f *inFlight) readStream(b body, want int) error {
	f.sse.reset()
	for {
		span, at, err := b.next()
		f.sse.feed(span)
		for {
			ev, ok, err := f.sse.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if err := f.take(ev, at); err != nil {
				return err
			}
		}
		// A server that never stops must not fill the memory.
		if n := f.answer.events; n > 4*want+1000 {
			return failed(measure.WrongLength, fmt.Sprintf("more than %d tokens for %d", n, want))
		}
		if err != nil {
			return f.ended(err, at)
		}
	}
}

// ended judges the end of a stream. What comes behind [DONE] does not matter.
func (f *inFlight) ended(err error, at time.Time) error {
	if ev, ok, bad := f.sse.end(); bad == nil && ok && err == io.EOF {
		if err := f.take(ev, at); err != nil {
			return err
		}
	}
	c := &f.answer
	switch {
	case c.done:
		return nil
	case err != io.EOF:
		return err
	case !c.finish && c.events == 0:
		return failed(measure.Empty, "")
	case !c.finish:
		return failed(measure.Truncated, "")
	}
	return nil
}

// take takes one event that came with the read at at.
func (f *inFlight) take(ev event, at time.Time) error {
	c := &f.answer
	if ev.failure {
		return failed(measure.StreamError, cmp.Or(wordsIn(&f.parser, ev.data), "error event without a message"))
	}
	if c.done || len(ev.data) == 0 {
		return nil
	}
	if isDone(ev.data) {
		c.done = true
		return nil
	}
	d, err := decodeDelta(&f.parser, ev.data)
	if err != nil {
		return err
	}
	grown := c.grows(&d)
	if d.usage.known {
		c.usage = d.usage
	}
	c.finish = c.finish || d.finish
	if d.content || grown {
		if c.events == 0 {
			f.first.Store(int64(at.Sub(f.start)))
		}
		c.token(at)
	}
	c.keep(&d)
	return nil
}

// grows reports whether a running count says that a choice brings a token, whose text
// may be held back for the rest of a character, or which has none at all: a server
// without a tokenizer. A count that the end of a stream is the first to give is a sum,
// of tokens that came unless none did.
func (c *received) grows(d *delta) bool {
	return d.choice && d.usage.known && d.usage.completion > c.usage.completion && (!d.finish || c.usage.known || c.events == 0)
}

// keep keeps what a delta says.
func (c *received) keep(d *delta) {
	if len(c.text) < maxEvent {
		c.text = append(c.text, d.text...)
	}
	if len(c.ids) < maxEvent {
		for _, v := range d.ids {
			c.ids = append(c.ids, int32(v.GetInt()))
		}
	}
}

// token counts an event with tokens.
func (c *received) token(at time.Time) {
	if c.events == 0 {
		c.first = at
	} else {
		gap := at.Sub(c.last)
		c.gaps = append(c.gaps, uint32(min(gap.Microseconds(), 1<<32-1)))
		if at.Equal(c.last) {
			c.coalesced++
		}
	}
	c.events++
	c.last = at
}

package load

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"planner/sweep/measure"
)

const (
	// maxMessage is how many bytes of an error's message are read.
	maxMessage = 64 << 10
	// keepSize is the longest buffer that is kept from one request to the next, in bytes.
	keepSize = 64 << 10
)

// sizes returns limits on the answer to a request: the length of the longest event or whole answer,
// in bytes, and the number of values in it. A server may repeat the ids of the prompt.
func sizes(prompt, output int) (length, values int) {
	return 256<<10 + 16*prompt + 64*output, 4<<10 + 2*(prompt+output)
}

// inFlight is a request on its way, and its answer as it arrives. Its buffers are
// kept from one request to the next.
type inFlight struct {
	decoder decoder
	sse     sseReader
	whole   []byte
	// limit is the length of the longest event or answer, in bytes.
	limit int

	index int
	// start is the zero of the trial's times.
	start time.Time
	// record is what was known of the request when it left.
	record measure.Record
	// first is when its first token came, heard when any part of a stream last did, in nanoseconds
	// since start; negative before.
	first, heard atomic.Int64
	answer       received
}

// received is what was seen of one answer.
type received struct {
	first, last time.Time
	// events counts the events that carried tokens, coalesced those of them that came with another
	// in one read and share its time.
	events, coalesced int
	// burst is how many tokens came at once with the first; paced says that later ones came at a
	// pace.
	burst int
	paced bool
	usage usage
	// gaps holds the microseconds between successive token events.
	gaps []uint32
	// odd is the beginning of the last event after the tokens that is neither a count nor an end,
	// which may say why nothing follows.
	odd []byte
	// text is the text of the answer, for counting its tokens and for later turns.
	text []byte
	// model is the model that the answer names.
	model []byte
	// ids are the generated tokens, where the server names them.
	ids []int32
	// finish: the server said why it ended; full: because of its length; done: it said [DONE].
	finish, full, done bool
	// err is why it did not end well.
	err error
}

// tokens returns the number of generated tokens, and whether the server counted them. If it did
// not, or counts none in an answer that has some, each event is taken for one token.
func (c *received) tokens() (n int, counted bool) {
	if c.usage.known && (c.usage.completion > 0 || c.events == 0) {
		return c.usage.completion, true
	}
	return c.events, false
}

// receive reads an answer to its end. want is the number of tokens asked for, stream whether they
// were asked for one by one.
func (f *inFlight) receive(r response, want int, stream bool) {
	f.fail(nil)
	var values int
	f.limit, values = sizes(f.record.Prompt, want)
	f.decoder.reset(values)
	c := &f.answer
	switch {
	case r.status != 200:
		c.err = failed(measure.HTTPStatus, fmt.Sprint(r.status)+r.place+f.message(r.body))
	case !r.stream:
		c.err = f.readWhole(r, stream)
	default:
		c.err = f.readStream(r.body, want)
	}
}

// fail makes the answer an empty one that failed with err.
func (f *inFlight) fail(err error) {
	c := &f.answer
	*c = received{gaps: emptied(c.gaps), text: emptied(c.text), ids: emptied(c.ids), odd: c.odd[:0], model: c.model[:0], err: err}
}

// emptied is the buffer without what is in it, nil if it has become long.
func emptied[T any](b []T) []T {
	if cap(b) > keepSize {
		return nil
	}
	return b[:0]
}

// outcome returns the record of the request, whose answer was read. More tokens than want are a
// wrong length. So are fewer, if the engine generates exactly as many as it is told, or says that
// it ended because of the length although fewer events came.
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
		c.err = failed(measure.Empty, f.nothing())
	case counted && (n > want || (exact || c.full && c.events < want) && n < want):
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
	if n > want && events <= want || n < want && events >= want {
		return fmt.Sprintf("%d tokens for %d by the server's count, in %d events", n, want, events)
	}
	return fmt.Sprintf("%d tokens for %d", n, want)
}

// message returns the beginning of the body of an error, after a colon.
func (f *inFlight) message(b body) string {
	f.readBody(b, maxMessage)
	if len(f.whole) == 0 {
		return ""
	}
	return ": " + f.words(f.whole)
}

// odd returns what may say why an answer lacks what it should have.
func (f *inFlight) odd() []byte {
	if len(f.answer.odd) > 0 {
		return f.answer.odd
	}
	return f.sse.stray
}

func (f *inFlight) nothing() string { return cmp.Or(f.words(f.odd()), "an answer without a token") }

// words returns the message of an error in a text, "" if the text is empty.
func (f *inFlight) words(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return f.decoder.wordsIn(text)
}

// readBody reads a body whole, or as far as limit, and returns when the last of
// it came.
func (f *inFlight) readBody(b body, limit int) (at time.Time, err error) {
	f.whole = emptied(f.whole)
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
func (f *inFlight) readWhole(r response, stream bool) (err error) {
	c := &f.answer
	c.last, err = f.readBody(r.body, f.limit)
	switch {
	case err != nil:
		return err
	case len(f.whole) > f.limit:
		return failed(measure.Malformed, fmt.Sprintf("answer longer than %d KiB", f.limit>>10))
	case len(f.whole) == 0:
		return failed(measure.Empty, "no body")
	}
	d, err := f.decoder.decode(f.whole)
	switch {
	case err != nil && stream && f.whole[0] != '{':
		return failed(measure.Malformed, fmt.Sprintf("%s instead of a stream: %s", cmp.Or(r.kind, "no type"), f.whole[:min(len(f.whole), maxWords)]))
	case err != nil:
		return err
	case stream:
		return failed(measure.Malformed, "no stream, though asked for")
	case !d.choice:
		return failed(measure.Empty, "no choice")
	}
	c.usage, c.finish, c.full, c.done = d.usage, d.finish, d.full, true
	f.keep(&d)
	if d.content || d.usage.completion > 0 {
		c.events = 1
	}
	return nil
}

func (f *inFlight) readStream(b body, want int) error {
	f.sse.reset(f.limit)
	for {
		span, at, err := b.next()
		f.heard.Store(int64(at.Sub(f.start)))
		f.sse.feed(span)
		done := f.answer.done
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
		if f.answer.done && !done {
			b.said()
		}
		// A server that never stops must not fill the memory.
		if most := 4*want + 1000; f.answer.events > most {
			return failed(measure.WrongLength, fmt.Sprintf("more than %d tokens for %d", most, want))
		}
		if err != nil {
			return f.ended(err, at)
		}
	}
}

// ended judges the end of a stream. What comes after [DONE] does not matter.
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
		return failed(measure.Empty, f.nothing())
	case !c.finish:
		return failed(measure.Truncated, f.words(f.odd()))
	}
	return nil
}

func (f *inFlight) take(data []byte, at time.Time) error {
	c := &f.answer
	switch {
	case f.sse.failed:
		return failed(measure.StreamError, cmp.Or(f.words(data), "error event without a message"))
	case c.done || len(data) == 0:
		return nil
	case string(bytes.TrimSpace(data)) == "[DONE]":
		c.done = true
		return nil
	}
	d, err := f.decoder.decode(data)
	if err != nil {
		return err
	}
	grown := c.grows(&d)
	if d.usage.known {
		c.usage = d.usage
	}
	c.finish, c.full = c.finish || d.finish, c.full || d.full
	switch {
	case d.content || grown:
		if c.events == 0 {
			f.first.Store(int64(at.Sub(f.start)))
		}
		c.odd = c.odd[:0]
		c.token(at)
	case !d.usage.known && !d.finish:
		c.odd = append(c.odd[:0], data[:min(len(data), maxWords)]...)
	}
	f.keep(&d)
	return nil
}

// grows reports whether a running count says that a choice brings a token, even without text: that
// may be held back until a character is complete, or the server has no tokenizer. A count that is
// first given at the end of a stream is a total, of tokens that have come already unless none have,
// and so is one given after the end.
func (c *received) grows(d *delta) bool {
	return !c.finish && d.choice && d.usage.known && d.usage.completion > c.usage.completion && (!d.finish || c.usage.known || c.events == 0)
}

func (f *inFlight) keep(d *delta) {
	c := &f.answer
	if len(c.model) == 0 {
		c.model = append(c.model, d.model[:min(len(d.model), maxWords)]...)
	}
	if len(c.text) < f.limit {
		c.text = append(c.text, d.text...)
	}
	if len(c.ids) < f.limit {
		for _, v := range d.ids {
			c.ids = append(c.ids, int32(v.GetInt()))
		}
	}
}

func (c *received) token(at time.Time) {
	if c.events == 0 {
		c.first = at
	} else {
		gap := at.Sub(c.last)
		c.gaps = append(c.gaps, uint32(min(gap.Microseconds(), 1<<32-1)))
		if at.Equal(c.last) {
			c.coalesced++
		}
		c.paced = c.paced || gap > atOnce
	}
	c.events++
	c.last = at
	if !c.paced {
		c.burst = max(c.events, c.usage.completion)
	}
}

// atOnce is the longest gap between tokens that come at once: less than any engine takes for one.
const atOnce = 100 * time.Microsecond

// much is the share of tokens coming at once above which the times between tokens are not those of
// the server.
const much = 0.25

// bunched reports whether so many of n tokens came at once that the time between first and last is
// not that of generating them.
func (c *received) bunched(n int) bool {
	behind := float64(n - 1)
	return float64(c.burst-1) > much*behind || c.last.Sub(c.first) < time.Duration(behind)*atOnce
}

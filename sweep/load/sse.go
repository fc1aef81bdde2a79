package load

import (
	"bytes"
	"fmt"

	"planner/sweep/measure"
)

// sseReader cuts a stream into server-sent events (WHATWG HTML, section 9.2): lines end in LF, CRLF
// or CR, several data lines are joined by LF, comments and unknown fields are skipped, one space
// after the colon is not part of a value. Unlike in the standard, an error without data is an
// event. Bytes are pushed in with feed as they arrive and events pulled out with next, so the
// reader of the network knows when each event came. An event that lies within one span is not
// copied.
type sseReader struct {
	// limit is the length of the longest line, and of the longest data of one event, in bytes.
	limit int
	in    []byte
	// line is the beginning of a line whose end has not come.
	line []byte
	// data is the event's data so far: a part of in, or of joined.
	data, joined []byte
	hasData      bool
	// stray is the beginning of the last line that is not a field: no part of an event, but often
	// what a proxy says of a server that is gone.
	stray []byte
	// failure is set when the event is of the type "error", failed if the one returned last was.
	failure, failed bool
	// skipLF is set after a CR: an LF that follows belongs to it.
	skipLF  bool
	started bool
}

// reset makes the reader ready for another stream and keeps its buffers.
func (s *sseReader) reset(limit int) {
	*s = sseReader{limit: limit, line: emptied(s.line), joined: emptied(s.joined), stray: s.stray[:0]}
}

func (s *sseReader) tooLong() error {
	return failed(measure.Malformed, fmt.Sprintf("event longer than %d KiB", s.limit>>10))
}

// feed adds the bytes of one read. next must have returned false before.
func (s *sseReader) feed(span []byte) { s.in = span }

// next returns the data of the next complete event of what was fed, valid until the next
// call; false when there is none. An error is final.
func (s *sseReader) next() (data []byte, ok bool, err error) {
	for {
		line, ok, err := s.nextLine()
		if err != nil || !ok {
			return nil, false, err
		}
		if len(line) == 0 {
			if data, ok := s.dispatch(); ok {
				return data, true, nil
			}
			continue
		}
		if err := s.field(line); err != nil {
			return nil, false, err
		}
	}
}

// end returns the event that the stream ended without completing by a blank line. The standard
// drops it, but enough servers end their streams like this.
func (s *sseReader) end() (data []byte, ok bool, err error) {
	if len(s.line) > 0 {
		line := s.line
		s.line = nil
		if err := s.field(line); err != nil {
			return nil, false, err
		}
	}
	data, ok = s.dispatch()
	return data, ok, nil
}

func (s *sseReader) nextLine() ([]byte, bool, error) {
	if s.skipLF && len(s.in) > 0 {
		s.skipLF = false
		if s.in[0] == '\n' {
			s.in = s.in[1:]
		}
	}
	i := bytes.IndexByte(s.in, '\n')
	if i < 0 {
		i = len(s.in)
	}
	if cr := bytes.IndexByte(s.in[:i], '\r'); cr >= 0 {
		i = cr
	}
	if len(s.line)+i > s.limit {
		return nil, false, s.tooLong()
	}
	if i == len(s.in) {
		s.own()
		s.line = append(s.line, s.in...)
		s.in = nil
		return nil, false, nil
	}
	line := s.in[:i]
	s.skipLF = s.in[i] == '\r'
	s.in = s.in[i+1:]
	if len(s.line) > 0 {
		s.own()
		line = append(s.line, line...)
		s.line = line[:0]
	}
	if !s.started {
		s.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, true, nil
}

func (s *sseReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "event":
		s.failure = string(value) == "error"
	case "data":
		if len(s.data)+1+len(value) > s.limit {
			return s.tooLong()
		}
		if !s.hasData {
			s.hasData, s.data = true, value
			return nil
		}
		s.own()
		s.joined = append(append(s.joined, '\n'), value...)
		s.data = s.joined
	case "", "id", "retry":
	default:
		s.stray = append(s.stray[:0], line[:min(len(line), maxWords)]...)
	}
	return nil
}

// own copies the event's data out of the span or line that it is a part of, before
// that is overwritten.
func (s *sseReader) own() {
	if s.hasData && len(s.joined) == 0 {
		s.joined = append(s.joined, s.data...)
		s.data = s.joined
	}
}

func (s *sseReader) dispatch() (data []byte, ok bool) {
	data, ok, s.failed = s.data, s.hasData || s.failure, s.failure
	s.data, s.joined, s.hasData, s.failure = nil, s.joined[:0], false, false
	return data, ok
}

package load

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// maxEvent is the longest event of these tests.
const maxEvent = 1 << 20

// collect reads a stream that arrives in the given spans and returns the data of its events, with
// "!" before those of type error.
func collect(spans ...string) ([]string, error) {
	s := sseReader{limit: maxEvent}
	var out []string
	take := func(data []byte) {
		mark := ""
		if s.failed {
			mark = "!"
		}
		out = append(out, mark+string(data))
	}
	for _, span := range spans {
		// The reader may not lean on bytes of earlier reads.
		b := []byte(span)
		s.feed(b)
		for {
			ev, ok, err := s.next()
			if err != nil {
				return out, err
			}
			if !ok {
				break
			}
			take(ev)
		}
		for i := range b {
			b[i] = '#'
		}
	}
	ev, ok, err := s.end()
	if ok {
		take(ev)
	}
	return out, err
}

var sseCases = []struct {
	name, in string
	want     []string
}{
	{"LF", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
	{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}},
	{"mixed ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\r", []string{"a", "b", "c"}},
	{"no space", "data:a\n\n", []string{"a"}},
	{"one space only", "data:  a\n\n", []string{" a"}},
	{"several data lines", "data: a\ndata:b\ndata: c\n\n", []string{"a\nb\nc"}},
	{"empty data line first", "data\ndata: b\n\n", []string{"\nb"}},
	{"empty data", "data:\n\n", []string{""}},
	{"comments", ": ping\n\n:\ndata: a\n: pong\n\n", []string{"a"}},
	{"other fields", "id: 7\nretry: 10\nevent: token\ndata: a\n\n", []string{"a"}},
	{"error event", "event: error\ndata: {\"m\":1}\n\ndata: a\n\n", []string{`!{"m":1}`, "a"}},
	{"error behind its data", "data: x\nevent: error\n\n", []string{"!x"}},
	{"event without data", "event: error\n\nevent: ping\n\ndata: a\n\n", []string{"!", "a"}},
	{"no blank line at the end", "data: a\n\ndata: b\n", []string{"a", "b"}},
	{"no line end at the end", "data: a\n\ndata: b", []string{"a", "b"}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"a"}},
	{"colon in data", "data: {\"a\":\"b: c\"}\n\n", []string{`{"a":"b: c"}`}},
	{"blank lines", "\n\n\r\n\r\rdata: a\n\n\n", []string{"a"}},
	{"nothing", "", nil},
}

// TestSSE reads each case whole, cut in two at every place, and byte by byte.
func TestSSE(t *testing.T) {
	for _, c := range sseCases {
		t.Run(c.name, func(t *testing.T) {
			for i := range len(c.in) + 1 {
				got, err := collect(c.in[:i], c.in[i:])
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("cut at %d: %q, %v, want %q", i, got, err, c.want)
				}
			}
			got, err := collect(strings.Split(c.in, "")...)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("byte by byte: %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestSSELimit(t *testing.T) {
	fits := "data: " + strings.Repeat("x", maxEvent-len("data: "))
	if got, err := collect(fits[:1000], fits[1000:]+"\n\n"); err != nil || len(got) != 1 || len(got[0]) != maxEvent-6 {
		t.Errorf("a line of the limit: %d events, %v", len(got), err)
	}
	for name, spans := range map[string][]string{
		"one span":   {fits + "xx\n\n"},
		"no end":     {fits, "x", "x"},
		"many lines": slices.Repeat([]string{"data: " + strings.Repeat("y", 1000) + "\n"}, 1100),
	} {
		if _, err := collect(spans...); err == nil || err.Error() != "event longer than 1024 KiB" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// wholeStream is a second reader of streams that are there as a whole, which follows the standard
// and disregards cost.
func wholeStream(in string) []string {
	in = strings.TrimPrefix(in, "\xef\xbb\xbf")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	var out []string
	for block := range strings.SplitSeq(in, "\n\n") {
		var data []string
		failure, any := false, false
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "event":
				failure = value == "error"
			case "data":
				any, data = true, append(data, value)
			}
		}
		if any || failure {
			mark := ""
			if failure {
				mark = "!"
			}
			out = append(out, mark+strings.Join(data, "\n"))
		}
	}
	return out
}

// FuzzSSE: however a stream is cut into reads, its events are those that the
// second reader finds in the whole.
func FuzzSSE(f *testing.F) {
	for i, c := range sseCases {
		f.Add([]byte(c.in), uint8(i))
	}
	f.Add([]byte(tokenEvent(" a", 3, 1)+doneEvent), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		var spans []string
		for part := range slices.Chunk(in, int(step)+1) {
			spans = append(spans, string(part))
		}
		got, err := collect(spans...)
		if err != nil {
			if len(in) < maxEvent {
				t.Fatal(err)
			}
			return
		}
		// A byte order mark in the middle of the first line is none, and the rest that the standard
		// drops at the end is an event here.
		if want := wholeStream(string(in)); !slices.Equal(got, want) && !bytes.Contains(in, []byte("\xef\xbb\xbf")) {
			t.Errorf("%q by %d: %q, want %q", in, int(step)+1, got, want)
		}
	})
}

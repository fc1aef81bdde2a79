// Package printable makes texts of servers, engines and files safe to show, so that a terminal obeys nothing in
// them and they still read as they are.
package printable

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// obeyed are the characters that a terminal or viewer obeys instead of showing: controls except line break and
// tab, and those that change the direction of text or break its lines.
var obeyed = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00, Hi: 0x08, Stride: 1}, {Lo: 0x0b, Hi: 0x1f, Stride: 1}, {Lo: 0x7f, Hi: 0x9f, Stride: 1}, {Lo: 0x061c, Hi: 0x061c, Stride: 1},
		{Lo: 0x200e, Hi: 0x200f, Stride: 1}, {Lo: 0x2028, Hi: 0x202e, Stride: 1}, {Lo: 0x2066, Hi: 0x2069, Stride: 1},
	},
	LatinOffset: 3,
}

// Text escapes what would be obeyed, such as \u001b, and replaces invalid UTF-8 by U+FFFD.
func Text(s string) string {
	if harmless(s) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		if unicode.Is(obeyed, r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func harmless(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(obeyed, r) })
}

// JSON escapes what would be obeyed in the strings of a JSON text, the only place where it may be, so that it
// reads back the same. It also works for strings of TOML.
func JSON(text []byte) []byte {
	if !slices.ContainsFunc(text, func(b byte) bool { return b >= 0x7f }) {
		return text // JSON itself escapes the other controls
	}
	return []byte(Text(string(text)))
}

// Writer passes on what is written as by [Text]. A write must not end within a character.
func Writer(w io.Writer) io.Writer { return escapingWriter{w} }

type escapingWriter struct{ to io.Writer }

// Write writes all of p or fails.
func (w escapingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Line makes text fit a message or table: at most most bytes, without line breaks or unprintable characters.
func Line(s string, most int) string {
	s = strings.ToValidUTF8(s[:min(len(s), 4<<10)], "")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}

// Short returns a text cut to at most most characters.
func Short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return s
}

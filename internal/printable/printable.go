// Package printable shows texts of others, those of servers, engines and files, so that a
// terminal obeys nothing in them and that they read as they are.
package printable

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// obeyed are the characters that a terminal or a viewer obeys instead of showing them:
// controls but for the line break and the tab, and those that turn the direction of a text
// or break its lines.
var obeyed = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00, Hi: 0x08, Stride: 1}, {Lo: 0x0b, Hi: 0x1f, Stride: 1}, {Lo: 0x7f, Hi: 0x9f, Stride: 1}, {Lo: 0x061c, Hi: 0x061c, Stride: 1},
		{Lo: 0x200e, Hi: 0x200f, Stride: 1}, {Lo: 0x2028, Hi: 0x202e, Stride: 1}, {Lo: 0x2066, Hi: 0x2069, Stride: 1},
	},
	LatinOffset: 3,
}

// Text writes what would be obeyed as its escape, such as \u001b, and takes what is no
// UTF-8 out.
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

// JSON writes what would be obeyed inside the strings of a JSON text, the only place where
// it may stand, as the escape that reads back the same. So it does with strings of TOML.
func JSON(text []byte) []byte {
	if !slices.ContainsFunc(text, func(b byte) bool { return b >= 0x7f }) {
		return text // JSON itself escapes the other controls
	}
	return []byte(Text(string(text)))
}

// Writer passes on what is written, as [Text] shows it. A character must not be cut by the
// end of a write.
func Writer(w io.Writer) io.Writer { return escapingWriter{w} }

type escapingWriter struct{ to io.Writer }

// Write writes all of p or fails.
func (w escapingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Line makes text fit for a message or a table: at most so many bytes, without breaks, nor
// any character that is not printed.
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

// Short is a text of at most so many characters: of a longer one the end is left out.
func Short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return s
}

package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"unicode"
	"unicode/utf8"

	"planner/internal/evidence/must"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ü, 漢字\tand\nmore":     "plain, ü, 漢字\tand\nmore",
		"\x1b[31mred\x1b[0m":          `\u001b[31mred\u001b[0m`,
		"\x1b]0;title\x07":            `\u001b]0;title\u0007`,
		"\u009b2J":                    `\u009b2J`,
		"safe\rover":                  `safe\u000dover`,
		"a\u202egpj.exe\u2069":        `a\u202egpj.exe\u2069`,
		"one\u2028two":                `one\u2028two`,
		"\x9b2J":                      "\ufffd2J",
		"back\bspace\x7f":             `back\u0008space\u007f`,
		"\u061carabic letter mark":    `\u061carabic letter mark`,
		"left\u200eto\u200fright all": `left\u200eto\u200fright all`,
	} {
		if got := Text(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[2J\u202e\x9b")
	f.Fuzz(func(t *testing.T, s string) {
		shown := Text(s)
		for _, r := range shown {
			if unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%q is shown with %U", s, r)
			}
		}
		if !utf8.ValidString(shown) || Text(shown) != shown {
			t.Fatalf("%q is shown as %q", s, shown)
		}
		var b bytes.Buffer
		if n, err := fmt.Fprint(Writer(&b), s); err != nil || n != len(s) || b.String() != shown {
			t.Fatalf("%d of %d bytes written as %q: %v", n, len(s), b.String(), err)
		}
		plain := must.Get(json.Marshal(s))
		var was, is string
		must.OK(json.Unmarshal(plain, &was))
		if err := json.Unmarshal(JSON(plain), &is); err != nil || is != was {
			t.Fatalf("%q reads back as %q: %v", was, is, err)
		}
	})
}

func TestWriterFails(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	if n, err := Writer(w).Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{"ключи": "ключи", "ключи промпта": "ключ..."} {
		if got := Short(in, 7); got != want {
			t.Errorf("%q is cut to %q, want %q", in, got, want)
		}
	}
}

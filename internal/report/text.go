package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Text prints a document for a terminal, with escape sequences if color is set. No line exceeds width, which is
// at least 40, except for a single longer word or option of a [Code].
func Text(d Document, width int, color bool) []byte {
	d = shown(d)
	p := &textPrinter{width: max(width, 40), color: color}
	if d.Title != "" {
		p.text(Strong, d.Title)
		p.gap = len(d.Blocks) == 0 || len(d.Blocks[0].Facts) == 0
	}
	for _, b := range d.Blocks {
		p.block(b)
	}
	return p.Bytes()
}

// textPrinter is the state of one text output.
type textPrinter struct {
	bytes.Buffer
	width int
	color bool
	// gap says that the next block is preceded by a blank line.
	gap bool
}

// indent is the indentation of a section's body.
const indent = "  "

func (t *textPrinter) block(b Block) {
	if t.gap {
		t.WriteByte('\n')
	}
	t.gap = true
	switch {
	case b.Heading != nil:
		t.text(Strong, strings.ToUpper(b.Heading.Text))
	case b.Paragraph != nil:
		t.text(b.Paragraph.Tone, b.Paragraph.Text)
	case len(b.Facts) > 0:
		t.pairs(b.Facts)
	case b.Bullets != nil:
		for _, item := range b.Bullets.Items {
			t.hanging(indent+"- ", wrap(item, t.width-len(indent)-2), b.Bullets.Tone)
		}
	case b.Code != nil:
		for line := range strings.Lines(breakCommand(b.Code.Text, t.width-len(indent)-2)) {
			t.WriteString(indent + strings.TrimRight(line, "\n") + "\n")
		}
	case b.Table != nil:
		t.table(*b.Table)
	case b.Chart != nil:
		t.chart(b.Chart)
	}
}

// toneCodes are terminal escape codes by tone.
var toneCodes = [...]string{Plain: "", Strong: "1", Good: "32", Bad: "31", Doubt: "33", Quiet: "2"}

func (t *textPrinter) paint(tone Tone, s string) string {
	if code := toneCodes[tone]; t.color && s != "" && code != "" {
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	return s
}

func (t *textPrinter) text(tone Tone, s string) { t.hanging("", wrap(s, t.width), tone) }

// hanging writes lines after a prefix, with continuation lines indented by its width.
func (t *textPrinter) hanging(prefix string, lines []string, tone Tone) {
	for i, l := range lines {
		if i > 0 {
			prefix = strings.Repeat(" ", width(prefix))
		}
		t.WriteString(strings.TrimRight(prefix+t.paint(tone, l), " ") + "\n")
	}
}

func (t *textPrinter) pairs(pairs Facts) {
	label := 0
	for _, p := range pairs {
		label = min(max(label, width(p.Label)), t.width/3)
	}
	for _, p := range pairs {
		prefix := indent + fmt.Sprintf("%-*s", label, p.Label) + "  "
		t.hanging(prefix, wrap(p.Text, t.width-width(prefix)), p.Tone)
	}
}

// width returns the columns of a text. Reports contain no wide characters.
func width(s string) int { return utf8.RuneCountInString(s) }

// wrap breaks text at spaces into lines of at most n columns, or of one longer word.
func wrap(s string, n int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= n:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// breakCommand breaks a command line before its options, with the backslashes that let a shell read it as one
// line. Text of several lines stays as it is.
func breakCommand(s string, n int) string {
	if width(s) <= n || strings.Contains(s, "\n") {
		return s
	}
	var lines []string
	words := options(s)
	line := words[0]
	for _, word := range words[1:] {
		if width(line)+1+width(word)+2 > n {
			lines, line = append(lines, line+" \\"), "  "+word
		} else {
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// shellWord matches a word of a command line, with what is between single quotes kept verbatim.
var shellWord = regexp.MustCompile(`(?:'[^']*(?:'|$)|\\.|[^' ])+`)

// options splits a command line before every word that begins with a dash.
func options(s string) []string {
	var parts []string
	for i, word := range shellWord.FindAllString(s, -1) {
		if i == 0 || strings.HasPrefix(word, "-") {
			parts = append(parts, word)
			continue
		}
		parts[len(parts)-1] += " " + word
	}
	return parts
}

package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"planner/internal/list"
)

// Markdown prints a document as GitHub-flavoured Markdown.
func Markdown(d Document) []byte {
	d = shown(d)
	m := &bytes.Buffer{}
	if d.Title != "" {
		fmt.Fprintf(m, "# %s\n\n", escapeMarkdown(d.Title))
	}
	for _, b := range d.Blocks {
		markdownBlock(m, b)
	}
	return append(bytes.TrimRight(m.Bytes(), "\n"), '\n')
}

func markdownBlock(m *bytes.Buffer, b Block) {
	switch {
	case b.Heading != nil:
		fmt.Fprintf(m, "## %s\n", escapeMarkdown(b.Heading.Text))
	case b.Paragraph != nil:
		mark := toneMarks[b.Paragraph.Tone]
		m.WriteString(mark + escapeMarkdown(b.Paragraph.Text) + mark + "\n")
	case len(b.Facts) > 0:
		for _, p := range b.Facts {
			fmt.Fprintf(m, "- **%s:** %s\n", escapeMarkdown(p.Label), escapeMarkdown(p.Text))
		}
	case b.Bullets != nil:
		for _, item := range b.Bullets.Items {
			fmt.Fprintf(m, "- %s\n", escapeMarkdown(item))
		}
	case b.Code != nil:
		fence(m, "sh", breakCommand(b.Code.Text, 100))
	case b.Table != nil:
		markdownTable(m, *b.Table)
	case b.Chart != nil:
		t := &textPrinter{width: 96}
		t.chart(b.Chart)
		fence(m, "text", t.String())
	}
	m.WriteByte('\n')
}

func markdownTable(m *bytes.Buffer, tab Table) {
	if tab.Caption != "" {
		fmt.Fprintf(m, "%s\n\n", escapeMarkdown(tab.Caption))
	}
	if len(tab.Rows) == 0 {
		m.WriteString("None.\n")
		return
	}
	row := func(cells []string) { m.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(list.Map(tab.Columns, func(c Column) string { return cellMarkdown(c.Name) }))
	row(list.Map(tab.Columns, func(c Column) string { return either(c.Right, "--:", ":--") }))
	for _, cells := range tab.Rows {
		row(list.Map(cells, func(c Cell) string { return cellMarkdown(c.Text) }))
	}
}

// fence writes a code block, fenced by more backquotes than it contains.
func fence(m *bytes.Buffer, language, text string) {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	fmt.Fprintf(m, "%s%s\n%s\n%s\n", mark, language, strings.TrimRight(text, "\n"), mark)
}

// toneMarks enclose text by tone.
var toneMarks = [...]string{Plain: "", Strong: "**", Good: "", Bad: "", Doubt: "", Quiet: "_"}

// cellMarkdown escapes text for a table, in which a bar would end the cell.
func cellMarkdown(s string) string {
	return either(s == unknown, s, strings.ReplaceAll(escapeMarkdown(s), "|", `\|`))
}

// markup matches what Markdown would take for markup inside a line or at its beginning; not an underscore
// inside a word, which GitHub ignores, too.
var markup = regexp.MustCompile("[\\\\`*\\[\\]<>~$]|\\b_|_\\b|^(?:#[ #]|\\+[ +]|-[ -]|[#+-]$)")

// escapeMarkdown escapes markup. Line breaks become spaces.
func escapeMarkdown(s string) string {
	return markup.ReplaceAllString(strings.Join(strings.Fields(s), " "), `\$0`)
}

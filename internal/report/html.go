package report

import (
	"bytes"
	_ "embed" // the style sheet
	"fmt"
	"html"
	"slices"
	"strings"
)

//go:embed report.css
var styleSheet string

// HTML prints a document as one file that fetches nothing: style and charts stand
// inside, a content security policy forbids the rest. The file is well-formed
// XML too.
func HTML(d Document) []byte {
	d = d.shown()
	h := &htmlPrinter{}
	title := d.Title
	if title == "" {
		title = "Report"
	}
	h.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n" +
		"<meta name=\"color-scheme\" content=\"light dark\"/>\n")
	fmt.Fprintf(h, "<title>%s</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", html.EscapeString(title), styleSheet)
	if d.Title != "" {
		fmt.Fprintf(h, "<h1>%s</h1>\n", html.EscapeString(d.Title))
	}
	for _, b := range d.Blocks {
		h.element(b)
	}
	h.WriteString("</main>\n</body>\n</html>\n")
	return h.Bytes()
}

// htmlPrinter holds the state of one HTML output.
type htmlPrinter struct{ bytes.Buffer }

func (h *htmlPrinter) element(b Element) {
	switch b := b.(type) {
	case Heading:
		fmt.Fprintf(h, "<h2>%s</h2>\n", html.EscapeString(b.Text))
	case Paragraph:
		fmt.Fprintf(h, "<p%s>%s</p>\n", class(b.Tone, Column{}), html.EscapeString(b.Text))
	case Facts:
		h.WriteString("<dl>\n")
		for _, p := range b {
			fmt.Fprintf(h, "<div><dt>%s</dt><dd%s>%s</dd></div>\n", html.EscapeString(p.Label), class(p.Tone, Column{}), html.EscapeString(p.Text))
		}
		h.WriteString("</dl>\n")
	case Bullets:
		fmt.Fprintf(h, "<ul%s>\n", class(b.Tone, Column{}))
		for _, item := range b.Items {
			fmt.Fprintf(h, "<li>%s</li>\n", html.EscapeString(item))
		}
		h.WriteString("</ul>\n")
	case Code:
		fmt.Fprintf(h, "<pre><code>%s</code></pre>\n", html.EscapeString(breakCommand(b.Text, 100)))
	case Table:
		h.table(b)
	case *Chart:
		h.chart(b)
	}
}

func (h *htmlPrinter) table(tab Table) {
	h.WriteString("<div class=\"scroll\">\n<table>\n")
	if tab.Caption != "" {
		fmt.Fprintf(h, "<caption>%s</caption>\n", html.EscapeString(tab.Caption))
	}
	h.WriteString("<thead><tr>")
	for _, c := range tab.Columns {
		fmt.Fprintf(h, "<th scope=\"col\"%s>%s</th>", class(Plain, c), html.EscapeString(c.Name))
	}
	h.WriteString("</tr></thead>\n<tbody>\n")
	if len(tab.Rows) == 0 {
		fmt.Fprintf(h, "<tr><td colspan=\"%d\">none</td></tr>\n", max(len(tab.Columns), 1))
	}
	for _, row := range tab.Rows {
		h.WriteString("<tr>")
		for i, c := range row {
			fmt.Fprintf(h, "<td%s>%s</td>", class(c.Tone, tab.Columns[i]), html.EscapeString(c.Text))
		}
		h.WriteString("</tr>\n")
	}
	h.WriteString("</tbody>\n</table>\n</div>\n")
}

// chart puts a chart into a figure as its SVG image, and its points into a table for
// those who do not see it.
func (h *htmlPrinter) chart(c *Chart) {
	fmt.Fprintf(h, "<figure>\n<figcaption>%s</figcaption>\n", html.EscapeString(c.Title))
	image, err := c.inline()
	if c.Empty() || err != nil {
		h.WriteString("<p>Nothing to draw.</p>\n</figure>\n")
		return
	}
	h.WriteString(image)
	h.WriteString("<details><summary>The points of the chart</summary>\n")
	h.table(c.table())
	h.WriteString("</details>\n</figure>\n")
}

// table lists the points of a chart.
func (c *Chart) table() Table {
	tab := Table{Columns: []Column{{Name: "Series"}, {Name: c.XLabel, Right: true}, {Name: c.YLabel, Right: true}, {Name: "Note"}}}
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !drawable(p.X, p.Y) {
				continue
			}
			note := Cell{}
			if p.Overload {
				note = Cell{Text: "overloaded", Tone: Bad}
			}
			tab.Rows = append(tab.Rows, []Cell{{Text: s.Name}, {Text: number(p.X, 3)}, {Text: number(p.Y, 3)}, note})
		}
	}
	for _, r := range slices.Concat(c.Limits, c.Rates) {
		tab.Rows = append(tab.Rows, []Cell{{Text: r.Label}, {}, {}, {Text: "marked"}})
	}
	return tab
}

// toneNames are the classes of the style sheet.
var toneNames = [...]string{Plain: "", Strong: "strong", Good: "good", Bad: "bad", Doubt: "doubt", Quiet: "quiet"}

// class is the class attribute of a text in a tone, in the cell of a column if it
// stands in one; empty if it is plain.
func class(t Tone, c Column) string {
	name := toneNames[t]
	if c.Right {
		name = strings.TrimSpace("num " + name)
	}
	if name == "" {
		return ""
	}
	return ` class="` + name + `"`
}

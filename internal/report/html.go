package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the style sheet and the scripts
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"planner/internal/list"
)

// The page's own style sheet and script, and those of uPlot 1.6.32, which draws the
// charts that answer to a pointer (MIT licence, beside them).
var (
	//go:embed report.css
	styleSheet string
	//go:embed report.js
	pageScript string
	//go:embed uplot/uPlot.min.css
	uplotStyle string
	//go:embed uplot/uPlot.iife.min.js
	uplotScript string
	//go:embed uplot/LICENSE
	uplotLicence string
)

// HTML prints a document as one file that fetches nothing: style, scripts and charts
// stand inside, a content security policy forbids the rest. Without scripts every figure
// is there all the same. The file is well-formed XML too.
func HTML(d Document) []byte {
	d = shown(d)
	h := &htmlPrinter{}
	title := d.Title
	if title == "" {
		title = "Report"
	}
	script := strings.TrimSpace("\n/*\nuPlot 1.6.32\n" + uplotLicence + "*/\n" + uplotScript + "\n" + pageScript)
	script = "//<![CDATA[\n" + script + "\n//]]>"
	hash := sha256.Sum256([]byte(script))
	h.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	fmt.Fprintf(h, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'\"/>\n",
		base64.StdEncoding.EncodeToString(hash[:]))
	h.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n")
	fmt.Fprintf(h, "<title>%s</title>\n<style>\n%s%s</style>\n</head>\n<body>\n", html.EscapeString(title), uplotStyle, styleSheet)
	h.contents(d)
	h.WriteString("<main>\n<section class=\"page\">\n")
	if d.Title != "" {
		fmt.Fprintf(h, "<h1>%s</h1>\n", html.EscapeString(d.Title))
	}
	for _, b := range d.Blocks {
		h.element(b)
	}
	h.endDetail()
	fmt.Fprintf(h, "</section>\n</main>\n<script>%s</script>\n</body>\n</html>\n", script)
	return h.Bytes()
}

// htmlPrinter holds the state of one HTML output.
type htmlPrinter struct {
	bytes.Buffer
	// sections and charts count those so far, detail says that the section is one that is
	// folded.
	sections, charts int
	detail           bool
}

// contents lists the sections of a document that has several.
func (h *htmlPrinter) contents(d Document) {
	var headings []string
	for _, b := range d.Blocks {
		if b, ok := b.(Heading); ok {
			headings = append(headings, b.Text)
		}
	}
	if len(headings) < 3 {
		return
	}
	h.WriteString("<nav aria-label=\"Contents\">\n<details>\n<summary>Contents</summary>\n<ol>\n")
	for i, text := range headings {
		fmt.Fprintf(h, "<li><a href=\"#s%d\">%s</a></li>\n", i+1, html.EscapeString(text))
	}
	h.WriteString("</ol>\n</details>\n</nav>\n")
}

func (h *htmlPrinter) element(b Element) {
	switch b := b.(type) {
	case Heading:
		h.heading(b)
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
		fmt.Fprintf(h, "<pre tabindex=\"0\"><code>%s</code></pre>\n", html.EscapeString(breakCommand(b.Text, 100)))
	case Table:
		h.table(b)
	case *Chart:
		h.chart(b)
	}
}

func (h *htmlPrinter) heading(b Heading) {
	h.endDetail()
	h.sections++
	text := html.EscapeString(b.Text)
	if !b.Detail {
		fmt.Fprintf(h, "<h2 id=\"s%d\">%s</h2>\n", h.sections, text)
		return
	}
	if !h.detail {
		h.WriteString("</section>\n<section class=\"details\">\n")
	}
	h.detail = true
	fmt.Fprintf(h, "<details class=\"section\" id=\"s%d\">\n<summary><h2>%s</h2></summary>\n", h.sections, text)
}

func (h *htmlPrinter) endDetail() {
	if h.detail {
		h.WriteString("</details>\n")
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
	for i, row := range tab.Rows {
		h.WriteString("<tr")
		if i < len(tab.Trials) && tab.Trials[i] > 0 {
			fmt.Fprintf(h, " data-trial=\"%d\"", tab.Trials[i])
		}
		h.WriteString(">")
		for k, c := range row {
			shade := ""
			if i < len(tab.Shades) && k < len(tab.Shades[i]) && tab.Shades[i][k] > 0 {
				shade = fmt.Sprintf(" style=\"--heat:%.0f%%\"", 45*tab.Shades[i][k])
			}
			fmt.Fprintf(h, "<td%s%s>%s</td>", class(c.Tone, tab.Columns[k]), shade, html.EscapeString(c.Text))
		}
		h.WriteString("</tr>\n")
	}
	h.WriteString("</tbody>\n</table>\n</div>\n")
}

// chart puts a chart into a figure: as its SVG image, for paper and where scripts do not
// run, as the data that the script draws, and as a table for those who do not see it.
func (h *htmlPrinter) chart(c *Chart) {
	fmt.Fprintf(h, "<figure>\n<figcaption>%s</figcaption>\n", html.EscapeString(c.Title))
	image, err := c.inline()
	data, errData := c.script()
	if c.Empty() || err != nil || errData != nil {
		h.WriteString("<p>Nothing to draw.</p>\n</figure>\n")
		return
	}
	h.charts++
	h.WriteString(image)
	fmt.Fprintf(h, "<script type=\"application/json\">%s</script>\n", data)
	h.WriteString("<details><summary>The points of the chart</summary>\n")
	h.table(c.table())
	h.WriteString("</details>\n</figure>\n")
}

// table lists the points of a chart.
func (c *Chart) table() Table {
	tab := table(left("Series"), right(c.XLabel, c.YLabel), left("Note"))
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !c.drawable(p.X, p.Y) {
				continue
			}
			note := Cell{Text: p.Note}
			if p.Overload {
				note = Cell{Text: strings.TrimPrefix(p.Note+"; overloaded", "; "), Tone: Bad}
			}
			tab.row(s.Name, number(p.X, 3), number(p.Y, 3), note)
			tab.Trials = append(tab.Trials, p.Trial)
		}
	}
	for _, r := range slices.Concat(c.Limits, c.Rates) {
		tab.row(r.Label, "", "", "marked")
	}
	return tab
}

// toneNames are the classes of the style sheet.
var toneNames = [...]string{Plain: "", Strong: "strong", Good: "good", Bad: "bad", Doubt: "doubt", Quiet: "quiet"}

// class is the class attribute of a text in a tone, in the cell of a column if it
// stands in one; empty if it is plain.
func class(t Tone, c Column) string {
	name := toneNames[t]
	switch {
	case c.Right:
		name = strings.TrimSpace("num " + name)
	case c.Wrap:
		name = strings.TrimSpace("wrap " + name)
	}
	if name == "" {
		return ""
	}
	return ` class="` + name + `"`
}

// chartData is a chart as the script of a page takes it: all of it inside its frame.
type chartData struct {
	Title  string      `json:"title"`
	X      axisData    `json:"x"`
	Y      axisData    `json:"y"`
	Series []lineData  `json:"series"`
	Limits []Reference `json:"limits,omitempty"`
	Rates  []Reference `json:"rates,omitempty"`
}

type axisData struct {
	Label string    `json:"label"`
	Low   float64   `json:"low"`
	High  float64   `json:"high"`
	Log   bool      `json:"log,omitempty"`
	Ticks []float64 `json:"ticks"`
}

type lineData struct {
	Name   string         `json:"name"`
	Points []pointData    `json:"points,omitempty"`
	Fit    [][][2]float64 `json:"fit,omitempty"`
	Beyond [][][2]float64 `json:"beyond,omitempty"`
	Band   [][3]float64   `json:"band,omitempty"`
}

type pointData struct {
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	Over  bool    `json:"over,omitempty"`
	Trial int     `json:"trial,omitempty"`
	Text  string  `json:"text"`
}

// script is the chart for the script of a page, as JSON that may stand in an element: the
// encoder escapes what would be markup.
func (c *Chart) script() ([]byte, error) {
	f := c.frame()
	d := chartData{Title: c.Title, X: dataOf(f.x, c.XLabel), Y: dataOf(f.y, c.YLabel), Series: []lineData{}, Limits: f.limits, Rates: f.rates}
	for _, s := range c.Series {
		l := lineData{Name: s.Name, Fit: places(f.stretches(s.Fit)), Beyond: places(f.stretches(s.Beyond))}
		for i, low := range s.Lower {
			if high := s.Upper[i]; f.holds(low.X, low.Y) && high.Y >= low.Y {
				l.Band = append(l.Band, [3]float64{rounded(low.X), rounded(low.Y), rounded(min(high.Y, f.y.high))})
			}
		}
		for _, p := range s.Points {
			if !f.holds(p.X, p.Y) {
				continue
			}
			at := pointData{X: rounded(p.X), Y: rounded(p.Y), Over: p.Overload, Trial: p.Trial, Text: c.told(s.Name, p)}
			if low, high := f.bar(p); low < high && !p.Overload {
				at.Low, at.High = rounded(low), rounded(high)
			}
			l.Points = append(l.Points, at)
		}
		d.Series = append(d.Series, l)
	}
	return json.Marshal(d)
}

// told is a point in words.
func (c *Chart) told(series string, p ChartPoint) string {
	s := fmt.Sprintf("%s: %s at %s", series, number(p.Y, 3), number(p.X, 3))
	if p.Low < p.Y || p.High > p.Y {
		s += fmt.Sprintf(" (%s to %s)", number(p.Low, 3), number(p.High, 3))
	}
	if p.Trial > 0 {
		s += fmt.Sprintf(", trial %d", p.Trial)
	}
	if p.Note != "" {
		s += "; " + p.Note
	}
	if p.Overload {
		s += "; overloaded"
	}
	return s
}

func dataOf(a axis, label string) axisData {
	return axisData{Label: label, Low: a.low, High: a.high, Log: a.log, Ticks: a.ticks(10)}
}

func rounded(v float64) float64 { return round(v, 5) }

func places(lines []plotter.XYs) [][][2]float64 {
	return list.Map(lines, func(line plotter.XYs) [][2]float64 {
		return list.Map(line, func(p plotter.XY) [2]float64 { return [2]float64{rounded(p.X), rounded(p.Y)} })
	})
}

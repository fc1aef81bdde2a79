package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// assets are the page's template, style sheet and script, and those of uPlot 1.6.32, which draws the
// interactive charts (MIT licence, included).
//
//go:embed report.html.tmpl report.css report.js uplot
var assets embed.FS

// HTML prints a document as one file that fetches nothing: style, scripts and charts are inline, and a content
// security policy forbids the rest. All figures are there without scripts as well. The file is also well-formed
// XML.
func HTML(d Document) []byte {
	d = shown(d)
	asset := func(name string) string {
		data, _ := assets.ReadFile(name) // each is embedded
		return string(data)
	}
	// A browser without a locale reports one that its own formats reject, and uPlot uses it.
	const locale = `try { new Intl.NumberFormat(navigator.language) } catch { Object.defineProperty(navigator, "language", { value: "en-US" }) }`
	script := strings.TrimSpace(locale + "\n/*\nuPlot 1.6.32\n" + asset("uplot/LICENSE") + "*/\n" + asset("uplot/uPlot.iife.min.js") + "\n" + asset("report.js"))
	script = "//<![CDATA[\n" + script + "\n//]]>"
	hash := sha256.Sum256([]byte(script))
	policy := fmt.Sprintf(`content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'"`, base64.StdEncoding.EncodeToString(hash[:]))
	page := template.Must(template.New("").Funcs(template.FuncMap{
		"trial": Table.trial, "cell": Table.cell, "drawn": (*Chart).drawn,
		"class":   func(t Tone) template.HTMLAttr { return class(t, Column{}) },
		"set":     func(c Column) template.HTMLAttr { return class(Plain, c) },
		"command": func(s string) string { return breakCommand(s, 100) },
	}).ParseFS(assets, "report.html.tmpl"))
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "page", map[string]any{
		"Title": d.Title, "Sections": sections(d.Blocks), "Policy": template.HTMLAttr(policy),
		"Style": template.CSS(asset("uplot/uPlot.min.css") + asset("report.css")), "Script": template.JS(script),
	}); err != nil {
		panic(err) // a mismatch of template and document
	}
	return b.Bytes()
}

// section is a heading with its blocks; the first of a page has no heading, and the first detail ends the first
// sheet.
type section struct {
	Heading
	Number      int
	FirstDetail bool
	Blocks      []Block
}

func sections(blocks []Block) []section {
	all := []section{{}}
	for _, b := range blocks {
		last := &all[len(all)-1]
		if h := b.Heading; h != nil {
			all = append(all, section{Heading: *h, Number: len(all), FirstDetail: h.Detail && !last.Detail})
			continue
		}
		last.Blocks = append(last.Blocks, b)
	}
	return all
}

func (tab Table) trial(row int) template.HTMLAttr {
	if row >= len(tab.Trials) || tab.Trials[row] == 0 {
		return ""
	}
	return template.HTMLAttr(fmt.Sprintf(` data-trial="%d"`, tab.Trials[row]))
}

// cell returns the attributes of a cell: its class, its intensity in a heat map, or the range of the bar drawn
// in place of its text.
func (tab Table) cell(row, column int) template.HTMLAttr {
	if tab.Bars != nil && tab.Columns[column].Name == "" {
		from, to, way := tab.Bars.span(row)
		return template.HTMLAttr(fmt.Sprintf(` class="bar %s" style="--from:%.1f%%;--to:%.1f%%"`, way, from, to))
	}
	attributes := class(tab.Rows[row][column].Tone, tab.Columns[column])
	if row < len(tab.Shades) && column < len(tab.Shades[row]) && tab.Shades[row][column] > 0 {
		attributes += template.HTMLAttr(fmt.Sprintf(` style="--heat:%.0f%%"`, 45*tab.Shades[row][column]))
	}
	return attributes
}

// drawn returns a chart for a page: its SVG image, for paper and without scripts, the data that the script
// draws, and a table for accessibility. It is nil if there is nothing to draw.
func (c *Chart) drawn() map[string]any {
	image, err := c.inline()
	d := c.drawing()
	d.X.Ticks, d.Y.Ticks = d.X.ticks(10), d.Y.ticks(10)
	data, errData := json.Marshal(d) // with markup escaped, so that it may be in an element
	if c.Empty() || err != nil || errData != nil {
		return nil
	}
	return map[string]any{"Image": template.HTML(image), "Data": template.JS(data), "Points": c.table()}
}

func (c *Chart) table() Table {
	tab := table(left("Series"), right(c.XLabel, c.YLabel), left("Note"))
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !c.drawable(p.X, p.Y) {
				continue
			}
			note := either(p.Overload, Cell{strings.TrimPrefix(p.Note+"; overloaded", "; "), Bad}, Cell{Text: p.Note})
			tab.row(s.Name, number(p.X, 3), number(p.Y, 3), note)
			tab.Trials = append(tab.Trials, p.Trial)
		}
	}
	for _, r := range slices.Concat(c.Limits, c.Rates) {
		tab.row(r.Label, "", "", "marked")
	}
	return tab
}

// class returns the class attribute of text in a tone and column; empty if plain.
func class(t Tone, c Column) template.HTMLAttr {
	tone := [...]string{Plain: "", Strong: "strong", Good: "good", Bad: "bad", Doubt: "doubt", Quiet: "quiet"}[t]
	names := said(where(c.Right, "num"), where(c.Wrap && !c.Right, "wrap"), tone)
	return template.HTMLAttr(where(len(names) > 0, ` class="`+strings.Join(names, " ")+`"`))
}

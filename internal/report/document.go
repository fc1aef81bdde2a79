// Package report prints one report in several formats.
//
// A report is a tree, [Document], of a few kinds of element. [Build] makes it from the answer of a run, and
// [Trace], [Calibration] and others from other results. [Text], [Markdown], [HTML] and [Data.CSV] print it;
// charts are also drawn as image files. JSON needs no document: the domain's types define it.
//
// # Numbers
//
// Every figure has its unit. An estimate is rounded to what its uncertainty supports, and other figures to two
// or three significant digits, except for counts and amounts of money, which are exact. An unknown figure
// prints as "-", never as a number.
package report

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
)

// Document is a report: a title, blocks in reading order, and the figures behind them.
type Document struct {
	Title  string  `json:"title"`
	Blocks []Block `json:"blocks"`
	// Data holds the unrounded figures of the trials under the names used in result files. It is printed only
	// by [Data.CSV].
	Data Data `json:"data"`
	// Sheets are further data, such as a plan's figures for a buyer's calculations.
	Sheets []Sheet `json:"sheets,omitempty"`

	// detailed says that sections added from now on are details.
	detailed bool
}

// Element is a part of a document: a [Heading], [Paragraph], [Facts], [Bullets], [Code], [Table] or [*Chart].
// It may be empty.
type Element interface{ block() (b Block, says bool) }

// Block is an element in the form for printers and files: exactly one field is set.
type Block struct {
	Heading   *Heading   `json:"heading,omitempty"`
	Paragraph *Paragraph `json:"paragraph,omitempty"`
	Facts     Facts      `json:"pairs,omitempty"`
	Bullets   *Bullets   `json:"list,omitempty"`
	Code      *Code      `json:"code,omitempty"`
	Table     *Table     `json:"table,omitempty"`
	Chart     *Chart     `json:"chart,omitempty"`
}

// Heading begins a section.
type Heading struct {
	Text string
	// Detail sections come after the first page, and are folded if the format can.
	Detail bool `json:",omitempty"`
}

// Paragraph is running text.
type Paragraph struct {
	Text string
	Tone Tone
}

// Facts are labelled facts. Those without a text are not shown.
type Facts []Fact

// Fact is one labelled fact.
type Fact struct {
	Label, Text string
	Tone        Tone
}

// Bullets is a list of statements of equal rank. Empty ones are not shown.
type Bullets struct {
	Items []string
	Tone  Tone
}

// Code is text to be copied verbatim, such as a command line.
type Code struct{ Text string }

// Table is a table. Rows have as many cells as there are columns.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]Cell
	// Trials are the trial numbers of the rows, 0 for a row without; empty if no row has one. Shades are the
	// intensities of a heat map's cells, from 0 to 1.
	Trials []int       `json:",omitempty"`
	Shades [][]float64 `json:",omitempty"`
	// Bars, if any, are also drawn as an image file.
	Bars *Bars `json:",omitempty"`
}

// Column is the layout of a column.
type Column struct {
	Name string
	// Right aligns its cells to the right, for numbers.
	Right bool
	// Wrap allows narrow text output to wrap the cells.
	Wrap bool
	// Extra columns go below the rows of a text that is too narrow, starting with the last.
	Extra bool
}

// Cell is one cell of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Tone is the meaning of a statement. The zero value is plain.
type Tone int

// The tones. Printers may colour them, but must not convey anything by colour alone.
const (
	Plain  Tone = iota
	Strong      // the main result
	Good        // a limit that holds
	Bad         // a limit that does not, a failure
	Doubt       // undecided, invalid, a warning
	Quiet       // secondary
)

// Data is a rectangle of figures.
type Data struct {
	Header []string
	Rows   [][]string
}

func (h Heading) block() (Block, bool)   { return Block{Heading: &h}, true }
func (p Paragraph) block() (Block, bool) { return Block{Paragraph: &p}, p.Text != "" }
func (f Facts) block() (Block, bool) {
	f = list.Filter(f, func(x Fact) bool { return x.Text != "" })
	return Block{Facts: f}, len(f) > 0
}
func (l Bullets) block() (Block, bool) {
	l.Items = said(l.Items...)
	return Block{Bullets: &l}, len(l.Items) > 0
}
func (c Code) block() (Block, bool) { return Block{Code: &c}, true }
func (tab Table) block() (Block, bool) {
	return Block{Table: &tab}, len(tab.Rows) > 0 || tab.Caption != ""
}
func (c *Chart) block() (Block, bool) { return Block{Chart: c}, c != nil }

func table(columns ...[]Column) Table { return Table{Columns: slices.Concat(columns...)} }

func left(names ...string) []Column    { return columns(names, Column{}) }
func right(names ...string) []Column   { return columns(names, Column{Right: true}) }
func wrapped(names ...string) []Column { return columns(names, Column{Wrap: true}) }

func columns(names []string, c Column) []Column {
	return list.Map(names, func(name string) Column { c.Name = name; return c })
}

func extra(columns []Column) []Column {
	return list.Map(columns, func(c Column) Column { c.Extra = true; return c })
}

func (tab *Table) row(cells ...any) {
	var row []Cell
	for _, cell := range cells {
		switch cell := cell.(type) {
		case []Cell:
			row = append(row, cell...)
		case Cell:
			row = append(row, cell)
		case int:
			row = append(row, Cell{Text: count(cell)})
		default:
			row = append(row, Cell{Text: fmt.Sprint(cell)})
		}
	}
	tab.Rows = append(tab.Rows, row)
}

// mostRows is the maximum number of rows of a table that grows with the search.
const mostRows = 20

// first cuts a table that grows with the search, and says where the rest is.
func (tab *Table) first(what, where string) {
	if n := len(tab.Rows); n > mostRows {
		tab.Rows = tab.Rows[:mostRows]
		tab.Caption = strings.TrimSpace(fmt.Sprintf("%s The first %d of %s %s; all stand in the %s.", tab.Caption, mostRows, count(n), what, where))
	}
}

// known returns the table without columns of unknown values only.
func (tab Table) known() Table {
	out := Table{Caption: tab.Caption, Rows: make([][]Cell, len(tab.Rows)), Trials: tab.Trials, Bars: tab.Bars}
	for k, c := range tab.Columns {
		if !slices.ContainsFunc(tab.Rows, func(row []Cell) bool { return row[k].Text != unknown && row[k].Text != "" }) {
			continue
		}
		out.Columns = append(out.Columns, c)
		for i, row := range tab.Rows {
			out.Rows[i] = append(out.Rows[i], row[k])
		}
	}
	return out
}

func (d *Document) add(elements ...Element) {
	d.Blocks = append(d.Blocks, list.FilterMap(elements, Element.block)...)
}

// section appends a heading and its elements; nothing if all elements are empty.
func (d *Document) section(title string, elements ...Element) {
	if told := list.FilterMap(elements, Element.block); len(told) > 0 {
		d.add(Heading{title, d.detailed})
		d.Blocks = append(d.Blocks, told...)
	}
}

// each returns a fact for every text, all with one label.
func each(label string, texts []string, tone Tone) Facts {
	return list.Map(texts, func(text string) Fact { return Fact{label, text, tone} })
}

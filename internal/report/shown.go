package report

import (
	"planner/internal/list"
	"planner/internal/printable"
)

// shown is a document with all of its texts as they may be shown: some are those of
// servers, engines and files. Every printer prints what this returns.
func (d Document) shown() Document {
	out := Document{Title: printable.Text(d.Title), Data: shownData(d.Data)}
	for _, s := range d.Sheets {
		out.Sheets = append(out.Sheets, Sheet{s.Name, shownData(s.Data)})
	}
	for _, b := range d.Blocks {
		out.Blocks = append(out.Blocks, shownElement(b))
	}
	return out
}

func shownData(d Data) Data {
	return Data{Header: shownTexts(d.Header), Rows: list.Map(d.Rows, shownTexts)}
}

func shownElement(b Element) Element {
	switch b := b.(type) {
	case Heading:
		return Heading{printable.Text(b.Text), b.Detail}
	case Paragraph:
		b.Text = printable.Text(b.Text)
		return b
	case Facts:
		return Facts(list.Map(b, func(f Fact) Fact { return Fact{printable.Text(f.Label), printable.Text(f.Text), f.Tone} }))
	case Bullets:
		b.Items = shownTexts(b.Items)
		return b
	case Code:
		return Code{printable.Text(b.Text)}
	case Table:
		b.Caption = printable.Text(b.Caption)
		b.Columns = list.Map(b.Columns, func(c Column) Column { c.Name = printable.Text(c.Name); return c })
		b.Rows = list.Map(b.Rows, func(row []Cell) []Cell {
			return list.Map(row, func(c Cell) Cell { return Cell{printable.Text(c.Text), c.Tone} })
		})
		return b
	case *Chart:
		return b.shown()
	}
	return b
}

func shownTexts(texts []string) []string { return list.Map(texts, printable.Text) }

func (c *Chart) shown() *Chart {
	out := *c
	out.Title, out.XLabel, out.YLabel = printable.Text(c.Title), printable.Text(c.XLabel), printable.Text(c.YLabel)
	out.Series = list.Map(c.Series, func(l Line) Line {
		l.Name = printable.Text(l.Name)
		l.Points = list.Map(l.Points, func(p ChartPoint) ChartPoint { p.Note = printable.Text(p.Note); return p })
		return l
	})
	label := func(r Reference) Reference { return Reference{r.At, printable.Text(r.Label)} }
	out.Limits, out.Rates = list.Map(c.Limits, label), list.Map(c.Rates, label)
	return &out
}

package report

import (
	"encoding/json"
	"fmt"
)

// storedBlock is a [Block] in a file: just one of its fields is set.
type storedBlock struct {
	Heading   *Heading   `json:"heading,omitempty"`
	Paragraph *Paragraph `json:"paragraph,omitempty"`
	Facts     Facts      `json:"pairs,omitempty"`
	Bullets   *Bullets   `json:"list,omitempty"`
	Code      *Code      `json:"code,omitempty"`
	Table     *Table     `json:"table,omitempty"`
	Chart     *Chart     `json:"chart,omitempty"`
}

// storedDocument is a [Document] in a file.
type storedDocument struct {
	Title  string        `json:"title"`
	Blocks []storedBlock `json:"blocks"`
	Data   Data          `json:"data"`
}

// MarshalJSON writes a document so that it can be printed again as it was.
func (d Document) MarshalJSON() ([]byte, error) {
	s := storedDocument{Title: d.Title, Data: d.Data}
	for _, b := range d.Blocks {
		var x storedBlock
		switch b := b.(type) {
		case Heading:
			x.Heading = &b
		case Paragraph:
			x.Paragraph = &b
		case Facts:
			x.Facts = b
		case Bullets:
			x.Bullets = &b
		case Code:
			x.Code = &b
		case Table:
			x.Table = &b
		case *Chart:
			x.Chart = b
		}
		s.Blocks = append(s.Blocks, x)
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Document) UnmarshalJSON(data []byte) error {
	var s storedDocument
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read a stored report: %w", err)
	}
	*d = Document{Title: s.Title, Data: s.Data}
	for _, x := range s.Blocks {
		switch {
		case x.Heading != nil:
			d.add(*x.Heading)
		case x.Paragraph != nil:
			d.add(*x.Paragraph)
		case x.Bullets != nil:
			d.add(*x.Bullets)
		case x.Code != nil:
			d.add(*x.Code)
		case x.Table != nil:
			d.add(*x.Table)
		case x.Chart != nil:
			d.add(x.Chart)
		default:
			d.add(x.Facts)
		}
	}
	return nil
}

package report

import (
	"encoding/json"
	"fmt"
)

// storedDocument is a [Document] in a file: each element stands under its kind.
type storedDocument struct {
	Title  string               `json:"title"`
	Blocks []map[string]Element `json:"blocks"`
	Data   Data                 `json:"data"`
	Sheets []Sheet              `json:"sheets,omitempty"`
}

// MarshalJSON writes a document so that it can be printed again as it was.
func (d Document) MarshalJSON() ([]byte, error) {
	s := storedDocument{Title: d.Title, Data: d.Data, Sheets: d.Sheets}
	for _, b := range d.Blocks {
		s.Blocks = append(s.Blocks, map[string]Element{b.kind(): b})
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Document) UnmarshalJSON(data []byte) error {
	var s struct {
		storedDocument
		Blocks []map[string]json.RawMessage `json:"blocks"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read a stored report: %w", err)
	}
	*d = Document{Title: s.Title, Data: s.Data, Sheets: s.Sheets}
	for _, x := range s.Blocks {
		for kind, data := range x {
			read, ok := readers[kind]
			if !ok {
				return fmt.Errorf("read a stored report: unknown element %q", kind)
			}
			b, err := read(data)
			if err != nil {
				return fmt.Errorf("read a stored report: %w", err)
			}
			d.add(b)
		}
	}
	return nil
}

// readers read the elements by their kind.
var readers = map[string]func([]byte) (Element, error){
	Heading{}.kind(): read[Heading], Paragraph{}.kind(): read[Paragraph], Facts{}.kind(): read[Facts], Bullets{}.kind(): read[Bullets],
	Code{}.kind(): read[Code], Table{}.kind(): read[Table], (*Chart)(nil).kind(): read[*Chart],
}

func read[E Element](data []byte) (Element, error) {
	var e E
	err := json.Unmarshal(data, &e)
	return e, err
}

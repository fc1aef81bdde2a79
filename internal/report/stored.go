package report

import (
	"encoding/json"
	"fmt"

	"planner/internal/list"
)

// plainDocument is a [Document] in a file, but for its elements: each stands under its kind.
type plainDocument Document

// MarshalJSON writes a document so that it can be printed again as it was.
func (d Document) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainDocument
		Blocks []map[string]Element `json:"blocks"`
	}{plainDocument(d), list.Map(d.Blocks, func(b Element) map[string]Element { return map[string]Element{b.kind(): b} })})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Document) UnmarshalJSON(data []byte) error {
	var s struct {
		plainDocument
		Blocks []map[string]json.RawMessage `json:"blocks"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read a stored report: %w", err)
	}
	*d = Document(s.plainDocument)
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

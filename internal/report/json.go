package report

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// JSON writes a plan, a measurement or a search as its type marshals itself: one
// document, indented, without a line break at its end.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write the report as JSON: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

package report

import (
	"fmt"

	"planner/internal/wire"
)

// JSON writes a plan, a measurement or a search as its type marshals itself: one
// document, indented, without a line break at its end.
func JSON(v any) ([]byte, error) {
	data, err := wire.Print(v)
	if err != nil {
		return nil, fmt.Errorf("write the report as JSON: %w", err)
	}
	return data, nil
}

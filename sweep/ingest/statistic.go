package ingest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// statistic is one figure of a latency in a JSON file. Tools write null, or NaN, where
// they could not compute it: that is another thing than a figure they do not have.
type statistic struct {
	value *float64
	// void says that the figure is there without a value.
	void bool
}

// UnmarshalJSON reads a number or null.
func (s *statistic) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*s = statistic{void: true}
		return nil
	}
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = statistic{value: &v}
	return nil
}

// leaveOut remembers a figure of the load point being read that has no value.
func (p *pointReader) leaveOut(field string) { p.void = append(p.void, field) }

// doubt is what is to be said of the load point that was read if figures of it have no
// value. The same goes, with the point's place, into what is said of the file.
func (p *pointReader) doubt(place string) string {
	if len(p.void) == 0 {
		return ""
	}
	what := strings.Join(p.void, ", ")
	p.void = nil
	p.doubts = append(p.doubts, fmt.Sprintf("%s: %s %s", place, what, withoutValue))
	return what + " " + withoutValue
}

const withoutValue = "null or NaN in the file: left out, and whatever it would have shown is not known"

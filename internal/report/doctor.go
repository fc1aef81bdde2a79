package report

import "fmt"

// CheckState says how a check came out. The zero value is Problem: what was not
// looked at is not in order.
type CheckState int

// The states of a check.
const (
	Problem CheckState = iota
	Warning
	Passed
)

var checkNames = []string{"problem", "warning", "ok"}

// String is the state's name in files.
func (s CheckState) String() string {
	if s < Problem || s > Passed {
		return "problem"
	}
	return checkNames[s]
}

// MarshalText writes the state's name.
func (s CheckState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Check is one thing that was looked at.
type Check struct {
	Name  string     `json:"name"`
	State CheckState `json:"state"`
	// Found is what was seen, Remedy what to do about it; empty if nothing needs to
	// be done.
	Found  string `json:"found"`
	Remedy string `json:"remedy"`
}

// Doctor builds the report of checks, one a line.
func Doctor(checks []Check) Document {
	d := Document{Title: diagnosis(checks), Data: Data{Header: []string{"check", "state", "found", "remedy"}}}
	var lines Facts
	for _, c := range checks {
		line := Fact{Label: c.Name, Text: c.State.String() + ": " + c.Found, Tone: map[CheckState]Tone{Passed: Good, Warning: Doubt, Problem: Bad}[c.State]}
		if c.Remedy != "" {
			line.Text += " -> " + c.Remedy
		}
		lines = append(lines, line)
		d.Data.Rows = append(d.Data.Rows, []string{c.Name, c.State.String(), c.Found, c.Remedy})
	}
	d.add(lines)
	return d
}

// diagnosis sums up.
func diagnosis(checks []Check) string {
	n := map[CheckState]int{}
	for _, c := range checks {
		n[c.State]++
	}
	switch {
	case n[Problem] > 0:
		return fmt.Sprintf("%s and %s in %s", plural(n[Problem], "problem"), plural(n[Warning], "warning"), plural(len(checks), "check"))
	case n[Warning] > 0:
		return fmt.Sprintf("No problem, %s in %s", plural(n[Warning], "warning"), plural(len(checks), "check"))
	}
	return "All " + plural(len(checks), "check") + " passed"
}

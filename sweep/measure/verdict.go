package measure

import (
	"fmt"
	"slices"
)

// State is what is known of an objective. The zero value is Unsure, so that
// what was never judged is never met.
type State int

// The three states of a verdict.
const (
	Unsure State = iota
	Met
	Missed
)

var stateNames = []string{"unsure", "met", "missed"}

// String is the state's name in files.
func (s State) String() string { return stateNames[s] }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name; one that is unknown is an error, never a
// state.
func (s *State) UnmarshalText(b []byte) error {
	i := slices.Index(stateNames, string(b))
	if i < 0 {
		return fmt.Errorf("unknown verdict %q", b)
	}
	*s = State(i)
	return nil
}

// Verdict says whether a measurement meets its objective, and which bound
// decides.
type Verdict struct {
	State State `json:"state"` // met, missed or unsure
	// Binding names the bound that is missed or nearest to it, or [ErrorsBound].
	Binding string `json:"binding"`
	// Slack is how far the binding statistic stays below its limit, as a share
	// of the limit; negative when it is above.
	Slack float64 `json:"slack"`
}

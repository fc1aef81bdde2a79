package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"planner/internal/note"
	"planner/sweep"
	"planner/sweep/measure"
)

// An interruption decides the exit code, whatever came with it.
func TestInterruptionDecidesTheExitCode(t *testing.T) {
	stopped := fmt.Errorf("%w after 3 trials", sweep.ErrInterrupted)
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, exitDone},
		{"undecided", exitStatus(exitUndecided), exitUndecided},
		{"interrupted", stopped, exitInterrupted},
		{"interrupted and undecided", errors.Join(stopped, exitStatus(exitUndecided)), exitInterrupted},
		{"undecided and interrupted", errors.Join(exitStatus(exitUndecided), stopped), exitInterrupted},
		{"interrupted and unable", errors.Join(&measure.Rejection{Reason: note.Text("no memory").Reason()}, stopped), exitInterrupted},
	} {
		code, message := exitCode(c.err)
		if code != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, code, c.want)
		}
		if code == exitInterrupted && !strings.Contains(message, "interrupted") {
			t.Errorf("%s: message %q does not say so", c.name, message)
		}
	}
}

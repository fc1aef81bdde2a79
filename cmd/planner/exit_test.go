package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/evidence/programtest"
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

// SIGTERM ends a simulated run that keeps nothing without waiting for what it would have said.
func TestSIGTERMEndsWhatKeepsNothing(t *testing.T) {
	t.Parallel()
	cmd := planner(t, t.TempDir(), "estimate", "--model", "llama-3.1-8b", "--gpu", "L40S", "--workload", "chat", "--rate", "5",
		"--slo", "ttft.p99=1s", "--set", "workload.turns=200", "--verbose")
	var stderr programtest.Transcript
	cmd.Stderr = &stderr
	must.OK(cmd.Start())
	waitFor(t, func() bool { return strings.Contains(stderr.String(), "trial 1") })
	began := time.Now()
	must.OK(cmd.Process.Signal(syscall.SIGTERM))
	cmd.Wait()
	if took, code := time.Since(began), cmd.ProcessState.ExitCode(); took > 5*time.Second || code != exitInterrupted {
		t.Errorf("exit code %d after %v: %s", code, took, stderr.String())
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/measure"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInfeasible  = 3
	exitUndecided   = 4
	exitInterrupted = 130
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

// Error says what is wrong with the command line.
func (u usageError) Error() string { return u.err.Error() }

// Unwrap returns the mistake itself.
func (u usageError) Unwrap() error { return u.err }

// usagef makes a usage error.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// asMistake marks what cannot be made of a configuration as a mistake in it, but for what
// cannot run.
func asMistake(err error) error {
	if _, rejected := measure.IsRejection(err); err == nil || rejected {
		return err
	}
	return usageError{err}
}

// exitStatus ends a command whose output is complete with a code that is not 0.
type exitStatus int

// Error names the exit code. Nobody reads it: the output says why.
func (o exitStatus) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// ended ends a command by the state of its answer.
func ended(s sweep.State) error {
	if code := s.ExitCode(); code != exitDone {
		return exitStatus(code)
	}
	return nil
}

// exitCode is the one place that turns an error into an exit code and a message
// for standard error.
func exitCode(err error) (code int, message string) {
	var problems config.Problems
	var usage usageError
	var end exitStatus
	var unable *measure.Rejection
	switch {
	case err == nil:
		return exitDone, ""
	case errors.Is(err, sweep.ErrInterrupted):
		// First of all: what was found until then has no say in how it ended.
		return exitInterrupted, "planner: " + err.Error()
	case errors.As(err, &end):
		return int(end), ""
	case errors.As(err, &problems):
		return exitUsage, strings.TrimRight(problems.Error(), "\n")
	case errors.As(err, &usage):
		return exitUsage, "planner: " + err.Error()
	case errors.As(err, &unable) && !measure.Broke(unable.Reason):
		return exitInfeasible, "planner: " + err.Error()
	case errors.Is(err, context.Canceled):
		return exitInterrupted, "planner: " + err.Error()
	}
	return exitFailed, "planner: " + err.Error()
}

// Planner answers how many GPUs, which server flags and what cost a traffic and
// a service-level objective ask for, with an interval.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"

	"planner/internal/config"
	"planner/internal/printable"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// version is what --version prints; the build sets it with -ldflags
// "-X main.version=...".
var version = "0.1.0"

// revision is that of the source, "" where the build did not note it.
func revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func main() {
	if code, ran := engine.Guard(os.Args); ran {
		os.Exit(code)
	}
	beFrugal()
	log.SetOutput(io.Discard) // of net/http, which tells there what servers say unasked, secrets and all
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := &interrupts{exit: os.Exit}
	signals.watch(cancel)
	os.Exit(execute(ctx, os.Args, os.Stdout, os.Stderr, signals))
}

// execute is the whole program but for the process around it.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, signals *interrupts) int {
	app := newApp(stdout, stderr, signals)
	err := app.RunContext(ctx, permute(app, args))
	code, message := exitCode(err)
	if message != "" {
		fmt.Fprintln(printable.Writer(stderr), message)
	}
	return code
}

// beFrugal has memory collected more often where files of users take much of it. What is
// read of any is bounded, so that this is enough.
func beFrugal() { debug.SetMemoryLimit(400 << 20) }

// beLavish has it collected rarely: trials are short-lived heaps of records, and a few
// hundred megabytes are worth it, to a load generator too.
func beLavish() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(math.MaxInt64)
}

// interrupts turns signals into ends. Ctrl-C ends a command at once, unless the
// command has asked for patience: then the first one only asks it to finish the
// trial that runs and to report, and a second one ends it. SIGTERM always ends. The
// second signal of any kind leaves engines no time to end by themselves either, and
// ends the process itself where nothing has been started: it may wait for what never
// comes, from a pipe that nobody writes to.
type interrupts struct {
	patient, asked atomic.Bool
	// exit ends the process; nil where none may.
	exit func(code int)
	// hurry is closed by the second signal; nil where nobody listens to signals.
	hurry chan struct{}
	// say, if set, answers the first Ctrl-C of a patient command.
	say atomic.Pointer[func(string)]
}

// watch begins to listen; cancel ends the program's work.
func (i *interrupts) watch(cancel context.CancelFunc) {
	i.hurry = make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			s := <-signals
			if n == 2 {
				close(i.hurry)
				if i.exit != nil && !i.patient.Load() {
					i.exit(exitInterrupted)
				}
			}
			if s == syscall.SIGTERM || !i.patient.Load() || i.asked.Swap(true) {
				cancel()
				continue
			}
			if say := i.say.Load(); say != nil {
				(*say)("finishing the trial that runs, then reporting; Ctrl-C once more stops now")
			}
		}
	}()
}

// patience makes the first Ctrl-C gentle and returns the question whether it
// has come. say is told in words what it does.
func (i *interrupts) patience(say func(string)) (enough func() bool) {
	i.say.Store(&say)
	i.patient.Store(true)
	return i.asked.Load
}

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
type usageError struct{ error }

// Unwrap returns the mistake itself.
func (u usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// asMistake marks what cannot be made of a configuration as a mistake in it, but for what
// cannot run.
func asMistake(err error) error {
	if _, rejected := errors.AsType[*measure.Rejection](err); err == nil || rejected {
		return err
	}
	return usageError{err}
}

// exitStatus ends a command whose output is complete.
type exitStatus int

// Error names the exit code. Nobody reads it: the output says why.
func (o exitStatus) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// ended ends a command by the state of its answer.
func ended(s sweep.StudyState) error {
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

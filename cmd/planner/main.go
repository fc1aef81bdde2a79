// Planner answers how many GPUs, which server flags and what cost a traffic and a service-level objective
// require, with an interval.
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
	"planner/internal/list"
	"planner/internal/printable"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// version is what --version prints; the build sets it with -ldflags
// "-X main.version=...".
var version = "0.1.0"

// revision returns the revision of the source; "" if the build did not record it.
func revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	s, _ := list.Find(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	return s.Value
}

func main() {
	if code, ran := engine.Guard(os.Args); ran {
		os.Exit(code)
	}
	beFrugal()
	log.SetOutput(io.Discard) // net/http logs unsolicited responses, which may contain secrets
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := &interrupts{exit: os.Exit}
	signals.watch(cancel)
	os.Exit(execute(ctx, os.Args, os.Stdout, os.Stderr, signals))
}

// execute is the whole program except for process-level matters.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, signals *interrupts) int {
	app := newApp(stdout, stderr, signals)
	err := app.RunContext(ctx, permute(app, args))
	code, message := exitCode(err)
	if message != "" {
		fmt.Fprintln(printable.Writer(stderr), message)
	}
	return code
}

// beFrugal makes garbage collection more frequent when user files take much memory. Reads are bounded, so that
// this is enough.
func beFrugal() { debug.SetMemoryLimit(400 << 20) }

// beLavish makes it rare: the heaps of trials are short-lived records, and a few hundred megabytes are worth
// it, also in a load generator.
func beLavish() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(math.MaxInt64)
}

// interrupts handles signals. Ctrl-C ends a command at once, unless the command has asked for patience: then
// the first one only asks it to finish the running trial and to report, and a second one ends it. SIGTERM
// always ends it. A second signal of any kind also leaves engines no time to stop by themselves, and ends the
// process itself if the command has not asked for patience: it may be waiting for input that never comes, such
// as from a pipe.
type interrupts struct {
	patient, asked atomic.Bool
	// fleeting says that nothing would be lost, so that SIGTERM ends the process itself.
	fleeting atomic.Bool
	// exit ends the process; nil if that is not allowed.
	exit func(code int)
	// hurry is closed by the second signal; nil if signals are not watched.
	hurry chan struct{}
	// say, if set, reports the first Ctrl-C of a patient command.
	say atomic.Pointer[func(string)]
}

// watch starts handling signals; cancel ends the program's work.
func (i *interrupts) watch(cancel context.CancelFunc) {
	i.hurry = make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			s := <-signals
			if s == syscall.SIGTERM && i.fleeting.Load() && i.exit != nil {
				i.exit(exitInterrupted)
			}
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

// patience makes the first Ctrl-C gentle and returns a function that reports whether it has come. say is told
// its effect.
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

// asMistake marks a failure to use a configuration as a mistake in it, unless it is a rejection.
func asMistake(err error) error {
	if _, rejected := errors.AsType[*measure.Rejection](err); err == nil || rejected {
		return err
	}
	return usageError{err}
}

// exitStatus ends a command whose output is complete.
type exitStatus int

// Error names the exit code. It is not shown: the output says why.
func (o exitStatus) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// ended returns the exit status for the state of an answer.
func ended(s sweep.StudyState) error {
	if code := s.ExitCode(); code != exitDone {
		return exitStatus(code)
	}
	return nil
}

// exitCode is the only place that maps an error to an exit code and a message for standard error.
func exitCode(err error) (code int, message string) {
	var problems config.Problems
	var usage usageError
	var end exitStatus
	var unable *measure.Rejection
	switch {
	case err == nil:
		return exitDone, ""
	case errors.Is(err, sweep.ErrInterrupted):
		// Checked first: results found before the interrupt do not affect the exit code.
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

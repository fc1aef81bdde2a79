package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"planner/internal/list"
	"planner/internal/secret"
)

// The guard is a small process between planner and one engine: this program again, under another
// first argument. It is the parent of the engine and, on Linux, of every descendant of the engine
// that loses its own parent, whatever session or group it moved to. It ends them all when planner
// asks for it or when planner is gone, which it notices as the end of its standard input: kill -9
// closes that too. It exits only when none of them is left.
//
// Alternatives considered: a death signal on the engine alone misses its descendants; marking
// processes through their environment misses those that write their title over it, as vLLM does; a
// shell that waits on a pipe cannot adopt orphans. If the guard itself is killed, the death signal
// kills the engine's first process, and planner then kills the rest of the group.

// guardArg is the first argument of a guard.
const guardArg = "__engine-guard"

// File descriptors of a guard in addition to standard input, which carries commands.
const (
	statusFD = 3
	logFD    = 4
)

// HastyGrace is how long an engine may take to end if it failed or its planner is gone.
const HastyGrace = 2 * time.Second

// Guard turns the process into the guard of an engine if it was started as one; it then returns,
// once everything is over, the code to exit with. A program that starts engines calls it first
// thing, with its arguments.
func Guard(args []string) (code int, ran bool) {
	if len(args) < 2 || args[1] != guardArg {
		return 0, false
	}
	var o order
	commands := json.NewDecoder(os.Stdin)
	if err := commands.Decode(&o); err != nil || len(o.Args) == 0 {
		return 2, true
	}
	// A process that still held these when the guard is gone would keep planner from noticing.
	syscall.CloseOnExec(statusFD)
	syscall.CloseOnExec(logFD)
	// The death signal of a child is bound to the thread that started it, and its priority is that
	// thread's.
	runtime.LockOSThread()
	// Caught and dropped, not ignored: the engine would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT)
	g := &supervisor{status: json.NewEncoder(os.NewFile(statusFD, "status")), alone: make(chan struct{}), copied: make(chan struct{})}
	if err := g.start(o, os.NewFile(logFD, "log")); err != nil {
		g.tell(guardReport{Error: err.Error()})
		return 1, true
	}
	g.watch(commands)
	g.tell(guardReport{Gone: true, Strays: g.strays})
	return 0, true
}

// guardReport is one line that a guard sends to planner.
type guardReport struct {
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
	// Exit is how the engine's first process ended.
	Exit *syscall.WaitStatus `json:"exit,omitempty"`
	// Gone says that nothing of the engine is left; Strays names the processes that had left its
	// process group and had to be killed.
	Gone   bool     `json:"gone,omitempty"`
	Strays []string `json:"strays,omitempty"`
}

func exitText(status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("killed by signal %d (%v)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// supervisor is the state of a guard.
type supervisor struct {
	status *json.Encoder
	pid    int
	exited chan syscall.WaitStatus
	// alone is closed when no child is left, copied when the log is complete.
	alone, copied chan struct{}
	strays        []string
}

func (g *supervisor) tell(r guardReport) { _ = g.status.Encode(r) }

// start starts the engine in a process group of its own.
func (g *supervisor) start(o order, log *os.File) error {
	if err := adoptOrphans(); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	yield()
	asText := func(b []byte) string { return string(b) }
	argv, env := list.Map(o.Args, asText), list.Map(o.Env, asText)
	process, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: env, Files: []*os.File{null, in, in}, Sys: ownGroup()})
	if err != nil {
		return err
	}
	in.Close()
	null.Close()
	g.pid = process.Pid
	g.exited = make(chan syscall.WaitStatus, 1)
	g.tell(guardReport{PID: g.pid})
	go func() {
		kept := secret.In(env, o.Secrets...).Writer(log)
		copyLog(kept, out, o.LogBytes)
		_ = kept.Flush() // a failed write is as little use to report as those before it
		close(g.copied)
	}()
	go g.reap()
	return nil
}

// reap waits for every child, adopted ones included. Nothing else does.
func (g *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD: none is left
			close(g.alone)
			return
		case pid == g.pid && (status.Exited() || status.Signaled()):
			g.exited <- status
		}
	}
}

// watch waits until the engine ends, or ends it when told to, and makes sure that nothing is left.
func (g *supervisor) watch(told *json.Decoder) {
	commands := make(chan time.Duration, 2)
	go readCommands(told, commands)
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	go func() {
		<-terminate
		commands <- HastyGrace
	}()
	g.await(commands)
	g.clear()
	select {
	case <-g.copied:
	case <-time.After(HastyGrace):
	}
}

// readCommands passes on how long the engine may take to end: whatever planner sends, each time,
// and HastyGrace once planner is gone.
func readCommands(commands *json.Decoder, out chan<- time.Duration) {
	for {
		grace := HastyGrace
		err := commands.Decode(&grace)
		out <- grace
		if err != nil {
			return
		}
	}
}

// await waits for the end of the engine's first process. The first command has its group asked to
// end, then killed after the grace, which further commands can shorten.
func (g *supervisor) await(commands <-chan time.Duration) {
	var deadline time.Time
	var limit <-chan time.Time
	for {
		select {
		case e := <-g.exited:
			g.tell(guardReport{Exit: &e})
			return
		case grace := <-commands:
			if deadline.IsZero() && grace > 0 {
				_ = syscall.Kill(-g.pid, syscall.SIGTERM)
			}
			if until := time.Now().Add(grace); deadline.IsZero() || until.Before(deadline) {
				deadline, limit = until, time.After(grace)
			}
		case <-limit:
			_ = syscall.Kill(-g.pid, syscall.SIGKILL)
		}
	}
}

// clear gives what the engine left behind a moment to end by itself, and then kills until nothing
// is left. Processes orphaned by that are this process's children in the next round.
func (g *supervisor) clear() {
	const moment, again = 500 * time.Millisecond, 50 * time.Millisecond
	wait := moment
	for {
		select {
		case <-g.alone:
			return
		case <-time.After(wait):
		}
		wait = again
		_ = syscall.Kill(-g.pid, syscall.SIGKILL)
		for _, p := range children(os.Getpid()) {
			name := fmt.Sprintf("%s (%d)", p.Comm, p.PID)
			if p.PGRP != g.pid && p.State != "Z" && len(g.strays) < 16 && !slices.Contains(g.strays, name) {
				g.strays = append(g.strays, name)
			}
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"planner/internal/list"
	"planner/internal/secret"
)

// child is an engine that runs under its guard.
type child struct {
	guard *exec.Cmd
	// control is sent how long the engine may take to end.
	control *json.Encoder
	pid     int
	// exited is closed when the engine's first process has ended, gone when nothing of it is left.
	// exit may be read after exited, strays and lost after gone.
	exited, gone chan struct{}
	exit         syscall.WaitStatus
	strays       []string
	// lost: the guard ended without a report, so what it guarded may still run.
	lost bool

	log *logReader
	// memory is how many bytes of each GPU were in use before the start.
	memory []float64
	end    sync.Once
}

// order is what a guard is to start. It is sent through a pipe: the guard's arguments are visible
// to the whole machine, its environment to all processes of the user. Arguments need not be valid
// UTF-8, as JSON strings must, hence bytes.
type order struct {
	Args, Env [][]byte
	// Secrets names the variables whose values are kept out of the log, of which LogBytes bytes are
	// kept.
	Secrets  []string
	LogBytes int64
}

func (s *Settings) order(c Command) (order, error) {
	args, env, err := c.expand()
	if err != nil {
		return order{}, fmt.Errorf("engine: %w", err)
	}
	asBytes := func(text string) []byte { return []byte(text) }
	return order{list.Map(args, asBytes), list.Map(env, asBytes), s.secretNames(), s.LogBytes}, nil
}

// harmless returns the environment without what is secret in it.
func (o *order) harmless() []string {
	all := list.Map(o.Env, func(b []byte) string { return string(b) })
	secrets := secret.In(all, o.Secrets...)
	return slices.DeleteFunc(all, secrets.Holds)
}

// startProcess starts what an order made of the command c says, with its output going to the file
// log.
func startProcess(c Command, o order, log *os.File) (*child, error) {
	program, err := c.Program()
	if err != nil {
		return nil, err
	}
	o.Args[0] = []byte(program)
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find planner's own program: %w", err)
	}
	fromGuard, status, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer status.Close()
	cmd := exec.Command(self, guardArg)
	cmd.Args[0] = os.Args[0] // programs that act on the name they are called by keep it
	cmd.Env = o.harmless()
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{status, log}
	// Ctrl-C at the terminal is for planner, which decides what it means. The guard stays in
	// planner's session: where the kernel first divides processors between sessions (Linux's
	// autogroups), an engine in its own session with a lower priority would still take as much as
	// the load generator, and make it seconds late.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	control, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fromGuard.Close()
		return nil, fmt.Errorf("start the guard of the engine: %w", err)
	}
	p := &child{guard: cmd, control: json.NewEncoder(control), exited: make(chan struct{}), gone: make(chan struct{})}
	// A program that is no guard may never read it; greet kills such a program.
	go func() { _ = p.control.Encode(o) }()
	if err := p.greet(fromGuard, program); err != nil {
		<-p.gone
		return nil, err
	}
	return p, nil
}

// greeting is how long a guard may take to start the engine.
const greeting = 30 * time.Second

// greet waits until the guard has started the engine, and then follows its reports.
func (p *child) greet(status *os.File, program string) error {
	reports := json.NewDecoder(status)
	var first guardReport
	_ = status.SetReadDeadline(time.Now().Add(greeting))
	err := reports.Decode(&first)
	_ = status.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		// A program that is no guard may do anything: it is not left running.
		_ = p.guard.Process.Kill()
		err = errors.New("the guard of the engine said nothing: does this program call engine.Guard?")
	case first.Error != "":
		err = fmt.Errorf("start %s: %s", program, first.Error)
	}
	p.pid = first.PID
	go func() {
		defer status.Close()
		p.follow(reports)
	}()
	return err
}

// follow reads the guard's reports until it ends. Nothing else waits for the guard process.
func (p *child) follow(reports *json.Decoder) {
	exited, gone := false, false
	for {
		var r guardReport
		if reports.Decode(&r) != nil {
			break
		}
		if r.Exit != nil && !exited {
			p.exit, exited = *r.Exit, true
			close(p.exited)
		}
		if r.Gone {
			p.strays, gone = r.Strays, true
		}
	}
	_ = p.guard.Wait()
	if !gone && p.pid > 0 {
		p.lost = true
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	if !exited {
		p.exit = 0xff << 8 // unknown
		close(p.exited)
	}
	close(p.gone)
}

// stop ends the engine, everything that it started, and the reading of its log, once. The grace is
// over when hurry is closed.
func (p *child) stop(grace time.Duration, hurry <-chan struct{}) (err error) {
	p.end.Do(func() {
		err = p.kill(grace, hurry)
		p.log.close()
	})
	return err
}

func (p *child) kill(grace time.Duration, hurry <-chan struct{}) error {
	// If the guard has ended already, there is nobody to tell.
	_ = p.control.Encode(grace)
	const slack = 30 * time.Second
	limit := time.NewTimer(grace + slack)
	defer limit.Stop()
	for {
		select {
		case <-p.gone:
			return nil
		case <-hurry:
			_ = p.control.Encode(time.Duration(0))
			limit.Reset(slack)
			hurry = nil
		case <-limit.C:
			return fmt.Errorf("engine: process group %d is still there %v after it was killed", p.pid, slack)
		}
	}
}

// children returns the processes whose parent is pid, from /proc; none where there is no /proc.
func children(pid int) []procfs.ProcStat {
	all, _ := procfs.AllProcs()
	return list.FilterMap(all, func(p procfs.Proc) (procfs.ProcStat, bool) {
		stat, err := p.Stat()
		return stat, err == nil && stat.PPID == pid // the error is that of a process that has ended meanwhile
	})
}

// freePort finds a port that nobody listens on. If somebody takes it before the engine does, the
// start fails with portTaken and is worth another try.
func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("engine: find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func closed(at string, limit time.Duration) bool {
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if dial(context.Background(), at, time.Second) != nil {
			return true
		}
		if time.Since(start) > limit {
			return false
		}
	}
}

package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"planner/sweep/measure"
)

// Engine is a running engine that serves requests. [Start] makes it.
type Engine struct {
	// Knobs are those that it was started with; Command is how it was started, empty if it was
	// running already.
	Knobs   measure.Knobs
	Command Command
	// URL is where it listens, Kind the kind of engine.
	URL, Kind string
	Facts     ServerFacts
	// Stages are the parts of its start in order; those that the log does not tell apart count as the
	// last of them. Cold is how long the start, or reaching a running server, took in all.
	Stages []StartStage
	Cold   time.Duration
	// Log is the path of its log, "" if there is none on this machine.
	Log string
	// Unprobed is the error of the probe if the engine never answers that but does answer requests.
	Unprobed error

	adapter  *adapter
	settings *Settings
	// prompt is what the last completion sent; served says that one was answered during the start.
	prompt any
	served bool
	// process is nil for an engine that planner did not start.
	process *child
}

// Start starts an engine with knobs k, or reaches one that already runs, and returns once it has
// answered a request; its files are named name. An error of type *[Failure] says why it cannot
// serve; nothing of it is left then, unless the error also says so. watch, if set, is told of the
// stage of the start and the last line of the log, at most once a second.
func Start(ctx context.Context, s Settings, k measure.Knobs, name string, watch func(stage, line string, elapsed time.Duration)) (*Engine, error) {
	a, err := adapterOf(s.Kind)
	if err != nil {
		return nil, err
	}
	s.Timeouts, s.LogBytes = s.Timeouts.filled(), cmp.Or(s.LogBytes, 64<<20)
	e := &Engine{Knobs: k, Kind: s.Kind, URL: s.URL, adapter: a, settings: s.of(k)}
	if a.kind == attach.kind {
		return e, e.attach(ctx, watch)
	}
	started := time.Now()
	if err := e.launch(name); err != nil {
		return nil, err
	}
	err = e.await(ctx, watch)
	if err == nil {
		err = e.examine(ctx, watch)
	}
	if err != nil {
		if left := e.Stop(HastyGrace); left != nil {
			err = fmt.Errorf("%w; then %w", err, left)
		}
		return nil, err
	}
	e.Cold = time.Since(started)
	return e, nil
}

func (e *Engine) launch(name string) error {
	s := e.settings
	port, err := freePort()
	if err != nil {
		return err
	}
	e.Command, err = s.Command(e.Knobs, port)
	if err == nil {
		e.Command, err = s.spread(e.Command, e.Knobs)
	}
	if err != nil {
		return err
	}
	e.URL = fmt.Sprintf("http://%s:%d", loopback, port)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("engine: make the folder of its log: %w", err)
	}
	log, err := e.files(name)
	if err != nil {
		return err
	}
	defer log.Close()
	reader, err := openLog(e.Log, e.adapter, s.secrets())
	if err != nil {
		return fmt.Errorf("engine: read its log: %w", err)
	}
	order, err := s.order(e.Command)
	if err != nil {
		reader.close()
		return err
	}
	if s.Launching != nil {
		s.Launching(e.Command)
	}
	memory := memoryInUse(s.Env)
	p, err := startProcess(e.Command, order, log)
	if err != nil {
		reader.close()
		return &Failure{Class: missing, Knobs: e.Knobs, Stage: stageStart, Cause: s.secrets().Hide(err.Error()), Log: e.Log}
	}
	p.log, p.memory = reader, memory
	e.process = p
	return nil
}

// files writes the engine's command line and its configuration file and creates its log, all within
// their folder even if that holds symlinks. To the log of an earlier engine of that name it appends.
func (e *Engine) files(name string) (log *os.File, err error) {
	dir, err := os.OpenRoot(e.settings.Dir)
	if err != nil {
		return nil, fmt.Errorf("engine: open the folder of its log: %w", err)
	}
	defer dir.Close()
	files := map[string]string{name + ".cmd": e.Command.String() + "\n"}
	if e.Command.File != "" {
		files[filepath.Base(e.Command.File)] = e.Command.Content
	}
	for file, content := range files {
		if err := dir.WriteFile(file, []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("engine: write its command line and options: %w", err)
		}
	}
	e.Log = filepath.Join(e.settings.Dir, name+".log")
	log, err = dir.OpenFile(name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("engine: open its log: %w", err)
	}
	if info, err := log.Stat(); err == nil && info.Size() > 0 {
		fmt.Fprintln(log, "\n... planner starts the engine again ...")
	}
	return log, nil
}

// Done is closed when the engine's process has ended; it is nil, and so blocks forever, for one
// that planner did not start.
func (e *Engine) Done() <-chan struct{} {
	if e.process == nil {
		return nil
	}
	return e.process.exited
}

// Failure says why an engine that served has ended, once Done is closed; nil before. Whatever is
// left of the engine is killed first.
func (e *Engine) Failure() *Failure {
	select {
	case <-e.Done():
		return e.failed()
	default:
		return nil
	}
}

// Compiled counts the lines in which the engine logged a kernel compiled while requests waited,
// which distorts their latencies; 0 for an engine that planner did not start.
func (e *Engine) Compiled() int {
	if e.process == nil {
		return 0
	}
	return e.process.log.read().compiled
}

// failed sums up why the engine failed, and how its process ended if it has.
func (e *Engine) failed() *Failure {
	var exit *syscall.WaitStatus
	select {
	case <-e.Done():
		// The last lines are complete only when all writers of the log are gone.
		_ = e.process.stop(HastyGrace, e.settings.Hurry)
		exit = &e.process.exit
	default:
	}
	s := e.process.log.read()
	f := s.failure(e.Knobs, exit)
	f.Log = e.Log
	return f
}

// Stop asks the engine to end, kills it if it takes longer than grace (0: the limit in its
// settings), and then kills whatever it started. The error says what is still there. An engine that
// planner did not start is left alone.
func (e *Engine) Stop(grace time.Duration) error {
	p := e.process
	if p == nil {
		return nil
	}
	if grace <= 0 {
		grace = e.settings.Timeouts.Grace
	}
	if err := p.stop(grace, e.settings.Hurry); err != nil {
		return err
	}
	if p.lost {
		return fmt.Errorf("engine: its guard was killed; what process group %d left behind may still run", p.pid)
	}
	if !closed(e.URL, 5*time.Second) {
		return fmt.Errorf("engine: %s still accepts connections after the engine ended", e.URL)
	}
	select {
	case <-e.settings.Hurry:
		return nil // no engine follows that would need the memory
	default:
	}
	if len(p.memory) > 0 {
		return memoryBack(e.settings.Env, p.memory, 10*time.Second)
	}
	return nil
}

// Strays names the processes that had left the engine's process group and had to be killed, once
// the engine has been stopped.
func (e *Engine) Strays() []string {
	if e.process == nil {
		return nil
	}
	return e.process.strays
}

// ResetCache empties the prefix cache; can is false if this engine has no way to.
func (e *Engine) ResetCache(ctx context.Context) (can bool, err error) {
	if e.adapter.reset == nil {
		return false, nil
	}
	if err := e.adapter.reset(e.query(ctx)); err != nil {
		return true, fmt.Errorf("engine: reset the prefix cache: %w", err)
	}
	return true, nil
}

// RoundTrip returns the shortest time that opening a connection to the engine took in five tries,
// which is one round trip of the network; negative if a try fails.
func (e *Engine) RoundTrip(ctx context.Context) time.Duration {
	best := time.Duration(-1)
	for range 5 {
		start := time.Now()
		if dial(ctx, e.URL, time.Second) != nil {
			return -1
		}
		if took := time.Since(start); best < 0 || took < best {
			best = took
		}
	}
	return best
}

func dial(ctx context.Context, at string, limit time.Duration) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	dialer := net.Dialer{Timeout: limit}
	c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	return c.Close()
}

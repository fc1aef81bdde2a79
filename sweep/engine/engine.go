package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"planner/sweep/measure"
)

// Engine is one that serves requests. [Start] makes it.
type Engine struct {
	// Knobs are those that it was started with; Command is how, empty for one
	// that ran already.
	Knobs   measure.Knobs
	Command Command
	// URL is where it listens, Kind what it is.
	URL, Kind string
	Facts     Facts
	// Stages are the parts of its start in order, Cold their sum. Stages that
	// its log does not tell apart are counted with the one behind them.
	Stages []Stage
	Cold   time.Duration
	// Log is the path of its log, "" if it has none here.
	Log string

	adapter  *adapter
	settings *Settings
	caller   *caller
	run      *running
	// prompt is the kind of prompt that the first completion took.
	prompt promptKind
}

// running is what there is of an engine that planner started.
type running struct {
	process *process
	tail    *tail
	port    int
	// memory is what was in use of each GPU before the start.
	memory []float64
	once   sync.Once
}

// Progress says how far a start is.
type Progress struct {
	Stage string
	// Line is the last one of the log.
	Line    string
	Elapsed time.Duration
}

// Start starts an engine with knobs k, or reaches one that runs already, and
// returns once it has answered a request; its files are named name. An error of
// type *[Failure] says why it cannot serve, and nothing of it is left then.
// watch, if set, is told of the progress once a second.
func Start(ctx context.Context, s Settings, k measure.Knobs, name string, watch func(Progress)) (*Engine, error) {
	a, err := adapterOf(s.Kind)
	if err != nil {
		return nil, err
	}
	s.Limits = s.Limits.filled()
	e := &Engine{Knobs: k, Kind: s.Kind, adapter: a, settings: &s}
	if a.arguments == nil {
		e.URL = s.URL
		e.caller = newCaller(s.URL, &s)
		return e, e.reach(ctx)
	}
	started := time.Now()
	if err := e.launch(name); err != nil {
		return nil, err
	}
	err = e.await(ctx, watch)
	if err == nil {
		err = e.examine(ctx)
	}
	if err != nil {
		return nil, e.giveUp(err)
	}
	e.Cold = time.Since(started)
	return e, nil
}

// launch starts the process.
func (e *Engine) launch(name string) error {
	s := e.settings
	port, err := freePort()
	if err != nil {
		return err
	}
	if e.Command, err = s.Command(e.Knobs, port); err != nil {
		return err
	}
	e.URL = fmt.Sprintf("http://%s:%d", loopback, port)
	e.caller = newCaller(e.URL, s)
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf("engine: make the folder of its log: %w", err)
	}
	if f := e.Command.File; f.Path != "" {
		if err := os.WriteFile(f.Path, []byte(f.Content), 0o644); err != nil {
			return fmt.Errorf("engine: write its options: %w", err)
		}
	}
	e.Log = filepath.Join(s.Dir, name+".log")
	log, err := os.OpenFile(e.Log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("engine: open its log: %w", err)
	}
	defer log.Close()
	if err := os.WriteFile(filepath.Join(s.Dir, name+".cmd"), []byte(e.Command.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("engine: store its command line: %w", err)
	}
	t, err := follow(e.Log, e.adapter)
	if err != nil {
		return fmt.Errorf("engine: follow its log: %w", err)
	}
	if s.Launching != nil {
		s.Launching(e.Command)
	}
	memory := memoryInUse(s.Env)
	p, err := startProcess(e.Command, log, s.Limits.Log)
	if err != nil {
		t.stop()
		if p != nil {
			<-p.gone
		}
		return &Failure{Class: Missing, Knobs: e.Knobs, Stage: stageStart, Cause: err.Error(), Log: e.Log}
	}
	e.run = &running{process: p, tail: t, port: port, memory: memory}
	return nil
}

// Done is closed when the engine's process has ended; it is nil, and never is,
// for one that planner did not start.
func (e *Engine) Done() <-chan struct{} {
	if e.run == nil {
		return nil
	}
	return e.run.process.exited
}

// Failure says why an engine that served has ended, once Done is closed; nil
// before. What is left of the engine is ended first.
func (e *Engine) Failure() *Failure {
	select {
	case <-e.Done():
	default:
		return nil
	}
	return e.failed()
}

// failed sums up how the process ended, as far as it did.
func (e *Engine) failed() *Failure {
	p := e.run.process
	var exit *Exit
	select {
	case <-p.exited:
		// The last lines come when all writers are gone.
		e.end(hastyGrace)
		exit = &p.exit
	default:
	}
	t := e.run.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.verdict.failure(e.Knobs, stageOrder[t.stage], exit)
	f.Log = e.Log
	return f
}

// giveUp ends what was started and returns the reason.
func (e *Engine) giveUp(err error) error {
	if stopped := e.Stop(hastyGrace); stopped != nil {
		return fmt.Errorf("%w; then %w", err, stopped)
	}
	return err
}

// Stop ends the engine: it is asked to, killed when it takes longer than grace
// (0: the limit of its settings), and then whatever it started is killed. The
// error tells what is still there; one that planner did not start is left alone.
func (e *Engine) Stop(grace time.Duration) error {
	if e.run == nil {
		return nil
	}
	if grace <= 0 {
		grace = e.settings.Limits.Grace
	}
	if err := e.end(grace); err != nil {
		return err
	}
	if p := e.run.process; p.lost {
		return fmt.Errorf("engine: its guard was killed; what process group %d left behind may still run", p.pid)
	}
	if !portClosed(e.run.port, 5*time.Second) {
		return fmt.Errorf("engine: port %d still accepts connections after the engine ended", e.run.port)
	}
	select {
	case <-e.settings.Limits.Hurry:
		return nil // no engine follows that would need the memory
	default:
	}
	if len(e.run.memory) > 0 {
		return memoryBack(e.settings.Env, e.run.memory, 10*time.Second)
	}
	return nil
}

// Strays names the processes that had left the engine's process group and had
// to be killed, once it was stopped.
func (e *Engine) Strays() []string {
	if e.run == nil {
		return nil
	}
	return e.run.process.strays
}

// end stops process and log, once.
func (e *Engine) end(grace time.Duration) (err error) {
	e.run.once.Do(func() {
		err = e.run.process.stop(grace, e.settings.Limits.Hurry)
		e.run.tail.stop()
	})
	return err
}

// ResetCache empties the prefix cache; false says that this engine has no way
// to.
func (e *Engine) ResetCache(ctx context.Context) (can bool, err error) {
	if e.adapter.reset == nil {
		return false, nil
	}
	q := &question{caller: e.caller, ctx: ctx, facts: map[string]string{}}
	if err := e.adapter.reset(q); err != nil {
		return true, fmt.Errorf("engine: reset the prefix cache: %w", err)
	}
	return true, nil
}

// RoundTrip is the shortest of a few times that opening a connection to the
// engine takes, which is one round trip of the network; negative if none opens.
func (e *Engine) RoundTrip(ctx context.Context) time.Duration {
	best := time.Duration(-1)
	for range 5 {
		start := time.Now()
		if Dial(ctx, e.URL, time.Second) != nil {
			return -1
		}
		if took := time.Since(start); best < 0 || took < best {
			best = took
		}
	}
	return best
}

// Dial opens a connection to the server at a URL, and closes it.
func Dial(ctx context.Context, at string, limit time.Duration) error {
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

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"planner/internal/config"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// machine holds observations of the machine, without judging them.
type machine struct {
	programs []launcher
	// gpuTool is the vendor's tool that was asked for gpus; "" if there is none.
	gpuTool string
	gpus    []engine.GPUSample
	gpuErr  error
	// port says why no port can be opened, server why no server answers, and temp why no temporary file can be
	// written.
	port, server, temp error
	// unprobed says why a server that answers does not report its health.
	unprobed error
	// files is the limit on open files, 0 if unknown.
	files uint64
	clock ticks
	// client is nil if the load generator was not tested.
	client *selfTest
	// processors is the number that planner may use, load the average over one minute. load and memory, in
	// bytes, are negative if unknown.
	processors        int
	load              float64
	memory, available float64
	// runs is the folder for run folders.
	runs directory
}

// ticks describes the clock: its source, the smallest step seen, and whether it ever went back.
type ticks struct {
	source string
	step   time.Duration
	back   bool
}

// directory is a folder to write to, with its free bytes and why it cannot be written.
type directory struct {
	path string
	free float64
	err  error
}

// launcher is a program that starts a kind of engine.
type launcher struct {
	kind, name string
	// path is its location, empty if it was not found.
	path string
}

// patience is the time limit for a server's answer, and for that of the machine's programs together.
const patience = 15 * time.Second

// look examines the machine, for a configuration if there is one.
func look(ctx context.Context, cfg *config.Config) machine {
	m := machine{processors: runtime.GOMAXPROCS(0), load: -1, memory: meminfo("MemTotal"), available: meminfo("MemAvailable"), clock: watchClock()}
	dir := "runs"
	var command []string
	if cfg != nil {
		dir, command = cfg.OutputDir, cfg.Engine.Command
		if cfg.Engine.Kind == "attach" {
			e := &cfg.Engine
			short, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer in %v", patience))
			var server *engine.Engine
			server, m.server = engine.Start(short, engine.Settings{Kind: "attach", Model: cfg.Model.Name, ServedName: e.ServedName,
				Endpoint: e.Endpoint, Chat: e.API == "chat"}, measure.Knobs{}, "", nil)
			cancel()
			if m.server == nil {
				m.unprobed = server.Unprobed
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.programs = findPrograms(ctx, command)
	m.gpuTool, m.gpus, m.gpuErr = engine.GPUs(ctx, nil)
	m.runs, m.temp = tryToWrite(dir), tryToWrite(os.TempDir()).err
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if m.port = err; err == nil {
		l.Close()
	}
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	m.files = uint64(limit.Cur)
	average, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(average), &m.load)
	return m
}

// findPrograms looks for what starts each kind of engine: a program on PATH, or a module of a Python on PATH.
// command starts kind command, if given.
func findPrograms(ctx context.Context, command []string) []launcher {
	// This asks Python whether it would find a module, without loading it.
	const hasModule = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
	var out []launcher
	for _, s := range engine.Supported() {
		words := s.Program
		if s.Kind == "command" {
			words = command
		}
		if len(words) == 0 {
			continue // no program of its own
		}
		p := launcher{kind: s.Kind, name: words[0]}
		p.path, _ = exec.LookPath(p.name)
		if len(words) > 2 && words[1] == "-m" && strings.HasPrefix(filepath.Base(p.name), "python") {
			module, _, _ := strings.Cut(words[2], ".")
			p.name = module + " (a module of " + p.name + ")"
			if p.path != "" && exec.CommandContext(ctx, p.path, "-c", hasModule, module).Run() == nil {
				p.path += " -m " + words[2]
			} else {
				p.path = ""
			}
		}
		out = append(out, p)
	}
	return out
}

// watchClock reads the clock as fast as possible.
func watchClock() ticks {
	source, _ := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	t := ticks{source: strings.TrimSpace(string(source)), step: time.Second}
	last := time.Now()
	for range 20000 {
		now := time.Now()
		d := now.Sub(last)
		t.back = t.back || d < 0
		if d > 0 {
			t.step = min(t.step, d)
		}
		last = now
	}
	return t
}

// tryToWrite writes to a folder, or to its nearest existing parent, leaves nothing behind and returns the free
// bytes.
func tryToWrite(path string) directory {
	dir := path
	for dir != "/" && dir != "." {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	probe, err := os.MkdirTemp(dir, ".planner-doctor-")
	if err != nil {
		return directory{path: path, err: err}
	}
	err = errors.Join(os.WriteFile(filepath.Join(probe, "probe"), []byte("probe\n"), 0o644), os.RemoveAll(probe))
	var s unix.Statfs_t
	_ = unix.Statfs(dir, &s)
	return directory{path, float64(s.Bavail) * float64(s.Bsize), err}
}

// meminfo returns an entry of /proc/meminfo in bytes, negative if there is none.
func meminfo(name string) float64 {
	b, _ := os.ReadFile("/proc/meminfo")
	_, entry, _ := strings.Cut(string(b), name+":")
	var kib float64
	if _, err := fmt.Sscan(entry, &kib); err != nil {
		return -1
	}
	return kib * 1024
}

// selfTest is the result of the load generator against a server in this process that answers at once.
type selfTest struct {
	telemetry load.Telemetry
	err       error
}

// The load of the self-test: enough to show a client that is late, and soon over. It is repeated while the
// result is bad, as a machine may be busy only for a moment.
const (
	testRate   = 400
	testLength = 500 * time.Millisecond
	testTries  = 3
)

// bestSelfTest returns the best of a few self-tests.
func bestSelfTest(ctx context.Context) *selfTest {
	best := trySelf(ctx)
	for tries := 1; tries < testTries && (best.err != nil || best.telemetry.Lag99 > smallLag); tries++ {
		if again := trySelf(ctx); again.err == nil && (best.err != nil || again.telemetry.Lag99 < best.telemetry.Lag99) {
			best = again
		}
	}
	return best
}

// trySelf sends a short load to a server in this process that answers at once.
func trySelf(ctx context.Context) *selfTest {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return &selfTest{err: err}
	}
	server := &http.Server{Handler: http.HandlerFunc(answerAtOnce), ReadHeaderTimeout: time.Second}
	go server.Serve(l)
	defer server.Close()
	w := &workload.Workload{Class: "self-test", Arrivals: workload.Poisson, Timeout: 5 * time.Second, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Fixed, Value: 8}, Output: workload.Lengths{Dist: workload.Fixed, Value: 1}}}}
	t := measure.Trial{Workload: w, Rate: testRate, Window: testLength, Seed: 1}
	client := load.Client{URL: "http://" + l.Addr().String(), Model: "self-test", Stream: true}
	run, err := client.Start(ctx, t, t.Schedule())
	if err != nil {
		return &selfTest{err: err}
	}
	o, err := run.Wait()
	for i := range o.Records {
		if how := o.Records[i].Outcome; err == nil && how != measure.OK {
			err = fmt.Errorf("a request ended with %v", how)
		}
	}
	return &selfTest{err: err, telemetry: run.Telemetry()}
}

// answerAtOnce answers with a completion of one token.
func answerAtOnce(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"choices":[{"index":0,"text":"a","finish_reason":"length"}]}`+"\n\n"+
		`data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
}

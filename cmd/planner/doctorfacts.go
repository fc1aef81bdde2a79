package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// facts are what doctor saw of the machine. It decides nothing.
type facts struct {
	programs []engineProgram
	gpus     gpuFacts
	// files is the limit on open files, 0 if it is not known.
	files uint64
	clock clockFacts
	// disk and temp are the folders of runs and of temporary files.
	disk, temp folderFacts
	// processors are those that planner may use, busy the load average of a minute,
	// negative if it is not known.
	processors int
	busy       float64
	// memory in bytes, 0 if it is not known.
	memory, free float64
	port         error
	// client is nil if the load generator was not tested.
	client *clientFacts
}

// engineProgram is a program that starts a kind of engine.
type engineProgram struct {
	kind, program string
	// path is where it lies, empty if it is not there.
	path string
}

// gpuFacts are what a vendor's tool says.
type gpuFacts struct {
	tool string
	err  error
	list []gpuFact
}

// gpuFact is one GPU; what is not known is negative. Memory is in bytes.
type gpuFact struct {
	name, driver string
	total, used  float64
	busy         float64
}

// clockFacts are what the clock does: its kernel source, the smallest step seen,
// and whether it ever went back.
type clockFacts struct {
	source    string
	step      time.Duration
	backwards bool
}

// folderFacts are what is known of a folder.
type folderFacts struct {
	path string
	free float64
	err  error
}

// clientFacts are how the load generator fared against a server that answers at
// once, in this process.
type clientFacts struct {
	rate   float64
	vitals load.Telemetry
	failed int
	err    error
}

// gather looks at the machine; dir is where run folders will be made. Without
// test no load is sent.
func gather(ctx context.Context, dir string, test bool) facts {
	f := facts{programs: enginePrograms(), gpus: askGPUs(ctx), clock: watchClock(), disk: lookAt(dir), temp: lookAt(os.TempDir()),
		processors: runtime.GOMAXPROCS(0), busy: loadAverage(), port: tryPort()}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		f.files = uint64(limit.Cur)
	}
	f.memory, f.free = memoryOf()
	if test {
		client := bestClient(ctx)
		f.client = &client
	}
	return f
}

// enginePrograms looks for the programs of the known engines.
func enginePrograms() []engineProgram {
	var out []engineProgram
	for _, kind := range engine.Kinds() {
		s := engine.Settings{Kind: kind, Model: "model", Dir: os.TempDir()}
		c, err := s.Command(measure.Knobs{TensorParallel: 1}, 8000)
		if err != nil || len(c.Args) == 0 {
			continue // command and attach have no program of their own
		}
		out = append(out, findProgram(kind, c.Args))
	}
	return out
}

// findProgram looks for what starts an engine: a program on PATH, or a module
// that a Python on PATH has.
func findProgram(kind string, args []string) engineProgram {
	e := engineProgram{kind: kind, program: args[0]}
	path, err := exec.LookPath(args[0])
	if err != nil {
		path = ""
	}
	if len(args) < 3 || args[1] != "-m" {
		e.path = path
		return e
	}
	module, _, _ := strings.Cut(args[2], ".")
	e.program = module + " (a module of " + args[0] + ")"
	if path != "" && hasModule(path, module) {
		e.path = path + " -m " + args[2]
	}
	return e
}

// hasModule asks a Python whether it would find a module, without loading it.
func hasModule(python, module string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
	return exec.CommandContext(ctx, python, "-c", ask, module).Run() == nil
}

// askGPUs asks the tool of a vendor.
func askGPUs(ctx context.Context) gpuFacts {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for _, tool := range []struct {
		name  string
		args  []string
		parse func([]byte) []gpuFact
	}{
		{"nvidia-smi", []string{"--query-gpu=name,driver_version,memory.total,memory.used,utilization.gpu", "--format=csv,noheader,nounits"}, parseNvidiaSMI},
		{"rocm-smi", []string{"--showproductname", "--showdriverversion", "--showmeminfo", "vram", "--showuse", "--csv"}, parseROCmSMI},
	} {
		path, err := exec.LookPath(tool.name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, tool.args...).Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) && len(exit.Stderr)+len(out) > 0 {
				err = fmt.Errorf("%w: %s", err, strings.TrimSpace(firstLine(append(exit.Stderr, out...))))
			}
			return gpuFacts{tool: tool.name, err: err}
		}
		return gpuFacts{tool: tool.name, list: tool.parse(out)}
	}
	return gpuFacts{}
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line)
}

// watchClock reads the clock as fast as it goes.
func watchClock() clockFacts {
	var c clockFacts
	if b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"); err == nil {
		c.source = strings.TrimSpace(string(b))
	}
	last := time.Now()
	for range 20000 {
		now := time.Now()
		switch d := now.Sub(last); {
		case d < 0:
			c.backwards = true
		case d > 0 && (c.step == 0 || d < c.step):
			c.step = d
		}
		last = now
	}
	return c
}

// lookAt tries to write into a folder, or into the nearest one above it that is
// there already, and leaves nothing behind.
func lookAt(dir string) folderFacts {
	f := folderFacts{path: dir}
	at := dir
	for at != "/" && at != "." {
		if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
			break
		}
		at = filepath.Dir(at)
	}
	probe, err := os.MkdirTemp(at, ".planner-doctor-")
	if err != nil {
		f.err = err
		return f
	}
	f.err = errors.Join(os.WriteFile(filepath.Join(probe, "probe"), []byte("probe\n"), 0o644), os.RemoveAll(probe))
	var s unix.Statfs_t
	if unix.Statfs(at, &s) == nil {
		f.free = float64(s.Bavail) * float64(s.Bsize)
	}
	return f
}

// loadAverage is how many processes wanted to run in the last minute.
func loadAverage() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(b), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return v
}

// memoryOf is the machine's memory and what of it is available, in bytes.
func memoryOf() (total, free float64) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			total = kib * 1024
		case "MemAvailable:":
			free = kib * 1024
		}
	}
	return total, free
}

// tryPort asks for a free port on the loopback.
func tryPort() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return l.Close()
}

// The load of the self-test: enough to show a client that is late, and over soon.
const (
	testRate   = 400
	testLength = 500 * time.Millisecond
)

// testTries is how often the self-test is run while it looks bad: a machine that
// was busy for a moment is no bad machine.
const testTries = 3

// bestClient is the best of a few self-tests.
func bestClient(ctx context.Context) clientFacts {
	best := tryClient(ctx)
	for range testTries - 1 {
		if best.err == nil && best.failed == 0 && best.vitals.Lag99 <= smallLag {
			break
		}
		if again := tryClient(ctx); again.err == nil && (best.err != nil || again.vitals.Lag99 < best.vitals.Lag99) {
			best = again
		}
	}
	return best
}

// tryClient sends a short load to a server in this process that answers at once.
func tryClient(ctx context.Context) clientFacts {
	f := clientFacts{rate: testRate}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.err = err
		return f
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
		f.err = err
		return f
	}
	o, err := run.Wait()
	f.err, f.vitals = err, run.Telemetry()
	for i := range o.Records {
		if o.Records[i].Outcome != measure.OK {
			f.failed++
		}
	}
	return f
}

// answerAtOnce is a completion of one token.
func answerAtOnce(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"choices":[{"index":0,"text":"a","finish_reason":"length"}]}`+"\n\n"+
		`data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
}

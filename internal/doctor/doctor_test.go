package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/must"
	"planner/sweep/engine"
	"planner/sweep/load"
)

// sound is a machine on which nothing is wrong.
func sound() *machine {
	gpu := engine.GPUSample{Name: "NVIDIA H100 80GB HBM3", Driver: "550.54.15", TotalMemory: 81559 * (1 << 20), Memory: 4 * (1 << 20), Busy: 0}
	return &machine{
		programs: []launcher{{"vllm", "vllm", "/usr/bin/vllm"}, {"sglang", "sglang", ""}},
		gpuTool:  "nvidia-smi", gpus: []engine.GPUSample{gpu, gpu},
		files: 65536, clock: ticks{source: "tsc", step: 40}, runs: directory{path: "runs", free: 1e12},
		processors: 16, load: 0.3, memory: 128 << 30, available: 100 << 30,
		client: &selfTest{telemetry: load.Telemetry{Lag50: 15 * time.Microsecond, Lag99: 120 * time.Microsecond, CPU: 0.05, Processors: 16}},
	}
}

// realWanted is a configuration of a real engine on two GPUs.
func realWanted() *wanted { return &wanted{kind: "vllm", gpu: "H100 SXM", gpus: 2, share: 0.9} }

func TestSoundMachine(t *testing.T) {
	t.Setenv("SOME_KEY", "secret")
	for _, w := range []*wanted{{}, {kind: "simulated", gpus: 1}, realWanted(), {kind: "attach", key: "SOME_KEY"}} {
		for _, c := range judge(sound(), w) {
			if c.State != Passed || c.Remedy != "" || c.Found == "" {
				t.Errorf("%+v: %+v", w, c)
			}
		}
	}
}

// Each fault is found, by its own check alone, and every finding has a remedy.
func TestFaults(t *testing.T) {
	gpu := sound().gpus[0]
	used := func(mib float64) engine.GPUSample { g := gpu; g.Memory = mib * (1 << 20); return g }
	for _, c := range []struct {
		name  string
		spoil func(*machine, *wanted)
		check string
		want  CheckState
		found string
	}{
		{"engine missing", func(m *machine, _ *wanted) { m.programs[0].path = "" }, "engine", Problem, "vllm is not on PATH"},
		{"no tool", func(m *machine, _ *wanted) { m.gpuTool, m.gpus = "", nil }, "GPU", Problem, "neither nvidia-smi nor rocm-smi"},
		{"no tool for a simulation", func(m *machine, w *wanted) { m.gpuTool, m.gpus, *w = "", nil, wanted{kind: "simulated"} }, "GPU", Warning, "neither"},
		{"driver", func(m *machine, _ *wanted) { m.gpus, m.gpuErr = nil, errors.New("exit status 9") }, "GPU", Problem, "exit status 9"},
		{"no GPU", func(m *machine, _ *wanted) { m.gpus = nil }, "GPU", Problem, "lists no GPU"},
		{"too few GPUs", func(_ *machine, w *wanted) { w.gpus = 4 }, "GPU", Problem, "one instance takes 4"},
		{"other GPU", func(_ *machine, w *wanted) { w.gpu = "L40S" }, "GPU", Warning, "hardware.gpu says L40S"},
		{"GPU in use", func(m *machine, _ *wanted) { m.gpus[1] = used(30000) }, "GPU memory", Problem, "GPU 1 has 29.3 GiB of 79.6 GiB in use"},
		{"GPU a little in use", func(m *machine, _ *wanted) { m.gpus[1] = used(3000) }, "GPU memory", Warning, "2.9 GiB in use"},
		{"port", func(m *machine, _ *wanted) { m.port = errors.New("permission denied") }, "port", Problem, "permission denied"},
		{"few files", func(m *machine, _ *wanted) { m.files = 256 }, "open files", Problem, "256"},
		{"some files", func(m *machine, _ *wanted) { m.files = 1024 }, "open files", Warning, "1024"},
		{"clock goes back", func(m *machine, _ *wanted) { m.clock.back = true }, "clock", Problem, "went back"},
		{"coarse clock", func(m *machine, _ *wanted) { m.clock.step = 10 * time.Millisecond }, "clock", Problem, "too coarse"},
		{"slow clock", func(m *machine, _ *wanted) { m.clock.source = "hpet" }, "clock", Warning, "hpet"},
		{"late client", func(m *machine, _ *wanted) { m.client.telemetry.Lag99 = 20 * time.Millisecond }, "load generator", Problem, "20ms at p99"},
		{"client a little late", func(m *machine, _ *wanted) { m.client.telemetry.Lag99 = time.Millisecond }, "load generator", Warning, "1ms at p99"},
		{"client fails", func(m *machine, _ *wanted) { m.client.err = errors.New("a request ended with reset") }, "load generator", Problem, "a request ended with reset"},
		{"one processor", func(m *machine, _ *wanted) { m.processors = 1 }, "processors", Warning, "1 may be used"},
		{"busy machine", func(m *machine, _ *wanted) { m.load = 40 }, "processors", Warning, "40.0 processes"},
		{"little memory", func(m *machine, _ *wanted) { m.available = 5e8 }, "memory", Problem, "477 MiB of 128.0 GiB"},
		{"full disk", func(m *machine, _ *wanted) { m.runs.free = 1e8 }, "disk", Problem, "95 MiB free"},
		{"disk filling", func(m *machine, _ *wanted) { m.runs.free = 5e9 }, "disk", Warning, "4.7 GiB free"},
		{"read-only", func(m *machine, _ *wanted) { m.runs.err = errors.New("read-only file system") }, "disk", Problem, "read-only"},
		{"no temporary files", func(m *machine, _ *wanted) { m.temp = errors.New("no such folder") }, "temporary files", Problem, "no such folder"},
		{"no key", func(_ *machine, w *wanted) { w.key = "NO_SUCH_KEY" }, "API key", Problem, "NO_SUCH_KEY is not set"},
		{"no server", func(m *machine, w *wanted) {
			w.kind, w.url, m.server = "attach", "http://127.0.0.1:1", errors.New("refused")
		}, "server", Problem, "http://127.0.0.1:1: refused"},
		{"silent probe", func(m *machine, w *wanted) {
			w.kind, w.url, m.unprobed = "attach", "http://127.0.0.1:1", errors.New("time-out")
		}, "server", Warning, "not whether it is well: time-out"},
	} {
		m, w := sound(), realWanted()
		c.spoil(m, w)
		seen := false
		for _, got := range judge(m, w) {
			switch {
			case got.Name == c.check:
				seen = true
				if got.State != c.want || !strings.Contains(got.Found, c.found) || got.Remedy == "" {
					t.Errorf("%s: %+v, want %v with %q", c.name, got, c.want, c.found)
				}
			case got.State == Problem:
				t.Errorf("%s: also %+v", c.name, got)
			}
		}
		if !seen {
			t.Errorf("%s: no check %s", c.name, c.check)
		}
	}
}

// A GPU whose tool does not tell its memory may be in use.
func TestMemoryThatIsNotTold(t *testing.T) {
	m := sound()
	m.gpus[0].TotalMemory, m.gpus[0].Memory = math.NaN(), math.NaN()
	if c := gpuMemory(m, realWanted()); c.State != Warning {
		t.Errorf("%+v", c)
	}
}

func TestSameGPU(t *testing.T) {
	for _, c := range []struct {
		catalog, tool string
		want          bool
	}{
		{"H100 SXM", "NVIDIA H100 80GB HBM3", true}, {"L40S", "NVIDIA L40S", true}, {"H200 SXM", "NVIDIA H200", true}, {"MI300X", "AMD Instinct MI300X", true},
		{"L40S", "NVIDIA L40", false}, {"H100 SXM", "NVIDIA H200", false},
	} {
		if got := sameGPU(c.catalog, c.tool); got != c.want {
			t.Errorf("%s and %s: %v", c.catalog, c.tool, got)
		}
	}
}

// A server that never answers is said to be one, and keeps nobody from looking at the rest.
func TestSilentServer(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a server that never answers")
	}
	dir := t.TempDir()
	must.OK(os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\necho 0, GPU-1, NVIDIA L40S, 46068, 45000\n"), 0o700))
	t.Setenv("PATH", dir)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	cfg := &config.Config{}
	cfg.Engine.Kind, cfg.Engine.Endpoint.URL = "attach", s.URL
	m := look(t.Context(), cfg)
	if c := server(&m, &wanted{kind: "attach", url: s.URL}); c.State != Problem || !strings.Contains(c.Found, "no answer in 15s") {
		t.Errorf("%+v", c)
	}
	if m.gpuTool != "nvidia-smi" || errors.Is(m.gpuErr, context.DeadlineExceeded) {
		t.Errorf("GPUs by %q: %v", m.gpuTool, m.gpuErr)
	}
}

// A server that takes connections may serve nobody.
func TestServer(t *testing.T) {
	for status, want := range map[int]CheckState{http.StatusOK: Passed, http.StatusUnauthorized: Problem} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"choices":[{"text":"a"}]}`)
		}))
		defer s.Close()
		cfg := &config.Config{}
		cfg.Engine.Kind, cfg.Engine.Endpoint.URL = "attach", s.URL
		m := look(t.Context(), cfg)
		if c := server(&m, &wanted{kind: "attach", url: s.URL}); c.State != want {
			t.Errorf("status %d: %+v", status, c)
		}
	}
}

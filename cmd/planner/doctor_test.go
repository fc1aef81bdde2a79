package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"planner/internal/report"
	"planner/model"
	"planner/sweep/load"
)

// sound is a machine on which nothing is wrong.
func sound() facts {
	gpu := gpuFact{name: "NVIDIA H100 80GB HBM3", driver: "550.54.15", total: 81559 * (1 << 20), used: 4 * (1 << 20), busy: 0}
	return facts{
		programs: []engineProgram{{"vllm", "vllm", "/usr/bin/vllm"}, {"sglang", "sglang", ""}},
		gpus:     gpuFacts{tool: "nvidia-smi", list: []gpuFact{gpu, gpu}},
		files:    65536, clock: clockFacts{source: "tsc", step: 40}, disk: folderFacts{path: "runs", free: 1e12}, temp: folderFacts{path: "/tmp"},
		processors: 16, busy: 0.3, memory: 128 << 30, free: 100 << 30,
		client: &clientFacts{rate: 300, vitals: load.Telemetry{Lag50: 15 * time.Microsecond, Lag99: 120 * time.Microsecond, CPU: 0.05, Processors: 16}},
	}
}

// realWanted is a configuration of a real engine on two GPUs.
func realWanted() wanted {
	return wanted{kind: "vllm", program: "vllm", found: "/usr/bin/vllm", gpu: "H100 SXM", gpus: 2, share: 0.9}
}

func TestSoundMachine(t *testing.T) {
	for _, w := range []wanted{{}, {kind: "simulated", gpus: 1}, realWanted(), {kind: "attach"}} {
		for _, c := range machineChecks(sound(), w) {
			if c.State != report.Passed || c.Remedy != "" || c.Found == "" {
				t.Errorf("%+v: %+v", w, c)
			}
		}
	}
}

// Each fault is found, by its own check alone, and every finding has a remedy.
func TestFaults(t *testing.T) {
	gpu := sound().gpus.list[0]
	used := func(mib float64) gpuFact { g := gpu; g.used = mib * (1 << 20); return g }
	for _, c := range []struct {
		name  string
		spoil func(*facts, *wanted)
		check string
		want  report.CheckState
		found string
	}{
		{"engine missing", func(_ *facts, w *wanted) { w.found = "" }, "engine", report.Problem, "vllm is not on PATH"},
		{"no tool", func(f *facts, _ *wanted) { f.gpus = gpuFacts{} }, "GPU", report.Problem, "neither nvidia-smi nor rocm-smi"},
		{"no tool for a simulation", func(f *facts, w *wanted) { f.gpus, *w = gpuFacts{}, wanted{kind: "simulated"} }, "GPU", report.Warning, "neither"},
		{"driver", func(f *facts, _ *wanted) { f.gpus = gpuFacts{tool: "nvidia-smi", err: errors.New("exit status 9")} }, "GPU", report.Problem, "exit status 9"},
		{"no GPU", func(f *facts, _ *wanted) { f.gpus.list = nil }, "GPU", report.Problem, "lists no GPU"},
		{"too few GPUs", func(_ *facts, w *wanted) { w.gpus = 4 }, "GPU", report.Problem, "one instance takes 4"},
		{"other GPU", func(_ *facts, w *wanted) { w.gpu = "L40S" }, "GPU", report.Warning, "hardware.gpu says L40S"},
		{"GPU in use", func(f *facts, _ *wanted) { f.gpus.list[1] = used(30000) }, "GPU memory", report.Problem, "GPU 1 has 29.3 GiB of 79.6 GiB in use"},
		{"GPU a little in use", func(f *facts, _ *wanted) { f.gpus.list[1] = used(3000) }, "GPU memory", report.Warning, "2.9 GiB in use"},
		{"port", func(f *facts, _ *wanted) { f.port = errors.New("permission denied") }, "port", report.Problem, "permission denied"},
		{"few files", func(f *facts, _ *wanted) { f.files = 256 }, "open files", report.Problem, "256"},
		{"some files", func(f *facts, _ *wanted) { f.files = 1024 }, "open files", report.Warning, "1024"},
		{"clock goes back", func(f *facts, _ *wanted) { f.clock.backwards = true }, "clock", report.Problem, "went back"},
		{"coarse clock", func(f *facts, _ *wanted) { f.clock.step = 10 * time.Millisecond }, "clock", report.Problem, "too coarse"},
		{"slow clock", func(f *facts, _ *wanted) { f.clock.source = "hpet" }, "clock", report.Warning, "hpet"},
		{"late client", func(f *facts, _ *wanted) { f.client.vitals.Lag99 = 20 * time.Millisecond }, "load generator", report.Problem, "20ms at p99"},
		{"client a little late", func(f *facts, _ *wanted) { f.client.vitals.Lag99 = time.Millisecond }, "load generator", report.Warning, "1ms at p99"},
		{"client fails", func(f *facts, _ *wanted) { f.client.failed = 3 }, "load generator", report.Problem, "3 requests of the self-test failed"},
		{"one processor", func(f *facts, _ *wanted) { f.processors = 1 }, "processors", report.Warning, "1 may be used"},
		{"busy machine", func(f *facts, _ *wanted) { f.busy = 40 }, "processors", report.Warning, "40.0 processes"},
		{"little memory", func(f *facts, _ *wanted) { f.free = 5e8 }, "memory", report.Problem, "477 MiB of 128.0 GiB"},
		{"full disk", func(f *facts, _ *wanted) { f.disk.free = 1e8 }, "disk", report.Problem, "95 MiB free"},
		{"disk filling", func(f *facts, _ *wanted) { f.disk.free = 5e9 }, "disk", report.Warning, "4.7 GiB free"},
		{"read-only", func(f *facts, _ *wanted) { f.disk.err = errors.New("read-only file system") }, "disk", report.Problem, "read-only"},
		{"no temporary files", func(f *facts, _ *wanted) { f.temp.err = errors.New("no such folder") }, "temporary files", report.Problem, "no such folder"},
	} {
		f, w := sound(), realWanted()
		c.spoil(&f, &w)
		seen := false
		for _, got := range machineChecks(f, w) {
			switch {
			case got.Name == c.check:
				seen = true
				if got.State != c.want || !strings.Contains(got.Found, c.found) || got.Remedy == "" {
					t.Errorf("%s: %+v, want %v with %q", c.name, got, c.want, c.found)
				}
			case got.State == report.Problem:
				t.Errorf("%s: also %+v", c.name, got)
			}
		}
		if !seen {
			t.Errorf("%s: no check %s", c.name, c.check)
		}
	}
}

func TestNvidiaSMI(t *testing.T) {
	got := parseNvidiaSMI([]byte("NVIDIA H100 80GB HBM3, 550.54.15, 81559, 4, 0\nNVIDIA H100 80GB HBM3, 550.54.15, 81559, 70123, 98\nTesla X, 1.2, [N/A], [N/A], [Not Supported]\nnoise\n"))
	if len(got) != 3 || got[1].used != 70123*(1<<20) || got[1].busy != 0.98 || got[0].driver != "550.54.15" || got[2].total != -1 || got[2].busy != -1 {
		t.Errorf("%+v", got)
	}
	if c := checkGPUMemory(got[2:], wanted{}); c.State != report.Warning {
		t.Errorf("memory that is not told: %+v", c)
	}
}

func TestROCmSMI(t *testing.T) {
	got := parseROCmSMI([]byte("device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series,Card SKU\n" +
		"card0,3,206141652992,297185280,AMD Instinct MI300X,M3000100\ncard1,0,206141652992,297185280,AMD Instinct MI300X,M3000100\n\n" +
		"device,Driver version\nsystem,6.7.0\n"))
	if len(got) != 2 || got[0].name != "AMD Instinct MI300X" || got[0].total != 206141652992 || got[0].used != 297185280 || got[0].busy != 0.03 || got[1].driver != "6.7.0" {
		t.Errorf("%+v", got)
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

func TestConfigurationChecks(t *testing.T) {
	memory := model.Memory{Blocks: 1000, BlockTokens: 16}
	for _, c := range []struct {
		got  report.Check
		want report.CheckState
	}{
		{checkFit(fitting{known: true, fit: 4, sets: 4, first: memory}, 4000), report.Passed},
		{checkFit(fitting{known: true, fit: 4, sets: 4, first: memory}, 12000), report.Warning},
		{checkFit(fitting{known: true, fit: 3, sets: 4, first: memory, reason: "does not fit"}, 4000), report.Warning},
		{checkFit(fitting{known: true, sets: 4, reason: "does not fit"}, 4000), report.Problem},
		{checkFit(fitting{}, 4000), report.Warning},
		{checkLength(4000, 8192), report.Passed},
		{checkLength(9000, 8192), report.Warning},
		{checkLength(0, 8192), report.Warning},
		{checkLength(4000, 0), report.Warning},
		{checkKey("KEY", false), report.Problem},
		{checkServer("http://127.0.0.1:1", errors.New("refused")), report.Problem},
		{judgeCost(cost{}, false, time.Hour), report.Problem},
		{judgeCost(cost{sets: 4, tried: 2, trials: 20, load: 2 * time.Hour, hours: 3}, false, time.Hour), report.Warning},
		{judgeCost(cost{sets: 4, tried: 2, trials: 20, load: 2 * time.Hour, hours: 3}, true, time.Hour), report.Passed},
	} {
		if c.got.State != c.want {
			t.Errorf("%+v, want %v", c.got, c.want)
		}
	}
}

// A state that nobody set is a problem.
func TestCheckStateZero(t *testing.T) {
	var c report.Check
	if c.State.String() != "problem" {
		t.Errorf("the zero state is %v", c.State)
	}
}

package doctor

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func engineProgram(m *machine, w *wanted) Check {
	if w.remote() {
		return passed("engines run, and load is sent, in jobs of %s: what that takes is not looked for here", w.launcher)
	}
	if w.kind == "attach" {
		return passed("an engine that runs elsewhere is used; none is started here")
	}
	var have, names []string
	for _, p := range m.programs {
		switch {
		case p.kind == w.kind && p.path != "":
			return passed("%s: %s", w.kind, p.path)
		case p.kind == w.kind:
			return problem(fmt.Sprintf("install %s, or put its folder on PATH; engine.kind = \"attach\" uses a server that runs already", p.name),
				"%s is not on PATH", p.name)
		case p.path != "":
			have = append(have, p.kind+" ("+p.path+")")
		}
		names = append(names, p.name)
	}
	switch {
	case len(have) > 0:
		return passed("on PATH: %s", strings.Join(have, ", "))
	case w.kind == "simulated":
		return passed("the simulated engine needs none on PATH")
	}
	return warned("install an engine to measure one here; estimate, simulate and search work without", "none of %s is on PATH",
		strings.Join(slices.Compact(names), ", "))
}

func modelFile(_ *machine, w *wanted) Check {
	if w.file == "" || !w.launches() {
		return Check{}
	}
	info, err := os.Stat(w.file)
	switch {
	case err != nil:
		return problem("put the file there, or correct model.name", "%v", err)
	case !info.Mode().IsRegular():
		return problem("name the file itself in model.name", "%s is no file", w.file)
	}
	return passed("%s, %s", w.file, gib(float64(info.Size())))
}

func gpuCount(m *machine, w *wanted) Check {
	if w.remote() && m.gpuTool == "" {
		return Check{}
	}
	missing, install := warned, "simulated engines need none; for real ones install the driver"
	if w.launches() && w.gpu != "" {
		missing, install = problem, "install the driver, or run on a machine with "+w.gpu
	}
	switch {
	case m.gpuErr != nil:
		return problem("reinstall or reload the driver, and try "+m.gpuTool+" by hand", "%s fails: %v", m.gpuTool, m.gpuErr)
	case m.gpuTool == "":
		return missing(install, "neither nvidia-smi nor rocm-smi is there")
	case len(m.gpus) == 0:
		return missing("check that the machine has GPUs and that this user or container may see them", "%s lists no GPU", m.gpuTool)
	}
	n, first := len(m.gpus), m.gpus[0]
	switch {
	case w.launches() && w.gpus > n:
		return problem("lower engine.tensor_parallel, or run on a machine with more GPUs", "%d x %s, and one instance takes %d", n, first.Name, w.gpus)
	case w.launches() && w.gpu != "" && !sameGPU(w.gpu, first.Name):
		return warned("set hardware.gpu to what is there, or predictions are for another GPU", "the machine has %s, hardware.gpu says %s", first.Name, w.gpu)
	}
	return passed("%d x %s, driver %s", n, first.Name, cmp.Or(first.Driver, "not told"))
}

// sameGPU compares a GPU's catalog name with a tool's: the latter must contain every word of the former but the
// form factor, which tools write differently.
func sameGPU(catalog, tool string) bool {
	forms, tool := []string{"sxm", "pcie", "nvl", "oam"}, strings.ToLower(tool)
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(catalog)), func(word string) bool {
		return !slices.Contains(forms, word) && !strings.Contains(tool, word)
	})
}

// gpuMemory checks for GPUs used by others.
func gpuMemory(m *machine, w *wanted) Check {
	if len(m.gpus) == 0 {
		return Check{}
	}
	share := cmp.Or(w.share, 0.9)
	const alone = "measurements want the GPU for themselves"
	const remedy = "end what else runs on the GPU (nvidia-smi lists it), or lower knobs.gpu_memory_utilization"
	found := passed("%s each, all free", gib(m.gpus[0].TotalMemory))
	for i, g := range m.gpus {
		switch {
		case !(g.TotalMemory > 0 && g.Memory >= 0):
			found = warned("", "GPU %d does not tell its memory", i)
		case g.Memory > (1-share)*g.TotalMemory:
			return problem(remedy, "GPU %d has %s of %s in use; the engine wants %.0f %% of it", i, gib(g.Memory), gib(g.TotalMemory), 100*share)
		case g.Busy > 0.05:
			found = warned(alone, "GPU %d is %.0f %% busy and has %s in use", i, 100*g.Busy, gib(g.Memory))
		case g.Memory > 0.02*g.TotalMemory:
			found = warned(alone, "GPU %d has %s in use", i, gib(g.Memory))
		}
	}
	return found
}

// gib prints bytes in GiB or MiB.
func gib(bytes float64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MiB", bytes/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", bytes/(1<<30))
}

func port(m *machine, _ *wanted) Check {
	if m.port != nil {
		return problem("free ports on 127.0.0.1, or let this user open them", "no port on 127.0.0.1 can be opened: %v", m.port)
	}
	return passed("a port on 127.0.0.1 is free")
}

// openFiles checks the limit on open files: each request in flight takes one, and so do idle connections.
func openFiles(m *machine, _ *wanted) Check {
	const remedy = "raise it: ulimit -n 65536"
	switch {
	case m.files == 0:
		return warned("", "the limit is not known")
	case m.files < 1024:
		return problem(remedy, "the limit is %d, and every request in flight takes one", m.files)
	case m.files < 8192:
		return warned(remedy, "the limit is %d: no more than about that many requests can be in flight", m.files)
	}
	return passed("the limit is %d", m.files)
}

func clock(m *machine, _ *wanted) Check {
	const remedy = "use another clock source, such as tsc"
	source := cmp.Or(m.clock.source, "not told")
	switch {
	case m.clock.back:
		return problem(remedy, "the monotonic clock went back (source %s)", source)
	case m.clock.step <= 0 || m.clock.step > 100*time.Microsecond:
		return problem(remedy, "the clock moves in steps of %v (source %s), too coarse for latencies", m.clock.step, source)
	case slices.Contains([]string{"hpet", "acpi_pm", "jiffies"}, m.clock.source):
		return warned("boot with clocksource=tsc if the processor has a stable one", "source %s is slow to read, which adds to every time stamp", source)
	}
	return passed("source %s, steps of %v", source, m.clock.step)
}

// The p99 send lags of the self-test at which latencies are off by a little and by much: above a millisecond, a
// trial is invalid under the usual limits. If no real engine is measured, they give at most a warning.
const (
	smallLag = 500 * time.Microsecond
	largeLag = 5 * time.Millisecond
)

func loadGenerator(m *machine, w *wanted) Check {
	const remedy = "end what else runs on this machine, give planner more processors, or send from another host"
	if m.client == nil {
		return Check{}
	}
	v := m.client.telemetry
	say := fmt.Sprintf("%d requests/s to itself: sent %v late in the median, %v at p99, with %.0f %% of %d processors",
		testRate, v.Lag50.Round(time.Microsecond), v.Lag99.Round(time.Microsecond), 100*v.CPU, v.Processors)
	switch {
	case m.client.err != nil:
		return problem("check the loopback interface and proxies", "the self-test failed: %v", m.client.err)
	case v.Lag99 > largeLag && w.kind != "" && w.kind != "simulated":
		return problem(remedy, "%s", say)
	case v.Lag99 > smallLag || len(v.Stalls) > 0 || v.CPU > 0.8:
		return warned(remedy, "%s", say)
	}
	return passed("%s", say)
}

func processors(m *machine, _ *wanted) Check {
	switch {
	case m.processors < 2:
		return warned("use two and more: load generator and engine front end share them", "1 may be used")
	case m.load > float64(m.processors):
		return warned("end what else runs here before measuring", "%d may be used, and %.1f processes want to run", m.processors, m.load)
	case m.load < 0:
		return passed("%d may be used", m.processors)
	}
	return passed("%d may be used, load average %.1f", m.processors, m.load)
}

func memory(m *machine, _ *wanted) Check {
	switch {
	case m.memory <= 0:
		return warned("", "how much is free is not known")
	case m.available < 1<<30:
		return problem("end what else runs here", "%s of %s are available", gib(m.available), gib(m.memory))
	case m.available < 0.1*m.memory:
		return warned("engines load weights through it", "%s of %s are available", gib(m.available), gib(m.memory))
	}
	return passed("%s of %s are available", gib(m.available), gib(m.memory))
}

// disk checks the free space: below the first bound a run may end prematurely, below the second a long one may.
// A record takes some 100 bytes compressed, an engine's log 64 MiB.
func disk(m *machine, _ *wanted) Check {
	d := m.runs
	switch {
	case d.err != nil:
		return problem("make the folder writable, or set output.dir", "%s cannot be written: %v", d.path, d.err)
	case d.free < 1<<30:
		return problem("free some space, or set output.dir to another disk", "%s has %s free", d.path, gib(d.free))
	case d.free < 10<<30:
		return warned("free some space if records or engine logs are to be kept", "%s has %s free", d.path, gib(d.free))
	}
	return passed("%s has %s free", d.path, gib(min(d.free, 1<<60)))
}

func temporaryFiles(m *machine, _ *wanted) Check {
	if m.temp != nil {
		return problem("set TMPDIR to a folder that can be written", "%s cannot be written: %v", os.TempDir(), m.temp)
	}
	return passed("%s can be written", os.TempDir())
}

func apiKey(_ *machine, w *wanted) Check {
	switch {
	case w.key == "":
		return Check{}
	case os.Getenv(w.key) == "":
		return problem("export "+w.key+"=...", "the environment variable %s is not set", w.key)
	}
	return passed("%s is set", w.key)
}

func server(m *machine, w *wanted) Check {
	switch {
	case w.kind != "attach":
		return Check{}
	case m.server != nil:
		return problem("start the server, or correct engine.url, the key or the model's name", "%s: %v", w.url, m.server)
	}
	if m.unprobed != nil {
		return warned("see why /health is not answered: every run waits for it first", "%s answers one token, and not whether it is well: %v", w.url, m.unprobed)
	}
	return passed("%s answers one token", w.url)
}

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/report"
)

// wanted is what a configuration asks of the machine; the zero value asks for
// nothing in particular.
type wanted struct {
	// kind is the engine's, "" or "simulated" for none; program what starts it.
	kind, program string
	// found is where program lies, empty if it is nowhere.
	found string
	// gpu is a name of the catalog, gpus how many one instance takes.
	gpu  string
	gpus int
	// share is of a GPU's memory that the engine will take.
	share float64
}

// real reports whether an engine will be started here.
func (w wanted) real() bool { return w.kind != "" && w.kind != "simulated" && w.kind != "attach" }

func passed(name, format string, a ...any) report.Check {
	return report.Check{Name: name, State: report.Passed, Found: fmt.Sprintf(format, a...)}
}

func warned(name, remedy, format string, a ...any) report.Check {
	return report.Check{Name: name, State: report.Warning, Found: fmt.Sprintf(format, a...), Remedy: remedy}
}

func problem(name, remedy, format string, a ...any) report.Check {
	return report.Check{Name: name, State: report.Problem, Found: fmt.Sprintf(format, a...), Remedy: remedy}
}

// machineChecks judges what was seen of the machine.
func machineChecks(f facts, w wanted) []report.Check {
	checks := []report.Check{checkEngine(f.programs, w)}
	checks = append(checks, checkGPUs(f.gpus, w)...)
	checks = append(checks, checkPort(f.port), checkFiles(f.files), checkClock(f.clock))
	if f.client != nil {
		checks = append(checks, checkClient(*f.client, w))
	}
	return append(checks, checkProcessors(f.processors, f.busy), checkMemory(f.memory, f.free), checkDisk("disk", f.disk), checkTemp(f.temp))
}

func checkEngine(programs []engineProgram, w wanted) report.Check {
	const name = "engine"
	switch {
	case w.kind == "attach":
		return passed(name, "an engine that runs elsewhere is used; none is started here")
	case w.real() && w.found != "":
		return passed(name, "%s: %s", w.kind, w.found)
	case w.real():
		return problem(name, fmt.Sprintf("install %s, or put its folder on PATH; engine.kind = \"attach\" uses a server that runs already", w.program),
			"%s is not on PATH", w.program)
	}
	var have []string
	for _, p := range programs {
		if p.path != "" {
			have = append(have, p.kind+" ("+p.path+")")
		}
	}
	switch {
	case len(have) > 0:
		return passed(name, "on PATH: %s", strings.Join(have, ", "))
	case w.kind == "simulated":
		return passed(name, "the simulated engine needs none on PATH")
	}
	var names []string
	for _, p := range programs {
		names = append(names, p.program)
	}
	return warned(name, "install an engine to measure one here; estimate, simulate and search work without", "none of %s is on PATH", strings.Join(slices.Compact(names), ", "))
}

func checkGPUs(g gpuFacts, w wanted) []report.Check {
	const name = "GPU"
	missing, install := warned, "simulated engines need none; for real ones install the driver"
	if w.real() && w.gpu != "" {
		missing, install = problem, "install the driver, or run on a machine with "+w.gpu
	}
	switch {
	case g.err != nil:
		return []report.Check{problem(name, "reinstall or reload the driver, and try "+g.tool+" by hand", "%s fails: %v", g.tool, g.err)}
	case g.tool == "":
		return []report.Check{missing(name, install, "neither nvidia-smi nor rocm-smi is there")}
	case len(g.list) == 0:
		return []report.Check{missing(name, "check that the machine has GPUs and that this user or container may see them", "%s lists no GPU", g.tool)}
	}
	first := g.list[0]
	checks := []report.Check{passed(name, "%d x %s, driver %s", len(g.list), first.name, orNone(first.driver))}
	if w.real() && w.gpus > len(g.list) {
		checks[0] = problem(name, "lower engine.tensor_parallel, or run on a machine with more GPUs", "%d x %s, and one instance takes %d", len(g.list), first.name, w.gpus)
	} else if w.real() && w.gpu != "" && !sameGPU(w.gpu, first.name) {
		checks[0] = warned(name, "set hardware.gpu to what is there, or predictions are for another GPU", "the machine has %s, hardware.gpu says %s", first.name, w.gpu)
	}
	return append(checks, checkGPUMemory(g.list, w))
}

// checkGPUMemory looks for GPUs that somebody else uses.
func checkGPUMemory(list []gpuFact, w wanted) report.Check {
	const name = "GPU memory"
	share := w.share
	if share <= 0 {
		share = 0.9
	}
	const remedy = "end what else runs on the GPU (nvidia-smi lists it), or lower knobs.gpu_memory_utilization"
	worst := report.Check{}
	for i, g := range list {
		switch {
		case g.total <= 0 || g.used < 0:
			worst = warned(name, "", "GPU %d does not tell its memory", i)
		case g.used > (1-share)*g.total:
			return problem(name, remedy, "GPU %d has %s of %s in use; the engine wants %.0f %% of it", i, gib(g.used), gib(g.total), 100*share)
		case g.busy > 0.05 || g.used > 0.02*g.total:
			worst = warned(name, "measurements want the GPU for themselves", "GPU %d is %.0f %% busy and has %s in use", i, 100*max(g.busy, 0), gib(g.used))
		}
	}
	if worst.Name != "" {
		return worst
	}
	return passed(name, "%s each, all free", gib(list[0].total))
}

// sameGPU compares a catalog name with a tool's: every word of the catalog's but
// the form factor, which tools write differently, is in the other.
func sameGPU(catalog, tool string) bool {
	for _, word := range strings.Fields(strings.ToLower(catalog)) {
		if slices.Contains([]string{"sxm", "pcie", "nvl", "oam"}, word) {
			continue
		}
		if !strings.Contains(strings.ToLower(tool), word) {
			return false
		}
	}
	return true
}

func orNone(s string) string {
	if s == "" {
		return "not told"
	}
	return s
}

// gib prints bytes.
func gib(bytes float64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MiB", bytes/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", bytes/(1<<30))
}

func checkPort(err error) report.Check {
	if err != nil {
		return problem("port", "free ports on 127.0.0.1, or let this user open them", "no port on 127.0.0.1 can be opened: %v", err)
	}
	return passed("port", "a port on 127.0.0.1 is free")
}

// The limits on open files: a request in flight takes one, and so do the
// connections that are kept.
const (
	fewFiles    = 1024
	enoughFiles = 8192
)

func checkFiles(limit uint64) report.Check {
	const name, remedy = "open files", "raise it: ulimit -n 65536"
	switch {
	case limit == 0:
		return warned(name, "", "the limit is not known")
	case limit < fewFiles:
		return problem(name, remedy, "the limit is %d, and every request in flight takes one", limit)
	case limit < enoughFiles:
		return warned(name, remedy, "the limit is %d: no more than about that many requests can be in flight", limit)
	}
	return passed(name, "the limit is %d", limit)
}

func checkClock(c clockFacts) report.Check {
	const name = "clock"
	source := orNone(c.source)
	switch {
	case c.backwards:
		return problem(name, "use another clock source, such as tsc", "the monotonic clock went back (source %s)", source)
	case c.step <= 0 || c.step > 100*time.Microsecond:
		return problem(name, "use another clock source, such as tsc", "the clock moves in steps of %v (source %s), too coarse for latencies", c.step, source)
	case slices.Contains([]string{"hpet", "acpi_pm", "jiffies"}, c.source):
		return warned(name, "boot with clocksource=tsc if the processor has a stable one", "source %s is slow to read, which adds to every time stamp", c.source)
	}
	return passed(name, "source %s, steps of %v", source, c.step)
}

// The send lag of the self-test at which latencies are off by a little, and by
// much: a p99 lag above a millisecond makes a trial invalid under the usual limits.
// Where nothing real is measured it is never more than a warning.
const (
	smallLag = 500 * time.Microsecond
	largeLag = 5 * time.Millisecond
)

func checkClient(c clientFacts, w wanted) report.Check {
	const name, remedy = "load generator", "end what else runs on this machine, give planner more processors, or send from another host"
	v := c.vitals
	say := fmt.Sprintf("%.0f requests/s to itself: sent %v late in the median, %v at p99, with %.0f %% of %d processors",
		c.rate, v.Lag50.Round(time.Microsecond), v.Lag99.Round(time.Microsecond), 100*v.CPU, v.Processors)
	switch {
	case c.err != nil:
		return problem(name, "check the loopback interface", "the self-test failed: %v", c.err)
	case c.failed > 0:
		return problem(name, "check the loopback interface and proxies", "%d requests of the self-test failed", c.failed)
	case v.Lag99 > largeLag && w.kind != "" && w.kind != "simulated":
		return problem(name, remedy, "%s", say)
	case v.Lag99 > smallLag || len(v.Stalls) > 0 || v.CPU > 0.8:
		return warned(name, remedy, "%s", say)
	}
	return passed(name, "%s", say)
}

func checkProcessors(n int, busy float64) report.Check {
	const name = "processors"
	switch {
	case n < 2:
		return warned(name, "use two and more: load generator and engine front end share them", "1 may be used")
	case busy > float64(n):
		return warned(name, "end what else runs here before measuring", "%d may be used, and %.1f processes want to run", n, busy)
	case busy < 0:
		return passed(name, "%d may be used", n)
	}
	return passed(name, "%d may be used, load average %.1f", n, busy)
}

func checkMemory(total, free float64) report.Check {
	const name = "memory"
	switch {
	case total <= 0:
		return warned(name, "", "how much is free is not known")
	case free < 1<<30:
		return problem(name, "end what else runs here", "%s of %s are available", gib(free), gib(total))
	case free < 0.1*total:
		return warned(name, "engines load weights through it", "%s of %s are available", gib(free), gib(total))
	}
	return passed(name, "%s of %s are available", gib(free), gib(total))
}

// The free space below which a run may end in the middle, and below which a long
// one may: a record takes some 100 bytes compressed, an engine's log 64 MiB.
const (
	littleDisk = 1 << 30
	someDisk   = 10 << 30
)

func checkDisk(name string, f folderFacts) report.Check {
	switch {
	case f.err != nil:
		return problem(name, "make the folder writable, or set output.dir", "%s cannot be written: %v", f.path, f.err)
	case f.free < littleDisk:
		return problem(name, "free some space, or set output.dir to another disk", "%s has %s free", f.path, gib(f.free))
	case f.free < someDisk:
		return warned(name, "free some space if records or engine logs are to be kept", "%s has %s free", f.path, gib(f.free))
	}
	return passed(name, "%s has %s free", f.path, gib(math.Min(f.free, 1<<60)))
}

func checkTemp(f folderFacts) report.Check {
	if f.err != nil {
		return problem("temporary files", "set TMPDIR to a folder that can be written", "%s cannot be written: %v", f.path, f.err)
	}
	return passed("temporary files", "%s can be written", f.path)
}

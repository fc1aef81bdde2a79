package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"planner/internal/list"
)

// GPUUse is what the GPUs of an engine did over a period of time. What the tool does not report is
// NaN.
type GPUUse struct {
	// GPUs is how many were seen, Samples how often each was sampled on average.
	GPUs    int `json:"gpus"`
	Samples int `json:"samples"`
	// Busy is the mean share of time in which a kernel ran, over all GPUs.
	Busy float64 `json:"busy_share"`
	// PeakMemory is the largest use of one GPU in bytes, Watts the mean power of all of them
	// together.
	PeakMemory float64 `json:"peak_memory_bytes"`
	Watts      float64 `json:"watts"`
	// ClockMHz is the mean clock of the multiprocessors, LowestMHz the lowest while busy.
	ClockMHz  float64 `json:"clock_mhz"`
	LowestMHz float64 `json:"lowest_clock_mhz"`
	// Throttled names what held clocks down, other than idleness.
	Throttled []string `json:"throttled"`
}

// GPUSample is one GPU at one moment, as its vendor's tool reports it. What the tool does not
// report is NaN, or "".
type GPUSample struct {
	// At is the time since the start of the sampling.
	At     time.Duration `json:"-"`
	Index  string        `json:"index"`
	Name   string        `json:"-"`
	Driver string        `json:"-"`
	// Busy is the share of the tool's own time window in which a kernel ran, Memory what is in use
	// of TotalMemory, in bytes.
	Busy        float64 `json:"busy_share"`
	Memory      float64 `json:"memory_bytes"`
	TotalMemory float64 `json:"-"`
	Watts       float64 `json:"watts"`
	ClockMHz    float64 `json:"clock_mhz"`
	// Throttled names what holds the clock down, other than idleness.
	Throttled []string `json:"throttled,omitempty"`
}

// gpuTool is a vendor's program that reports on its GPUs.
type gpuTool struct {
	name string
	args []string
	// loop makes it repeat itself once a second; "" if it can only answer once.
	loop string
	// visible is the environment variable that restricts programs to some of the GPUs, only the
	// option that restricts the tool to these.
	visible, only string
	parse         func(out []byte) []GPUSample
}

// gpuTools are the known tools; the first that is installed is used.
var gpuTools = []gpuTool{
	{
		name: "nvidia-smi", parse: parseNvidia, loop: "--loop=1", visible: "CUDA_VISIBLE_DEVICES", only: "--id=",
		args: []string{"--query-gpu=index,name,driver_version,memory.total,memory.used,utilization.gpu,power.draw,clocks.sm,clocks_throttle_reasons.active",
			"--format=csv,noheader,nounits"},
	},
	{
		name: "rocm-smi", parse: parseROCm,
		args: []string{"--showproductname", "--showdriverversion", "--showuse", "--showmeminfo", "vram", "--showpower", "--showclocks", "--csv"},
	},
}

// gpuCommand returns the command that queries the GPUs which an engine with env in its environment
// may see; nil if there is no tool.
func gpuCommand(ctx context.Context, env map[string]string) (*gpuTool, *exec.Cmd) {
	for i := range gpuTools {
		t := &gpuTools[i]
		path, err := exec.LookPath(t.name)
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(ctx, path, t.args...)
		cmd.WaitDelay = time.Second
		ids, ok := env[t.visible]
		if !ok {
			ids = os.Getenv(t.visible)
		}
		if t.only != "" && gpuNumbers.MatchString(ids) {
			cmd.Args = append(cmd.Args, t.only+ids)
		}
		return t, cmd
	}
	return nil, nil
}

// gpuNumbers matches a list of indices, which the tools accept; there are other ways to name GPUs.
var gpuNumbers = regexp.MustCompile(`^\d+(,\d+)*$`)

// GPUs queries the GPUs that an engine with env in its environment may see. tool is the vendor's
// tool, "" if there is none.
func GPUs(ctx context.Context, env map[string]string) (tool string, gpus []GPUSample, err error) {
	t, cmd := gpuCommand(ctx, env)
	if t == nil {
		return "", nil, nil
	}
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr)+len(out) > 0 {
			line, _, _ := strings.Cut(string(exit.Stderr)+string(out), "\n")
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(line))
		}
		return t.name, nil, err
	}
	return t.name, t.parse(out), nil
}

// watchGPUs samples the GPUs of the engine until ctx ends, once a second if the tool can repeat
// itself, else every two seconds.
func (s *Sampling) watchGPUs(ctx context.Context) {
	env := s.engine.settings.Env
	t, cmd := gpuCommand(ctx, env)
	switch {
	case t == nil:
	case t.loop != "":
		cmd.Args = append(cmd.Args, t.loop)
		s.over.Go(func() { s.streamGPUs(cmd, t.parse) })
	default:
		// It answers once, and takes a good part of a second to start.
		ask := func() {
			if _, gpus, err := GPUs(ctx, env); err == nil {
				s.addGPUs(gpus)
			}
		}
		s.over.Go(func() {
			ask()
			again(ctx, 2*sampleEvery, ask)
		})
	}
}

// streamGPUs reads the lines of a tool that repeats itself. When planner is killed, the tool ends
// at its next line, which nobody reads.
func (s *Sampling) streamGPUs(cmd *exec.Cmd, parse func([]byte) []GPUSample) {
	// A process group of its own: Ctrl-C at the terminal lets the running trial end. All of it is
	// killed, as the tool may run behind a script, and would hold the pipe for ever.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.addGPUs(parse(lines.Bytes()))
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
}

func (s *Sampling) addGPUs(gpus []GPUSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range gpus {
		gpus[i].At = time.Since(s.started)
	}
	s.metrics.GPUs = append(s.metrics.GPUs, gpus...)
}

// memoryInUse returns how many bytes of each GPU are in use now; nil if that cannot be queried.
func memoryInUse(env map[string]string) []float64 {
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	_, gpus, _ := GPUs(ctx, env)
	return list.Map(gpus, func(g GPUSample) float64 { return g.Memory })
}

// memoryBack waits until the memory in use on each GPU is back to what it was before, but for a
// margin that drivers keep.
func memoryBack(env map[string]string, before []float64, limit time.Duration) error {
	const margin = 512 << 20
	for start := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		now := memoryInUse(env)
		held := 0.0
		for i := range min(len(now), len(before)) {
			held = larger(held, now[i]-before[i]-margin)
		}
		if held <= 0 {
			return nil
		}
		if time.Since(start) > limit {
			return fmt.Errorf("engine: a GPU has %.1f GiB more in use than before the engine was started", (held+margin)/(1<<30))
		}
	}
}

// parseNvidia reads nvidia-smi's CSV without units, one line per GPU; "[N/A]" and the like mean
// unknown. Memory is in MiB.
func parseNvidia(out []byte) []GPUSample {
	const mib = 1 << 20
	var gpus []GPUSample
	for line := range strings.Lines(string(out)) {
		f := list.Map(strings.Split(line, ","), strings.TrimSpace)
		if _, err := strconv.Atoi(f[0]); err != nil || len(f) != 9 {
			continue
		}
		g := GPUSample{Index: f[0], Name: f[1], Driver: f[2], TotalMemory: known(f[3], mib), Memory: known(f[4], mib),
			Busy: known(f[5], 0.01), Watts: known(f[6], 1), ClockMHz: known(f[7], 1)}
		reasons, _ := strconv.ParseUint(f[8], 0, 64)
		for _, b := range throttleBits {
			if reasons&b.bit != 0 {
				g.Throttled = append(g.Throttled, b.name)
			}
		}
		gpus = append(gpus, g)
	}
	return gpus
}

// throttleBits are NVML's reasons that hold clocks below what was asked for. Idle (1) and clocks
// that somebody set (2) do not.
var throttleBits = []struct {
	bit  uint64
	name string
}{
	{0x4, "power cap"}, {0x8, "hardware slowdown"}, {0x10, "sync boost"}, {0x20, "thermal (software)"},
	{0x40, "thermal (hardware)"}, {0x80, "power brake"},
}

// rocmColumns says what each column holds, by a part of its name in lower case; names differ
// between releases.
var rocmColumns = []struct {
	part string
	set  func(*GPUSample, string)
}{
	{"card series", func(g *GPUSample, s string) { g.Name = cmp.Or(g.Name, s) }},
	{"card model", func(g *GPUSample, s string) { g.Name = cmp.Or(g.Name, s) }},
	{"product name", func(g *GPUSample, s string) { g.Name = cmp.Or(g.Name, s) }},
	{"driver version", func(g *GPUSample, s string) { g.Driver = s }},
	{"gpu use (%)", func(g *GPUSample, s string) { g.Busy = known(s, 0.01) }},
	{"total memory (b)", func(g *GPUSample, s string) { g.TotalMemory = known(s, 1) }},
	{"used memory (b)", func(g *GPUSample, s string) { g.Memory = known(s, 1) }},
	{"graphics package power (w)", func(g *GPUSample, s string) { g.Watts = known(s, 1) }},
	{"sclk clock speed", func(g *GPUSample, s string) { g.ClockMHz = known(strings.Trim(s, "()Mhz "), 1) }},
}

// parseROCm reads the CSV of rocm-smi: header rows, each followed by a row per GPU, and a row for
// the system, which holds the driver.
func parseROCm(out []byte) []GPUSample {
	rows := csv.NewReader(bytes.NewReader(out))
	rows.FieldsPerRecord = -1
	all, _ := rows.ReadAll()
	var gpus []GPUSample
	var head []string
	driver := ""
	for _, row := range all {
		if row[0] == "device" {
			head = row
			continue
		}
		g := GPUSample{Index: row[0], Busy: math.NaN(), Memory: math.NaN(), TotalMemory: math.NaN(), Watts: math.NaN(), ClockMHz: math.NaN()}
		for i, name := range head[:min(len(head), len(row))] {
			for _, c := range rocmColumns {
				if strings.Contains(strings.ToLower(name), c.part) {
					c.set(&g, strings.TrimSpace(row[i]))
				}
			}
		}
		if strings.HasPrefix(row[0], "card") {
			gpus = append(gpus, g)
		}
		driver = cmp.Or(driver, g.Driver)
	}
	for i := range gpus {
		gpus[i].Driver = cmp.Or(gpus[i].Driver, driver)
	}
	return gpus
}

// known parses a number and multiplies it by its unit; NaN if it is not a number.
func known(s string, unit float64) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return sound(x * unit)
}

func sumGPU(all []GPUSample) *GPUUse {
	if len(all) == 0 {
		return nil
	}
	mean := func(of func(GPUSample) float64) float64 {
		sum, n := 0.0, 0.0
		for _, g := range all {
			if x := of(g); x >= 0 {
				sum, n = sum+x, n+1
			}
		}
		return sound(sum / n)
	}
	u := &GPUUse{PeakMemory: math.NaN(), LowestMHz: math.NaN(), Busy: mean(func(g GPUSample) float64 { return g.Busy }),
		Watts: mean(func(g GPUSample) float64 { return g.Watts }), ClockMHz: mean(func(g GPUSample) float64 { return g.ClockMHz })}
	seen := map[string]bool{}
	for _, g := range all {
		seen[g.Index] = true
		u.PeakMemory = larger(u.PeakMemory, g.Memory)
		if g.Busy > 0 && g.ClockMHz > 0 && !(u.LowestMHz <= g.ClockMHz) {
			u.LowestMHz = g.ClockMHz
		}
	}
	u.GPUs, u.Samples = len(seen), len(all)/len(seen)
	u.Watts *= float64(u.GPUs)
	for _, b := range throttleBits {
		if slices.ContainsFunc(all, func(g GPUSample) bool { return slices.Contains(g.Throttled, b.name) }) {
			u.Throttled = append(u.Throttled, b.name)
		}
	}
	return u
}

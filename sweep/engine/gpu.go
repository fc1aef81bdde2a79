package engine

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// GPUUse is what the GPUs of an engine did over a stretch of time. What the tool
// does not tell is negative.
type GPUUse struct {
	// GPUs is how many were seen, Samples how often all of them together.
	GPUs    int `json:"gpus"`
	Samples int `json:"samples"`
	// Busy is the mean share of time in which a kernel ran, over all GPUs.
	Busy float64 `json:"busy_share"`
	// PeakMemory is the largest use of one GPU in bytes, Watts the mean power of
	// all of them together.
	PeakMemory float64 `json:"peak_memory_bytes"`
	Watts      float64 `json:"watts"`
	// ClockMHz is the mean clock of the multiprocessors, LowestMHz the smallest
	// while busy.
	ClockMHz  float64 `json:"clock_mhz"`
	LowestMHz float64 `json:"lowest_clock_mhz"`
	// Throttled names what held clocks down, other than being idle.
	Throttled []string `json:"throttled"`
}

// GPUSample is one GPU at one moment. What the tool does not tell is negative.
type GPUSample struct {
	// At counts from the start of the sampling.
	At    time.Duration
	Index string
	// Busy is the share of the time of the tool's own window in which a kernel
	// ran, Memory what is in use in bytes.
	Busy, Memory, Watts, ClockMHz float64
	// Throttled names what holds the clock down, other than being idle.
	Throttled []string
}

// gpuReading is one GPU at one moment; NaN is what is not known.
type gpuReading struct {
	at           time.Duration
	index        string
	busy, memory float64
	watts, clock float64
	throttled    uint64
}

// gpuWatch collects readings.
type gpuWatch struct {
	cancel  context.CancelFunc
	over    sync.WaitGroup
	started time.Time
	mu      sync.Mutex
	// readings is guarded by mu.
	readings []gpuReading
}

// nvidiaQuery is what nvidia-smi is asked for, in this order.
const nvidiaQuery = "index,utilization.gpu,memory.used,power.draw,clocks.sm,clocks_throttle_reasons.active"

// watchGPU starts to read the GPUs once a second; nil where there is no tool to
// ask. The engine's environment may restrict it to some of them.
func watchGPU(ctx context.Context, env map[string]string) *gpuWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &gpuWatch{cancel: cancel, started: time.Now()}
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		args := []string{"--query-gpu=" + nvidiaQuery, "--format=csv,noheader,nounits", "--loop=1"}
		if ids := visible(env, "CUDA_VISIBLE_DEVICES"); ids != "" {
			args = append(args, "--id="+ids)
		}
		w.over.Go(func() { w.stream(ctx, path, args) })
		return w
	}
	if path, err := exec.LookPath("rocm-smi"); err == nil {
		w.over.Go(func() { w.poll(ctx, path) })
		return w
	}
	cancel()
	return nil
}

// visible is the list of GPU numbers that an engine may see, "" for all.
func visible(env map[string]string, name string) string {
	ids, ok := env[name]
	if !ok {
		ids = os.Getenv(name)
	}
	if regexp.MustCompile(`^\d+(,\d+)*$`).MatchString(ids) {
		return ids
	}
	return ""
}

// stream reads the lines of a tool that repeats itself. When planner is killed
// the tool ends at its next line, which nobody reads.
func (w *gpuWatch) stream(ctx context.Context, path string, args []string) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	// A group of its own: Ctrl-C at the terminal lets the trial that runs end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if r, ok := parseNvidia(lines.Text()); ok {
			w.add(r)
		}
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
}

// poll asks a tool that answers once, every other second: it takes a good part
// of one to start.
func (w *gpuWatch) poll(ctx context.Context, path string) {
	const every = 2 * time.Second
	for {
		cmd := exec.CommandContext(ctx, path, "--showuse", "--showmeminfo", "vram", "--showpower", "--showclocks", "--csv")
		cmd.WaitDelay = time.Second
		if out, err := cmd.Output(); err == nil {
			w.add(parseROCm(out)...)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

func (w *gpuWatch) add(r ...gpuReading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range r {
		r[i].at = time.Since(w.started)
	}
	w.readings = append(w.readings, r...)
}

// stop ends the reading, and sums up what was read; nil if nothing was.
func (w *gpuWatch) stop() (*GPUUse, []GPUSample) {
	w.cancel()
	w.over.Wait()
	samples := make([]GPUSample, len(w.readings))
	for i, r := range w.readings {
		samples[i] = GPUSample{At: r.at, Index: r.index, Busy: orMinus(r.busy), Memory: orMinus(r.memory), Watts: orMinus(r.watts),
			ClockMHz: orMinus(r.clock), Throttled: throttles(r.throttled)}
	}
	return sumGPU(w.readings), samples
}

// memoryInUse is how many bytes of each GPU are in use now; nil where that cannot
// be asked.
func memoryInUse(env map[string]string) []float64 {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	args := []string{"--query-gpu=" + nvidiaQuery, "--format=csv,noheader,nounits"}
	if ids := visible(env, "CUDA_VISIBLE_DEVICES"); ids != "" {
		args = append(args, "--id="+ids)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	data, err := cmd.Output()
	if err != nil {
		return nil
	}
	var out []float64
	for line := range strings.Lines(string(data)) {
		if r, ok := parseNvidia(line); ok {
			out = append(out, r.memory)
		}
	}
	return out
}

// memoryBack waits until the GPUs have given back what was taken since before,
// but for a margin that drivers keep.
func memoryBack(env map[string]string, before []float64, limit time.Duration) error {
	const margin = 512 << 20
	for start := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		now := memoryInUse(env)
		held := 0.0
		for i := range min(len(now), len(before)) {
			held = max(held, now[i]-before[i]-margin)
		}
		if held <= 0 {
			return nil
		}
		if time.Since(start) > limit {
			return fmt.Errorf("engine: a GPU has %.1f GiB more in use than before the engine was started", (held+margin)/(1<<30))
		}
	}
}

// parseNvidia reads a line of nvidia-smi's CSV without units; "[N/A]" and the
// like are not known. Memory comes in MiB.
func parseNvidia(line string) (gpuReading, bool) {
	f := strings.Split(line, ",")
	if len(f) != 6 {
		return gpuReading{}, false
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	if _, err := strconv.Atoi(f[0]); err != nil {
		return gpuReading{}, false
	}
	r := gpuReading{index: f[0], busy: number(f[1]) / 100, memory: number(f[2]) * (1 << 20), watts: number(f[3]), clock: number(f[4])}
	r.throttled, _ = strconv.ParseUint(f[5], 0, 64)
	return r, true
}

// rocmColumns says which column holds what, by how its name begins; names differ
// between releases.
var rocmColumns = []struct {
	begins string
	into   func(*gpuReading, float64)
}{
	{"GPU use (%)", func(r *gpuReading, x float64) { r.busy = x / 100 }},
	{"VRAM Total Used Memory (B)", func(r *gpuReading, x float64) { r.memory = x }},
	{"Average Graphics Package Power (W)", func(r *gpuReading, x float64) { r.watts = x }},
	{"Current Socket Graphics Package Power (W)", func(r *gpuReading, x float64) { r.watts = x }},
	{"sclk clock speed", func(r *gpuReading, x float64) { r.clock = x }},
}

// parseROCm reads the CSV of rocm-smi: a head with names, a line for each GPU.
func parseROCm(data []byte) []gpuReading {
	rows := csv.NewReader(strings.NewReader(strings.TrimSpace(string(data))))
	rows.FieldsPerRecord = -1
	head, err := rows.Read()
	if err != nil {
		return nil
	}
	var out []gpuReading
	for {
		row, err := rows.Read()
		if err != nil {
			return out
		}
		if len(row) != len(head) || !strings.HasPrefix(row[0], "card") {
			continue
		}
		nan := math.NaN()
		r := gpuReading{index: row[0], busy: nan, memory: nan, watts: nan, clock: nan}
		for i, name := range head {
			for _, c := range rocmColumns {
				if strings.HasPrefix(name, c.begins) {
					c.into(&r, number(strings.Trim(row[i], "()Mhz ")))
				}
			}
		}
		out = append(out, r)
	}
}

func number(s string) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// throttleBits are the reasons of NVML that hold clocks below what was asked
// for. Idle (1) and clocks that somebody set (2) do not.
var throttleBits = []struct {
	bit  uint64
	name string
}{
	{0x4, "power cap"}, {0x8, "hardware slowdown"}, {0x10, "sync boost"}, {0x20, "thermal (software)"},
	{0x40, "thermal (hardware)"}, {0x80, "power brake"},
}

// sumGPU sums up readings; nil if there are none.
func sumGPU(all []gpuReading) *GPUUse {
	if len(all) == 0 {
		return nil
	}
	var index []string
	var busy, watts, clock average
	u := &GPUUse{PeakMemory: -1, LowestMHz: -1}
	reasons := uint64(0)
	for _, r := range all {
		if !slices.Contains(index, r.index) {
			index = append(index, r.index)
		}
		busy.add(r.busy)
		watts.add(r.watts)
		clock.add(r.clock)
		if r.memory > u.PeakMemory {
			u.PeakMemory = r.memory
		}
		if r.busy > 0 && r.clock > 0 && (u.LowestMHz < 0 || r.clock < u.LowestMHz) {
			u.LowestMHz = r.clock
		}
		reasons |= r.throttled
	}
	u.GPUs, u.Samples = len(index), len(all)/len(index)
	u.Busy, u.ClockMHz, u.Watts = busy.mean(), clock.mean(), watts.mean()
	if u.Watts >= 0 {
		u.Watts *= float64(u.GPUs)
	}
	u.Throttled = throttles(reasons)
	return u
}

// throttles names the reasons that are set.
func throttles(reasons uint64) []string {
	var names []string
	for _, b := range throttleBits {
		if reasons&b.bit != 0 {
			names = append(names, b.name)
		}
	}
	return names
}

// average is the mean of what is known.
type average struct{ sum, n float64 }

func (a *average) add(x float64) {
	if !math.IsNaN(x) {
		a.sum += x
		a.n++
	}
}

func (a *average) mean() float64 {
	if a.n == 0 {
		return -1
	}
	return a.sum / a.n
}

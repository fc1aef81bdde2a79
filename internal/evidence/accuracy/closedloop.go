package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mathext/prng"

	"planner/model"
	"planner/sweep/workload"
)

// closedRow is one row of the closed-loop table.
type closedRow struct {
	model, gpu, version, precision string
	tp, input, output, slots       int
	requests, seqs, length         int
	ttft, tpot                     float64
	date                           string
	// Settings as the benchmark's recipe had them on its date.
	async, kv, caching, graphs, note string
}

// readClosed reads the closed-loop table. Rows that are there several times count once.
func readClosed(dir string, catalog *model.Catalog) ([]server, error) {
	lines, err := readTable(filepath.Join(dir, "closed-loop.csv"))
	if err != nil {
		return nil, err
	}
	var out []server
	var seen []closedRow
	for _, cell := range lines {
		r, err := readRow(cell)
		if err != nil {
			return nil, fmt.Errorf("closed-loop.csv: %w", err)
		}
		if slices.Contains(seen, r) {
			continue
		}
		seen = append(seen, r)
		s, err := r.server(catalog)
		if err != nil {
			return nil, fmt.Errorf("closed-loop.csv: %w", err)
		}
		out = append(out, s)
	}
	return out, nil
}

// readRow reads the cells of a row; counts that are not recorded are 0.
func readRow(cell func(string) string) (closedRow, error) {
	r := closedRow{
		model: cell("model"), gpu: cell("gpu"), version: cell("vllm"), precision: cell("precision"), date: cell("measured"),
		async: cell("async_scheduling"), kv: cell("kv_cache"), caching: cell("prefix_caching"), graphs: cell("cudagraph"), note: cell("note"),
	}
	for _, n := range []struct {
		to   *int
		name string
	}{{&r.tp, "tensor_parallel"}, {&r.input, "input_tokens"}, {&r.output, "output_tokens"}, {&r.slots, "concurrency"},
		{&r.requests, "requests"}, {&r.seqs, "max_num_seqs"}, {&r.length, "max_model_len"}} {
		var err error
		if text := cell(n.name); text == "" {
			continue
		} else if *n.to, err = strconv.Atoi(text); err != nil {
			return r, fmt.Errorf("%s: %w", n.name, err)
		}
	}
	for _, n := range []struct {
		to   *float64
		name string
	}{{&r.ttft, "ttft_mean_ms"}, {&r.tpot, "tpot_mean_ms"}} {
		var err error
		if *n.to, err = strconv.ParseFloat(cell(n.name), 64); err != nil {
			return r, fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return r, nil
}

// readTable reads a CSV file; each row is a function from column to cell.
func readTable(name string) ([]func(column string) string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	out := make([]func(string) string, len(rows)-1)
	for i, r := range rows[1:] {
		out[i] = func(column string) string {
			if c := slices.Index(rows[0], column); c >= 0 {
				return r[c]
			}
			return ""
		}
	}
	return out, nil
}

// gpuNames translates the table's names into the catalog's.
var gpuNames = map[string]string{"h100_sxm": "H100 SXM", "h200_sxm": "H200 SXM", "b200_sxm": "B200 SXM"}

// server turns a row into a server and its load: all slots start at once.
func (r *closedRow) server(catalog *model.Catalog) (server, error) {
	dep, err := deployed(catalog, r.model, gpuNames[r.gpu])
	if err != nil {
		return server{}, err
	}
	dep.TP, dep.Precision = r.tp, r.format(dep.Arch)
	s := server{file: "closed-loop.csv", group: groupClosed, dep: dep, limits: r.args(), cache: r.caching == "true"}
	l := load{
		label:    fmt.Sprintf("%s %s %s %s tp%d %d/%d c%d", s.model(), dep.Precision.Weights, s.gpu()[:4], r.version, r.tp, r.input, r.output, r.slots),
		slots:    r.slots,
		measured: figures{metricTTFT: r.ttft, metricTPOT: r.tpot}, omitted: r.omitted(),
	}
	if r.requests > 0 {
		l.requests = r.drawn()
		l.client = clientDelay + clientDelayPerSlot*float64(r.slots)
	} else { // another harness, whose client and lengths are not recorded
		shape := workload.Shape{Prompt: share(r.input), Output: share(r.output)}
		l.requests = (&workload.Workload{Shapes: []workload.Shape{shape}}).Slots(10*r.slots, 1)
		l.measured[metricTTFT] = 0
	}
	s.loads = []load{l}
	return s, nil
}

// The benchmark's client sends and reads in one thread of Python: its own delay is part
// of what it reports as TTFT, and none of the engine's. Milliseconds, a fit to these rows
// that comes with them.
const (
	clientDelay        = 5.1
	clientDelayPerSlot = 0.29
)

// format returns what the row stores its numbers in.
func (r *closedRow) format(arch model.Arch) model.Precision {
	p := model.Precision{Weights: model.FP8}
	if r.precision == "fp4" {
		p.Weights = model.NVFP4
		if arch.Native == model.MXFP4 {
			p.Weights = model.MXFP4
		}
	}
	if r.kv == "fp8" {
		p.KV = model.KVFP8
	}
	return p
}

// args returns the row's settings of the engine. The benchmark's recipes give 8192 tokens
// a step and 0.90 of the memory, and so do those that rest on defaults.
func (r *closedRow) args() model.EngineArgs {
	a := model.EngineArgs{
		MaxNumSeqs: r.seqs, MaxNumBatchedTokens: 8192, Utilization: 0.90, MaxModelLen: r.length, EngineVersion: r.version,
		EngineFeatures: model.EngineFeatures{Kernels: model.Kernels{Sampler: model.SamplerGreedy}}, // temperature 0
	}
	if a.MaxModelLen == 0 {
		a.MaxModelLen = 10240
	}
	switch r.async {
	case "true":
		a.Kernels.Async = model.On
	case "false":
		a.Kernels.Async = model.Off
	}
	switch {
	case strings.HasPrefix(r.graphs, "FULL_DECODE_ONLY"):
		a.Kernels.Graphs, a.Kernels.GraphTokens = model.GraphsDecodeOnly, 2048
	case r.graphs == "2048":
		a.Kernels.GraphTokens = 2048
	}
	if strings.Contains(r.note, "fused all-reduce") {
		a.Kernels.FusedReduce = model.On
	}
	if strings.Contains(r.note, "MARLIN=1") {
		a.Kernels.Experts = model.ExpertsMarlin
	}
	return a
}

// drawn returns the benchmark's own requests: lengths are uniform whole numbers in 80 to
// 100 % of the nominal ones, all prompts drawn before all outputs, by numpy's generator
// with seed 0.
func (r *closedRow) drawn() []workload.Request {
	rng := prng.NewMT19937()
	rng.Seed(0)
	prompts := randint(rng, r.input*8/10, r.input, r.requests)
	outputs := randint(rng, r.output*8/10, r.output, r.requests)
	out := make([]workload.Request, r.requests)
	for i := range out {
		out[i] = workload.Request{ID: i, Prompt: prompts[i], Output: outputs[i]}
	}
	return out
}

// randint draws n whole numbers of at least low and at most high as numpy's
// RandomState.randint does: as many bits as the range needs, again where beyond it.
func randint(rng *prng.MT19937, low, high, n int) []int {
	span := uint32(high - low)
	mask := uint32(1)<<bits.Len32(span) - 1
	out := make([]int, n)
	for i := range out {
		v := rng.Uint32() & mask
		for v > span {
			v = rng.Uint32() & mask
		}
		out[i] = low + int(v)
	}
	return out
}

// share is the usual harness's lengths: uniform in 80 to 100 % of the nominal one.
func share(n int) workload.Lengths {
	return workload.Lengths{Dist: workload.Uniform, Min: int(math.Ceil(0.8 * float64(n))), Max: n}
}

// omitted says why a row cannot be right as recorded; empty if it can.
func (r *closedRow) omitted() string {
	if r.slots == 512 { // of gpt-oss on H100; the recipe lets the client run fewer at once
		return "TPOT below that of 8 slots: how many requests ran at once is not recorded"
	}
	return ""
}

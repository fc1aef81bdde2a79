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

	"planner/internal/list"
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

// readClosed reads the closed-loop table. Rows that are there several times count once; counts that are
// not recorded are 0.
func readClosed(dir string, catalog *model.Catalog) ([]server, error) {
	t, err := readTable(filepath.Join(dir, "closed-loop.csv"))
	if err != nil {
		return nil, err
	}
	rows := make([]closedRow, len(t.rows))
	for i := range rows {
		text := func(column string) string { return t.text(i, column) }
		count := func(column string) int { return int(t.number(i, column)) }
		rows[i] = closedRow{
			model: text("model"), gpu: text("gpu"), version: text("vllm"), precision: text("precision"), date: text("measured"),
			tp: count("tensor_parallel"), input: count("input_tokens"), output: count("output_tokens"), slots: count("concurrency"),
			requests: count("requests"), seqs: count("max_num_seqs"), length: count("max_model_len"),
			ttft: t.number(i, "ttft_mean_ms"), tpot: t.number(i, "tpot_mean_ms"),
			async: text("async_scheduling"), kv: text("kv_cache"), caching: text("prefix_caching"), graphs: text("cudagraph"), note: text("note"),
		}
	}
	if t.err != nil {
		return nil, t.err
	}
	rows = list.Distinct(rows)
	out := make([]server, len(rows))
	for i := range rows {
		if out[i], err = rows[i].server(catalog); err != nil {
			return nil, fmt.Errorf("closed-loop.csv: %w", err)
		}
	}
	return out, nil
}

// table is a CSV file whose cells are read by column; err is the first cell that is no number.
type table struct {
	name    string
	columns []string
	rows    [][]string
	err     error
}

func readTable(name string) (*table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &table{name: filepath.Base(name), columns: rows[0], rows: rows[1:]}, nil
}

// text is a cell; it is empty if the table has no such column.
func (t *table) text(row int, column string) string {
	if c := slices.Index(t.columns, column); c >= 0 {
		return t.rows[row][c]
	}
	return ""
}

// number is a cell as a number, 0 if it is empty.
func (t *table) number(row int, column string) float64 {
	text := t.text(row, column)
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && text != "" && t.err == nil {
		t.err = fmt.Errorf("%s: row %d: %s: %w", t.name, row+1, column, err)
	}
	return x
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
	return list.Times(r.requests, func(i int) workload.Request { return workload.Request{ID: i, Prompt: prompts[i], Output: outputs[i]} })
}

// randint draws n whole numbers of at least low and at most high as numpy's
// RandomState.randint does: as many bits as the range needs, again where beyond it.
func randint(rng *prng.MT19937, low, high, n int) []int {
	span := uint32(high - low)
	mask := uint32(1)<<bits.Len32(span) - 1
	return list.Times(n, func(int) int {
		v := rng.Uint32() & mask
		for v > span {
			v = rng.Uint32() & mask
		}
		return low + int(v)
	})
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

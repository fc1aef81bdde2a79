package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"planner/model"
	"planner/sweep/workload"
)

// closedRow is one row of the closed-loop table.
type closedRow struct {
	model, gpu, version, precision string
	tp, input, output, slots       int
	ttft, tpot                     float64
	date                           string
}

// readClosed reads the closed-loop table. Rows that are there several times count once.
func readClosed(dir string, catalog *model.Catalog, seed uint64, assume assumption) ([]server, error) {
	lines, err := readTable(filepath.Join(dir, "closed-loop.csv"))
	if err != nil {
		return nil, err
	}
	var out []server
	var seen []closedRow
	for _, cell := range lines {
		r := closedRow{model: cell("model"), gpu: cell("gpu"), version: cell("engine_version"), precision: cell("precision"), date: cell("measured")}
		for _, n := range []struct {
			to   *int
			name string
		}{{&r.tp, "tensor_parallel"}, {&r.input, "input_tokens"}, {&r.output, "output_tokens"}, {&r.slots, "concurrency"}} {
			if *n.to, err = strconv.Atoi(cell(n.name)); err != nil {
				return nil, fmt.Errorf("closed-loop.csv: %s: %w", n.name, err)
			}
		}
		for _, n := range []struct {
			to   *float64
			name string
		}{{&r.ttft, "ttft_mean_ms"}, {&r.tpot, "tpot_mean_ms"}} {
			if *n.to, err = strconv.ParseFloat(cell(n.name), 64); err != nil {
				return nil, fmt.Errorf("closed-loop.csv: %s: %w", n.name, err)
			}
		}
		if slices.Contains(seen, r) {
			continue
		}
		seen = append(seen, r)
		s, err := r.server(catalog, seed, assume)
		if err != nil {
			return nil, fmt.Errorf("closed-loop.csv: %w", err)
		}
		out = append(out, s)
	}
	return out, nil
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

// assumption says what is taken for the flags that the table does not record.
type assumption int

const (
	// byRecipe: what the scripts of the public benchmark say that these rows come from.
	byRecipe assumption = iota
	// byDate: two-byte KV cache everywhere, asynchronous scheduling where the version's
	// default, or before 2025-12-29 the date, says so.
	byDate
)

// server turns a row into a server and its load: lengths uniform in 80 to 100 % of the
// nominal ones, ten requests a slot, all slots starting at once.
func (r *closedRow) server(catalog *model.Catalog, seed uint64, assume assumption) (server, error) {
	arch, err := catalog.Model(r.model)
	if err != nil {
		return server{}, err
	}
	gpu, err := catalog.GPU(gpuNames[r.gpu])
	if err != nil {
		return server{}, err
	}
	dep := model.Deployment{Arch: arch, Hardware: gpu, TP: r.tp}
	switch r.precision {
	case "fp8":
		dep.Precision.Weights = model.FP8
	case "fp4":
		dep.Precision.Weights = model.MXFP4
	}
	version := r.version
	if version == "" {
		version = "0.11.0" // of October to December 2025
	}
	if assume == byRecipe && r.gpu == "b200_sxm" {
		// The benchmark's B200 recipes ask for both, whatever the release's default is.
		dep.Precision.KV = model.KVFP8
		if !model.AsyncScheduling(version) {
			version = "0.14.0"
		}
	}
	s := server{
		file: "closed-loop.csv", group: groupNew, model: arch.Name + ", " + gpu.Name[:4], dep: dep,
		limits: model.EngineArgs{MaxNumSeqs: 1024, MaxNumBatchedTokens: 8192, Utilization: 0.90, MaxModelLen: 10240, EngineVersion: version},
	}
	if r.gpu == "h100_sxm" {
		s.group = group70B
		if r.precision == "fp4" {
			s.group = groupGptoss
		}
	}
	shape := workload.Shape{Prompt: share(r.input), Output: share(r.output)}
	w := workload.Workload{Shapes: []workload.Shape{shape}}
	s.loads = []load{{
		label:    fmt.Sprintf("%s tp%d %d/%d c%d", arch.Name, r.tp, r.input, r.output, r.slots),
		requests: w.Slots(10*r.slots, seed), slots: r.slots, timeout: 0 * time.Second,
		measured: figures{ttft: r.ttft, tpot: r.tpot}, omitted: r.omitted(),
	}}
	return s, nil
}

// share is the usual harness's lengths: uniform in 80 to 100 % of the nominal one.
func share(n int) workload.Lengths {
	return workload.Lengths{Dist: workload.Uniform, Min: int(math.Ceil(0.8 * float64(n))), Max: n}
}

// omitted says why a row cannot be right as recorded; empty if it can.
func (r *closedRow) omitted() string {
	if r.precision != "fp4" || r.gpu != "h100_sxm" {
		return ""
	}
	is := func(tp, input, output, slots int) bool {
		return r.tp == tp && r.input == input && r.output == output && r.slots == slots
	}
	switch {
	case r.slots == 512:
		return "TPOT below that of 8 slots: the server's cap on requests is not recorded"
	case is(4, 1024, 1024, 32), is(4, 1024, 8192, 16), is(8, 1024, 8192, 8):
		return "slower than the next larger concurrency"
	case is(8, 1024, 1024, 64):
		return "1.6 times its twin with 8192 outputs"
	case r.version == "":
		return "older kernels, version not recorded"
	}
	return ""
}

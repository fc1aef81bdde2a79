package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"planner/model"
	"planner/sweep/workload"
)

const traceFile = "trace-rtxpro6000-llama-3.1-8b.csv"

// traceRow is one request of the trace with the engine's own times, milliseconds.
type traceRow struct {
	request   workload.Request
	ttft, e2e float64
}

// readTraceRows reads the requests of the trace.
func readTraceRows(dir string) ([]traceRow, error) {
	lines, err := readTable(filepath.Join(dir, traceFile))
	if err != nil {
		return nil, err
	}
	out := make([]traceRow, len(lines))
	for i, cell := range lines {
		var v [5]float64
		for k, name := range [5]string{"arrival_s", "input_tokens", "output_tokens", "ttft_ms", "e2e_ms"} {
			if v[k], err = strconv.ParseFloat(cell(name), 64); err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", traceFile, i+1, err)
			}
		}
		out[i] = traceRow{ttft: v[3], e2e: v[4], request: workload.Request{
			ID: i, Due: time.Duration(math.Round(v[0] * 1e9)), Prompt: int(v[1]), Output: int(v[2])}}
	}
	return out, nil
}

// readTrace makes a server of the trace.
func readTrace(dir string, catalog *model.Catalog) (server, error) {
	rows, err := readTraceRows(dir)
	if err != nil {
		return server{}, err
	}
	arch, err := catalog.Model("llama-3.1-8b")
	if err != nil {
		return server{}, err
	}
	gpu, err := catalog.GPU("RTX PRO 6000 Blackwell Server")
	if err != nil {
		return server{}, err
	}
	l := load{label: "300 requests"}
	var ttft, tpot []float64
	for _, r := range rows {
		l.requests = append(l.requests, r.request)
		ttft = append(ttft, r.ttft)
		tpot = append(tpot, (r.e2e-r.ttft)/float64(r.request.Output-1))
		l.measured.e2e += r.e2e / float64(len(rows))
	}
	l.measured.ttft, l.measured.ttftP99, l.measured.tpot = mean(ttft), quantile(ttft, 0.99), mean(tpot)
	return server{
		file: traceFile, group: groupTrace, model: arch.Name, gpu: gpu.Name, engineTimes: true, cache: true,
		dep:    model.Deployment{Arch: arch, Hardware: gpu, Precision: model.Precision{Weights: model.BF16}},
		limits: model.EngineArgs{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, Utilization: 0.90, MaxModelLen: 8192, EngineVersion: "0.19.0"},
		loads:  []load{l},
	}, nil
}

package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

const traceFile = "trace-rtxpro6000-llama-3.1-8b.csv"

// readTraceRecords reads the requests of the trace with the engine's own times.
func readTraceRecords(dir string) ([]measure.Record, error) {
	lines, err := readTable(filepath.Join(dir, traceFile))
	if err != nil {
		return nil, err
	}
	out := make([]measure.Record, len(lines))
	for i, cell := range lines {
		var v [5]float64
		for k, name := range [5]string{"arrival_s", "input_tokens", "output_tokens", "ttft_ms", "e2e_ms"} {
			if v[k], err = strconv.ParseFloat(cell(name), 64); err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", traceFile, i+1, err)
			}
		}
		due := time.Duration(math.Round(v[0] * 1e9))
		out[i] = measure.Record{ID: i, Due: due, Sent: due, First: due + time.Duration(v[3]*1e6), Last: due + time.Duration(v[4]*1e6),
			Prompt: int(v[1]), Output: int(v[2]), Outcome: measure.OK}
	}
	return out, nil
}

// readTrace makes a server of the trace.
func readTrace(dir string, catalog *model.Catalog) (server, error) {
	records, err := readTraceRecords(dir)
	if err != nil {
		return server{}, err
	}
	dep, err := deployed(catalog, "llama-3.1-8b", "RTX PRO 6000 Blackwell Server")
	if err != nil {
		return server{}, err
	}
	dep.Precision.Weights = model.BF16
	l := load{label: "300 requests", measured: reduceRecords(records, true)}
	l.measured[metricCompleted] = 0
	for _, r := range records {
		l.requests = append(l.requests, workload.Request{ID: r.ID, Due: r.Due, Prompt: r.Prompt, Output: r.Output})
	}
	return server{
		file: traceFile, group: groupTrace, dep: dep, engineTimes: true, cache: true,
		limits: model.EngineArgs{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, Utilization: 0.90, MaxModelLen: 8192, EngineVersion: "0.19.0"},
		loads:  []load{l},
	}, nil
}

package main

import (
	"math"
	"path/filepath"
	"time"

	"planner/internal/list"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

const traceFile = "trace-rtxpro6000-llama-3.1-8b.csv"

// readTraceRecords reads the requests of the trace with the engine's own times.
func readTraceRecords(dir string) ([]measure.Record, error) {
	t, err := readTable(filepath.Join(dir, traceFile))
	if err != nil {
		return nil, err
	}
	out := make([]measure.Record, len(t.rows))
	for i := range out {
		due := time.Duration(math.Round(t.number(i, "arrival_s") * 1e9))
		first, last := due+time.Duration(t.number(i, "ttft_ms")*1e6), due+time.Duration(t.number(i, "e2e_ms")*1e6)
		out[i] = measure.Record{ID: i, Due: due, Sent: due, First: first, Last: last,
			Prompt: int(t.number(i, "input_tokens")), Output: int(t.number(i, "output_tokens")), Outcome: measure.OK}
	}
	return out, t.err
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
	l.requests = list.Map(records, func(r measure.Record) workload.Request {
		return workload.Request{ID: r.ID, Due: r.Due, Prompt: r.Prompt, Output: r.Output}
	})
	return server{
		file: traceFile, group: groupTrace, dep: dep, engineTimes: true, cache: true,
		limits: model.EngineArgs{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, Utilization: 0.90, MaxModelLen: 8192, EngineVersion: "0.19.0"},
		loads:  []load{l},
	}, nil
}

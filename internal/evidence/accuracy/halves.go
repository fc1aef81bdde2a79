package main

import (
	"fmt"
	"io"

	"planner/internal/list"
	"planner/model"
	"planner/model/calibrate"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// halves is what a calibration on the first half of the trace does for the second.
type halves struct {
	before, after figures // errors in percent: TPOT and p99 TTFT
	terms         map[string]calibrate.TermFit
}

// The goals of the second half, percent.
const (
	halfTPOT = 3.0
	halfP99  = 5.0
)

// calibrateHalf fits the constants to the first half of the trace's requests and
// predicts the second half; the whole trace is simulated, as the halves share a server.
func calibrateHalf(dir string, s *server) (halves, error) {
	records, err := readTraceRecords(dir)
	if err != nil {
		return halves{}, err
	}
	w := &workload.Workload{Arrivals: workload.Trace, Replay: list.Map(records, func(r measure.Record) workload.TraceRow {
		return workload.TraceRow{Arrival: r.Due, Prompt: r.Prompt, Output: r.Output}
	})}
	half := len(records) / 2
	run := calibrate.LoadPoint{Records: records, Trial: measure.Trial{
		Workload: w, Window: records[half].Due, Cooldown: w.TraceSpan() - records[half].Due,
		Knobs: measure.Knobs{MaxNumSeqs: s.limits.MaxNumSeqs, MaxNumBatchedTokens: s.limits.MaxNumBatchedTokens,
			GPUMemoryUtilization: s.limits.Utilization, MaxModelLen: s.limits.MaxModelLen, PrefixCaching: s.cache},
	}}
	fit, err := calibrate.Fit([]calibrate.LoadPoint{run}, calibrate.FitOptions{Deployment: s.dep, Version: s.limits.EngineVersion, Constants: s.seen(defaults(s))})
	if err != nil {
		return halves{}, err
	}
	fitted, err := fit.Apply(s.dep, s.limits.EngineVersion, defaults(s))
	if err != nil {
		return halves{}, err
	}
	out := halves{terms: fit.Terms}
	want := secondHalf(records)
	for _, q := range []struct {
		c  model.Constants
		to *figures
	}{{defaults(s), &out.before}, {fitted, &out.after}} {
		got, err := s.records(q.c)
		if err != nil {
			return halves{}, err
		}
		f := secondHalf(got)
		q.to[metricTPOT] = errorOf(metricTPOT, &f, &want)
		q.to[metricP99] = errorOf(metricP99, &f, &want)
	}
	return out, nil
}

// secondHalf reduces the later half of the records.
func secondHalf(records []measure.Record) figures {
	return reduceRecords(records[len(records)/2:], true)
}

// print writes the outcome beside the goals.
func (h *halves) print(w io.Writer) {
	fmt.Fprintf(w, "\ntrace, constants fitted to its first half, error on the second, percent: TPOT %+.1f (before %+.1f, goal %g), p99 TTFT %+.1f (before %+.1f, goal %g)\n",
		h.after[metricTPOT], h.before[metricTPOT], halfTPOT, h.after[metricP99], h.before[metricP99], halfP99)
	for _, t := range model.Terms() {
		if f := h.terms[t.String()]; f.Fitted {
			fmt.Fprintf(w, "  %s %.4g -> %.4g\n", t, f.Default, f.Value)
		}
	}
}

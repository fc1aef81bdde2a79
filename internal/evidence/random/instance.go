package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/sweep"
	"planner/sweep/ingest"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// setting is a key of a configuration with its value.
type setting struct{ Key, Value string }

// draft is a configuration, as its keys.
type draft struct {
	Settings []setting
	// Rows, if above 0, turns the workload into a trace of so many requests of it.
	Rows int `json:",omitempty"`
}

func (d *draft) set(key string, value any) {
	d.Settings = append(d.Settings, setting{key, fmt.Sprint(value)})
}

// load reads the draft for a command. What is not of its workload stays out of a
// configuration that replays the given trace instead.
func (d *draft) load(command, trace string) (*config.Config, error) {
	given := list.FilterMap(d.Settings, func(s setting) (config.Override, bool) {
		return config.Override{Key: s.Key, Value: s.Value}, trace == "" || !strings.HasPrefix(s.Key, "workload.") || s.Key == "workload.seed"
	})
	if trace != "" {
		given = append(given, config.Override{Key: "workload.trace", Value: trace})
	}
	return config.Load("", given, config.For(command))
}

// relative is a limit as a multiple of what the statistic is on an idle engine. That
// on goodput limits several latencies.
type relative struct {
	bound  measure.Bound
	parts  []measure.Metric
	factor float64
}

// idleRequests are those of the closed loop of one that stands for an idle engine.
const idleRequests = 1000

// limit adds limits to a draft: multiples of what an idle engine shows.
func (d *draft) limit(limits []relative) error {
	cfg, err := d.load("simulate", "")
	if err != nil {
		return err
	}
	knobs, _ := cfg.Candidates()
	sim := &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version, Settings: cfg.Engine.Features(), Gaps: true}
	o, err := sim.Observe(measure.Trial{Knobs: knobs[0], Workload: &cfg.Workload, Concurrency: 1, Requests: idleRequests,
		Seed: cfg.Workload.Seed, Whole: true})
	if err != nil {
		return err
	}
	for _, l := range limits {
		prefix, parts := "slo.", []measure.Bound{l.bound}
		if l.bound.Metric == measure.Goodput {
			d.set("slo.goodput.share", l.bound.Quantile)
			prefix = "slo.goodput."
			parts = list.Map(l.parts, func(m measure.Metric) measure.Bound { return measure.Bound{Metric: m, Quantile: l.bound.Quantile} })
		}
		for _, b := range parts {
			name := b.String()
			if l.parts != nil {
				name = b.Metric.String()
			}
			b.Limit = time.Second
			idle, ok := pool(b, span{0, math.MaxInt64}, &o)
			if !ok || idle.value <= 0 {
				return errors.New("an idle engine does not show " + name)
			}
			d.set(prefix+name, time.Duration(idle.value*l.factor*float64(time.Second)).Round(time.Microsecond))
		}
	}
	return nil
}

// instance is a configuration whose maximum rate is searched.
type instance struct {
	subject

	cfg *config.Config
	sim *sweep.Simulated
	// arrivals and shape tell instances apart in a summary.
	arrivals, shape string
}

// instance prepares a search of the draft. A trace is written into the folder.
func (d draft) instance(dir string) (*instance, error) {
	cfg, err := d.load("simulate", "")
	if err != nil {
		return nil, err
	}
	in := &instance{cfg: cfg, arrivals: d.arrivals(cfg), shape: shapeOf(&cfg.Workload)}
	trace := ""
	if d.Rows > 0 {
		if trace, err = d.writeTrace(&cfg.Workload, dir); err != nil {
			return nil, err
		}
	}
	if in.cfg, err = d.load("search", trace); err != nil {
		return nil, err
	}
	in.sim = &sweep.Simulated{Deployment: in.cfg.Deployment, Version: in.cfg.Engine.Version, Settings: in.cfg.Engine.Features()}
	knobs, _ := in.cfg.Candidates()
	capacity, err := in.sim.Capacity(knobs[0], sweep.MeanRequest(&in.cfg.Workload), measure.SLO{})
	if err != nil {
		return nil, err
	}
	latency := capacity.TTFT + capacity.Step*float64(in.cfg.Workload.LongOutput())
	in.subject = subject{workload: &in.cfg.Workload, objective: in.cfg.Objective, knobs: knobs[0], observe: in.sim.Observe,
		start: capacity.Rate, latency: time.Duration(latency * float64(time.Second))}
	return in, nil
}

// writeTrace draws the rows of a trace into a file of the folder.
func (d *draft) writeTrace(w *workload.Workload, dir string) (path string, err error) {
	drawn := w.Schedule(1, time.Duration(2*d.Rows)*time.Second, w.Seed)
	rows := list.Map(drawn[:min(len(drawn), d.Rows)], func(r workload.Request) workload.TraceRow {
		return workload.TraceRow{Arrival: r.Due, Prompt: r.Prompt, Output: r.Output, Shared: r.Shared}
	})
	f, err := os.CreateTemp(dir, "trace-*.csv")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(ingest.WriteTraceCSV(f, rows), f.Close())
}

// arrivals name the arrival process in a summary.
func (d *draft) arrivals(cfg *config.Config) string {
	switch w := &cfg.Workload; {
	case d.Rows > 0:
		return "trace"
	case w.Arrivals == workload.Gamma:
		return fmt.Sprintf("gamma %g", w.Burstiness)
	}
	return string(cfg.Workload.Arrivals)
}

// shapeOf names what requests look like in a summary.
func shapeOf(w *workload.Workload) string {
	switch {
	case w.Turns > 1:
		return "conversations"
	case len(w.Shapes) > 1:
		return "mix"
	case w.Shapes[0].Prefix.Groups > 0:
		return "prefix"
	}
	return string(w.Shapes[0].Prompt.Dist)
}

// String describes the instance in a line.
func (in *instance) String() string {
	var limits []string
	for _, b := range in.objective.Bounds {
		if b.Metric != measure.Goodput {
			limits = append(limits, fmt.Sprintf("%s %v", b, b.Limit))
			continue
		}
		parts := list.Map(b.Limits.Parts(b.Quantile), func(p measure.Bound) string { return fmt.Sprintf("%s %v", p.Metric, p.Limit) })
		limits = append(limits, fmt.Sprintf("%.0f%% within %s", 100*b.Quantile, strings.Join(parts, " ")))
	}
	prompt, output := in.workload.MeanTokens()
	k := in.knobs
	return fmt.Sprintf("%s %s, %s TP%d, seqs %d tokens %d mem %g, %s %.0f+%.0f, %s, %s", in.cfg.Model.Name, in.cfg.Model.Precision.Weights,
		k.GPU, k.TensorParallel, k.MaxNumSeqs, k.MaxNumBatchedTokens, k.GPUMemoryUtilization, in.shape, prompt, output, in.arrivals,
		strings.Join(limits, ", "))
}

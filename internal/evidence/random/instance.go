package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/ingest"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// draft is a configuration before its limits are known in seconds.
type draft struct {
	settings []config.Override
	// limits are multiples of what the statistic is on an idle engine.
	limits []relative
	// rows, if above 0, turns the workload into a trace of so many requests of it.
	rows int
}

// relative is a limit as a multiple of the statistic on an idle engine. Those on
// goodput share one quantile.
type relative struct {
	bound measure.Bound
	// parts are the latencies that goodput limits.
	parts  []measure.Metric
	factor float64
}

func (d *draft) set(key string, value any) {
	d.settings = append(d.settings, config.Override{Key: key, Value: fmt.Sprint(value)})
}

// text is all that makes the draft what it is, with the limits in seconds. A trace is
// told by what it was drawn from.
func (d *draft) text() string {
	var b strings.Builder
	for _, s := range d.settings {
		fmt.Fprintf(&b, "%s = %s\n", s.Key, s.Value)
	}
	fmt.Fprintf(&b, "rows = %d\n", d.rows)
	return b.String()
}

// instance is a configuration that can run, with what its truth is kept under.
type instance struct {
	cfg   *config.Config
	sim   *sweep.Simulated
	knobs measure.Knobs
	key   string
	// latency is the mean time of a request on an idle engine.
	latency time.Duration
	arrivals,
	shape string
}

// errNoStatistic is that of a limit on what the idle engine does not show.
var errNoStatistic = errors.New("an idle engine does not show the statistic")

// idleRequests are those of the closed loop of one that stands for an idle engine.
const idleRequests = 1000

// resolve finds the limits of a draft on the idle engine. The rows of a trace
// are written into the folder.
func (d draft) resolve(dir string) (*instance, error) {
	cfg, err := config.Load("", d.settings, config.For("simulate"))
	if err != nil {
		return nil, err
	}
	in := &instance{arrivals: d.arrivals(cfg), shape: d.shape(cfg)}
	in.sim = &sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version, Gaps: true}
	runnable, _ := cfg.Candidates()
	if len(runnable) == 0 {
		return nil, errors.New("no knobs that run")
	}
	if _, _, err := in.sim.Parts(runnable[0]); err != nil {
		return nil, err
	}
	t := measure.Trial{Knobs: runnable[0], Workload: &cfg.Workload, Concurrency: 1, Requests: idleRequests, Seed: cfg.Workload.Seed, Whole: true}
	o, err := in.sim.Observe(t)
	if err != nil {
		return nil, err
	}
	in.sim.Gaps = false
	whole := span{0, time.Duration(1<<63 - 1)}
	mean, _ := pool(measure.Bound{Metric: measure.E2E, Limit: time.Second}, whole, &o)
	in.latency = time.Duration(mean * float64(time.Second))
	for _, l := range d.limits {
		if err := d.limit(l, whole, &o); err != nil {
			return nil, err
		}
	}
	in.key = keyOf(d.text())
	if d.rows > 0 {
		if err := d.writeTrace(cfg, filepath.Join(dir, in.key+".csv")); err != nil {
			return nil, err
		}
	}
	if in.cfg, err = config.Load("", d.settings, config.For("search")); err != nil {
		return nil, err
	}
	runnable, _ = in.cfg.Candidates()
	in.knobs = runnable[0]
	return in, nil
}

func keyOf(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text))
	return strconv.FormatUint(h.Sum64(), 16)
}

// limit sets a limit to a multiple of what was seen.
func (d *draft) limit(l relative, whole span, o *measure.Observation) error {
	of := func(m measure.Metric) (string, error) {
		v, ok := pool(measure.Bound{Metric: m, Quantile: l.bound.Quantile, Limit: time.Second}, whole, o)
		if !ok || v <= 0 {
			return "", errNoStatistic
		}
		return time.Duration(v * l.factor * float64(time.Second)).Round(time.Microsecond).String(), nil
	}
	if l.bound.Metric != measure.Goodput {
		value, err := of(l.bound.Metric)
		d.set("slo."+l.bound.String(), value)
		return err
	}
	d.set("slo.goodput.share", l.bound.Quantile)
	for _, m := range l.parts {
		value, err := of(m)
		if err != nil {
			return err
		}
		d.set("slo.goodput."+m.String(), value)
	}
	return nil
}

// writeTrace draws the rows of a trace and makes the workload replay them.
func (d *draft) writeTrace(cfg *config.Config, path string) error {
	var rows []workload.TraceRow
	for _, r := range cfg.Workload.Schedule(1, time.Duration(2*d.rows)*time.Second, cfg.Workload.Seed) {
		if len(rows) < d.rows {
			rows = append(rows, workload.TraceRow{Arrival: r.Due, Prompt: r.Prompt, Output: r.Output, Shared: r.Shared})
		}
	}
	var b strings.Builder
	if err := ingest.WriteTraceCSV(&b, rows); err != nil {
		return err
	}
	var kept []config.Override
	for _, s := range d.settings {
		if section, key, _ := strings.Cut(s.Key, "."); section != "workload" || key == "seed" {
			kept = append(kept, s)
		}
	}
	d.settings = append(kept, config.Override{Key: "workload.trace", Value: path})
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// arrivals name the arrival process in a summary.
func (d *draft) arrivals(cfg *config.Config) string {
	switch w := &cfg.Workload; {
	case d.rows > 0:
		return "trace"
	case w.Arrivals == workload.Gamma:
		return fmt.Sprintf("gamma %g", w.Burstiness)
	}
	return string(cfg.Workload.Arrivals)
}

// shape names what requests look like in a summary.
func (d *draft) shape(cfg *config.Config) string {
	w := &cfg.Workload
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
	w := &in.cfg.Workload
	var limits []string
	for _, b := range in.cfg.Objective.Bounds {
		if b.Metric != measure.Goodput {
			limits = append(limits, fmt.Sprintf("%s %v", b, b.Limit))
			continue
		}
		var parts []string
		for _, p := range b.Limits.Parts(b.Quantile) {
			parts = append(parts, fmt.Sprintf("%s %v", p.Metric, p.Limit))
		}
		limits = append(limits, fmt.Sprintf("%.0f%% within %s", 100*b.Quantile, strings.Join(parts, " ")))
	}
	prompt, output := w.MeanTokens()
	k := in.knobs
	shape := in.shape
	if w.Turns > 1 {
		shape = fmt.Sprintf("%d turns", w.Turns)
	}
	return fmt.Sprintf("%s %s, %s TP%d, seqs %d tokens %d mem %g, %s %.0f+%.0f, %s, %s", in.cfg.Model.Name, in.cfg.Model.Precision.Weights,
		k.GPU, k.TensorParallel, k.MaxNumSeqs, k.MaxNumBatchedTokens, k.GPUMemoryUtilization, shape, prompt, output, in.arrivals, strings.Join(limits, ", "))
}

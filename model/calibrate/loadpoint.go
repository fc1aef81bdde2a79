// Package calibrate fits the simulated engine's few constants to measured runs, and says what the constants'
// known spread does to an answer.
//
// Only the terms of [model.Terms] are fitted: the front end, the costs per step, per layer, per launch of a
// layer and per running request, and the shares of the peak bandwidth and compute that weights, the KV cache,
// large matrix products and prompt attention reach. Data sheets, shapes, collectives and everything else stay.
// A term that the runs say nothing about keeps its default.
package calibrate

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"planner/internal/stat"
	"planner/model"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// LoadPoint is one measured run.
type LoadPoint struct {
	// Trial holds the conditions: knobs, workload, load, window, seed. The workload is required, so that the
	// same requests can be simulated.
	Trial measure.Trial
	// Measurement is what was measured.
	Measurement measure.Measurement
	// Records, if any, are the measured requests in the order of the trial's schedule. They replace the
	// measurement's statistics.
	Records []measure.Record
}

// check refuses a run that cannot be fitted to.
func (p *LoadPoint) check(o *FitOptions) error {
	k := p.Trial.Knobs
	switch {
	case p.Trial.Workload == nil:
		return errors.New("the workload is not recorded, so it cannot be simulated")
	case !p.Trial.Closed() && p.Trial.Window <= 0:
		return errors.New("how long it lasted is not recorded, so it cannot be simulated")
	case !p.Measurement.Ran():
		return fmt.Errorf("nothing was measured: %s", p.Measurement.Rejected)
	case p.Queueing() && !p.Trial.Workload.Replayed():
		return errors.New("overloaded: it shows a queue, not the engine")
	case p.Records == nil && !p.Measurement.Valid:
		return errors.New("its figures cannot be trusted")
	case k.TensorParallel > 0 && k.TensorParallel != max(o.Deployment.TP, 1):
		return fmt.Errorf("tensor_parallel %d, but the calibration is for %d", k.TensorParallel, max(o.Deployment.TP, 1))
	case k.GPU != "" && k.GPU != o.Deployment.Hardware.Name:
		return fmt.Errorf("gpu %s, but the calibration is for %s", k.GPU, o.Deployment.Hardware.Name)
	case len(p.Records) > 0 && len(p.Records) != len(p.Trial.Schedule()):
		return fmt.Errorf("%d records for a schedule of %d requests", len(p.Records), len(p.Trial.Schedule()))
	}
	return nil
}

// differs refuses a run of another deployment or release than the first: constants belong to one.
func (p *LoadPoint) differs(first *LoadPoint) error {
	for _, n := range measure.KnobTable {
		if own, its := n.Get(p.Trial.Knobs), n.Get(first.Trial.Knobs); n.Placement && own != its {
			return fmt.Errorf("of %s, and run 1 of %s: calibrate one at a time; a configuration with one value of %s for the list leaves the others out",
				p.Trial.Knobs.Kind().Describe(), first.Trial.Knobs.Kind().Describe(), n.Name)
		}
	}
	own, its := p.Measurement.Server.Engine.Version, first.Measurement.Server.Engine.Version
	a, errA := model.ParseVersion(own)
	b, errB := model.ParseVersion(its)
	if own != "" && its != "" && errA == nil && errB == nil && a != b {
		return fmt.Errorf("of release %s, and run 1 of %s: give the runs of one release at a time", own, its)
	}
	return nil
}

func (p *LoadPoint) simulate(o *FitOptions, c model.Constants) ([]measure.Record, error) {
	k := p.Measurement.Server.Knobs(p.Trial.Knobs)
	e, err := sim.Build(o.Deployment, c, sim.Args(k, o.Version, o.Settings), k.PrefixCaching)
	if err != nil {
		return nil, fmt.Errorf("simulate run: %w", err)
	}
	return e.Run(sim.Load{Requests: p.Trial.Schedule(), Slots: p.Trial.Concurrency, Timeout: p.Trial.Workload.Timeout}).Records, nil
}

// figure is one statistic of a run that is compared with its simulation.
type figure struct {
	point int // index of its run
	name  string
	// of computes it from a simulation's records, in seconds; NaN if they do not show it.
	of func([]measure.Record) float64
	// measured is the same statistic of the real run, in seconds.
	measured float64
	// sd is the relative standard deviation that the equations and chance leave with the best constants.
	sd float64
}

// Relative errors that the equations leave on benchmarks they were not fitted to, of a mean or a median;
// quantiles far out in the tail are less certain.
const (
	tpotDeviation = 0.02
	ttftDeviation = 0.05
	tailDeviation = 0.10
)

// deviation combines the error of the equations with the sampling error of a statistic of n requests. Those of a closed loop
// of one length are the same in the simulation.
func (p *LoadPoint) deviation(b measure.Bound, n int) float64 {
	left := ttftDeviation
	switch {
	case b.Metric == measure.TPOT:
		left = tpotDeviation
	case b.Quantile > 0.9:
		left = tailDeviation
	}
	spread := 0.5 // relative, of one request's time to first token; times per token vary far less
	shapes := p.Trial.Workload.Shapes
	alike := p.Trial.Closed() && len(shapes) == 1 && shapes[0].Prompt.Dist == workload.Fixed && shapes[0].Output.Dist == workload.Fixed
	if b.Metric == measure.TPOT || alike {
		spread = 0.1
	}
	return math.Hypot(left, spread/math.Sqrt(float64(max(n, 1))))
}

// statistics lists the statistics that runs are compared by, in the order of reports. Times to first token are
// left out of runs whose backlog grows, as they show the queue and not the steps.
func statistics(queueing bool) []measure.Bound {
	out := []measure.Bound{{Metric: measure.TPOT}, {Metric: measure.TPOT, Quantile: 0.5}, {Metric: measure.TPOT, Quantile: 0.9}}
	if !queueing {
		for _, q := range []float64{0, 0.5, 0.9, 0.99} {
			out = append(out, measure.Bound{Metric: measure.TTFT, Quantile: q})
		}
	}
	return out
}

func (p *LoadPoint) figures() []figure {
	replayed := p.Records != nil && p.Trial.Workload.Replayed()
	var out []figure
	for _, b := range statistics(p.Queueing()) {
		if replayed && b.Metric == measure.TPOT {
			continue
		}
		of := p.statistic(b)
		seen := p.Measurement.Latency(b.Metric)
		measured, n := seen.Stat(b.Quantile).Seconds(), seen.N
		if p.Records != nil {
			measured, n = of(p.Records), len(latencies(&p.Trial, p.Records, b.Metric))
		}
		if n > 0 && b.Quantile > 0 && float64(n)*(1-b.Quantile) < 5 {
			continue // other tools print quantiles of any number of requests
		}
		out = append(out, figure{name: b.String(), of: of, measured: measured, sd: p.deviation(b, n)})
	}
	if replayed {
		out = append(out, p.slices()...)
	}
	return slices.DeleteFunc(out, func(f figure) bool { return !(f.measured > 0) || math.IsInf(f.measured, 0) })
}

// statistic returns a function that computes a bound's statistic from records of the trial.
func (p *LoadPoint) statistic(b measure.Bound) func([]measure.Record) float64 {
	return func(records []measure.Record) float64 {
		v := latencies(&p.Trial, records, b.Metric)
		if len(v) == 0 {
			return math.NaN()
		}
		return statisticOf(v, b.Quantile)
	}
}

// Times per token of a replayed trace are compared slice by slice, with at least sliceRequests requests in
// each.
const (
	mostSlices    = 8
	sliceRequests = 15
)

// slices returns the mean times per token of consecutive parts of a replayed trace: the batch grows and shrinks
// over a trace, which a single mean would hide.
func (p *LoadPoint) slices() []figure {
	var ids []int
	for i := range p.Records {
		if _, ok := latency(&p.Records[i], measure.TPOT); ok && inWindow(&p.Trial, &p.Records[i]) {
			ids = append(ids, i)
		}
	}
	n := min(mostSlices, len(ids)/sliceRequests)
	var out []figure
	for k := range n {
		part := ids[k*len(ids)/n : (k+1)*len(ids)/n]
		of := func(records []measure.Record) float64 {
			sum := 0.0
			for _, i := range part {
				v, _ := latency(&records[i], measure.TPOT)
				sum += v
			}
			return sum / float64(len(part))
		}
		out = append(out, figure{name: fmt.Sprintf("tpot.mean, part %d of %d", k+1, n), of: of, measured: of(p.Records),
			sd: p.deviation(measure.Bound{Metric: measure.TPOT}, len(part))})
	}
	return out
}

// Queueing reports whether the backlog grew so much that times to first token are mostly waiting: their mean
// over the last quarter of the requests is more than three times that over the first and more than twenty times
// the mean time per token. A measurement may also say so.
func (p *LoadPoint) Queueing() bool {
	var ttft, tpot []float64
	for i := range p.Records {
		if !inWindow(&p.Trial, &p.Records[i]) {
			continue
		}
		v, ok := latency(&p.Records[i], measure.TTFT)
		w, ok2 := latency(&p.Records[i], measure.TPOT)
		if ok && ok2 && !math.IsInf(v, 0) {
			ttft, tpot = append(ttft, v), append(tpot, w)
		}
	}
	quarter := len(ttft) / 4
	if quarter == 0 {
		return p.Measurement.Overloaded
	}
	last := mean(ttft[len(ttft)-quarter:])
	return p.Measurement.Overloaded || last > 3*mean(ttft[:quarter]) && last > 20*mean(tpot)
}

// repeats reports whether two runs are of the same trial, with the same or other requests.
func (p *LoadPoint) repeats(other *LoadPoint) bool {
	a, b := &p.Trial, &other.Trial
	return a.Knobs == b.Knobs && a.Rate == b.Rate && a.Concurrency == b.Concurrency && reflect.DeepEqual(a.Workload, b.Workload)
}

func inWindow(t *measure.Trial, r *measure.Record) bool {
	if t.Closed() {
		return t.Measures(r)
	}
	return t.Window <= 0 || r.Due >= t.Warmup && r.Due < t.Warmup+t.Window
}

// latencies returns a metric of the requests due in the window, sorted, in seconds; infinite for those that
// failed.
func latencies(t *measure.Trial, records []measure.Record, m measure.Metric) []float64 {
	v := values(t, records, func(r *measure.Record) (float64, bool) { return latency(r, m) })
	slices.Sort(v)
	return v
}

// values returns a function's values for the requests due in the window that have one.
func values(t *measure.Trial, records []measure.Record, of func(*measure.Record) (float64, bool)) []float64 {
	var out []float64
	for i := range records {
		if r := &records[i]; inWindow(t, r) {
			if v, ok := of(r); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// latency returns a metric of one request in seconds, infinite if it failed; false if it has none.
func latency(r *measure.Record, m measure.Metric) (float64, bool) {
	if r.Outcome != measure.OK {
		return math.Inf(1), true
	}
	d, _, ok := r.Latency(m, 0)
	return d.Seconds(), ok
}

// statisticOf returns a quantile of values, interpolated linearly, and reorders them; for 0 their mean.
func statisticOf(v []float64, quantile float64) float64 {
	if quantile == 0 {
		return mean(v)
	}
	at := quantile * float64(len(v)-1)
	i := int(at)
	stat.Select(v, i)
	switch {
	case at == float64(i):
		return v[i]
	case i+1 >= len(v):
		return v[i]
	}
	next := slices.Min(v[i+1:])
	if math.IsInf(next, 0) {
		return next
	}
	return v[i] + (next-v[i])*(at-float64(i))
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

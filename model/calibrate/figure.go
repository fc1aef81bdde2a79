package calibrate

import (
	"fmt"
	"math"
	"slices"

	"planner/sweep/measure"
)

// figure is one number of a run that a simulation of it is compared by.
type figure struct {
	name string
	// of computes it from a simulation's records, seconds; NaN if they do not show it.
	of func([]measure.Record) float64
	// measured is the same number of the real run.
	measured float64
	// sd is how far, relatively, the equations and chance may be off with the best
	// constants.
	sd float64
}

// Deviations that the equations leave on benchmarks they were not fitted to, of a mean
// or a median; quantiles far out are less certain.
const (
	tpotDeviation = 0.02
	ttftDeviation = 0.05
	tailDeviation = 0.10
)

// slices of a replayed trace: times per token are compared slice by slice, each of at
// least so many requests.
const (
	mostSlices    = 8
	sliceRequests = 15
)

// figures lists what a run is compared by. A run whose backlog grows shows its queue,
// not its steps, in times to first token; these are left out then.
func (r *Run) figures(queueing bool) []figure {
	var out []figure
	add := func(f figure) {
		if f.measured > 0 && !math.IsInf(f.measured, 0) {
			out = append(out, f)
		}
	}
	if r.Records == nil {
		m := &r.Measurement
		for _, s := range stats(queueing) {
			v := m.Latency(s.metric).Stat(s.quantile)
			add(figure{name: s.name(), of: r.statistic(s), measured: v.Seconds(), sd: s.sd(m.Latency(s.metric).N)})
		}
		return out
	}
	for _, s := range stats(queueing) {
		if s.metric == measure.TPOT && r.Trial.Workload.Replayed() {
			continue
		}
		n := len(latencies(&r.Trial, r.Records, s.metric))
		add(figure{name: s.name(), of: r.statistic(s), measured: r.statistic(s)(r.Records), sd: s.sd(n)})
	}
	if r.Trial.Workload.Replayed() {
		for _, f := range r.slices() {
			add(f)
		}
	}
	return out
}

// stat is a statistic of a latency.
type stat struct {
	metric   measure.Metric
	quantile float64
}

func (s stat) name() string { return measure.Bound{Metric: s.metric, Quantile: s.quantile}.String() }

// sd adds what chance does in n requests to what the equations leave.
func (s stat) sd(n int) float64 {
	model := ttftDeviation
	switch {
	case s.metric == measure.TPOT:
		model = tpotDeviation
	case s.quantile > 0.9:
		model = tailDeviation
	}
	spread := 0.5 // of one request's time to first token; times per token vary far less
	if s.metric == measure.TPOT {
		spread = 0.1
	}
	return math.Hypot(model, spread/math.Sqrt(float64(max(n, 1))))
}

// stats lists the statistics in the order of reports.
func stats(queueing bool) []stat {
	out := []stat{{measure.TPOT, 0}, {measure.TPOT, 0.5}, {measure.TPOT, 0.9}}
	if !queueing {
		out = append(out, stat{measure.TTFT, 0}, stat{measure.TTFT, 0.5}, stat{measure.TTFT, 0.9}, stat{measure.TTFT, 0.99})
	}
	return out
}

// statistic returns a function that takes it from records of the run's trial.
func (r *Run) statistic(s stat) func([]measure.Record) float64 {
	return func(records []measure.Record) float64 {
		v := latencies(&r.Trial, records, s.metric)
		switch {
		case len(v) == 0, s.quantile > 0 && float64(len(v))*(1-s.quantile) < 5:
			return math.NaN()
		case s.quantile == 0:
			return mean(v)
		}
		return quantile(v, s.quantile)
	}
}

// slices are the mean times per token of consecutive parts of a replayed trace: the
// batch grows and shrinks over a trace, which one mean would hide.
func (r *Run) slices() []figure {
	var ids []int
	for i := range r.Records {
		if _, ok := latency(&r.Records[i], measure.TPOT); ok && r.inWindow(&r.Records[i]) {
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
		out = append(out, figure{name: fmt.Sprintf("tpot.mean, part %d of %d", k+1, n), of: of, measured: of(r.Records),
			sd: stat{metric: measure.TPOT}.sd(len(part))})
	}
	return out
}

// inWindow reports whether a request counts.
func (r *Run) inWindow(rec *measure.Record) bool {
	t := &r.Trial
	return t.Window <= 0 || t.Closed() || rec.Due >= t.Warmup && rec.Due < t.Warmup+t.Window
}

// queueing reports whether the backlog grew so long that times to first token are
// waiting: their mean in the last quarter of the requests is above three times that of
// the first quarter and above twenty times the time per token.
func (r *Run) queueing() bool {
	if r.Records == nil {
		return r.Measurement.Overloaded
	}
	var ttft, tpot []float64
	for i := range r.Records {
		if !r.inWindow(&r.Records[i]) {
			continue
		}
		v, ok := latency(&r.Records[i], measure.TTFT)
		w, ok2 := latency(&r.Records[i], measure.TPOT)
		if ok && ok2 && !math.IsInf(v, 0) {
			ttft, tpot = append(ttft, v), append(tpot, w)
		}
	}
	quarter := len(ttft) / 4
	if quarter == 0 {
		return r.Measurement.Overloaded
	}
	last := mean(slices.Clone(ttft[len(ttft)-quarter:]))
	return r.Measurement.Overloaded || last > 3*mean(ttft[:quarter]) && last > 20*mean(tpot)
}

package main

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/gonum/stat"

	"planner/internal/list"
	"planner/sweep/measure"
)

// sample is a statistic over its limit, with the ends of an interval of two standard
// errors.
type sample struct{ value, low, high float64 }

// batches are the parts of each run whose differences tell the standard error.
const batches = 5

// span is a part of a run.
type span struct{ from, to time.Duration }

// pool is the statistic of a bound from the requests of several runs that were due
// in a span; false without any.
func pool(b measure.Bound, s span, runs ...*measure.Observation) (sample, bool) {
	if b.Metric == measure.ITL {
		return poolGaps(b, runs)
	}
	var parts [][]float64
	for _, o := range runs {
		first := len(parts)
		parts = append(parts, make([][]float64, batches)...)
		for i := range o.Records {
			r := &o.Records[i]
			v, ok := figure(b, r)
			if !ok || r.Due < s.from || r.Due >= s.to {
				continue
			}
			at := first + int(float64(r.Due-s.from)/float64(s.to-s.from)*batches)
			parts[at] = append(parts[at], v)
		}
	}
	all := slices.Concat(parts...)
	if len(all) == 0 {
		return sample{}, false
	}
	if b.Quantile == 0 {
		mean := stat.Mean(all, nil)
		wide := twoErrors(parts, func(part []float64) float64 { return stat.Mean(part, nil) })
		return sample{mean, max(mean-wide, 0), mean + wide}, true
	}
	slices.Sort(all)
	v := quantile(all, b.Quantile)
	wide := twoErrors(parts, func(part []float64) float64 {
		beyond := 0.0
		for _, x := range part {
			if x > v {
				beyond++
			}
		}
		return beyond / float64(len(part))
	})
	return sample{v, quantile(all, b.Quantile-wide), quantile(all, b.Quantile+wide)}, true
}

// poolGaps is pool for the times between tokens, which runs record for their window.
func poolGaps(b measure.Bound, runs []*measure.Observation) (sample, bool) {
	all := hdrhistogram.New(runs[0].Gaps.LowestTrackableValue(), runs[0].Gaps.HighestTrackableValue(), int(runs[0].Gaps.SignificantFigures()))
	for _, o := range runs {
		all.Merge(o.Gaps.Histogram)
	}
	limit := float64(b.Limit) / float64(time.Microsecond)
	if b.Quantile == 0 {
		mean := all.Mean()
		wide := twoErrors(runs, func(o *measure.Observation) float64 { return o.Gaps.Mean() })
		return sample{mean / limit, max(mean-wide, 0) / limit, (mean + wide) / limit}, all.TotalCount() > 0
	}
	at := func(q float64) float64 { return float64(all.ValueAtQuantile(100*min(max(q, 0), 1))) / limit }
	v := all.ValueAtQuantile(100 * b.Quantile)
	wide := twoErrors(runs, func(o *measure.Observation) float64 {
		beyond := 0.0
		for _, bar := range o.Gaps.Distribution() {
			if bar.From > v {
				beyond += float64(bar.Count)
			}
		}
		return beyond / float64(o.Gaps.TotalCount())
	})
	return sample{at(b.Quantile), at(b.Quantile - wide), at(b.Quantile + wide)}, all.TotalCount() > 0
}

// twoErrors is twice the standard error of what the parts have in the mean.
func twoErrors[T any](parts []T, of func(T) float64) float64 {
	values := list.FilterMap(parts, func(p T) (float64, bool) { v := of(p); return v, !math.IsNaN(v) })
	if len(values) < 2 {
		return 0
	}
	return 2 * stat.StdDev(values, nil) / math.Sqrt(float64(len(values)))
}

// quantile is an order statistic of sorted values, 0 of nothing.
func quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return sorted[min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1)]
}

// figure is what of a request is bounded over its limit; false if it has no such
// latency.
func figure(b measure.Bound, r *measure.Record) (ratio float64, ok bool) {
	if b.Metric == measure.Goodput {
		return b.Limits.Worst(r)
	}
	v, open, ok := r.Latency(b.Metric, 0)
	return float64(v) / float64(b.Limit), ok && !open
}

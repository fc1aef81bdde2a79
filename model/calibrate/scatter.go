package calibrate

import (
	"math"
	"reflect"
	"slices"
)

// allowForScatter widens the figures by what repetitions of the same trial differ by: a
// machine that is faster on one day than on the other tells no more than that.
func (p *problem) allowForScatter() {
	sum, freedom := map[string]float64{}, map[string]float64{}
	for i, f := range p.figures {
		var same []float64
		for k, g := range p.figures {
			if g.name != f.name || !p.runs[f.run].repeats(&p.runs[g.run]) {
				continue
			}
			if k < i {
				same = nil
				break // counted with the first of them
			}
			same = append(same, math.Log(g.measured))
		}
		if len(same) < 2 {
			continue
		}
		center := mean(slices.Clone(same))
		for _, v := range same {
			sum[f.name] += (v - center) * (v - center)
		}
		freedom[f.name] += float64(len(same) - 1)
	}
	for i := range p.figures {
		f := &p.figures[i]
		if n := freedom[f.name]; n > 0 {
			f.sd = math.Hypot(f.sd, math.Sqrt(sum[f.name]/n))
		}
	}
}

// repeats reports whether two runs are the same trial on other requests.
func (r *Run) repeats(other *Run) bool {
	a, b := &r.Trial, &other.Trial
	return a.Knobs == b.Knobs && a.Rate == b.Rate && a.Concurrency == b.Concurrency && r.EngineTimes == other.EngineTimes &&
		reflect.DeepEqual(a.Workload, b.Workload)
}

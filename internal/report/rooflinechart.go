package report

import (
	"fmt"
	"math"
	"time"

	"planner/model"
	"planner/sweep/measure"
)

// rooflineChart sets each trial of an instance under the roofline of one of its GPUs: what
// it computed for each byte that it read, and how much of it in a second. Nil where a trial
// or the data sheets do not tell.
func rooflineChart(b *model.Bounds, trials []measure.Measurement) *Chart {
	if b == nil || b.PeakFlops <= 0 || b.PeakBandwidth <= 0 {
		return nil
	}
	const tera = 1e12
	roof := func(x float64) float64 { return min(b.PeakFlops, x*b.PeakBandwidth) / tera }
	edge := b.PeakFlops / b.PeakBandwidth
	points := Line{Name: "trials"}
	low, high := edge/10, edge*3
	for _, m := range ran(trials) {
		mbu, mfu, how := utilisation(b, m)
		if !m.Valid || mbu <= 0 || mfu <= 0 {
			continue
		}
		x, y := mfu*b.PeakFlops/(mbu*b.PeakBandwidth), mfu*b.PeakFlops/tera
		low, high = min(low, x/2), max(high, 2*x)
		points.Points = append(points.Points, ChartPoint{X: x, Y: y, Low: y, High: y, Overload: m.Overloaded, Trial: m.Trial.Number,
			Note: fmt.Sprintf("%s, MBU %s, MFU %s%s", load(&m.Trial), share(mbu), share(mfu), how)})
	}
	if len(points.Points) == 0 {
		return nil
	}
	line := Line{Name: "roofline of the data sheet"}
	for i := range sampleSteps + 1 {
		x := low * math.Pow(high/low, float64(i)/sampleSteps)
		line.Fit = append(line.Fit, struct{ X, Y float64 }{x, roof(x)})
	}
	return &Chart{Title: "Under the roofline of one GPU, each trial of the chosen settings", Name: "roofline", LogX: true, Series: []Line{points, line},
		XLabel: "operations for each byte read", YLabel: "TFLOP/s (log scale)",
		Limits: []Reference{{b.PeakFlops / tera, "peak compute " + number(b.PeakFlops/tera, 3)}}, Rates: []Reference{{edge, "compute bound from " + number(edge, 3)}}}
}

// utilisation are the shares of bandwidth and compute that a trial reached: as the
// simulated engine counts them, and of a real one as its tokens ask for at least.
func utilisation(b *model.Bounds, m *measure.Measurement) (mbu, mfu float64, how string) {
	if t := m.Server.Time; t != nil {
		return t.MBU, t.MFU, ""
	}
	w := m.Trial.Workload
	if w == nil || m.TPOT.P50 <= 0 || b.PrefillSeconds <= 0 {
		return 0, 0, ""
	}
	prompt, _ := w.MeanTokens()
	flight := m.Achieved * max(time.Duration(0), m.E2E.Mean).Seconds()
	mbu = (b.WeightSeconds + flight*b.KVSeconds) / m.TPOT.P50.Seconds()
	return mbu, (m.PromptTokens + m.OutputTokens) * b.PrefillSeconds / prompt, ", by its tokens"
}

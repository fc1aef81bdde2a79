package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/stat"
	"planner/model"
	"planner/plan"
	"planner/plan/decide"
	"planner/sweep/measure"
)

// nearest returns the stable, valid trial of a set of knobs nearest to a rate; if there is none, a
// measurement that shows nothing.
func nearest(trials []measure.Measurement, k measure.Knobs, rate float64) *measure.Measurement {
	return decide.Nearest(trials, k, rate, func(m *measure.Measurement) bool { return m.Valid && m.KeptUp() })
}

// addRoofline compares the hardware's limits with what the trials of the chosen settings reached, in figures
// for the trial nearest to the maximum rate.
func addRoofline(d *Document, p *plan.Plan, trials []measure.Measurement) {
	b, o := p.Evidence.Roofline, &p.Offer
	m := nearest(trials, o.Knobs, o.Rate.Value)
	if b == nil {
		return
	}
	seen := "reached"
	if m.Trial.Rate > 0 {
		seen = "at " + number(m.Trial.Rate, 3) + " req/s"
	}
	tab := table(wrapped("one instance"), right("roofline", seen, "reached"))
	row := func(name string, bound, value, reached float64, unit string) {
		allowed, seen, part := either(bound > 0 && finite(bound), number(bound, 3)+unit, unknown), unknown, unknown
		if value > 0 {
			seen = number(value, 3) + unit
			if bound > 0 && finite(reached) {
				part = percent(stat.Rounded(reached, 2))
			}
		}
		tab.row(name, allowed, seen, part)
	}
	// Median in ms, tokens/s, requests/s, requests by Little's law; 0 if unknown.
	tpot, output, achieved, flight := max(millis(m.TPOT.P50), 0), m.OutputTokens, m.Achieved, m.Achieved*max(m.E2E.Mean.Seconds(), 0)
	row("time per output token: the weights streamed once", 1e3*b.WeightSeconds, tpot, 1e3*b.WeightSeconds/tpot, " ms")
	row("tokens/s of one request: weights and its KV cache", b.StreamTokensPerS, 1e3/tpot, 1e3/tpot/b.StreamTokensPerS, "")
	row("output tokens/s of all requests: bandwidth and compute", b.OutputTokensPerS, output, output/b.OutputTokensPerS, "")
	row("prompts/s: compute", b.PromptsPerS, achieved, achieved/b.PromptsPerS, "")
	row("requests in flight: KV cache and max_num_seqs", float64(b.ConcurrencyLimit), flight, flight/float64(b.ConcurrencyLimit), "")
	d.section("Roofline: what the data sheets allow, and what is reached", tab)
	mean := p.Demand.TraceRates.MeanAt(o.Rate.Value)
	ceiling, by := b.Ceiling(o)
	facts := slices.Concat(Facts{
		{"ceiling", where(ceiling > 0 && o.Rate.Value > 0, fmt.Sprintf("%s requests/s, where %s alone takes all of the hardware; the maximum rate%s is %s of it",
			number(ceiling, 3), by, where(mean < o.Rate.Value, ", in the mean "+number(mean, 3)+","), percent(stat.Rounded(mean/ceiling, 2)))), Plain},
		{"KV cache", where(b.KVEqualsWeights > 0, fmt.Sprintf("%s ms a step for each request; from %s requests on it outweighs the weights",
			number(1e3*b.KVSeconds, 2), number(b.KVEqualsWeights, 2))), Plain},
		{"memory", fmt.Sprintf("%s GB of weights a GPU; the KV cache holds %s mean requests", number(b.WeightBytesPerGPU/1e9, 3), count(b.Concurrency)), Plain},
		{"idle engine", where(b.IdleTTFT > 0, fmt.Sprintf("TTFT %s, TPOT %s, as modelled for the mean request",
			latency(seconds(b.IdleTTFT)), latency(seconds(b.IdleTPOT)))), Plain},
	}, timeFacts(m.Server.Time), Facts{{"power", told(p.Evidence.Power, func(w plan.Power) string {
		return fmt.Sprintf("%s W a GPU at %s requests/s, %s kW an instance with its servers and cooling, %s J per output token; modelled, within %s until measured",
			number(w.GPUWatts, 2), number(w.Rate, 3), number(w.InstanceKW, 2), number(w.JoulesPerOutputToken, 2), percent(w.RelativeError))
	}), Plain}})
	d.add(facts, rooflineChart(&b.Bounds, trials))
}

// timeFacts say where an engine's time went and how well it used the hardware; nil if unknown.
func timeFacts(t *measure.TimeShares) Facts {
	if t == nil {
		return nil
	}
	proposing := where(t.Draft > 0, ", proposing "+share(t.Draft))
	return Facts{
		{Label: "step time", Text: fmt.Sprintf("weights %s, KV cache %s, compute %s, communication %s, fixed %s%s; idle %s of the time",
			share(t.Weights), share(t.KV), share(t.Compute), share(t.Communication), share(t.Fixed), proposing, share(t.Idle))},
		{Label: "hardware use", Text: fmt.Sprintf("MBU %s of the bandwidth, MFU %s of the compute, while steps ran", share(t.MBU), share(t.MFU))},
	}
}

// rooflineChart places the trials of an instance under the roofline of one of its GPUs: operations per byte
// read, and per second. Nil if no trial or the data sheets do not tell.
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

// utilisation returns the shares of bandwidth and compute that a trial reached: as counted by the simulated
// engine, or the least that a real one needs for its tokens.
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
	mbu = b.ReadSeconds(flight) / m.TPOT.P50.Seconds()
	return mbu, (m.PromptTokens + m.OutputTokens) * b.PrefillSeconds / prompt, ", by its tokens"
}

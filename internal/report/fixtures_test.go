package report

import (
	"fmt"
	"maps"
	"math"
	"time"

	"gonum.org/v1/plot/plotter"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/model"
	"planner/model/curve"
	"planner/plan"
	"planner/plan/decide"
	"planner/plan/diagnose"
	"planner/plan/effects"
	"planner/plan/trust"
	"planner/search"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

const ms = time.Millisecond

func slo() measure.SLO {
	return measure.SLO{Errors: 0.001, Bounds: []measure.Bound{
		{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * ms}, {Metric: measure.TPOT, Quantile: 0.99, Limit: 50 * ms},
	}}
}

func settings() measure.Knobs {
	return measure.Knobs{MaxNumSeqs: 256, MaxNumBatchedTokens: 4096, GPUMemoryUtilization: 0.9, PrefixCaching: true, MaxModelLen: 6100, TensorParallel: 4}
}

// spreadOut is a latency summary around a median.
func spreadOut(p50 time.Duration, n int) measure.Summary {
	s := measure.Summary{Mean: p50 * 11 / 10, P50: p50, P90: p50 * 17 / 10, P95: p50 * 2, P99: p50 * 3, P999: measure.Unresolved, N: n}
	s.Within.P50 = measure.Interval{p50 * 97 / 100, p50 * 103 / 100}
	s.Within.P99 = measure.Interval{p50 * 27 / 10, p50 * 33 / 10}
	return s
}

// trial is a measurement at a rate of an imagined server that saturates at 24
// requests/s.
func trial(number int, k measure.Knobs, rate float64) measure.Measurement {
	rho := rate / 24
	over := rho > 1
	ttft := time.Duration((70 + 60*rho/max(1-rho, 0.02)) * float64(ms))
	n := int(rate * 180)
	grown := max(1-23.6/rate, 0)
	share := min(0.0006*math.Exp(0.17*rate), 1)
	m := measure.Measurement{
		Trial: measure.Trial{Number: number, Knobs: k, Rate: rate, Warmup: 30 * time.Second, Window: 3 * time.Minute, Seed: 1, Objective: slo(),
			Workload: &workload.Workload{Class: "chat", Arrivals: workload.Poisson}, Why: "where the answer is most likely"},
		Duration:   3 * time.Minute,
		Throughput: measure.Throughput{Achieved: min(rate, 23.6), Sent: rate, PromptTokens: 690 * rate, OutputTokens: 274 * min(rate, 23.6), Goodput: rate * (1 - share)},
		Tally:      measure.Tally{Requests: n},
		Latencies:  measure.Latencies{TTFT: spreadOut(ttft, n), TPOT: spreadOut(time.Duration(12+rate)*ms, n), ITL: spreadOut(time.Duration(11+rate)*ms, 274*n), E2E: spreadOut(ttft+274*time.Duration(12+rate)*ms, n)},
		Counts: []measure.Count{{Bound: "ttft.p99", N: n, K: int(share * float64(n)), Value: share, Low: share * 0.7, High: share * 1.5, Phi: 2, Cluster: 1},
			{Bound: "tpot.p99", N: n, Value: 0, High: 3 / float64(n), Phi: 1, Cluster: 1}, {Bound: "errors", N: n, High: 3 / float64(n), Phi: 1, Cluster: 1},
			{Bound: "throughput", N: n, K: int(grown * float64(n)), Value: grown, Low: grown - 0.01, High: grown + 0.01, Phi: 1, Cluster: 1}},
		Server: measure.Server{Engine: measure.Software{Kind: "simulated", Version: "0.20.0"}, KVBlocks: new(31250), BlockTokens: new(16), Preemptions: new(0), HitRate: new(0.031), PeakKV: new(0.42),
			Time: &measure.TimeShares{Weights: 0.38, KV: 0.17, Compute: 0.31, Communication: 0.09, Fixed: 0.05, Idle: 0.02, MBU: 0.44, MFU: 0.29, Binding: "weights"}},
		Verdict: &measure.Verdict{State: measure.Met, Binding: "ttft.p99", Slack: 0.3}, Overloaded: over, Valid: true,
	}
	switch {
	case share > 0.012:
		m.Verdict = &measure.Verdict{State: measure.Missed, Binding: "ttft.p99", Slack: -0.4}
	case share > 0.008:
		m.Verdict.State = measure.Unsure
	}
	return m
}

func trials() []measure.Measurement {
	var out []measure.Measurement
	for i, rate := range []float64{4, 10, 16, 17.3, 20, 26} {
		out = append(out, trial(i+1, settings(), rate))
	}
	other := settings()
	other.MaxNumSeqs = 64
	out = append(out, trial(7, other, 10), trial(8, other, 18))
	cannot := settings()
	cannot.GPUMemoryUtilization = 0.5
	return append(out, measure.Measurement{Trial: measure.Trial{Number: 9, Knobs: cannot}, Rejected: note.Text("no room for the KV cache").Reason()})
}

func fittedCurve() *curve.Curve {
	c := &curve.Curve{
		Metric: measure.TTFT, Low: 4, High: 20, Knee: 18.2, KneeOf: 0.99,
		Model:      curve.Model{Form: curve.Stationary, Levels: []float64{0.5, 0.99}, Floors: []float64{0.07, 0.21}, Scales: []float64{0.06, 0.18}, Mu: 24},
		Quality:    curve.Quality{RMSE: 0.04, AICc: math.Inf(1), LeaveOneOut: 0.1},
		Saturation: &curve.Saturation{Value: 23.8, Low: 23.5, High: 24.2, Agree: true, Reason: "2 routes agree within 5 %"},
	}
	for _, m := range trials()[:6] {
		p := curve.Point{Regime: curve.Stable, Rate: m.Trial.Rate, Achieved: m.Achieved, Requests: m.Requests,
			Values: []curve.Value{{Quantile: 0.5, Latency: m.TTFT.P50}, {Quantile: 0.99, Latency: m.TTFT.P99}}}
		if m.Overloaded {
			p.Regime = curve.Overload
		}
		c.Points = append(c.Points, p)
	}
	for _, q := range []float64{0.5, 0.99} {
		for rate := 4.0; rate <= 20; rate++ {
			y, _ := c.Model.At(q, rate)
			c.Band = append(c.Band, curve.BandPoint{Rate: rate, Quantile: q, Low: 0.93 * y, High: 1.08 * y})
		}
	}
	return c
}

func result() *search.Result {
	return &search.Result{
		Knobs: settings(), Estimate: search.Estimate{Value: 16.912345, Low: 16.1, High: 17.66, Confidence: 0.9, Safe: 16.214}, Binding: "ttft.p99",
		Bounds: []search.BoundResult{{Bound: "ttft.p99", Probability: 0.93, Low: 16.1, High: 17.66, Phi: 2.1, Gamma: 0.5, Rate: 17, Share: 0.01, Kappa: 2.9},
			{Bound: "tpot.p99", Probability: 0.07, Low: 18.2, High: 44, Phi: 1, Gamma: 0.5, Rate: 19.5, Share: 0.01, Kappa: 9},
			{Bound: "throughput", Low: 900, High: 8000, Rate: 4000, Kappa: 1}},
		Outcome: search.Found, Reason: note.Text("the interval is within 10 % of the rate").Reason(), Trials: 6, EngineTime: 21 * time.Minute,
	}
}

func bounds() *plan.DataSheet {
	return &plan.DataSheet{Bounds: model.Bounds{WeightSeconds: 0.00538, StreamTokensPerS: 180, KVSeconds: 0.000031, KVEqualsWeights: 174, PrefillSeconds: 0.0134, PromptsPerS: 74.6,
		Concurrency: 610, ConcurrencyLimit: 256, OutputTokensPerS: 18900, IdleTTFT: 0.041, IdleTPOT: 0.0081, WeightBytesPerGPU: 17.9e9, PeakFlops: 1979e12, PeakBandwidth: 3.35e12}}
}

func demand() plan.Demand { return plan.Demand{Rate: 100, Headroom: 0.2, Spare: 1, BurstIndex: 1} }

func offer(gpu string, price float64) plan.Offer {
	return plan.Offer{Knobs: settings(), GPU: gpu, GPUs: 4, Rate: result().Estimate, Binding: "ttft.p99",
		Pricing: plan.Pricing{PricePerGPUHour: price, PricedBy: "on-demand list price, 2026-08-30"}, PromptTokens: 690, OutputTokens: 274}
}

func rejected() []measure.Rejection {
	var out []measure.Rejection
	for _, tokens := range []int{2048, 4096, 8192, 16384} {
		for i, seqs := range []int{64, 128, 256, 512, 1024} {
			for _, memory := range []float64{0.5, 0.55} {
				k := settings()
				k.MaxNumSeqs, k.MaxNumBatchedTokens, k.GPUMemoryUtilization = seqs, tokens, memory
				out = append(out, measure.Rejection{Knobs: k, Reason: note.Reason{
					Text: fmt.Sprintf("needs %.1f GB of a GPU's 80, %.1f are allowed", 47.2+float64(i), 80*memory), Note: note.New(note.EngineFailed, "mem.no_kv", "")}})
			}
		}
	}
	k := settings()
	k.TensorParallel = 1
	return append(out, measure.Rejection{Knobs: k, Reason: note.Text("70.6 GB of weights do not fit one GPU; the smallest tensor_parallel that fits is 2").Reason()})
}

func solved() *plan.Plan {
	slow := offer("L40S", 1.12)
	slow.Knobs.GPU, slow.Knobs.TensorParallel, slow.GPUs = "L40S", 8, 8
	slow.Rate = search.Estimate{Value: 5.1, Low: 4.7, High: 5.5, Confidence: 0.9, Safe: 4.8}
	slow.Binding = "tpot.p99"
	slow.Warnings = note.Notes{note.New(note.Uncalibrated, "the GPU L40S", 10.0)}
	never := offer("A100 80GB", 1.4)
	never.Knobs.TensorParallel, never.GPUs, never.Rate = 1, 1, search.Estimate{}
	never.Obstacle = note.Text("the model does not fit: 70.6 GB of weights on one GPU").Reason()
	p := must.Get(plan.Solve(demand(), slo(), []plan.Offer{offer("H100 SXM", 2.99), slow, never}, rejected()))
	standard := measure.Knobs{TensorParallel: 4, PrefixCaching: true, MaxNumSeqs: 1024, MaxNumBatchedTokens: 8192, GPUMemoryUtilization: 0.92, MaxModelLen: 6100}
	p.Comparison = &plan.Comparison{
		Default: plan.Setting{Knobs: standard, Rate: &search.Estimate{Value: 13.2, Low: 12.6, High: 13.8, Confidence: 0.9, Safe: 12.7}},
		Tuned:   plan.Setting{Knobs: p.Offer.Knobs, Rate: &p.Offer.Rate},
		Gain:    &search.Estimate{Value: 0.28, Low: 0.21, High: 0.36, Confidence: 0.9},
	}
	p.Evidence = plan.Evidence{Roofline: bounds(), Curve: fittedCurve(), Effects: []effects.Effect{
		{Knob: "max_num_seqs", Best: "256", Worst: "64", Cost: 0.31, Low: 0.27, High: 0.35, Confidence: 0.9, Sets: 12},
		{Knob: "gpu_memory_utilization", Best: "0.95", Worst: "0.85", Cost: 0.01, Low: -0.01, High: 0.03, Confidence: 0.9, Sets: 8}}}
	p.Warnings = append(p.Warnings, note.New(note.Cliff, "ttft.p99", 15.0))
	return p
}

// started is the command of a model of its own format.
func started(k measure.Knobs) StartCommand {
	vllm := engine.Settings{Kind: "vllm", Model: "meta-llama/Llama-3.1-70B-Instruct", Format: engine.Format{Weights: "fp8", Stored: "bf16"}}
	return StartCommand{Line: engine.Command{Args: must.Get(vllm.Command(k, engine.AnyPort)).Args}.String()}
}

// inTime is a trial of which the cache is not known at first.
func inTime(t measure.Trial) (sweep.Timeline, error) {
	t.Warmup, t.Window, t.Cooldown = 10*time.Second, 40*time.Second, 10*time.Second
	line := sweep.Timeline{Trial: t, Step: 2 * time.Second}
	for i := range 30 {
		m := sweep.Moment{At: time.Duration(2*i+1) * time.Second, Arrived: 15 + float64(i%5), Ended: 14 + float64(i%7), InFlight: 40 + float64(i), KV: 0.3 + float64(i)/100, TTFT: 0.15 + 0.01*float64(i%3)}
		if i < 3 {
			m.KV, m.TTFT = math.NaN(), math.NaN()
		}
		line.Moments = append(line.Moments, m)
	}
	return line, nil
}

// judged adds what the trials say of their server and of themselves.
func judged(b decide.Background) decide.Background {
	mine := of(b.Trials, settings())
	b.Diagnosis, b.Trust = diagnose.Of(mine, &bounds().Bounds, measure.SLO{}), trust.Check(mine, trust.Subject{GPU: "H100 SXM", Weights: "fp8", Rate: 16.9})
	return b
}

// documents are the reports that the goldens hold.
func documents() map[string]Document {
	docs := map[string]Document{
		"plan":   planDocument(solved(), judged(decide.Background{Subject: "llama-3.1-70b in fp8, chat", Trials: trials(), Search: result()}), Engines{Start: started, Timeline: inTime}),
		"search": foundDocument(settings(), *result(), judged(decide.Background{Trials: trials()[:6]}), Engines{}),
		"blocks": blocks(),
	}
	r, seen := saturated()
	docs["saturated"] = foundDocument(settings(), r, decide.Background{Trials: seen}, Engines{})
	docs["overloaded"] = measurementDocument(seen[5], Engines{})
	first := trials()[3]
	docs["measurement"] = measurementDocument(first, Engines{})
	docs["rejected"] = measurementDocument(trials()[8], Engines{})
	docs["failures"] = measurementDocument(failing(), Engines{})
	docs["table-only"] = tableOnly()
	docs["infeasible"] = infeasible()
	docs["over-limit"] = overLimit()
	docs["tiny"] = sizedFor(1.0 / 86400)
	docs["huge"] = sizedFor(1e6)
	maps.Copy(docs, addedDocuments())
	return docs
}

// saturated is a search that throughput limits: answers stay fast, and more come than
// are completed.
func saturated() (search.Result, []measure.Measurement) {
	r, seen := *result(), trials()[:6]
	r.Estimate, r.Binding = search.Estimate{Value: 23.6, Low: 23.1, High: 24.2, Confidence: 0.9, Safe: 23.2}, measure.ThroughputBound
	r.Bounds = []search.BoundResult{{Bound: "tpot.p99", Probability: 0.12, Low: 23.3, High: 60, Phi: 1, Gamma: 0.5, Rate: 27, Share: 0.01, Kappa: 9},
		{Bound: measure.ThroughputBound, Probability: 0.88, Low: 23.1, High: 24.2, Rate: 23.6, Kappa: 1}}
	r.Warnings = note.Notes{note.New(note.NoWaitLimit, "safe rate", 20.0, "ttft.p99", 1110*ms)}
	for i := range seen {
		m := &seen[i]
		m.Trial.Objective.Bounds = []measure.Bound{{Metric: measure.TPOT, Quantile: 0.99, Limit: 120 * ms}}
		m.Counts, m.Verdict = m.Counts[1:], &measure.Verdict{State: measure.Met, Binding: "tpot.p99", Slack: 0.3}
	}
	seen[5].Verdict = &measure.Verdict{State: measure.Missed, Binding: measure.ThroughputBound, Slack: -0.1}
	return r, seen
}

// failing is a closed loop of a mix with failures.
func failing() measure.Measurement {
	m := trial(1, settings(), 12)
	m.Trial.Rate, m.Trial.Concurrency, m.Trial.Requests, m.Trial.Workload = 0, 16, 400, nil
	m.Counts[3] = measure.Count{Bound: measure.ThroughputBound, Low: -math.MaxFloat64, High: 1}
	m.Requests, m.Failed, m.Failures = 400, 7, map[string]int{"timeout": 5, "http_status": 2}
	m.Classes = map[string]measure.ClassSummary{
		"code": {Tally: measure.Tally{Requests: 100, Failed: 7}, Latencies: measure.Latencies{TTFT: spreadOut(300*ms, 93), TPOT: spreadOut(30*ms, 93)}},
		"chat": {Tally: measure.Tally{Requests: 300}, Latencies: measure.Latencies{TTFT: spreadOut(120*ms, 300), TPOT: spreadOut(25*ms, 300)}},
	}
	m.Valid, m.Warnings = false, note.Notes{note.Text("the client was 40 ms late at p99: its figures cannot be trusted")}
	m.Server = measure.Server{Engine: measure.Software{Kind: "attach"}}
	return m
}

// tableOnly is a plan from a table of latencies: no counts, no knobs, no price.
func tableOnly() Document {
	c := fittedCurve()
	for i := range c.Points {
		c.Points[i].Requests = 0
	}
	c.Band = nil
	x := must.Get(c.Crossing(slo().Bounds[0]))
	o := plan.Offer{GPUs: 8, Rate: plan.FromCrossing(&x), Binding: "ttft.p99"}
	d := demand()
	d.Spare = 0
	p := must.Get(plan.Solve(d, measure.SLO{Bounds: slo().Bounds[:1], Errors: -1}, []plan.Offer{o}, nil))
	p.Evidence.Curve = c
	var rows []measure.Measurement
	none := measure.UnresolvedSummary()
	for i, m := range trials()[:6] {
		ttft := none
		ttft.P50, ttft.P99 = m.TTFT.P50, m.TTFT.P99
		rows = append(rows, measure.Measurement{Trial: measure.Trial{Number: i + 1, Rate: m.Trial.Rate}, Valid: true, Server: measure.Server{Preemptions: new(0), HitRate: new(0.0)},
			Latencies: measure.Latencies{TTFT: ttft, TPOT: none, ITL: none, E2E: none}})
	}
	return planDocument(p, decide.Background{Trials: rows}, Engines{})
}

func infeasible() Document {
	o := offer("H100 SXM", 2.99)
	o.Rate, o.Obstacle = search.Estimate{}, note.Because(note.IdleMisses, "ttft.p99", 9, 120)
	strict := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: 20 * ms}}}
	_, err := plan.Solve(demand(), strict, []plan.Offer{o}, rejected())
	r := search.Result{Outcome: search.Infeasible, Binding: "ttft.p99", Knobs: measure.Knobs{PrefixCaching: true}, Floor: &search.Floor{Bound: "ttft.p99", Stat: "p99", Value: 43127 * time.Microsecond, Limit: 20 * ms}}
	return noPlanDocument(&decide.NoPlan{Why: err.(*plan.Unsolved), Demand: demand(), Objective: strict, Background: decide.Background{Subject: "llama-3.1-70b in fp8, chat", Search: &r}}, Engines{})
}

func overLimit() Document {
	d := demand()
	d.MaxGPUs = 16
	_, err := plan.Solve(d, slo(), []plan.Offer{offer("H100 SXM", 2.99)}, nil)
	return noPlanDocument(&decide.NoPlan{Why: err.(*plan.Unsolved), Demand: d, Objective: slo()}, Engines{})
}

func sizedFor(rate float64) Document {
	d := demand()
	d.Rate = rate
	return planDocument(must.Get(plan.Solve(d, slo(), []plan.Offer{offer("H100 SXM", 2.99)}, nil)), decide.Background{}, Engines{})
}

// blocks holds every kind of block with text that formats must escape.
func blocks() Document {
	d := Document{Title: `A "title" with <b> & *stars* | bars`}
	d.Data = Data{Header: []string{"a", "b"}, Rows: [][]string{{"1.5", "=cmd()"}, {"", "x,\"y\"\nz"}}}
	d.add(Paragraph{Text: "Plain_text, `code`, [link](x) and </main><script>alert(1)</script>."}, Paragraph{Text: "A doubt.", Tone: Doubt})
	d.section("A section", Bullets{Items: []string{"one", "- two with enough words that the line has to be broken somewhere before its end is reached", "three | 3"}},
		Facts{{Label: "label", Text: "text"}, {Label: "longer label", Text: "bad", Tone: Bad}},
		Code{"serve ```model``` --option-one 1 --option-two <2> --option-three 3 --option-four 4 --option-five 5"})
	d.add(Heading{Text: "Below"}, Table{Caption: "An empty table", Columns: []Column{{Name: "x"}}})
	d.add(Table{Caption: "Numbers", Columns: []Column{{Name: "name | id", Wrap: true}, {Name: "value", Right: true}, {Name: "aside", Extra: true}},
		Rows: [][]Cell{{{Text: "first"}, {Text: "1,234.5", Tone: Good}, {Text: "said in passing"}}, {{Text: "second with | bar"}, {Text: "-"}, {}}}})
	d.add(&Chart{Title: "Nothing", Series: []Line{{Name: "none", Points: []ChartPoint{{X: 1, Y: 0}, {X: 2, Y: math.NaN()}}}}})
	d.add(&Chart{Title: "A <line>", Name: "line", XLabel: "x", YLabel: "y, %",
		Series: []Line{{Name: "a & b", Points: []ChartPoint{{X: 1, Y: 1, Low: 0.5, High: 1.5}, {X: 2, Y: 3, Low: 3, High: 3}, {X: 3, Y: 2, Low: 2, High: 2, Overload: true}}, Fit: plotter.XYs{{X: 1, Y: 1}, {X: 3, Y: 2}}, Beyond: plotter.XYs{{X: 3, Y: 2}, {X: 4, Y: 4}}}},
		Limits: []Reference{{2.5, "limit <2.5>"}}, Rates: []Reference{{3.9, "far right mark"}, {1, "near"}}})
	return d
}

// foundDocument is the report of a search that holds no doubt but that of its requests.
func foundDocument(k measure.Knobs, r search.Result, b decide.Background, e Engines) Document {
	r.Knobs = k
	return searchDocument(&decide.FoundRate{Result: r, Rate: &r.Estimate, Seen: b.Trials, Diagnosis: b.Diagnosis, Trust: b.Trust}, e)
}

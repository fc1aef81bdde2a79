package calibrate

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// served simulates trials with constants that the fit does not know, and reduces them.
func served(o FitOptions, truth model.Constants, trials []measure.Trial) []LoadPoint {
	var out []LoadPoint
	for _, trial := range trials {
		r := LoadPoint{Trial: trial}
		records := must.Get(r.simulate(&FitOptions{Deployment: o.Deployment, Version: o.Version}, truth))
		r.Measurement = measure.Reduce(trial, measure.Observation{Records: records})
		out = append(out, r)
	}
	return out
}

// chat returns open-loop trials at rates.
func chat(rates ...float64) []measure.Trial {
	shape := must.Get(workload.Class("chat"))
	w := &workload.Workload{Class: "chat", Shapes: []workload.Shape{shape}, Arrivals: workload.Poisson}
	var out []measure.Trial
	for i, rate := range rates {
		out = append(out, measure.Trial{Workload: w, Rate: rate, Warmup: 5 * time.Second, Seed: uint64(i + 1),
			Window: time.Duration(min(500/rate, 100) * float64(time.Second)),
			Knobs:  measure.Knobs{MaxModelLen: 6000, PrefixCaching: true, TensorParallel: 1}})
	}
	return out
}

func options() FitOptions {
	return FitOptions{Deployment: deployed("llama-3.1-8b", "H100 SXM", 1, model.BF16), Version: "0.20.0", Date: "2026-11-21"}
}

// meanError is the mean absolute relative error of a metric ("tpot", "ttft") before
// and after the fit, over all of its figures.
func meanError(r File, metric string) (before, after float64) {
	n := 0.0
	for _, e := range r.Residuals {
		if !strings.HasPrefix(e.Figure, metric) {
			continue
		}
		before += math.Abs(e.Before / 100)
		after += math.Abs(e.After / 100)
		n++
	}
	return before / n, after / n
}

// A server whose constants differ from the defaults is found again: its latencies, and
// the terms that the runs identify.
func TestFitRecoversAServer(t *testing.T) {
	o := options()
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	truth := c.WithValue(model.DoubtFrontend, o.Deployment, 1.15*c.Value(model.DoubtFrontend, o.Deployment)).
		WithValue(model.DoubtWeights, o.Deployment, 0.92*c.Value(model.DoubtWeights, o.Deployment)).
		WithValue(model.DoubtPrefill, o.Deployment, 0.85*c.Value(model.DoubtPrefill, o.Deployment))
	runs := served(o, truth, chat(0.5, 3, 9, 18))
	got := must.Get(Fit(runs, o))
	for _, m := range []string{"tpot", "ttft"} {
		before, after := meanError(got, m)
		t.Logf("%s: %.1f %% before, %.2f %% after", m, 100*before, 100*after)
		if after > 0.025 || after > before/2 {
			t.Errorf("%s: error %.1f %% before, %.1f %% after the fit", m, 100*before, 100*after)
		}
	}
	for _, term := range model.Terms() {
		f := got.Terms[term.String()]
		want := truth.Value(term, o.Deployment)
		t.Logf("%-9s %.4g -> %.4g, true %.4g, fitted %v, %.3f -> %.3f", term, f.Default, f.Value, want, f.Fitted, f.Prior, f.Posterior)
		if f.Fitted && math.Abs(math.Log(f.Value/want)) > 3*f.Posterior {
			t.Errorf("%s: fitted %.4g, true %.4g, which is beyond three standard deviations of %.3f", term, f.Value, want, f.Posterior)
		}
		if !f.Fitted && f.Value != f.Default {
			t.Errorf("%s: not fitted, yet moved from %g to %g", term, f.Default, f.Value)
		}
	}
	// Loads in between that were not fitted.
	fitted := got
	after := must.Get(fitted.Apply(o.Deployment, o.Version, c))
	for _, r := range served(o, truth, chat(14)) {
		for name, k := range map[string]model.Constants{"default": c, "fitted": after} {
			again := served(o, k, []measure.Trial{r.Trial})[0].Measurement
			e := math.Abs(again.TTFT.Mean.Seconds()/r.Measurement.TTFT.Mean.Seconds() - 1)
			if name == "fitted" && e > 0.02 || name == "default" && e < 0.05 {
				t.Errorf("%s constants: mean TTFT off by %.1f %% at a load between", name, 100*e)
			}
		}
	}
}

// On hardware of another kind a cost counts that does not on GPUs, so that no slope at the defaults shows it, and a peak is
// what its user guessed, too high or too low.
func TestFitFarFromTheDefaults(t *testing.T) {
	o := options()
	o.Deployment.Hardware.Name, o.Deployment.Hardware.Generation = "two processors", model.GenerationUnknown
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	for _, peak := range []float64{0.3, 4} {
		truth := c.WithValue(model.DoubtRequest, o.Deployment, 400*c.Value(model.DoubtRequest, o.Deployment)).
			WithValue(model.DoubtPrefill, o.Deployment, peak*c.Value(model.DoubtPrefill, o.Deployment))
		got := must.Get(Fit(served(o, truth, chat(0.1, 0.3, 0.6, 1)), o))
		// Times to first token of so few requests are known to 7 to 17 %, so that they tell the front end badly from prefill.
		for m, most := range map[string]float64{"tpot": 0.03, "ttft": 0.07} {
			if before, after := meanError(got, m); after > most {
				t.Errorf("peak %g, error of %s %.1f %% before, %.1f %% after the fit: %+v", peak, m, 100*before, 100*after, got.Terms)
			}
		}
	}
}

// Where another program slowed one of six runs, the fit is to the others, and says so.
func TestFitSetsASlowedRunAside(t *testing.T) {
	o := options()
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	runs := served(o, c, chat(0.5, 1, 2, 4, 6, 9))
	slow := c.WithValue(model.DoubtWeights, o.Deployment, 0.4*c.Value(model.DoubtWeights, o.Deployment)).
		WithValue(model.DoubtPrefill, o.Deployment, 0.4*c.Value(model.DoubtPrefill, o.Deployment))
	runs[2] = served(o, slow, chat(2))[0]
	got := must.Get(Fit(runs, o))
	for _, term := range []model.Doubt{model.DoubtWeights, model.DoubtPrefill} {
		if f := got.Terms[term.String()]; math.Abs(math.Log(f.Factor)) > 0.05 {
			t.Errorf("%s moved by a factor of %.3f", term, f.Factor)
		}
	}
	if said := strings.Join(got.Warnings, "\n"); !strings.Contains(said, "the others: 3. Another program") {
		t.Errorf("warnings %q", said)
	}
}

// A host that launches layers slowly moves nothing at the defaults, where the GPU takes longer; its time is not
// laid upon the products of prompts.
func TestFitFindsASlowHost(t *testing.T) {
	o := options()
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	truth := c.WithValue(model.DoubtLaunch, o.Deployment, 1.4e-3)
	got := must.Get(Fit(served(o, truth, chat(0.5, 2, 6)), o)).Terms
	if f := got[model.DoubtLaunch.String()]; !f.Fitted || math.Abs(f.Value/1.4e-3-1) > 0.1 {
		t.Errorf("launch fitted %v, %.3g, want 1.4e-3", f.Fitted, f.Value)
	}
	if f := got[model.DoubtPrefill.String()]; math.Abs(math.Log(f.Factor)) > 0.1 {
		t.Errorf("prefill moved by a factor of %.3f", f.Factor)
	}
}

// Requests that arrive together tell what a front end takes for each of them from what it takes for one.
func TestFitFindsTheIntake(t *testing.T) {
	o := options()
	truth := model.ConstantsFor(o.Deployment.Hardware, o.engine()).WithValue(model.DoubtIntake, o.Deployment, 6e-3)
	trials := chat(1, 1, 1, 1)
	for i, slots := range []int{1, 8, 32, 16} {
		t := &trials[i]
		w := *t.Workload
		w.Arrivals, w.Shapes = workload.Constant, []workload.Shape{{Name: "p", Weight: 1, Prompt: workload.Lengths{Dist: workload.Fixed, Value: 32}, Output: workload.Lengths{Dist: workload.Fixed, Value: 48}}}
		t.Workload, t.Rate, t.Concurrency, t.Requests, t.Warmup, t.Window = &w, 0, slots, 12*slots, 0, 0
	}
	got := must.Get(Fit(served(o, truth, trials), o)).Terms
	for term, want := range map[model.Doubt]float64{model.DoubtIntake: 6e-3, model.DoubtFrontend: 7e-3} {
		if f := got[term.String()]; math.Abs(f.Value/want-1) > 0.15 {
			t.Errorf("%s fitted %v, %.3g, want %.3g", term, f.Fitted, f.Value, want)
		}
	}
}

// Other tools print a p99 of 200 requests: it is left out, and the fit goes on without it.
func TestFitToQuantilesOfFewRequests(t *testing.T) {
	o := options()
	truth := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	truth = truth.WithValue(model.DoubtWeights, o.Deployment, 0.9*truth.Value(model.DoubtWeights, o.Deployment))
	trials := chat(1, 4, 8)
	for i := range trials {
		trials[i].Window = time.Duration(200 / trials[i].Rate * float64(time.Second))
	}
	runs := served(o, truth, trials)
	for i := range runs {
		m := &runs[i].Measurement
		m.Valid, m.TTFT.P99 = true, 2*m.TTFT.P90
	}
	got := must.Get(Fit(runs, o))
	if slices.ContainsFunc(got.Residuals, func(r Residual) bool { return r.Figure == "ttft.p99" }) {
		t.Errorf("fitted to a p99 of %d requests", runs[0].Measurement.TTFT.N)
	}
}

// Two loads that are far enough apart suffice to predict a third between them, and the
// result says that nothing has shown so.
func TestFitToTwoRatesPredictsAThird(t *testing.T) {
	o := options()
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	truth := c.WithValue(model.DoubtStep, o.Deployment, 2.5*c.Value(model.DoubtStep, o.Deployment)).
		WithValue(model.DoubtPrefill, o.Deployment, 0.8*c.Value(model.DoubtPrefill, o.Deployment))
	got := must.Get(Fit(served(o, truth, chat(3, 12)), o))
	if len(got.Warnings) == 0 || !strings.Contains(got.Warnings[0], "2 load points") {
		t.Errorf("warnings %q", got.Warnings)
	}
	after := must.Get(got.Apply(o.Deployment, o.Version, c))
	third := chat(6)
	real, fitted := served(o, truth, third)[0].Measurement, served(o, after, third)[0].Measurement
	for _, m := range []measure.Metric{measure.TTFT, measure.TPOT, measure.E2E} {
		if e := fitted.Latency(m).Mean.Seconds()/real.Latency(m).Mean.Seconds() - 1; math.Abs(e) > 0.025 {
			t.Errorf("mean %v is off by %.1f %%", m, 100*e)
		}
	}
}

// A machine that was slower in one of three repetitions says how little its figures are
// worth: the fit does not bend other terms to meet each of them.
func TestFitAllowsForScatter(t *testing.T) {
	o := options()
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	disturbed := func(steady bool) []LoadPoint {
		var out []LoadPoint
		for _, rate := range []float64{2, 8} {
			for k, slower := range []float64{0.95, 1, 1.4} {
				r := served(o, c, chat(rate))[0]
				if !steady {
					for _, v := range []*time.Duration{&r.Measurement.TPOT.Mean, &r.Measurement.TPOT.P50, &r.Measurement.TPOT.P90} {
						*v = time.Duration(slower * float64(*v))
					}
				}
				r.Trial.Seed += uint64(100 * k)
				out = append(out, r)
			}
		}
		return out
	}
	posterior := map[bool]float64{}
	for _, steady := range []bool{true, false} {
		got := must.Get(Fit(disturbed(steady), o))
		for _, term := range model.Terms() {
			f := got.Terms[term.String()]
			if term == model.DoubtWeights {
				posterior[steady] = f.Posterior
			}
			if moved := math.Abs(math.Log(f.Value / f.Default)); moved > 2*f.Prior {
				t.Errorf("steady %v: %s moved by %.1f of its standard deviations", steady, term, moved/f.Prior)
			}
		}
	}
	if posterior[false] < 2*posterior[true] {
		t.Errorf("weights is known to %.3f with the scatter and to %.3f without", posterior[false], posterior[true])
	}
}

// A run of decodes alone says nothing about prompts, and no run says much about the
// cache when contexts are short: such terms stay.
func TestFitLeavesWhatRunsDoNotShow(t *testing.T) {
	o := options()
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	w := &workload.Workload{Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Uniform, Min: 8, Max: 16}, Output: workload.Lengths{Dist: workload.Uniform, Min: 200, Max: 250}}}}
	var trials []measure.Trial
	for _, n := range []int{1, 4, 16} {
		trials = append(trials, measure.Trial{Workload: w, Concurrency: n, Requests: 6 * n, Seed: 1, Knobs: measure.Knobs{MaxModelLen: 2048}})
	}
	got := must.Get(Fit(served(o, c.WithValue(model.DoubtWeights, o.Deployment, 0.75), trials), o))
	for _, term := range model.Terms() {
		f := got.Terms[term.String()]
		if (term == model.DoubtPrefill || term == model.DoubtKV) && f.Fitted {
			t.Errorf("%s was fitted to runs that do not show it: %+v", term, f)
		}
		if term == model.DoubtWeights && !f.Fitted {
			t.Errorf("weights were not fitted: %+v", f)
		}
	}
}

func TestFitRefusals(t *testing.T) {
	o := options()
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	good := served(o, c, chat(0.5, 3, 9))
	overloaded := served(o, c, chat(200))
	overloaded[0].Measurement.Overloaded = true
	for _, q := range []struct {
		name, want string
		runs       []LoadPoint
		change     func(*FitOptions)
	}{
		{"none", "load points", nil, nil},
		{"one rate", "load points", good[:1], nil},
		{"rates alike", "load points", served(o, c, chat(3, 4, 5)), nil},
		{"overload", "overloaded", append(overloaded, good...), nil},
		{"another GPU", "gpu", func() []LoadPoint { r := append([]LoadPoint(nil), good...); r[1].Trial.Knobs.GPU = "L40S"; return r }(), nil},
		{"another degree", "tensor_parallel", func() []LoadPoint {
			r := append([]LoadPoint(nil), good...)
			r[1].Trial.Knobs.TensorParallel = 2
			return r
		}(), nil},
		{"two formats", "one value of kv_cache", func() []LoadPoint { r := append([]LoadPoint(nil), good...); r[1].Trial.Knobs.KVCache = "fp8"; return r }(), nil},
		{"two releases", "of release 0.20.1, and run 1 of 0.11.0+cu128", func() []LoadPoint {
			r := append([]LoadPoint(nil), good...)
			r[0].Measurement.Server.Engine.Version, r[2].Measurement.Server.Engine.Version = "0.11.0+cu128", "0.20.1"
			return r
		}(), nil},
		{"no workload", "workload", func() []LoadPoint { r := append([]LoadPoint(nil), good...); r[1].Trial.Workload = nil; return r }(), nil},
		{"no version", "release", good, func(o *FitOptions) { o.Version = "" }},
		{"nothing to learn", "identify no term", good, func(o *FitOptions) { o.Terms = []model.Doubt{} }},
	} {
		o := o
		if q.change != nil {
			q.change(&o)
		}
		if _, err := Fit(q.runs, o); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%s: error %v, want one about %q", q.name, err, q.want)
		}
	}
}

// traceHalves reads the trace as a run whose window is its first half of requests, and
// says where the second begins.
func traceHalves() (LoadPoint, FitOptions, int) {
	f := must.Get(os.Open("../../testdata/groundtruth/trace-rtxpro6000-llama-3.1-8b.csv"))
	defer f.Close()
	lines := must.Get(csv.NewReader(f).ReadAll())
	w := &workload.Workload{Arrivals: workload.Trace}
	var records []measure.Record
	for i, line := range lines[1:] {
		var v [6]float64
		for k := range v {
			v[k] = must.Get(strconv.ParseFloat(line[k], 64))
		}
		at := time.Duration(math.Round(v[0] * 1e9))
		ms := func(x float64) time.Duration { return at + time.Duration(x*1e6) }
		w.Replay = append(w.Replay, workload.TraceRow{Arrival: at, Prompt: int(v[1]), Output: int(v[2])})
		records = append(records, measure.Record{ID: i, Due: at, Sent: at, First: ms(v[4]), Last: ms(v[5]), Prompt: int(v[1]), Output: int(v[2]), Outcome: measure.OK})
	}
	half := len(records) / 2
	trial := measure.Trial{Workload: w, Window: records[half].Due, Cooldown: w.TraceSpan() - records[half].Due,
		Knobs: measure.Knobs{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, GPUMemoryUtilization: 0.90, MaxModelLen: 8192, PrefixCaching: true}}
	o := FitOptions{Deployment: deployed("llama-3.1-8b", "RTX PRO 6000 Blackwell Server", 1, model.BF16), Version: "0.19.0"}
	o.Constants = model.ConstantsFor(o.Deployment.Hardware, o.engine())
	o.Constants.Frontend.Request, o.Constants.Frontend.PromptToken = 0, 0 // the times are of the engine's log
	return LoadPoint{Trial: trial, Records: records}, o, half
}

// Fitted to the first half of a measured trace, the second half is predicted: time per
// token within 3 %, p99 of the first token within 5 %.
func TestFitToHalfATracePredictsTheOther(t *testing.T) {
	run, o, half := traceHalves()
	got := must.Get(Fit([]LoadPoint{run}, o))
	for _, term := range model.Terms() {
		f := got.Terms[term.String()]
		t.Logf("%-9s %.4g -> %.4g, fitted %v, %.3f -> %.3f", term, f.Default, f.Value, f.Fitted, f.Prior, f.Posterior)
	}
	for _, e := range got.Residuals {
		t.Logf("%-24s %.4g: %+.1f %% -> %+.1f %%", e.Figure, e.Measured, e.Before, e.After)
	}
	c := o.Constants
	after := must.Get(got.Apply(o.Deployment, o.Version, c))
	second := func(records []measure.Record) (tpot, p99 float64) {
		all := measure.Trial{}
		return mean(latencies(&all, records[half:], measure.TPOT)), statisticOf(latencies(&all, records[half:], measure.TTFT), 0.99)
	}
	wantTPOT, wantP99 := second(run.Records)
	for i, k := range []model.Constants{c, after} {
		records := must.Get(run.simulate(&o, k))
		tpot, p99 := second(records)
		e, p := 100*(tpot/wantTPOT-1), 100*(p99/wantP99-1)
		t.Logf("second half: TPOT %+.1f %%, p99 TTFT %+.1f %%", e, p)
		if i == 1 && (math.Abs(e) > 3 || math.Abs(p) > 5) {
			t.Errorf("fitted to the first half, the second is off by %.1f %% (TPOT) and %.1f %% (p99 TTFT)", e, p)
		}
	}
}

// What was written is read back and does the same.
func TestFileRoundTrip(t *testing.T) {
	run, o, _ := traceHalves()
	o.Date = "2026-11-21"
	got := must.Get(Fit([]LoadPoint{run}, o))
	var first, second bytes.Buffer
	must.OK(got.Write(&first))
	f, err := Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, first.String())
	}
	must.OK(f.Write(&second))
	if first.String() != second.String() {
		t.Errorf("written\n%s\nread and written\n%s", first.String(), second.String())
	}
	c := model.ConstantsFor(o.Deployment.Hardware, o.engine())
	for _, q := range []struct {
		name    string
		version string
		change  func(*model.Deployment)
		ok      bool
	}{
		{"the same", "0.19.0", nil, true},
		{"another patch", "0.19.3", nil, true},
		{"another minor release", "0.20.0", nil, false},
		{"no release", "", nil, false},
		{"another GPU", "0.19.0", func(d *model.Deployment) {
			d.Hardware = deployed("llama-3.1-8b", "H100 SXM", 1, model.BF16).Hardware
		}, false},
		{"other weights", "0.19.0", func(d *model.Deployment) { d.Precision.Weights = model.FP8 }, false},
		{"another model", "0.19.0", func(d *model.Deployment) { d.Arch = deployed("qwen3-8b", "H100 SXM", 1, model.BF16).Arch }, true},
	} {
		dep := o.Deployment
		if q.change != nil {
			q.change(&dep)
		}
		applied, err := f.Apply(dep, q.version, c)
		if (err == nil) != q.ok || q.ok && applied == c || !q.ok && applied != c {
			t.Errorf("%s: error %v, changed %v", q.name, err, applied != c)
		}
	}
}

// What is written can be read: a running request beside a processor, 3,000 times what it costs beside a GPU,
// is, and what is further off is not written either.
func TestFileOfFarConstants(t *testing.T) {
	for _, c := range []struct {
		factor float64
		ok     bool
	}{{3000, true}, {1 / 30.0, true}, {1e6, false}, {1e-6, false}, {math.NaN(), false}} {
		var b bytes.Buffer
		err := File{
			FittedTo: Origin{GPU: "two processors", EngineVersion: "0.32.0"},
			Terms:    map[string]TermFit{"step": {Fitted: true, Factor: c.factor}},
		}.Write(&b)
		if (err == nil) != c.ok {
			t.Errorf("factor %g: %v", c.factor, err)
		}
		if _, err := Read(&b); (err == nil) != c.ok {
			t.Errorf("factor %g is read: %v", c.factor, err)
		}
	}
}

// A file from before launches were a term means what it meant: they went with the layer.
func TestFileWithoutLaunches(t *testing.T) {
	o := options()
	f := File{FittedTo: Origin{GPU: "H100 SXM", EngineVersion: o.Version, TensorParallel: 1}, Terms: map[string]TermFit{"layer": {Fitted: true, Factor: 1.8}}}
	c := must.Get(f.Apply(o.Deployment, o.Version, model.ConstantsFor(o.Deployment.Hardware, o.engine())))
	if got, want := [2]float64{c.Fixed.Launch, c.Fixed.LaunchAll}, [2]float64{1.8 * 0.35e-3, 1.8 * 0.7e-3}; math.Abs(got[0]-want[0])+math.Abs(got[1]-want[1]) > 1e-9 {
		t.Errorf("launches of %v, want %v", got, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("[fitted_to]\ngpu = \"L40S\"\nengine_version = \"0.19.0\"\n[terms.weights]\nfitted = true\nfactor = 0.9\n")
	f.Add("[fitted_to]\ngpu = \"L40S\"\nengine_version = \"0.19.0\"\n[terms.weigths]\nfactor = 1.0\n")
	f.Add("terms = 3")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		must.OK(c.Write(&out))
		if _, err := Read(&out); err != nil {
			t.Errorf("read, written and not read again: %v\n%s", err, out.String())
		}
	})
}

// A quantile that falls on a value is that value, whatever comes behind it: a request that never ended is slower
// than any.
func TestQuantileBesideARequestThatNeverEnded(t *testing.T) {
	never := math.Inf(1)
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{1, 2, 3, 4, never}, 0.75, 4},
		{[]float64{1, 2, 3, 4, never}, 0.8, never},
		{[]float64{1, 2, 3, 4, 5}, 0.8, 4.2},
		{[]float64{1, never}, 1, never},
	} {
		if got := statisticOf(c.values, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("quantile %g of %v: %g, want %g", c.q, c.values, got, c.want)
		}
	}
}

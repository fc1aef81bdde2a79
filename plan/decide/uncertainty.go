package decide

import (
	"fmt"
	"math"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/model"
	"planner/model/calibrate"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// doubtOf samples the constants within what is known of them and finds how far
// each sample moves the maximum rate of a knob set. The sets are the same for all knobs of a GPU, so
// those of two knob sets can be told apart pair by pair. No shifts are no doubt, as
// of an engine that was measured.
func (s *searches) doubtOf(k measure.Knobs, e search.Estimate) (calibrate.Shifts, error) {
	if !s.ground.Virtual || e.Value <= 0 {
		return nil, nil
	}
	if d, ok := list.Find(s.doubts, func(d doubted) bool { return d.Knobs == k && d.Rate == e.Value }); ok {
		return d.Shifts, nil
	}
	roofline, err := s.ground.Predict.Roofline(k)
	if err != nil {
		return nil, err
	}
	with := func(c model.Constants) *sweep.Simulated {
		engine := *s.ground.Predict
		engine.Constants = func(model.Deployment, model.Constants) model.Constants { return c }
		return &engine
	}
	w, mean := probed(&s.cfg.Workload), sweep.MeanRequest(&s.cfg.Workload)
	known := calibrate.Known{
		Constants: roofline.Constants(), Spread: s.ground.Predict.Spread(k), Rate: e.Value, Objective: s.cfg.Objective, Seed: s.cfg.Workload.Seed,
		Carries: func(c model.Constants) float64 {
			capacity, _ := with(c).Capacity(k, mean, s.cfg.Objective)
			return capacity.Rate
		},
	}
	shifts, err := calibrate.Shift(known, func(c model.Constants, rate, times float64, seed uint64) (measure.Trial, measure.Observation, error) {
		return s.probe(measure.Trial{Knobs: k, Workload: w, Rate: rate, Seed: seed}, int(times*probeTrialRequests), with(c))
	})
	if err == nil {
		s.doubts = append(s.doubts, doubted{k, e.Value, shifts})
	}
	return shifts, err
}

// mostLoosened is the largest factor on limits that is told: beyond it a rate's logarithm says nothing of a limit.
const mostLoosened = 10

// mostDoubted is how far below the likely rate, as a factor, the low end of what the constants may be can put it for a
// fleet to be sized by that: one of ten times the GPUs that are likely needed is no plan.
const mostDoubted = 10

// loosen keeps a fleet from being sized by an offer whose limits may not be met at any rate, or at so low a one: at
// the low end of what the constants may be.
func loosen(o *plan.Offer, doubt calibrate.Shifts) {
	switch low, _ := doubt.Ends(); {
	case low > -math.Log(mostDoubted):
		return
	case doubt.Never() == 0:
		o.Loose = note.Because(note.RateWide, o.Rate.Value, o.Rate.Low, o.Rate.High)
		return
	}
	o.Loose = note.Because(note.RateDoubted, o.Rate.Value, o.Rate.Low, o.Rate.High, doubt.Never(), len(doubt),
		math.Ceil(100*(min(doubt.Longer(), mostLoosened)-1)))
}

// doubtText says how much of an interval the doubt is.
func doubtText(doubt calibrate.Shifts) string {
	low, high := doubt.Ends()
	text := fmt.Sprintf("what is not known of the engine's constants moves the maximum rate by %+.0f to %+.0f %% (90 %%); it is in the interval and in the safe rate",
		100*math.Expm1(low), 100*math.Expm1(high))
	if never := doubt.Never(); never > 0 {
		text += fmt.Sprintf("; with %d of %d sets that are as plausible no rate meets the limits", never, len(doubt))
	}
	return text
}

// widen adds the doubt to an estimate, whose own interval holds what the draw of
// the requests does. Both errors are independent, so their logarithms add in
// squares.
func widen(e search.Estimate, doubt calibrate.Shifts) search.Estimate {
	if e.Value <= 0 {
		return e
	}
	low, high := doubt.Ends()
	down := func(x float64) float64 { return e.Value * math.Exp(-math.Hypot(math.Log(e.Value/x), min(low, 0))) }
	e.Low, e.Safe = down(e.Low), down(e.Safe)
	e.High = e.Value * math.Exp(math.Hypot(math.Log(e.High/e.Value), max(high, 0)))
	return e
}

// The length of a probe for a shift: the same requests with other constants
// tell two rates apart that differ by a per cent, however few they are. Traffic of
// conversations must be steady, though, and the window as long as one of them:
// a latency that is only that of the beginning grows with no rate. A trace is probed
// whole, as its peak decides which rate it is served at; of a long one so many rows
// have its shape as well.
const (
	probeTrialRequests = 600
	probeTraceRows     = 5000
	probeWarmupShare   = 0.25
)

func probed(w *workload.Workload) *workload.Workload {
	part := *w.Anywhere()
	part.Replay = workload.Thin(w.Replay, probeTraceRows/float64(max(len(w.Replay), 1)), w.Seed)
	return &part
}

// probe simulates a short load point of so many requests on an engine.
func (s *searches) probe(t measure.Trial, requests int, engine *sweep.Simulated) (measure.Trial, measure.Observation, error) {
	t.Window = t.Workload.WholeLaps(workload.Span(float64(requests), t.Workload.MeanRate(t.Rate)), t.Rate)
	t.Warmup = time.Duration(probeWarmupShare * float64(t.Window))
	if settling, course := s.settling(t.Knobs, t.Rate); settling > 0 {
		t.Warmup, t.Window = max(t.Warmup, settling), max(t.Window, course)
	}
	t.Objective, t.Whole = s.cfg.Objective, true
	o, err := engine.Observe(t)
	return t, o, err
}

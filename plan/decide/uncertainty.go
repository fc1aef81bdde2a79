package decide

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/model"
	"planner/model/calibrate"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// doubtOf samples the constants within their uncertainty and finds how far each sample moves the maximum rate
// of a knob set. The samples are the same for all knobs of a GPU, so two knob sets can be compared sample by
// sample. No shifts means no uncertainty, as for a measured engine, or that the study has failed.
func (s *searches) doubtOf(k measure.Knobs, e search.Estimate) calibrate.Shifts {
	if !s.ground.Virtual || e.Value <= 0 {
		return nil
	}
	if d, ok := list.Find(s.doubts, func(d doubted) bool { return d.Knobs == k && d.Rate == e.Value }); ok {
		return d.Shifts
	}
	roofline, err := s.ground.Predict.Roofline(k)
	if err != nil {
		s.failed = cmp.Or(s.failed, err)
		return nil
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
	if err != nil {
		s.failed = cmp.Or(s.failed, err)
		return nil
	}
	s.doubts = append(s.doubts, doubted{k, e.Value, shifts})
	return shifts
}

// mostLoosened is the largest factor on limits that is stated: beyond it a rate's logarithm says nothing about
// a limit.
const mostLoosened = 10

// mostDoubted is the largest ratio of the likely rate to the low end from the constants' uncertainty at which a
// fleet is sized: one of ten times the GPUs that are likely needed is no plan.
const mostDoubted = 10

// loosen keeps a fleet from being sized by an offer that, at the low end of the constants' uncertainty, meets
// its limits at no rate or only at one too low.
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

// doubtText says how much of an interval is due to the constants.
func doubtText(doubt calibrate.Shifts) string {
	low, high := doubt.Ends()
	text := fmt.Sprintf("what is not known of the engine's constants moves the maximum rate by %+.0f to %+.0f %% (90 %%); it is in the interval and in the safe rate",
		100*math.Expm1(low), 100*math.Expm1(high))
	if never := doubt.Never(); never > 0 {
		text += fmt.Sprintf("; with %d of %d sets that are as plausible no rate meets the limits", never, len(doubt))
	}
	return text
}

// widen adds the uncertainty of the constants to an estimate whose interval covers the drawn requests. The two
// errors are independent, so their logarithms add in squares. The ends of the uncertainty are those of 90 %, so
// that the lower one is met with the 95 % of a safe rate; for an interval of another confidence they are scaled
// as those of a normal distribution, as the draws are too few for its tails.
func widen(e search.Estimate, doubt calibrate.Shifts) search.Estimate {
	if e.Value <= 0 {
		return e
	}
	low, high := doubt.Ends()
	scale := stat.NormalTail(cmp.Or(e.Confidence, 0.90)) / stat.NormalTail(0.90)
	down := func(x, low float64) float64 { return e.Value * math.Exp(-math.Hypot(math.Log(e.Value/x), min(low, 0))) }
	e.Low, e.Safe = down(e.Low, scale*low), down(e.Safe, low)
	e.High = e.Value * math.Exp(math.Hypot(math.Log(e.High/e.Value), scale*max(high, 0)))
	return e
}

// The length of a probe for a shift. On the same requests other constants can be told apart to a per cent,
// however few requests there are. Conversations, however, must have become steady, and the window must be as
// long as one: latency at the beginning does not grow with the rate. A trace is probed as a whole, since its
// peak decides which rate it can be served at; of a long one probeTraceRows rows have its shape as well.
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

// probe simulates a short load point with this many requests on an engine.
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

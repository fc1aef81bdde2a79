package decide

import (
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/note"
	"planner/model"
	"planner/model/calibrate"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// uncertainty is how far the maximum rate may be off for what is not known of the
// engine's constants: the logarithms of its factor under sets of constants that are
// as plausible as the known ones. The sets are the same for all knobs of a GPU, so
// those of two knob sets can be told apart pair by pair. No shifts are no doubt, as
// of an engine that was measured.
type uncertainty struct{ shifts calibrate.Shifts }

// doubtOf samples the constants within what is known of them and finds how far
// each sample moves the maximum rate of a knob set.
func (s *searches) doubtOf(k measure.Knobs, e search.Estimate) (uncertainty, error) {
	if !s.ground.Virtual || e.Value <= 0 {
		return uncertainty{}, nil
	}
	if i := slices.IndexFunc(s.doubts, func(d doubted) bool { return d.Knobs == k && d.Rate == e.Value }); i >= 0 {
		return uncertainty{s.doubts[i].Shifts}, nil
	}
	roofline, err := s.ground.Predict.Roofline(k)
	if err != nil {
		return uncertainty{}, err
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
		return uncertainty{}, err
	}
	s.doubts = append(s.doubts, doubted{k, e.Value, shifts})
	return uncertainty{shifts}, nil
}

// ends are the 5 % and the 95 % quantile of the shifts; zeros without a doubt.
func (u uncertainty) ends() (low, high float64) {
	if len(u.shifts) == 0 {
		return 0, 0
	}
	return u.shifts.Quantile(0.05), u.shifts.Quantile(0.95)
}

// loosen keeps a fleet from being sized by an offer whose limits may not be met at any rate: at
// the low end of what the constants may be.
func (u uncertainty) loosen(o *plan.Offer) {
	if low, _ := u.ends(); low > -calibrate.WidestMove {
		return
	}
	o.Loose = note.Because(note.RateDoubted, o.Rate.Value, o.Rate.Low, o.Rate.High, u.shifts.Never(), len(u.shifts),
		math.Ceil(100*(u.shifts.Longer()-1)))
}

// over is the doubt about the ratio of this rate to another one, whose shifts come
// from the same sets of constants.
func (u uncertainty) over(other uncertainty) uncertainty {
	n := min(len(u.shifts), len(other.shifts))
	ratio := uncertainty{make(calibrate.Shifts, n)}
	for i := range n {
		ratio.shifts[i] = u.shifts[i] - other.shifts[i]
	}
	return ratio
}

// String says how much of an interval the doubt is.
func (u uncertainty) String() string {
	low, high := u.ends()
	text := fmt.Sprintf("what is not known of the engine's constants moves the maximum rate by %+.0f to %+.0f %% (90 %%); it is in the interval and in the safe rate",
		100*math.Expm1(low), 100*math.Expm1(high))
	if never := u.shifts.Never(); never > 0 {
		text += fmt.Sprintf("; with %d of %d sets that are as plausible no rate meets the limits", never, len(u.shifts))
	}
	return text
}

// widen adds the doubt to an estimate, whose own interval holds what the draw of
// the requests does. Both errors are independent, so their logarithms add in
// squares.
func (u uncertainty) widen(e search.Estimate) search.Estimate {
	if e.Value <= 0 {
		return e
	}
	low, high := u.ends()
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

// Package search chooses the next trial.
package search

import (
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/internal/wire"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Estimate is a rate with its uncertainty, in requests per second.
type Estimate struct {
	// Value is the best single figure (the posterior median); Low and High enclose the rate with probability Confidence.
	Value      float64 `json:"value"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
	// Safe is the rate at which the objective holds with 95 % confidence (one-sided). Fleets are sized by it.
	Safe float64 `json:"safe"`
}

// atLeast is the estimate where rate is the largest that was tried, and met the objective.
func (e Estimate) atLeast(rate float64) Estimate {
	e.Value, e.Low, e.High, e.Safe = rate, min(e.Low, rate), max(e.High, rate), min(e.Safe, rate)
	return e
}

// String is the estimate with its interval, in requests per second.
func (e Estimate) String() string {
	return fmt.Sprintf("%.3g requests/s (%.3g to %.3g)", e.Value, e.Low, e.High)
}

// Outcome says how a search ended. The zero value is Searching: a search that has not ended has no outcome.
type Outcome int

// The outcomes of a search.
const (
	Searching   Outcome = iota // The search goes on.
	Found                      // The interval is as narrow as asked for.
	Infeasible                 // No rate meets the objective, or the configuration can never run.
	NotReached                 // The objective is met at the largest rate that was tried.
	OutOfBudget                // The budget, or what free trials may take, ended before the interval was narrow enough.
	Unmeasured                 // The engine failed, which says nothing of what it could meet.
	Undecided                  // The name in files of OutOfBudget without any rate.
)

var outcomeNames = []string{"searching", "found", "infeasible", "not_reached", "budget", "not_measured", "undecided"}

// hopeless reports whether a search that ended so yields no rate.
func (o Outcome) hopeless() bool { return o == Infeasible || o == Unmeasured }

// String is the outcome's name in files.
func (o Outcome) String() string { return outcomeNames[o] }

// MarshalText writes the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads an outcome's name.
func (o *Outcome) UnmarshalText(b []byte) error { return wire.ReadName(o, outcomeNames, b) }

// Result is what a search knows, at any time.
type Result struct {
	// Estimate is the maximum rate; zero when none was found. Its value is the largest rate tried when the outcome is
	// NotReached, or OutOfBudget with no rate missed.
	Estimate Estimate `json:"max_rate_per_s"`
	// TraceRates say which rate of the replayed trace a rate refers to; nil without one.
	TraceRates *workload.Rates `json:"trace_rates,omitempty"`
	Binding    string          `json:"binding"`       // the bound that most likely limits the rate
	Knobs      measure.Knobs   `json:"knobs"`         // the knobs whose rate was sought
	Trials     int             `json:"trials"`        // how many were run
	EngineTime time.Duration   `json:"engine_time_s"` // the engine time of all trials
	Outcome    Outcome         `json:"outcome"`       // how the search ended
	// Reason says in words why the search ended.
	Reason   note.Reason `json:",embed"`
	Warnings note.Notes  `json:"notes"`
	// Certificate is the test of a rate that the result suggested; nil if there was none.
	Certificate *Certified    `json:"certificate,omitempty"`
	Bounds      []BoundResult `json:"bounds"`         // what is known of each bound
	Floor       *Floor        `json:"idle,omitempty"` // set when an idle engine misses a bound
}

// BoundResult is what a search knows of one bound. The share p of requests beyond the limit is fitted by ln(-ln(1-p)) =
// ln(-ln(1-Share)) + Kappa (rate/Rate - 1), or by a power of the rate if flat; with Share 0 the ratio of a mean to its
// limit is exp(Kappa (rate/Rate - 1)). The part Floor of either remains at any rate.
type BoundResult struct {
	Bound       string  `json:"bound"`       // its name
	Probability float64 `json:"probability"` // of this bound being the one that limits the rate
	Rate        float64 `json:"rate_per_s"`  // the median of the largest rate that meets the bound
	Low         float64 `json:"low_per_s"`   // the lower end of its interval
	High        float64 `json:"high_per_s"`  // the upper end
	Share       float64 `json:"share"`       // the share allowed beyond the limit; 0 for a mean
	Kappa       float64 `json:"steepness"`   // at Rate
	Floor       float64 `json:"floor"`       // the part of -ln(1-Share), or of the limit on a mean, that requests alone in the server take
	Phi         float64 `json:"dispersion"`  // of counts at the allowed share
	Gamma       float64 `json:"growth"`      // of the dispersion with the share, as in stat.Dispersion
}

// At is the fitted share of requests beyond the limit, or the mean over its limit, at a rate in requests per second.
func (b BoundResult) At(rate float64) float64 {
	z := raised(0, b.Floor, rise(b.Kappa, rate/b.Rate))
	if b.Share == 0 {
		return math.Exp(z)
	}
	return unlink(stat.CLogLog(b.Share) + z)
}

// Result tells what is known so far.
func (s *MaxRate) Result() Result {
	r := Result{Knobs: s.cfg.Prior.Knobs, TraceRates: s.cfg.Workload.Rates, Outcome: s.outcome, Reason: s.reason, Trials: s.ran, EngineTime: s.spent}
	if j := s.idle.broken; j >= 0 {
		r.Floor, r.Binding = new(s.idle.floor), s.bounds[j].name
	}
	if len(s.posteriors) == 0 {
		return r
	}
	probability, j := s.posteriors.binding()
	if r.Binding == "" {
		r.Binding = s.bounds[j].name
	}
	for i, p := range s.posteriors {
		e, b := s.posteriors[i:i+1].estimate(s.cfg.Confidence), p.bound
		r.Bounds = append(r.Bounds, BoundResult{Bound: b.name, Probability: probability[i], Rate: e.Value, Low: e.Low, High: e.High,
			Share: b.share, Kappa: p.kappa, Floor: p.floor, Phi: p.phi, Gamma: b.gamma})
	}
	if r.Outcome.hopeless() {
		return r
	}
	r.Estimate = s.estimate(j, &r)
	measured := slices.ContainsFunc(s.tried, func(t attempt) bool { return t.measured })
	switch short := r.Outcome == OutOfBudget; {
	case short && s.met == 0:
		r.Reason, r.Estimate = s.noneMet(r.Reason), Estimate{}
		return r
	case short && !measured:
		r.Reason, r.Estimate = note.Because(note.NoneMeasured, r.Reason.Text), Estimate{}
		return r
	case short && s.missed == 0:
		// The median lies as far above the rates tried as the grid happens to reach.
		r.Reason, r.Estimate = note.Because(note.NoneMissed, r.Reason.Text, s.highest), r.Estimate.atLeast(s.highest)
	case short && r.Estimate.Value > s.highest: // the same, if the trials that missed only drifted
		r.Estimate = r.Estimate.atLeast(s.highest)
	case r.Outcome == NotReached:
		r.Estimate = r.Estimate.atLeast(s.highest)
		r.Estimate.High = s.highest
	}
	r.Warnings = append(r.Warnings, s.windowShort(r.Estimate.Value)...)
	return r
}

// estimate is the estimate for all bounds. Its Low and Safe are at most what the server completes if it has collapsed,
// as trials below the limit are too short to show how often a backlog forms there. Warnings, as of bound j, go to r.
func (s *MaxRate) estimate(j int, r *Result) Estimate {
	e, p := s.posteriors.estimate(s.cfg.Confidence), s.posteriors[j]
	b := p.bound
	if b.kind == onShare && p.kappa > b.kappa*math.Exp(kappaSpread) && p.kappa*s.cfg.Precision > far {
		r.Warnings = append(r.Warnings, note.New(note.Cliff, b.name, 100*s.cfg.Precision))
	}
	if p.steady < safeQuantile {
		r.Warnings = append(r.Warnings, note.New(note.TrialsDiffer, 100*p.scatter))
	}
	if met, missed := s.enclosed(); missed > 0 {
		r.Warnings = append(r.Warnings, note.New(note.OffCurve, b.name, missed))
		e.Value, e.Low, e.High, e.Safe = math.Sqrt(met*missed), met, missed, met
	}
	if pressed, carried := s.collapse(); pressed > 0 {
		r.Warnings = append(r.Warnings, note.New(note.Collapses, pressed, carried))
		e.Low, e.Safe = min(e.Low, pressed), min(e.Safe, pressed)
	}
	return e
}

// enclosed returns the second highest rate that met (or the only one) and the second lowest that missed, as one trial of
// each may be luck, if no miss is below a met rate and the curve does not fit: its median lies above them or, where engine
// time is free and two rates met, its interval is more than twice as wide. Else both are 0, as for means and throughput.
func (s *MaxRate) enclosed() (met, missed float64) {
	below, above := s.decided(measure.Met), s.decided(measure.Missed)
	_, j := s.posteriors.binding()
	if len(below) == 0 || len(above) < 2 || above[0] < below[len(below)-1] || s.bounds[j].kind != onShare {
		return 0, 0
	}
	met, missed = below[max(len(below)-2, 0)], above[1]
	if curve := s.posteriors.quantile; missed >= curve(0.5) && (!s.cfg.free() || len(below) < 2 || met*met*curve(1-safeQuantile) < missed*missed*curve(safeQuantile)) {
		return 0, 0
	}
	return met, missed
}

// decided returns the rates of the trials with a verdict, in ascending order.
func (s *MaxRate) decided(as measure.State) []float64 {
	of := list.Filter(s.tried, func(t attempt) bool { return t.Verdict != nil && t.Verdict.State == as })
	return slices.Sorted(slices.Values(list.Map(of, func(t attempt) float64 { return t.rate })))
}

// noneMet is why a search ended without any rate. How far below the missed rates the objective is met only the curve
// would say, and that may be flat. An upper bound is given only if the posterior supports it, two trials at or below it
// missed the objective, as one may have been disturbed, and no untrusted trial met it.
func (s *MaxRate) noneMet(why note.Reason) note.Reason {
	missed := s.decided(measure.Missed)
	met := slices.ContainsFunc(s.doubted, func(t attempt) bool { return t.met })
	lowest := s.lowest()
	seen := lowest.failing(", where ")
	if !lowest.Missed() {
		seen = ", which its trial does not decide"
	}
	if !met && len(missed) > 1 && s.posteriors.quantile(1-safeQuantile) <= missed[1] {
		return note.Because(note.AllMissed, why.Text, lowest.rate, seen, missed[1], 100*(1-safeQuantile))
	}
	return note.Because(note.NoneMet, why.Text, lowest.rate, seen)
}

// collapse returns as pressed the most that the server completed once it was full and a backlog clearly grew, if that is
// clearly less than it carried in a measuring trial that met the objective; otherwise pressed is 0.
func (s *MaxRate) collapse() (pressed, carried float64) {
	for _, t := range s.tried {
		if t.met && t.measured {
			carried = max(carried, t.rate)
		}
	}
	for _, t := range s.tried {
		f := t.shows[len(s.bounds)-1]
		if t.met || f.spread <= 0 || t.Trial.Warmup+t.Duration < settled*s.latency {
			continue
		}
		margin := stat.StudentT(1-disturbed, flowFreedom) * f.spread
		most := f.rate * (1 - f.value + margin)
		if f.value > margin && most < (1-wide)*carried && (pressed == 0 || most < pressed) {
			pressed = most
		}
	}
	return pressed, carried
}

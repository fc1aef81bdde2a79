// Package design holds designs of experiments: one load point, a grid of rates and knobs, a matrix
// of kinds of traffic, paired rounds of two sides that are compared, and a probe. Each is a study.
package design

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Grid says which trials a sweep has.
type Grid struct {
	// Rates are in requests per second; if there are none, shares of the predicted maximum are
	// used. A matrix has its own.
	Rates []float64
	// Window and Warmup are 0 for the defaults; no warm-up cannot be asked for by 0.
	Window, Warmup time.Duration
	// OneAtATime varies one knob at a time from the first set, instead of crossing them.
	OneAtATime bool
	// Repeats is how many times each trial runs, each time with other requests.
	Repeats int
	// Matrix measures six kinds of traffic instead, with the first set.
	Matrix bool
}

// Sweep is the study of the command sweep: trials over a grid or a matrix.
type Sweep struct {
	sweep.List
	ground    sweep.Ground
	objective measure.SLO
	rows      []MatrixRow
	warnings  note.Notes
}

// Swept is the answer of a sweep.
type Swept struct {
	// Planned is how many trials the sweep has in all.
	Planned  int                   `json:"trials_planned"`
	Trials   []measure.Measurement `json:"trials"`
	Rejected []measure.Rejection   `json:"rejected"`
	// Rows are those of a matrix, nil for a grid.
	Rows []MatrixRow `json:"rows"`
	note.Warnings

	// Seen are all trials so far, including those of knobs that could not run.
	Seen      []measure.Measurement `json:"-"`
	Objective measure.SLO           `json:"-"`
}

// Files returns what a run folder keeps of the sweep, by file name.
func (s *Swept) Files() map[string]any { return map[string]any{"sweep.json": s} }

// sideBySide is how many trials a simulated sweep proposes at a time. It is a constant so that the
// journal does not depend on the machine.
const sideBySide = 8

// NewSweep lists the trials of a sweep; it fails if none can run.
func NewSweep(cfg *config.Config, g sweep.Ground, spec Grid) (*Sweep, error) {
	s := &Sweep{ground: g, objective: cfg.Objective}
	sets, most, err := s.runnable(cfg)
	if err != nil {
		return nil, err
	}
	switch {
	case spec.Matrix:
		s.warnings = note.If(len(sets) > 1, note.MatrixOfFirst, len(sets))
		if s.rows, s.Trials, err = matrixTrials(cfg, g, spec, sets[0]); err != nil {
			return nil, err
		}
	default:
		if spec.OneAtATime {
			sets = oneAtATime(sets)
		}
		if len(spec.Rates) == 0 {
			if most <= 0 {
				return nil, fmt.Errorf("sweep: give rates: --rates 1,2,5 (without model and hardware nothing predicts what the engine carries)")
			}
			spec.Rates = list.Map(gridShares, func(share float64) float64 { return stat.Rounded(share*most, 3) })
		}
		if s.Trials, err = gridTrials(cfg, spec, sets); err != nil {
			return nil, err
		}
	}
	if g.Virtual {
		s.Batch = sideBySide
	}
	return s, nil
}

// Parts lists the kinds of instances that are swept.
func (s *Sweep) Parts() []sweep.Part {
	return sweep.KindsOf(list.Map(s.Trials, func(t measure.Trial) measure.Knobs { return t.Knobs }))
}

// Narrow keeps only the trials of one kind of instance.
func (s *Sweep) Narrow(part string, _ bool) {
	s.Trials = slices.DeleteFunc(s.Trials, func(t measure.Trial) bool { return sweep.KindOf(t.Knobs).Name != part })
	s.Unable = slices.DeleteFunc(s.Unable, func(r measure.Rejection) bool { return sweep.KindOf(r.Knobs).Name != part })
}

// runnable lists the sets of knobs that can run, with the highest rate predicted for any of them,
// and rejects the others.
func (s *Sweep) runnable(cfg *config.Config) (sets []measure.Knobs, most float64, err error) {
	all, rejected := cfg.Candidates()
	s.Unable = rejected
	for _, k := range all {
		rate, err := predictedRate(s.ground, &cfg.Workload, cfg.Objective, k)
		if r, ok := errors.AsType[*measure.Rejection](err); ok {
			s.Unable = append(s.Unable, *r)
			continue
		} else if err != nil {
			return nil, 0, err
		}
		sets, most = append(sets, k), max(most, rate)
	}
	if len(sets) == 0 {
		return nil, 0, &s.Unable[0]
	}
	return sets, most, nil
}

// predictedRate estimates the rate that knobs carry, by arithmetic; 0 if nothing predicts it. Knobs
// that cannot run are an error with the simulated engine alone: a real one reports that itself.
func predictedRate(g sweep.Ground, w *workload.Workload, objective measure.SLO, k measure.Knobs) (float64, error) {
	if g.Predict == nil {
		return 0, nil
	}
	capacity, err := g.Predict.Capacity(k, sweep.MeanRequest(w), objective)
	if err != nil && !g.Virtual {
		return 0, nil
	}
	return capacity.Rate, err
}

// Answer returns what the trials have shown so far. It is infeasible if nothing can run, failed if
// nothing ran and an engine broke, and undecided if no trial can be trusted or a hypothesis is
// neither held nor refuted.
func (s *Sweep) Answer() (sweep.Answer, error) {
	out := &Swept{Planned: len(s.Trials), Rejected: slices.Clone(s.Unable),
		Warnings: s.warnings.Warnings(), Seen: s.Seen, Objective: s.objective}
	for _, m := range s.Seen {
		if !m.Ran() {
			if !slices.ContainsFunc(out.Rejected, func(r measure.Rejection) bool { return r.Knobs == m.Trial.Knobs }) {
				out.Rejected = append(out.Rejected, measure.Rejection{Knobs: m.Trial.Knobs, Reason: m.Rejected})
			}
		} else {
			out.Trials = append(out.Trials, m)
		}
	}
	if s.rows != nil {
		out.Rows = readMatrix(s.rows, out.Trials)
	}
	all := measure.OverviewOf(out.Trials)
	out.Warnings.Add(note.If(all.Trials > 0 && all.Invalid == all.Trials, note.NoneTrusted)...)
	return sweep.Answer{State: out.state(), Value: out}, nil
}

// state is how a sweep ends. A failed engine says nothing about its limits.
func (s *Swept) state() sweep.StudyState {
	all := measure.OverviewOf(s.Trials)
	unclear := slices.ContainsFunc(s.Rows, func(r MatrixRow) bool { return r.Finding == Unclear })
	switch {
	case all.Trials == 0 && slices.ContainsFunc(s.Rejected, func(r measure.Rejection) bool { return measure.Broke(r.Reason) }):
		return sweep.Failed
	case all.Trials == 0:
		return sweep.Infeasible
	case all.Invalid == all.Trials || unclear:
		return sweep.Undecided
	}
	return sweep.Done
}

// ParseRates parses rates: "1,2,5", or "1:20:5" for 5 rates from 1 to 20 in equal ratios.
func ParseRates(text string) ([]float64, error) {
	if parts := strings.Split(text, ":"); len(parts) > 1 {
		return geometric(parts, text)
	}
	var rates []float64
	for _, part := range strings.Split(text, ",") {
		r, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(r > 0) || math.IsInf(r, 0) {
			return nil, fmt.Errorf("%q is not a rate above 0", part)
		}
		if slices.Contains(rates, r) {
			return nil, fmt.Errorf("the rate %g is there twice", r)
		}
		rates = append(rates, r)
	}
	return rates, nil
}

func geometric(parts []string, text string) ([]float64, error) {
	const most = 1000
	if len(parts) != 3 {
		return nil, fmt.Errorf("%q is not lowest:highest:number, such as 1:20:5", text)
	}
	low, errLow := strconv.ParseFloat(parts[0], 64)
	high, errHigh := strconv.ParseFloat(parts[1], 64)
	n, errN := strconv.Atoi(parts[2])
	if errLow != nil || errHigh != nil || errN != nil || !(low > 0 && high > low) || math.IsInf(high, 0) || n < 2 || n > most {
		return nil, fmt.Errorf("%q is not lowest:highest:number with 0 < lowest < highest and 2 to %d rates", text, most)
	}
	return list.Times(n, func(i int) float64 { return stat.Rounded(low*math.Pow(high/low, float64(i)/float64(n-1)), 4) }), nil
}

// gridShares are the shares of the predicted maximum rate that a sweep measures if no rates are
// given: nearly idle, the rise, and beyond the limit.
var gridShares = []float64{0.1, 0.3, 0.5, 0.7, 0.85, 1, 1.2}

// oneAtATime keeps the sets that differ from the first one in at most one knob, in their order.
func oneAtATime(sets []measure.Knobs) []measure.Knobs {
	return list.Filter(sets, func(k measure.Knobs) bool { return sets[0].Differences(k) <= 1 })
}

// Temperatures of the prefix cache at the start of the window.
const (
	coldCache = "cold prefix cache"
	warmCache = "warm prefix cache"
	noCache   = "no prefix cache"
)

// mostTrials keeps a journal, whose lines have about 40 composites and 250 values each, below half
// of the size up to which one is read.
const mostTrials = 5_000

// gridTrials lists the trials of a grid, those of one set of knobs together, so that a real engine
// starts once for them. All sets get the same requests at one rate; repeats get others.
func gridTrials(cfg *config.Config, s Grid, sets []measure.Knobs) ([]measure.Trial, error) {
	w := &cfg.Workload
	var all []measure.Trial
	for _, k := range sets {
		temperatures := []string{""}
		if k.PrefixCaching && w.SharesPrefixes() {
			temperatures = []string{coldCache, warmCache}
		}
		for _, temperature := range temperatures {
			for i, rate := range s.Rates {
				for repeat := range s.Repeats {
					if len(all) == mostTrials {
						return nil, fmt.Errorf("sweep: more than %d trials, which is the most that a run folder holds: list fewer values in knobs, --rates or --repeats", mostTrials)
					}
					t := measure.Trial{Knobs: k, Workload: w, Rate: rate, Seed: w.Seed + uint64(i) + 1000*uint64(repeat), Objective: cfg.Objective, Whole: true, Why: temperature}
					s.windows(cfg, &t, temperature, enoughForP99)
					all = append(all, t)
				}
			}
		}
	}
	return all, nil
}

// enoughForP99 is how many requests resolve a p99, with some to spare.
const enoughForP99 = 1500

// windows sets the times of a trial. Virtual time is free, so a simulated window is long enough for
// the requests wanted; a real one is at most three minutes unless the user says otherwise. A cold
// cache has no warm-up; a warm one has seen each shared prompt about three times, if that takes no
// more than ten minutes.
func (s Grid) windows(cfg *config.Config, t *measure.Trial, temperature string, requests float64) {
	const longestReal, longestWarmup = 3 * time.Minute, 10 * time.Minute
	usual := workload.WholeWindow(requests, t.Workload.MeanRate(t.Rate))
	if !cfg.Simulated() {
		usual = min(usual, longestReal)
	}
	t.Window = cmp.Or(s.Window, max(cfg.Search.Trial, 0), usual)
	t.Cooldown = min(30*time.Second, t.Window/2)
	t.Warmup = min(30*time.Second, t.Window)
	if cfg.Search.Warmup >= 0 {
		t.Warmup = cfg.Search.Warmup
	}
	if s.Warmup > 0 {
		t.Warmup = s.Warmup
	}
	switch temperature {
	case coldCache:
		t.Warmup = 0
	case warmCache:
		_, texts := t.Workload.SharedText()
		fill := workload.Span(3*texts, t.Workload.MeanRate(t.Rate))
		t.Warmup = max(t.Warmup, min(fill, longestWarmup))
	}
}

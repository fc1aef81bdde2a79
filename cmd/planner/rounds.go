package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/report"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// rounds are the trials of a comparison.
type rounds struct {
	a, b         *side
	rate         float64
	window, warm time.Duration
	seed         uint64
	trials       []measure.Trial
	// ofB says for each trial whether it is B's.
	ofB []bool
}

// compareRounds plans the rounds: A first in even ones and B first in odd ones, so
// that what drifts falls on both, and an engine is started once a round.
func compareRounds(c *cli.Context, a, b *side, n int) (*rounds, error) {
	r := &rounds{a: a, b: b, seed: a.cfg.Workload.Seed}
	var err error
	switch {
	case c.IsSet("rate"):
		if r.rate, err = positiveFlag(c, "rate"); err != nil {
			return nil, err
		}
	case a.rate > 0 && b.rate > 0:
		r.rate = significant(0.8*min(a.rate, b.rate), 3)
	default:
		return nil, usagef("compare: give a rate: --rate R (nothing here predicts what the engines carry)")
	}
	if r.window, err = durationFlag(c, "duration", roundWindow(r.rate), false); err != nil {
		return nil, err
	}
	if r.warm, err = durationFlag(c, "warm-up", min(30*time.Second, r.window), true); err != nil {
		return nil, err
	}
	if err := bounded(r.rate, r.warm+r.window); err != nil {
		return nil, err
	}
	for i := range n {
		for _, isB := range []bool{i%2 == 1, i%2 == 0} {
			s := a
			if isB {
				s = b
			}
			r.ofB = append(r.ofB, isB)
			r.trials = append(r.trials, measure.Trial{
				Knobs: s.knobs, Workload: &s.cfg.Workload, Rate: r.rate, Warmup: r.warm, Window: r.window, Cooldown: min(30*time.Second, r.window/2),
				Seed: r.seed + uint64(i), Objective: s.cfg.Objective, Whole: true, Why: fmt.Sprintf("round %d of %s", i+1, s.name),
			})
		}
	}
	return r, nil
}

// roundWindow holds enough requests to resolve a p99.
func roundWindow(rate float64) time.Duration {
	const enough = 1500
	return max(time.Minute, time.Duration(math.Ceil(enough/rate))*time.Second)
}

// significant rounds to a number of significant digits.
func significant(x float64, digits int) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// design says what was paired.
func (r *rounds) design() string {
	n := len(r.trials) / 2
	return fmt.Sprintf("%d rounds of %v at %.4g requests/s, in turns; both sides of a round get the same requests (seeds %d to %d)",
		n, r.window, r.rate, r.seed, r.seed+uint64(n)-1)
}

// doubts says where the two sides do not get the same.
func (r *rounds) doubts() []string {
	var out []string
	if !sameRequests(r.trials[0], r.trials[1]) {
		out = append(out, "the two configurations make different requests of one seed: differences are of the traffic as well")
	}
	if len(r.trials) < 6 {
		out = append(out, fmt.Sprintf("%d rounds are few for a test; 8 and more are better", len(r.trials)/2))
	}
	return out
}

func sameRequests(a, b measure.Trial) bool {
	x, y := a.Schedule(), b.Schedule()
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Due != y[i].Due || x[i].Prompt != y[i].Prompt || x[i].Output != y[i].Output || !slices.Equal(x[i].Shared, y[i].Shared) {
			return false
		}
	}
	return true
}

// run runs a trial on its own side. The other side's engine, if it was started
// here, is stopped first: both want the same GPUs.
func (r *rounds) run(ctx context.Context, t measure.Trial) (measure.Observation, error) {
	mine, other := r.a, r.b
	if r.ofB[t.Number-1] {
		mine, other = r.b, r.a
	}
	if mine.bed.live != nil && other.bed.live != nil && other.cfg.Engine.Kind != "attach" {
		if err := other.bed.live.Close(); err != nil {
			return measure.Observation{}, err
		}
	}
	return mine.bed.run(ctx, t)
}

// runRounds runs the trials and pairs what they bring, also when they are
// interrupted. Two engines that are started here share the machine's GPUs: one is
// stopped before the other starts.
func (p *program) runRounds(c *cli.Context, r *rounds, folder *sweep.Folder) ([]pair, error) {
	j, err := openJournal(folder)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	show := p.display(c)
	defer show.Close()
	r.a.bed.tell(show)
	r.b.bed.tell(show)
	seen := make([]measure.Measurement, 0, len(r.trials))
	loop := sweep.Loop{Source: r.source(), Journal: j, Parallel: min(r.a.bed.parallel, r.b.bed.parallel),
		Run: r.run, Proposed: show.proposed, Stop: p.signals.patience(show.say), Keep: r.keeper(folder), Observed: func(m measure.Measurement) {
			seen = append(seen, m)
			show.observed(m, search.Estimate{}, "")
		}}
	stopped := loop.Drive(c.Context)
	if stopped != nil && !errors.Is(stopped, sweep.ErrInterrupted) {
		return nil, stopped
	}
	pairs, err := r.pairs(seen)
	if err != nil {
		return nil, err
	}
	return pairs, stopped
}

// source proposes all trials together on the simulated engine, and one after
// another on a real one, so that a user who has had enough need not wait for all.
func (r *rounds) source() sweep.Source {
	if r.a.bed.live == nil && r.b.bed.live == nil {
		return &trialList{trials: r.trials}
	}
	return &oneByOne{trials: r.trials}
}

// oneByOne proposes trials one after another, until one cannot run: a comparison
// wants both sides.
type oneByOne struct{ trials []measure.Trial }

// Next proposes the next trial.
func (s *oneByOne) Next() []measure.Trial {
	if len(s.trials) == 0 {
		return nil
	}
	next := s.trials[:1:1]
	s.trials = s.trials[1:]
	return next
}

// Observe ends the proposals at a trial that cannot run.
func (s *oneByOne) Observe(m measure.Measurement) {
	if m.Rejected != "" {
		s.trials = nil
	}
}

// keeper stores the records of the trials on real engines.
func (r *rounds) keeper(folder *sweep.Folder) func(measure.Trial, measure.Observation) error {
	if keep := r.a.bed.keeper(folder, false); keep != nil {
		return keep
	}
	return r.b.bed.keeper(folder, false)
}

// engines is what is known of the engines of both sides, in the order of the
// trials; nil if both are simulated.
func (r *rounds) engines() *report.Engines {
	a, b := r.a.bed.engines(), r.b.bed.engines()
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	both := &report.Engines{Trials: slices.Concat(a.Trials, b.Trials), Spent: a.Spent.Plus(b.Spent)}
	slices.SortFunc(both.Trials, func(x, y report.EngineTrial) int { return x.Trial - y.Trial })
	return both
}

// pairs joins what the two sides of each whole round brought. A side that cannot
// run is an error.
func (r *rounds) pairs(seen []measure.Measurement) ([]pair, error) {
	var pairs []pair
	for i := range seen {
		if m := &seen[i]; m.Rejected != "" {
			s := r.a
			if r.ofB[i] {
				s = r.b
			}
			return nil, fmt.Errorf("%s: %w", s.name, &measure.Rejection{Knobs: m.Trial.Knobs, Reason: m.Rejected})
		}
	}
	for i := 0; i+1 < len(seen); i += 2 {
		a, b := &seen[i], &seen[i+1]
		if r.ofB[i] {
			a, b = b, a
		}
		pairs = append(pairs, pair{a, b})
	}
	return pairs, nil
}

// printRounds says what would run.
func (p *program) printRounds(r *rounds) error {
	var servers []report.Server
	for i, s := range []*side{r.a, r.b} {
		servers = append(servers, serverOf(s.cfg, s.knobs))
		fmt.Fprintf(p.stdout, "%c: %s: %s\n", 'A'+i, s.name, servers[i].Command)
	}
	if err := p.beside(servers...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "would run: %d rounds, each side once, %v at %.4g requests/s after %v of warm-up\n", len(r.trials)/2, r.window, r.rate, r.warm)
	return err
}

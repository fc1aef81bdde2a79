package design

import (
	"context"
	"fmt"
	"slices"
	"time"

	"planner/internal/config"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Side is one of two configurations that are compared, with where it runs.
type Side struct {
	Name   string
	Config *config.Config
	Ground sweep.Ground
}

// Rounds is the study of the command compare: two configurations in turns, on the same requests.
type Rounds struct {
	sweep.List
	// Sides are A and B.
	Sides [2]Side
	// Rate is in requests per second, 0 for 80 % of the smaller predicted maximum.
	Rate float64
	// Window is 0 for what a p99 needs. Warmup is negative for 30 s, or the window if shorter.
	Window, Warmup time.Duration
	// Number is how many rounds there are; each side runs once in each.
	Number int
	Terms  Terms
	// only is the one side that is left after Narrow, nil for both.
	only *Side
	// predicted says in words where a rate that nobody gave comes from.
	predicted string
}

// carried is the share of a maximum rate at which two configurations are compared.
const carried = 0.8

// Plan lists the trials of the rounds: A first in one, B first in the next, so that drift affects
// both, and only one engine is started per round.
func (r *Rounds) Plan() error {
	var knobs [2]measure.Knobs
	var most [2]float64
	for i, side := range r.Sides {
		runnable, _ := side.Config.Candidates()
		knobs[i] = runnable[0]
		var err error
		if most[i], err = predictedRate(side.Ground, &side.Config.Workload, side.Config.Objective, knobs[i]); err != nil {
			return fmt.Errorf("%s: %w", side.Name, err)
		}
	}
	switch lower := min(most[0], most[1]); {
	case r.Rate > 0:
	case lower > 0:
		r.Rate, r.predicted = stat.Rounded(carried*lower, 3), " (80 % of the smaller predicted maximum)"
	default:
		return fmt.Errorf("compare: give a rate: --rate R (nothing here predicts what the engines carry)")
	}
	w := &r.Sides[0].Config.Workload
	if r.Window == 0 {
		r.Window = workload.WholeWindow(enoughForP99, w.MeanRate(r.Rate))
	}
	if r.Warmup < 0 {
		r.Warmup = min(30*time.Second, r.Window)
	}
	if err := Bounded(w.MeanRate(r.Rate), r.Warmup+r.Window); err != nil {
		return err
	}
	for i := range r.Number {
		for _, n := range []int{i % 2, 1 - i%2} {
			side := &r.Sides[n]
			r.Trials = append(r.Trials, measure.Trial{
				Knobs: knobs[n], Workload: &side.Config.Workload, Rate: r.Rate, Warmup: r.Warmup, Window: r.Window, Cooldown: min(30*time.Second, r.Window/2),
				Seed: w.Seed + uint64(i), Objective: side.Config.Objective, Whole: true, Why: fmt.Sprintf("round %d of %s", i+1, side.Name),
			})
		}
	}
	if r.Whole = true; r.Sides[0].Ground.Virtual && r.Sides[1].Ground.Virtual {
		r.Batch = len(r.Trials)
	}
	return nil
}

// Parts returns one part if both sides use the same GPU, so that they take turns on the same
// machine, and otherwise one per side.
func (r *Rounds) Parts() []sweep.Part {
	a, b := sweep.KindOf(r.Trials[0].Knobs), sweep.KindOf(r.Trials[1].Knobs)
	if a.GPU == b.GPU {
		return []sweep.Part{{Name: "rounds", GPU: a.GPU, GPUs: max(a.GPUs, b.GPUs), Has: func(measure.Trial) bool { return true }}}
	}
	a.Name, b.Name = "a-"+a.Name, "b-"+b.Name
	return []sweep.Part{a, b}
}

// Narrow keeps only the trials of one side, if the sides are separate parts.
func (r *Rounds) Narrow(part string, _ bool) {
	parts := r.Parts()
	if side := slices.IndexFunc(parts, func(p sweep.Part) bool { return p.Name == part }); len(parts) > 1 {
		r.only = &r.Sides[side]
		r.Trials = slices.DeleteFunc(r.Trials, func(t measure.Trial) bool { return !parts[side].Has(t) })
	}
}

func (s *Side) close() {
	if s.Ground.Close != nil {
		s.Ground.Close()
	}
}

// ofB returns 1 if the trial of a number, counted from 1, is B's, and 0 if it is A's.
func ofB(number int) int {
	round, second := (number-1)/2, (number-1)%2
	return (round + second) % 2
}

// Ground runs each trial on its own side. Two engines that are started here share the machine's
// GPUs: one is stopped before the other starts.
func (r *Rounds) Ground() sweep.Ground {
	a, b := &r.Sides[0].Ground, &r.Sides[1].Ground
	g := sweep.Ground{Virtual: a.Virtual && b.Virtual, Parallel: min(a.Parallel, b.Parallel), Records: a.Records}
	g.Close = func() { r.Sides[0].close(); r.Sides[1].close() }
	g.Run = func(ctx context.Context, t measure.Trial) (measure.Observation, error) {
		if r.only != nil {
			return r.only.Ground.Run(ctx, t)
		}
		n := ofB(t.Number)
		mine, other := &r.Sides[n], &r.Sides[1-n]
		if mine.Ground.Close != nil && other.Ground.Owned {
			other.close()
		}
		return mine.Ground.Run(ctx, t)
	}
	return g
}

// Answer compares the two sides over all complete rounds. With a side that does not run there is an
// answer too, which says why.
func (r *Rounds) Answer() (sweep.Answer, error) {
	pairs, down := r.pairs()
	if down < 0 && len(pairs) == 0 {
		return sweep.Answer{}, nil
	}
	n := len(r.Trials) / 2
	first, window := r.Trials[0].Seed, r.Window.Seconds()
	out := &Compared{
		A: r.Sides[0].Name, B: r.Sides[1].Name, Test: tested, Terms: r.Terms, Rate: &r.Rate, Window: &window, Rounds: &n, Contrasts: contrast(pairs, r.Terms),
		Design: fmt.Sprintf("%d rounds of %v at %.4g requests/s%s, in turns; both sides of a round get the same requests (seeds %d to %d)",
			n, r.Window, r.Rate, r.predicted, first, first+uint64(n)-1),
		Warnings: slices.Concat(r.doubts(), pairDoubts(pairs), r.slower(pairs)).Warnings(),
	}
	for _, x := range pairs {
		out.Trials = append(out.Trials, *x[0], *x[1])
	}
	answer := out.answer()
	switch done := len(pairs); {
	case down >= 0:
		why := r.Seen[down].Rejected
		if answer.State, out.Rounds = sweep.Infeasible, &done; measure.Broke(why) {
			answer.State = sweep.Failed
		}
		out.Warnings.Add(note.New(note.SideDown, sides[ofB(down+1)], done, n, why.Text))
	case done < n:
		answer.State, out.Rounds = sweep.Unfinished, &done
		out.Warnings.Add(note.New(note.RoundsInterrupted, done, n))
	}
	return answer, nil
}

// doubts warns of sides that get different requests, and of few rounds.
func (r *Rounds) doubts() note.Notes {
	return append(note.If(!sameRequests(r.Trials[0], r.Trials[1]), note.RequestsDiffer),
		note.If(len(r.Trials) < 6, note.FewRounds, len(r.Trials)/2)...)
}

// slower proposes a rate that both sides carry, if one of them fell behind.
func (r *Rounds) slower(pairs []pairing) note.Notes {
	least, asked := 1.0, r.Sides[0].Config.Workload.MeanRate(r.Rate)
	for _, p := range pairs {
		for i, m := range p {
			if m.Overloaded || p.behind() == sides[i] {
				least = min(least, m.Achieved/asked)
			}
		}
	}
	return note.If(least < 1, note.RateTooHigh, 100*least, r.Rate, stat.Rounded(carried*least*r.Rate, 2))
}

func sameRequests(a, b measure.Trial) bool {
	return slices.EqualFunc(a.Schedule(), b.Schedule(), func(x, y workload.Request) bool {
		return x.Due == y.Due && x.Prompt == y.Prompt && x.Output == y.Output && slices.Equal(x.Shared, y.Shared)
	})
}

// pairs joins the measurements of the two sides of each complete round. down is the index of the first
// that is of a side which does not run, -1 for none.
func (r *Rounds) pairs() (pairs []pairing, down int) {
	down = slices.IndexFunc(r.Seen, func(m measure.Measurement) bool { return !m.Ran() })
	for i := 0; i+1 < len(r.Seen) && (down < 0 || i+1 < down); i += 2 {
		first := ofB(i + 1)
		pairs = append(pairs, pairing{&r.Seen[i+first], &r.Seen[i+1-first]})
	}
	return pairs, down
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// answer is what a search said of an instance, and how far that is from the truth.
type answer struct {
	search.Result

	in    *instance
	truth truth
	wall  time.Duration
	// log is the logarithm of the answer over the nearest rate that counts as right;
	// 0 without an answer or a truth.
	log              float64
	covered, safe    bool
	answered, exists bool
	// told says that the answer warns of a server that is not the same in all trials.
	told bool
}

// search runs the search of the command on the simulated engine, and shows its trials.
func (in *instance) search(show io.Writer) (search.Result, error) {
	ground := sweep.SimulatedGround(in.sim, 1)
	study, err := decide.NewRateSearch(in.cfg, ground)
	if err != nil {
		return search.Result{}, err
	}
	found, err := sweep.Drive(context.Background(), nil, ground, undoubted{study}, func() bool { return false }, func(event any) {
		if m, ok := event.(measure.Measurement); ok {
			printTrial(show, &m, study)
		}
	})
	if err != nil {
		return search.Result{}, err
	}
	return found.Value.(search.Result), nil
}

// undoubted is a search whose answer is by the draw of the requests alone: that of an engine with its constants
// as they are has a truth.
type undoubted struct{ *decide.RateSearch }

// Answer is what the search found.
func (u undoubted) Answer() (sweep.Answer, error) {
	r, _ := u.Best()
	if r.Outcome == search.Searching {
		a, err := u.RateSearch.Answer()
		return a, cmp.Or(err, errors.New("the search did not end"))
	}
	return sweep.Answer{Value: r}, nil
}

// printTrial prints a trial of a search and what is known behind it.
func printTrial(w io.Writer, m *measure.Measurement, study *decide.RateSearch) {
	if w == io.Discard {
		return
	}
	t := &m.Trial
	fmt.Fprintf(w, "%3d %9.4g/s %6.0f+%6.0fs ran %6.0fs", t.Number, t.Rate, t.Warmup.Seconds(), t.Window.Seconds(), m.Duration.Seconds())
	if m.Verdict != nil {
		fmt.Fprintf(w, " %v", m.Verdict.State)
	}
	for _, c := range m.Counts {
		fmt.Fprintf(w, "  %s %d/%d %.3g (%.3g..%.3g)", c.Bound, c.K, c.N, c.Value, c.Low, c.High)
	}
	known, _ := study.Best()
	best := known.Estimate
	fmt.Fprintf(w, "  done %.4g/s valid=%v over=%v %s -> %.4g (%.4g..%.4g) | %s\n", m.Achieved, m.Valid, m.Overloaded, m.Aborted.Text,
		best.Value, best.Low, best.High, t.Why)
	for _, n := range m.Warnings {
		fmt.Fprintf(w, "      %s\n", n)
	}
}

// answer searches, shows the trials and compares with the truth.
func (in *instance) answer(t truth, show io.Writer) (*answer, error) {
	start := time.Now()
	r, err := in.search(show)
	a := compared(r, t)
	a.in, a.wall = in, time.Since(start)
	return a, err
}

// safeSlack is by how much a safe rate may be above the truth.
const safeSlack = 1.01

// compared compares a result with the truth.
func compared(r search.Result, t truth) *answer {
	a := &answer{Result: r, truth: t, answered: r.Estimate.Value > 0, exists: t.Rate > 0}
	a.told = virtual.Told(r.Warnings)
	if !a.answered || !a.exists {
		return a
	}
	e := r.Estimate
	a.log = math.Log(e.Value / min(max(e.Value, t.Low), t.High))
	a.covered = e.Low <= t.High && e.High >= t.Low
	a.safe = e.Safe <= safeSlack*t.High
	return a
}

// bad says what is wrong with an answer, nothing where nothing is.
func (a *answer) bad() string {
	switch {
	case a.answered && !a.exists:
		return "NO RATE MEETS IT"
	case a.exists && !a.answered:
		return "NO ANSWER"
	case a.exists && !a.safe:
		return "UNSAFE"
	case a.exists && !a.covered:
		return "NOT COVERED"
	}
	return ""
}

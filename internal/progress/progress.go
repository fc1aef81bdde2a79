// Package progress tells a waiting user how a run goes.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"planner/internal/printable"
	"planner/search"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// DisplayOptions say how much a display tells, and of what.
type DisplayOptions struct {
	// Quiet tells nothing at all; Verbose one line for each trial and, where
	// nothing is drawn, one every 5 s in place of 30, fit for a log file.
	Quiet, Verbose bool
	// Columns is the width of the terminal, on which a few lines are drawn over
	// themselves; 0 draws nothing.
	Columns int
	// Budget bounds the engine time of the whole run; 0 where nothing does. Where its trials are
	// known beforehand it is the time of their load, and Trials is how many they are.
	Budget time.Duration
	Trials int
	// Virtual says that engine time costs nothing: what is to go is then told by the trials, or the parts of a stage, that are done.
	Virtual bool
	// Stage, if set, says how many parts of what stage are done; of none where it has none. Best, if set, is the best result so far
	// and what carries its rate, Cost what the trials on real engines cost so far, in words.
	Stage func() (done, of int, what string)
	Best  func() (search.Result, string)
	Cost  func([]sweep.EngineTelemetry) string
}

// Display shows on a writer, usually standard error, how a run goes. Errors of the
// writer are ignored: a display that cannot be seen is no reason to stop measuring.
type Display struct {
	DisplayOptions
	w     io.Writer
	begun time.Time

	// What follows is guarded by mu: trials and starts of engines tell of
	// themselves from goroutines of their own, and the time that passes from another.
	mu    sync.Mutex
	state runState
	seen  []sweep.EngineTelemetry
	// running says how far the trial is that runs; nil for none. A goroutine asks
	// it, and shows the time, again and again from the first event until quit is closed.
	running func() string
	quit    chan struct{}
	asking  sync.WaitGroup
	// last is when the display last wrote, drawn the lines on the screen.
	last  time.Time
	drawn int
	// widest is the first interval that was shown; the scale of the bar.
	widest [2]float64
}

// runState is how far a run is. Unknown parts are left zero and not shown.
type runState struct {
	// trials are done, of so many where that is known. spent is the engine time that they
	// took, left what may still be spent.
	trials, of  int
	spent, left time.Duration
	// about is how long the rest takes at the pace so far.
	about time.Duration
	// best is the best figure for the maximum rate, and subject what it is of,
	// such as the best settings so far; limits says what limits it.
	best            search.Estimate
	subject, limits string
	// next is the next trial, why what it was chosen for, and now how far it or
	// the start of its engine is.
	next, why, now string
	// working says that there are no trials, and now tells all.
	working bool
	// jobs are those of a cluster.
	jobs sweep.Jobs
	// cost says what was spent besides time, in words.
	cost string
	// stage is the one that the run is at since a time of its own, with its parts, of which done are.
	stage       string
	done, parts int
	since       time.Time
}

const (
	// grace keeps a command that is soon done from flashing a display.
	grace = time.Second
	// redraw, between and seldom are the shortest times between two drawings, two plain
	// lines of who asked for more, and two of who did not; pause is that between two looks
	// at a trial that runs.
	redraw  = 100 * time.Millisecond
	between = 5 * time.Second
	seldom  = 30 * time.Second
	pause   = 250 * time.Millisecond
)

// New makes a display, which must be closed.
func New(w io.Writer, o DisplayOptions) *Display {
	d := &Display{DisplayOptions: o, w: w, begun: time.Now(), state: runState{of: o.Trials, left: o.Budget}}
	if o.Trials > 1 && !o.Virtual {
		d.say(fmt.Sprintf("%d trials, %s of load", o.Trials, span(o.Budget)))
	}
	return d
}

// See shows an event of a run, as a [sweep.Watcher] is told of it. That of a command that
// makes no trials is a function: what it says, asked again and again, is how far it is.
func (d *Display) See(event any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watch()
	switch e := event.(type) {
	case []measure.Trial:
		next := loadText(&e[0])
		if n := len(e); n > 1 {
			next += fmt.Sprintf(" and %d more side by side", n-1)
		}
		d.state.next, d.state.why, d.state.now = next, e[0].Why, ""
		if d.Stage != nil {
			d.state.at(d.Stage())
		}
	case measure.Measurement:
		d.observed(&e)
	case engine.Command:
		d.say("starting: " + e.String())
		return
	case sweep.Starting:
		d.state.now = fmt.Sprintf("engine starts: %s, %v: %s", e.Stage, e.Elapsed.Round(time.Second), e.Line)
	case *engine.Engine:
		d.say(startedText(e))
		return
	case func() string:
		d.state.working, d.running = true, e
		return
	case *load.Test:
		d.running = func() string { return testText(e.Interim()) }
		return
	case sweep.EngineTelemetry:
		d.running = nil
		if d.Cost == nil {
			return
		}
		d.seen = append(slices.DeleteFunc(d.seen, func(s sweep.EngineTelemetry) bool { return s.Trial == e.Trial }), e)
		d.state.cost = d.Cost(d.seen)
	case sweep.Jobs:
		d.state.jobs = e
	case string:
		d.say(e)
		return
	}
	d.show()
}

func (d *Display) observed(m *measure.Measurement) {
	d.running = nil
	if d.Verbose && !d.Quiet {
		d.log(trialLine(m))
	}
	s := &d.state
	s.trials++
	s.spent += m.EngineTime(0)
	if d.Budget > 0 {
		s.left = max(d.Budget-s.spent, 0)
	}
	if d.Best == nil {
		return
	}
	if best, subject := d.Best(); best.Estimate.Value > 0 {
		s.best, s.subject, s.limits = best.Estimate, subject, limits(best.Bounds)
	}
}

func (s *runState) at(done, of int, what string) {
	if what != s.stage {
		s.since = time.Now()
	}
	s.done, s.parts, s.stage = done, of, what
}

// watch shows the state again and again, also where nothing happens.
func (d *Display) watch() {
	if d.quit != nil || d.Quiet {
		return
	}
	quit := make(chan struct{})
	d.quit = quit
	d.asking.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				d.ask()
			}
		}
	})
}

func (d *Display) ask() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running != nil {
		d.state.now = d.running()
	}
	d.show()
}

// Close removes what is drawn.
func (d *Display) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if quit := d.quit; quit != nil {
		d.running, d.quit = nil, nil
		close(quit)
		d.mu.Unlock()
		d.asking.Wait()
		d.mu.Lock()
	}
	d.erase()
}

func (d *Display) say(line string) {
	if !d.Quiet {
		d.log("planner: " + line)
	}
}

func (d *Display) log(line string) {
	d.erase()
	fmt.Fprintln(d.w, printable.Text(line))
}

// show tells the state if it is time to.
func (d *Display) show() {
	now, best := time.Now(), &d.state.best
	if d.widest[1] == 0 && best.Low > 0 && best.High > best.Low {
		d.widest = [2]float64{best.Low, best.High}
	}
	first, wait := grace, between
	switch {
	case d.Columns > 0:
		wait = redraw
	case !d.Verbose:
		first, wait = seldom, seldom
	}
	if d.Quiet || now.Sub(d.begun) < first || !d.last.IsZero() && now.Sub(d.last) < wait {
		return
	}
	d.last = now
	elapsed := now.Sub(d.begun)
	if s := &d.state; d.Virtual {
		if s.about = pace(elapsed, s.trials, s.of); s.parts > 0 {
			s.about = pace(now.Sub(s.since), s.done, s.parts)
		}
	}
	if d.Columns == 0 {
		fmt.Fprintln(d.w, printable.Text(d.state.line(elapsed)))
		return
	}
	d.draw(d.lines(elapsed))
}

// pace is how long the rest takes where so many were done in a time; 0 where that is not known.
func pace(elapsed time.Duration, done, of int) time.Duration {
	if done == 0 {
		return 0
	}
	return elapsed * time.Duration(max(of-done, 0)) / time.Duration(done)
}

func (d *Display) draw(lines []string) {
	var b strings.Builder
	b.WriteString(d.eraser())
	for _, l := range lines {
		b.WriteString(cut(printable.Text(l), d.Columns-1) + "\n")
	}
	io.WriteString(d.w, b.String())
	d.drawn = len(lines)
}

func (d *Display) erase() {
	if d.drawn > 0 {
		io.WriteString(d.w, d.eraser())
		d.drawn = 0
	}
}

// eraser moves the cursor up to the first drawn line and clears from there on.
func (d *Display) eraser() string {
	if d.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", d.drawn)
}

// cut shortens a line to n columns, so that a terminal never breaks it.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}

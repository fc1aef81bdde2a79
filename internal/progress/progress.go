// Package progress shows a waiting user the progress of a run.
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

// DisplayOptions say how much a display shows.
type DisplayOptions struct {
	// Quiet shows nothing; Verbose one line per trial and, if nothing is drawn, a line every 5 s instead of 30,
	// suitable for a log file.
	Quiet, Verbose bool
	// Columns is the width of the terminal, on which a few lines are redrawn; 0 draws nothing.
	Columns int
	// Budget is the limit on the engine time of the whole run, 0 if there is none. If its trials are known
	// beforehand, it is the duration of their load, and Trials their number.
	Budget time.Duration
	Trials int
	// Virtual says that engine time costs nothing: the rest is then estimated from trials, or parts of a stage,
	// done.
	Virtual bool
	// Stage, if set, returns how many parts of which stage are done; of is 0 without one. Best, if set, returns
	// the best result so far and what carries its rate; Cost the cost of trials on real engines so far, in
	// words.
	Stage func() (done, of int, what string)
	Best  func() (search.Result, string)
	Cost  func([]sweep.EngineTelemetry) string
}

// Display shows the progress of a run on a writer, usually standard error. Errors of the writer are ignored: a
// display that cannot be seen is no reason to stop measuring.
type Display struct {
	DisplayOptions
	w     io.Writer
	begun time.Time

	// mu guards all that follows: trials, engine starts and the passing time report from different goroutines.
	mu    sync.Mutex
	state runState
	seen  []sweep.EngineTelemetry
	// running describes the progress of the running trial; nil if there is none. The clock, which is nil before
	// the first event and once the display is closed, calls it periodically.
	running func() string
	clock   *time.Timer
	// last is the time of the last output, drawn the number of lines on the screen.
	last  time.Time
	drawn int
	// widest is the first interval shown, which sets the scale of the bar.
	widest [2]float64
}

// runState is the progress of a run. Unknown parts are zero and not shown.
type runState struct {
	// trials is the number done, of the total if known. spent is the engine time that they took, left the
	// remaining budget.
	trials, of  int
	spent, left time.Duration
	// about is how long the rest takes at the present pace.
	about time.Duration
	// best is the best estimate of the maximum rate, and subject what it belongs to, such as the best settings
	// so far; limits says what limits it.
	best            search.Estimate
	subject, limits string
	// next is the next trial, why the reason it was chosen, and now its progress or that of its engine's start.
	next, why, now string
	// working says that there are no trials, and now is all there is to show.
	working bool
	// jobs are the jobs on a cluster.
	jobs sweep.Jobs
	// cost says what was spent, other than time, in words.
	cost string
	// stage is the current stage, begun at since, with its number of parts, of which done are finished.
	stage       string
	done, parts int
	since       time.Time
}

const (
	// grace avoids the flash of a display for a command that ends soon.
	grace = time.Second
	// redraw, between and seldom are the shortest times between two drawings, two plain lines if verbose, and
	// two if not; pause is the time between two looks at a running trial.
	redraw  = 100 * time.Millisecond
	between = 5 * time.Second
	seldom  = 30 * time.Second
	pause   = 250 * time.Millisecond
)

// New returns a display, which must be closed.
func New(w io.Writer, o DisplayOptions) *Display {
	d := &Display{DisplayOptions: o, w: w, begun: time.Now(), state: runState{of: o.Trials, left: o.Budget}}
	if o.Trials > 1 && !o.Virtual {
		d.say(fmt.Sprintf("%d trials, %s of load", o.Trials, span(o.Budget)))
	}
	return d
}

// See shows an event of a run, as passed to a [sweep.Watcher]. A command without trials passes a function,
// which is called periodically and describes its progress.
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

// watch shows the state periodically, even if nothing happens.
func (d *Display) watch() {
	if d.clock == nil && !d.Quiet {
		d.clock = time.AfterFunc(pause, d.ask)
	}
}

func (d *Display) ask() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clock == nil {
		return
	}
	if d.running != nil {
		d.state.now = d.running()
	}
	d.show()
	d.clock.Reset(pause)
}

// Close removes what is drawn.
func (d *Display) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clock != nil {
		d.clock.Stop()
		d.running, d.clock = nil, nil
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

// show shows the state if it is time to.
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

// pace extrapolates how long the rest takes; 0 if nothing is done yet.
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

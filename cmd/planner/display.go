package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"planner/internal/config"
	"planner/internal/progress"
	"planner/internal/report"
	"planner/search"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// display tells on standard error how a run goes: drawn over itself on a
// terminal, a line now and then with --verbose, nothing otherwise.
type display struct {
	verbose, quiet bool
	// budget bounds the engine time of the whole run; 0 where nothing does.
	budget time.Duration
	// best, if set, is the best rate so far and what carries it.
	best func() (search.Estimate, string)
	// gpu finds the price of a GPU, seen are the trials on real engines so far.
	gpu  func(string) (config.GPU, bool)
	seen []sweep.Sighting

	mu sync.Mutex
	// on, state and stop are guarded by mu: trials and starts of engines tell of
	// themselves from goroutines of their own.
	on    *progress.Display
	state progress.State
	// stop ends the drawing of the trial that runs, and waits for its end; nil for
	// none.
	stop func()
}

// display starts the display of a run.
func (p *program) display(c *cli.Context, r *run) *display {
	d := &display{quiet: c.Bool("quiet"), verbose: c.Bool("verbose") && !c.Bool("quiet"), gpu: r.gpu}
	if s, ok := r.study.(interface {
		Best() (search.Estimate, string)
		Searches() int
	}); ok {
		d.best = s.Best
		if !r.ground.Virtual || r.cfg.Search.BudgetGiven {
			d.budget = time.Duration(s.Searches()) * r.cfg.Search.Budget
		}
	}
	mode, width := progress.Silent, 0
	switch {
	case d.quiet:
	case p.isTerminal():
		mode, width = progress.Live, p.errWidth()
	case d.verbose:
		mode = progress.Lines
	}
	d.on = progress.New(p.stderr, mode, width)
	return d
}

// see shows an event of a run, as a [sweep.Watcher] is told of it.
func (d *display) see(event any) {
	switch e := event.(type) {
	case []measure.Trial:
		d.proposed(e)
	case measure.Measurement:
		d.observed(e)
	case engine.Command:
		d.say("starting: " + e.String())
	case sweep.Starting:
		d.show(func(s *progress.State) {
			s.Now = fmt.Sprintf("engine starts: %s, %v: %s", e.Stage, e.Elapsed.Round(time.Second), e.Line)
		})
	case *engine.Engine:
		d.say(startedText(e))
	case *load.Test:
		d.follow(func() string { return progressText(e.Snapshot()) })
	case sweep.Sighting:
		d.ended()
		d.seen = append(slices.DeleteFunc(d.seen, func(s sweep.Sighting) bool { return s.Trial == e.Trial }), e)
		spent := report.SpentOn(d.seen, d.gpu)
		d.show(func(s *progress.State) { s.Cost = spent.String() })
	case string:
		d.say(e)
	}
}

// startedText says what an engine that serves is, and how long it took.
func startedText(e *engine.Engine) string {
	stages := make([]string, len(e.Stages))
	for i, s := range e.Stages {
		stages[i] = fmt.Sprintf("%s %.1f s", s.Name, s.Took.Seconds())
	}
	text := fmt.Sprintf("%s %s at %s", e.Kind, e.Facts.Version, e.URL)
	if e.Done() == nil {
		return "reached " + text
	}
	return fmt.Sprintf("%s serves after %.1f s (%s)", text, e.Cold.Seconds(), strings.Join(stages, ", "))
}

// errWidth is how many columns standard error has.
func (p *program) errWidth() int {
	if f, ok := p.stderr.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// Close removes what is drawn.
func (d *display) Close() {
	d.ended()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on.Close()
}

// say writes a line of its own, unless the user wants none.
func (d *display) say(line string) {
	if d.quiet {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on.Log("planner: " + line)
}

// show changes the state and draws it.
func (d *display) show(change func(*progress.State)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.state)
	d.on.Show(d.state)
}

// proposed shows the trials that run next.
func (d *display) proposed(batch []measure.Trial) {
	t := batch[0]
	next := loadText(&t)
	if n := len(batch); n > 1 {
		next += fmt.Sprintf(" and %d more side by side", n-1)
	}
	d.show(func(s *progress.State) { s.Next, s.Why, s.Now = next, t.Why, "" })
}

// observed shows what a trial brought to the best estimate so far.
func (d *display) observed(m measure.Measurement) {
	d.ended()
	var best search.Estimate
	of := ""
	if d.best != nil {
		best, of = d.best()
	}
	if d.verbose {
		d.mu.Lock()
		d.on.Log(trialLine(&m))
		d.mu.Unlock()
	}
	d.show(func(s *progress.State) {
		s.Trials++
		s.Spent += m.Trial.Warmup + m.Duration
		if d.budget > 0 {
			s.Left = max(d.budget-s.Spent, 0)
		}
		if best.Value > 0 {
			s.Rate, s.Low, s.High, s.Subject = best.Value, best.Low, best.High, of
		}
	})
}

// follow shows what now says, again and again.
func (d *display) follow(now func() string) {
	d.replace(repeatedly(func() { d.show(func(s *progress.State) { s.Now = now() }) }))
}

// ended ends the drawing of a trial.
func (d *display) ended() { d.replace(nil) }

// replace puts another drawing in the place of the one that runs. It waits for
// the end of that one without mu, which a drawing takes.
func (d *display) replace(stop func()) {
	d.mu.Lock()
	last := d.stop
	d.stop = stop
	d.mu.Unlock()
	if last != nil {
		last()
	}
}

// repeatedly calls draw four times a second until stop is called, which returns
// when no call is under way any more.
func repeatedly(draw func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				draw()
			}
		}
	}()
	return func() { close(quit); <-done }
}

// loadText is the load of a trial in words.
func loadText(t *measure.Trial) string {
	if t.Closed() {
		return fmt.Sprintf("%d at a time", t.Concurrency)
	}
	return fmt.Sprintf("%.4g requests/s", t.Rate)
}

// trialLine is one trial on one line.
func trialLine(m *measure.Measurement) string {
	s := fmt.Sprintf("trial %d: %s: %s", m.Trial.Number, loadText(&m.Trial), m.Trial.Why)
	switch {
	case m.Rejected != "":
		return s + ": rejected: " + m.Rejected
	case m.Verdict != nil:
		s += fmt.Sprintf(": %s (%s)", m.Verdict.State, m.Verdict.Binding)
	}
	if m.Aborted != "" {
		s += ", ended early: " + m.Aborted
	}
	return s
}

// progressText is the live line of a trial.
func progressText(now load.Snapshot) string {
	s := fmt.Sprintf("%v  %.1f requests/s  %d in flight  %d done", now.Elapsed.Round(time.Second), now.Rate, now.InFlight, now.Done)
	if now.Failed > 0 {
		s += fmt.Sprintf("  %d failed", now.Failed)
	}
	if now.TTFT50 >= 0 {
		s += fmt.Sprintf("  TTFT p50 %v p99 %v", now.TTFT50.Round(time.Millisecond/10), now.TTFT99.Round(time.Millisecond/10))
	}
	if now.Left >= 0 {
		s += fmt.Sprintf("  %v left", now.Left.Round(time.Second))
	}
	return s
}

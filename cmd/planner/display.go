package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"planner/internal/progress"
	"planner/search"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// display tells on standard error how a search goes: drawn over itself on a
// terminal, a line now and then with --verbose, nothing otherwise.
type display struct {
	verbose, quiet bool
	// budget bounds the engine time of the whole run; 0 where nothing does.
	budget time.Duration

	mu sync.Mutex
	// on, state and stop are guarded by mu: trials and starts of engines tell of
	// themselves from goroutines of their own.
	on    *progress.Display
	state progress.State
	// stop ends the drawing of the trial that runs, and waits for its end; nil for
	// none.
	stop func()
}

// display starts the display of a command.
func (p *program) display(c *cli.Context) *display {
	d := &display{quiet: c.Bool("quiet"), verbose: c.Bool("verbose") && !c.Bool("quiet")}
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

// silent is a display that shows nothing.
func silent() *display {
	return &display{quiet: true, on: progress.New(io.Discard, progress.Silent, 0)}
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
func (d *display) observed(m measure.Measurement, best search.Estimate, of string) {
	d.ended()
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

// starting shows how far the start of an engine is, with the last line of its
// log.
func (d *display) starting(stage, line string, elapsed time.Duration) {
	d.show(func(s *progress.State) {
		s.Now = fmt.Sprintf("engine starts: %s, %v: %s", stage, elapsed.Round(time.Second), line)
	})
}

// running shows a trial on a real engine as it goes, until ended is called or
// another one begins.
func (d *display) running(run *load.Test) {
	d.follow(func() string { return progressText(run.Snapshot()) })
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

// cost shows what was spent so far.
func (d *display) cost(text string) {
	d.show(func(s *progress.State) { s.Cost = text })
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

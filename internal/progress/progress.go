// Package progress tells a waiting user how a search goes.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Mode says how much is told, and how. The zero value is Silent.
type Mode int

// The modes. A terminal gets Live, anything else Silent unless the user asks for
// lines.
const (
	// Silent writes nothing but what Log is given.
	Silent Mode = iota
	// Lines writes one plain line now and then, fit for a log file.
	Lines
	// Live draws a few lines over themselves with the escape sequences of a
	// terminal.
	Live
)

// State is how far a search is. Unknown parts are left zero and not shown.
type State struct {
	// Trials are done. Spent is the engine time that they took, Left what may
	// still be spent.
	Trials      int
	Spent, Left time.Duration
	// Rate is the best figure for the maximum rate in requests per second, between
	// Low and High.
	Rate, Low, High float64
	// Subject says what Rate is of, such as the best settings so far.
	Subject string
	// Next is the next trial, Why what it was chosen for, and Now how far it or
	// the start of its engine is.
	Next, Why, Now string
	// Cost says what was spent besides time, in words.
	Cost string
}

// Display shows states on a writer, usually standard error. It is for one
// goroutine.
type Display struct {
	w     io.Writer
	mode  Mode
	width int
	// begun is when the display was made, last when it last wrote.
	begun, last time.Time
	// drawn counts the lines that a live display has on the screen.
	drawn int
	// widest is the first interval that was shown; the scale of the bar.
	widest [2]float64
}

const (
	// grace keeps a command that is soon done from flashing a display.
	grace = time.Second
	// redraw and between are the shortest times between two drawings of a live
	// display and two plain lines.
	redraw  = 100 * time.Millisecond
	between = 5 * time.Second
)

// New makes a display. Width is the number of columns of the terminal that a live
// display must not exceed; 0 means 80.
func New(w io.Writer, mode Mode, width int) *Display {
	if width <= 0 {
		width = 80
	}
	return &Display{w: w, mode: mode, width: width, begun: time.Now()}
}

// Show tells the state if it is time to. Errors of the writer are ignored: a
// display that cannot be seen is no reason to stop measuring.
func (d *Display) Show(s State) {
	now := time.Now()
	if d.widest[1] == 0 && s.Low > 0 && s.High > s.Low {
		d.widest = [2]float64{s.Low, s.High}
	}
	wait := between
	if d.mode == Live {
		wait = redraw
	}
	if d.mode == Silent || now.Sub(d.begun) < grace || (!d.last.IsZero() && now.Sub(d.last) < wait) {
		return
	}
	d.last = now
	elapsed := now.Sub(d.begun)
	if d.mode == Lines {
		fmt.Fprintln(d.w, line(s, elapsed))
		return
	}
	d.draw(d.lines(s, elapsed))
}

// Log writes a line of its own, above a live display, in every mode.
func (d *Display) Log(line string) {
	d.erase()
	fmt.Fprintln(d.w, line)
}

// Close removes a live display. The display can be used again afterwards.
func (d *Display) Close() { d.erase() }

// draw replaces what is on the screen.
func (d *Display) draw(lines []string) {
	var b strings.Builder
	b.WriteString(d.eraser())
	for _, l := range lines {
		b.WriteString(cut(l, d.width-1) + "\n")
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
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(n-1, 0)]) + "…"
}

package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"planner/internal/progress"
	"planner/search"
	"planner/sweep/measure"
)

// Trials side by side tell of themselves from goroutines of their own. No
// drawing is left when the display is closed: the bubble would not end otherwise.
func TestDisplayOfTrialsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := &display{verbose: true, best: func() (search.Estimate, string) { return search.Estimate{Value: 3, Low: 2, High: 4}, "" }, on: progress.New(&out, progress.Live, 80)}
		var trials sync.WaitGroup
		for i := range 8 {
			trials.Go(func() {
				for range 5 {
					d.follow(func() string { return fmt.Sprintf("trial %d is at it", i) })
					time.Sleep(time.Second)
					d.observed(measure.Measurement{Trial: measure.Trial{Number: i, Rate: 1}})
				}
			})
		}
		trials.Wait()
		d.Close()
		if d.state.Trials != 40 {
			t.Errorf("%d trials are counted, want 40", d.state.Trials)
		}
		if !strings.Contains(out.String(), "is at it") {
			t.Errorf("no trial was drawn: %q", out.String())
		}
	})
}

// What is stopped draws no more once stop has returned.
func TestRepeatedly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drawn := 0
		stop := repeatedly(func() { drawn++ })
		time.Sleep(time.Second + time.Millisecond)
		stop()
		seen := drawn
		time.Sleep(time.Second)
		if seen != 4 || drawn != seen {
			t.Errorf("drawn %d times in a second, %d times at the end", seen, drawn)
		}
	})
}

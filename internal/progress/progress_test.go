package progress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"planner/internal/note"
	"planner/search"
	"planner/sweep/measure"
)

var first = runState{trials: 3, spent: 6 * time.Minute, left: 54 * time.Minute, best: search.Estimate{Value: 16.2, Low: 12.1, High: 21.7},
	next: "17.3 requests/s", why: "where the answer is most likely"}

// synctestEpoch is the time at which the clock of a bubble begins.
var synctestEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var second = runState{trials: 4, spent: 9 * time.Minute, left: 51 * time.Minute, best: search.Estimate{Value: 16.9, Low: 15.4, High: 18.6}, subject: "seqs 256",
	next: "16 requests/s"}

// lines and live are what a user may ask for.
var lines = DisplayOptions{Verbose: true}

func live(columns int) DisplayOptions { return DisplayOptions{Columns: columns} }

// shown is what a display writes when the states come after the given pauses.
func shown(t *testing.T, o DisplayOptions, pause time.Duration, end bool, states ...runState) string {
	t.Helper()
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		d := New(&b, o)
		for _, s := range states {
			time.Sleep(pause)
			d.state = s
			d.show()
		}
		if end {
			d.Close()
		}
	})
	return b.String()
}

func TestBytes(t *testing.T) {
	tests := []struct {
		name string
		DisplayOptions
		pause  time.Duration
		states []runState
		want   string
	}{
		{"silent", DisplayOptions{Quiet: true}, time.Minute, []runState{first, second}, ""},
		{"soon done in a log", DisplayOptions{}, 14 * time.Second, []runState{first, second}, ""},
		{"seldom", DisplayOptions{}, 16 * time.Second, []runState{first, second, first}, "0:32 4 trials, 9.0 min of engine time, at most 51.0 min to go; maximum rate 16.9 requests/s (15.4-18.6), seqs 256; next: 16 requests/s\n"},
		{"soon done", live(80), 300 * time.Millisecond, []runState{first, second}, ""},
		{"lines", lines, 65 * time.Second, []runState{first, second},
			"1:05 3 trials, 6.0 min of engine time, at most 54.0 min to go; maximum rate 16.2 requests/s (12.1-21.7); next: 17.3 requests/s: where the answer is most likely\n" +
				"2:10 4 trials, 9.0 min of engine time, at most 51.0 min to go; maximum rate 16.9 requests/s (15.4-18.6), seqs 256; next: 16 requests/s\n"},
		{"kinds of instances", lines, 65 * time.Second, []runState{{trials: 80, stage: "kinds of instances searched", done: 3, parts: 14}}, "1:05 80 trials, 3 of 14 kinds of instances searched\n"},
		{"work without trials", lines, 65 * time.Second, []runState{{working: true, now: "3 h replayed"}}, "1:05 3 h replayed\n"},
		{"lines too soon after another", lines, 2 * time.Second, []runState{first, second}, "0:02 3 trials, 6.0 min of engine time, at most 54.0 min to go; maximum rate 16.2 requests/s (12.1-21.7); next: 17.3 requests/s: where the answer is most likely\n"},
		{"live", live(100), 2 * time.Second, []runState{first, second},
			"0:02  3 trials, 6.0 min of engine time, at most 54.0 min to go\n" +
				"━━━━━━━━━━━●━━━━━━━━━━━━  maximum rate 16.2 requests/s (12.1-21.7)\n" +
				"next: 17.3 requests/s: where the answer is most likely\n" +
				"\x1b[3A\r\x1b[J" +
				"0:04  4 trials, 9.0 min of engine time, at most 51.0 min to go\n" +
				"·········━━━━●━━━━······  maximum rate 16.9 requests/s (15.4-18.6), seqs 256\n" +
				"next: 16 requests/s\n" +
				"\x1b[3A\r\x1b[J"},
		{"trials known beforehand", DisplayOptions{Trials: 16, Budget: time.Hour}, 31 * time.Second, []runState{{trials: 3, of: 16, left: time.Minute}},
			"planner: 16 trials, 1.0 h of load\n0:31 3 of 16 trials, 1.0 min of load to go\n"},
		{"trials known beforehand, simulated", DisplayOptions{Trials: 16, Virtual: true}, 40 * time.Second, []runState{{trials: 4, of: 16}},
			"0:40 4 of 16 trials, about 2.0 min to go\n"},
		{"parts of a stage", DisplayOptions{Virtual: true}, 40 * time.Second, []runState{{trials: 80, stage: "kinds of instances searched", done: 4, parts: 16, since: synctestEpoch.Add(10 * time.Second)}},
			"0:40 80 trials, 4 of 16 kinds of instances searched, about 1.5 min to go\n"},
		{"nothing known", live(80), 2 * time.Second, []runState{{}}, "0:02  0 trials\n\x1b[1A\r\x1b[J"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := shown(t, tt.DisplayOptions, tt.pause, true, tt.states...); got != tt.want {
				t.Errorf("got\n%q\nwant\n%q", got, tt.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	tpot := search.BoundResult{Bound: "tpot.p95", Probability: 0.3, Rate: 8.4, Low: 8, High: 9.1}
	flow := search.BoundResult{Bound: "throughput", Probability: 0.7, Rate: 7.9, Low: 7.6, High: 8.2}
	for want, bounds := range map[string][]search.BoundResult{
		"":                    nil,
		"limited by tpot.p95": {{Bound: "throughput"}, tpot},
		"limited by throughput at 7.90 (7.60-8.20) or tpot.p95 at 8.40 (8.00-9.10)": {tpot, flow},
	} {
		if got := limits(bounds); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLogStandsAboveTheDisplay(t *testing.T) {
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		d := New(&b, live(60))
		time.Sleep(2 * time.Second)
		d.See(measure.Measurement{})
		d.See("a warning")
		time.Sleep(pause / 2)
		d.See(measure.Measurement{})
		d.Close()
	})
	want := "0:02  1 trial\n\x1b[1A\r\x1b[Jplanner: a warning\n0:02  2 trials\n\x1b[1A\r\x1b[J"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Where nothing happens, as in a long batch of trials, a line comes all the same.
func TestTimePasses(t *testing.T) {
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		stage := 0
		d := New(&b, DisplayOptions{Virtual: true, Stage: func() (int, int, string) { stage++; return stage, 4, "kinds of instances searched" }})
		d.See([]measure.Trial{{Rate: 2}})
		time.Sleep(61 * time.Second)
		d.Close()
	})
	want := "0:30 0 trials, 1 of 4 kinds of instances searched, about 1.5 min to go; next: 2 requests/s\n" +
		"1:00 0 trials, 1 of 4 kinds of instances searched, about 3.0 min to go; next: 2 requests/s\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A live line that the terminal breaks would be erased only in part.
func TestLiveLinesFit(t *testing.T) {
	long := second
	long.why = strings.Repeat("very long reason ", 20)
	for width := 10; width < 120; width++ {
		for line := range strings.Lines(shown(t, live(width), 2*time.Second, false, long)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n >= width {
				t.Fatalf("width %d: %d columns: %q", width, n, line)
			}
		}
	}
}

func TestNoNumberIsNoFigure(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), 0, -1} {
		for _, o := range []DisplayOptions{lines, live(80)} {
			got := shown(t, o, 2*time.Second, true, runState{best: search.Estimate{Value: v, Low: v, High: v}}, runState{best: search.Estimate{Value: 5, Low: v, High: math.Inf(1)}})
			if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("%v: %q", v, got)
			}
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestBrokenWriterIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(broken{}, live(80))
		time.Sleep(2 * time.Second)
		d.See([]measure.Trial{{}})
		d.See("x")
		d.Close()
	})
}

// Trials side by side tell of themselves from goroutines of their own. No
// drawing is left when the display is closed: the bubble would not end otherwise.
func TestTrialsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		best := func() (search.Result, string) {
			return search.Result{Estimate: search.Estimate{Value: 3, Low: 2, High: 4}}, ""
		}
		d := New(&out, DisplayOptions{Verbose: true, Columns: 80, Best: best})
		var trials sync.WaitGroup
		for i := range 8 {
			trials.Go(func() {
				for range 5 {
					d.See(func() string { return fmt.Sprintf("trial %d is at it", i) })
					time.Sleep(time.Second)
					d.See(measure.Measurement{Trial: measure.Trial{Number: i, Rate: 1}})
				}
			})
		}
		trials.Wait()
		d.Close()
		d.Close() // does no harm
		if d.state.trials != 40 {
			t.Errorf("%d trials are counted, want 40", d.state.trials)
		}
		if !strings.Contains(out.String(), "is at it") {
			t.Errorf("no trial was drawn: %q", out.String())
		}
	})
}

// TestSpent counts no load behind the window of a trial that ended before it.
func TestSpent(t *testing.T) {
	d := New(io.Discard, DisplayOptions{Quiet: true, Budget: time.Hour})
	m := measure.Measurement{Trial: measure.Trial{Warmup: 10 * time.Second, Cooldown: 5 * time.Second}, Duration: time.Minute}
	d.See(m)
	m.Aborted = note.Because(note.Overloaded)
	d.See(m)
	if d.state.spent != 145*time.Second {
		t.Errorf("spent %v, want 2m25s", d.state.spent)
	}
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{9.994: "9.99", 9.996: "10.0", 0.09996: "0.100", 1234.5: "1230", 123456: "123000"} {
		if got := figure(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}

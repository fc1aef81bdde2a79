package progress

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

var first = State{Trials: 3, Spent: 6 * time.Minute, Left: 54 * time.Minute, Rate: 16.2, Low: 12.1, High: 21.7,
	Next: "17.3 requests/s", Why: "where the answer is most likely"}

var second = State{Trials: 4, Spent: 9 * time.Minute, Left: 51 * time.Minute, Rate: 16.9, Low: 15.4, High: 18.6, Subject: "seqs 256", Next: "16 requests/s"}

// shown is what a display writes when the states come after the given pauses.
func shown(t *testing.T, mode Mode, width int, pause time.Duration, end bool, states ...State) string {
	t.Helper()
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		d := New(&b, mode, width)
		for _, s := range states {
			time.Sleep(pause)
			d.Show(s)
		}
		if end {
			d.Close()
		}
	})
	return b.String()
}

func TestBytes(t *testing.T) {
	tests := []struct {
		name   string
		mode   Mode
		width  int
		pause  time.Duration
		states []State
		want   string
	}{
		{"silent", Silent, 80, time.Minute, []State{first, second}, ""},
		{"soon done", Live, 80, 300 * time.Millisecond, []State{first, second}, ""},
		{"lines", Lines, 80, 65 * time.Second, []State{first, second},
			"1:05 3 trials, 6.0 min of engine time, at most 54.0 min to go; maximum rate 16.2 requests/s (12.1-21.7); next: 17.3 requests/s: where the answer is most likely\n" +
				"2:10 4 trials, 9.0 min of engine time, at most 51.0 min to go; maximum rate 16.9 requests/s (15.4-18.6), seqs 256; next: 16 requests/s\n"},
		{"lines too soon after another", Lines, 80, 2 * time.Second, []State{first, second}, "0:02 3 trials, 6.0 min of engine time, at most 54.0 min to go; maximum rate 16.2 requests/s (12.1-21.7); next: 17.3 requests/s: where the answer is most likely\n"},
		{"live", Live, 100, 2 * time.Second, []State{first, second},
			"0:02  3 trials, 6.0 min of engine time, at most 54.0 min to go\n" +
				"━━━━━━━━━━━●━━━━━━━━━━━━  maximum rate 16.2 requests/s (12.1-21.7)\n" +
				"next: 17.3 requests/s: where the answer is most likely\n" +
				"\x1b[3A\r\x1b[J" +
				"0:04  4 trials, 9.0 min of engine time, at most 51.0 min to go\n" +
				"·········━━━━●━━━━······  maximum rate 16.9 requests/s (15.4-18.6), seqs 256\n" +
				"next: 16 requests/s\n" +
				"\x1b[3A\r\x1b[J"},
		{"nothing known", Live, 80, 2 * time.Second, []State{{}}, "0:02  0 trials\n\x1b[1A\r\x1b[J"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := shown(t, tt.mode, tt.width, tt.pause, true, tt.states...); got != tt.want {
				t.Errorf("got\n%q\nwant\n%q", got, tt.want)
			}
		})
	}
}

func TestLogStandsAboveTheDisplay(t *testing.T) {
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		d := New(&b, Live, 60)
		time.Sleep(2 * time.Second)
		d.Show(State{Trials: 1})
		d.Log("a warning")
		time.Sleep(time.Second)
		d.Show(State{Trials: 2})
	})
	want := "0:02  1 trial\n\x1b[1A\r\x1b[Ja warning\n0:03  2 trials\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A live line that the terminal breaks would be erased only in part.
func TestLiveLinesFit(t *testing.T) {
	long := second
	long.Why = strings.Repeat("very long reason ", 20)
	for width := 10; width < 120; width++ {
		for line := range strings.Lines(shown(t, Live, width, 2*time.Second, false, long)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n >= width {
				t.Fatalf("width %d: %d columns: %q", width, n, line)
			}
		}
	}
}

func TestNoNumberIsNoFigure(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), 0, -1} {
		for _, mode := range []Mode{Lines, Live} {
			got := shown(t, mode, 80, 2*time.Second, true, State{Rate: v, Low: v, High: v}, State{Rate: 5, Low: v, High: math.Inf(1)})
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
		d := New(broken{}, Live, 0)
		time.Sleep(2 * time.Second)
		d.Show(first)
		d.Log("x")
		d.Close()
	})
}

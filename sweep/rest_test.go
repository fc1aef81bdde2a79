package sweep

import (
	"testing"
	"time"

	"planner/sweep/measure"
)

// TestLeftOver: requests that had just been sent when a trial ended are no work left to a server.
func TestLeftOver(t *testing.T) {
	t.Parallel()
	const end = time.Minute
	for name, c := range map[string]struct {
		record measure.Record
		want   bool
	}{
		"just sent":             {measure.Record{Sent: end - 100*time.Millisecond, First: measure.Never, Outcome: measure.InFlight}, false},
		"not sent":              {measure.Record{Sent: measure.Never, First: measure.Never, Outcome: measure.InFlight}, false},
		"just sent, and served": {measure.Record{Sent: end - 100*time.Millisecond, First: end - time.Millisecond, Outcome: measure.InFlight}, true},
		"under way":             {measure.Record{Sent: end - 10*time.Second, First: measure.Never, Outcome: measure.InFlight}, true},
		"given up":              {measure.Record{Sent: 0, First: measure.Never, Outcome: measure.Timeout}, true},
		"refused":               {measure.Record{Sent: 0, First: measure.Never, Outcome: measure.HTTPStatus, Detail: "503"}, false},
		"good":                  {measure.Record{Sent: 0, First: 1, Last: 2, Outcome: measure.OK}, false},
	} {
		if got := leftOver([]measure.Record{c.record}, end); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestPatience: a server without counters is waited for as long as what it did not answer, given up
// or not, takes at the pace that it had while anything came; if it never answered, for no longer
// than a silence.
func TestPatience(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name           string
		done           int
		last, streamed time.Duration
		left           map[measure.Outcome]int
		want           time.Duration
	}{
		{"slow to the end", 100, 30 * s, 0, map[measure.Outcome]int{measure.InFlight: 300, measure.Timeout: 300}, 40*s + 180*s},
		{"silent since long", 100, 10 * s, 0, map[measure.Outcome]int{measure.InFlight: 100}, 40*s + 10*s - 20*s},
		{"amid long answers", 100, 10 * s, 30 * s, map[measure.Outcome]int{measure.InFlight: 100}, 40*s + 30*s},
		{"silent from the start", 0, 0, 0, map[measure.Outcome]int{measure.InFlight: 100}, 10 * s},
	} {
		w := &watchdog{silence: 40 * s, seen: arrivals{last: c.streamed}}
		o := measure.Observation{End: 30 * s, Records: []measure.Record{{Outcome: measure.InFlight, Sent: measure.Never}}}
		for range c.done {
			o.Records = append(o.Records, measure.Record{Outcome: measure.OK, Last: c.last})
		}
		for outcome, n := range c.left {
			for range n {
				o.Records = append(o.Records, measure.Record{Outcome: outcome, First: measure.Never, Last: measure.Never})
			}
		}
		if got := w.patience(&o); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

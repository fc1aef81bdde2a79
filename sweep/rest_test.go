package sweep

import (
	"testing"
	"time"

	"planner/sweep/measure"
)

// TestLeftOver: requests that had just been sent when a trial ended are no work that a server has left.
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

// TestDrain: at the pace of the trial, what was in flight at its end takes as much longer as there is more of it.
func TestDrain(t *testing.T) {
	t.Parallel()
	o := measure.Observation{End: 30 * time.Second}
	for i := range 700 {
		r := measure.Record{Sent: time.Duration(i), Outcome: measure.InFlight}
		if i < 99 {
			r.Outcome = measure.OK
		}
		o.Records = append(o.Records, r)
	}
	o.Records = append(o.Records, measure.Record{Sent: measure.Never, Outcome: measure.InFlight})
	if got := drain(&o).Round(time.Second); got != 180*time.Second {
		t.Errorf("%v, want 601 requests at 10 in 3 s", got)
	}
}

// TestPatience: a server without counters from which nothing came any more long before the end of a trial is not
// waited for at the pace that it had before, and no longer than for a silence in all.
func TestPatience(t *testing.T) {
	t.Parallel()
	w := &watchdog{silence: 40 * time.Second, moved: 10 * time.Second}
	o := measure.Observation{End: 30 * time.Second}
	for range 100 {
		o.Records = append(o.Records, measure.Record{Outcome: measure.InFlight})
	}
	if got := w.patience(&o, false); got != 20*time.Second {
		t.Errorf("silent: %v", got)
	}
	if got := w.patience(&o, true); got < 3000*time.Second {
		t.Errorf("slow: %v", got)
	}
}

package sweep

import (
	"math"
	"testing"
	"time"

	"planner/sweep/measure"
)

// TestTimelineCounts: one request a second of 2.5 s each, over 120 s of load.
func TestTimelineCounts(t *testing.T) {
	var records []measure.Record
	for i := range 120 {
		due := time.Duration(i) * time.Second
		records = append(records, measure.Record{ID: i, Due: due, Sent: due, First: due + 300*time.Millisecond, Last: due + 2500*time.Millisecond, Outcome: measure.OK})
	}
	line := timelineOf(measure.Trial{Rate: 1, Window: 2 * time.Minute}, records, map[time.Duration]float64{30500 * time.Millisecond: 0.25, 30700 * time.Millisecond: 0.75, 30900 * time.Millisecond: 0.5})
	if line.Step != time.Second || len(line.Moments) < 120 {
		t.Fatalf("%d steps of %v", len(line.Moments), line.Step)
	}
	for _, i := range []int{5, 30, 110} {
		m := line.Moments[i]
		if m.Arrived != 1 || m.Ended != 1 || m.InFlight != 2 || math.Abs(m.TTFT-0.3) > 1e-9 {
			t.Errorf("step %d: %+v", i, m)
		}
	}
	if kv := line.Moments[30].KV; kv != 0.75 || !math.IsNaN(line.Moments[31].KV) {
		t.Errorf("KV usage of %v", kv)
	}
}

package workload

import (
	"testing"
	"time"
)

// Copies of a row are spread, those of the first and the last row over half of the interval: in a
// trace that is multiplied by 400 no two arrive at once, and none arrives outside of it.
func TestScaleSpreadsCopies(t *testing.T) {
	var rows []TraceRow
	for i := range 21 {
		rows = append(rows, TraceRow{Arrival: time.Hour + time.Duration(i)*30*time.Second, Prompt: 10, Output: 5})
	}
	out := Scale(rows, func(time.Duration) float64 { return 400 }, 1)
	if len(out) != 400*len(rows) {
		t.Fatalf("%d rows of %d", len(out), len(rows))
	}
	first, last, equal := rows[0].Arrival, rows[len(rows)-1].Arrival, 0
	for i, r := range out {
		if r.Arrival < first || r.Arrival > last {
			t.Errorf("row %d arrives at %v", i, r.Arrival)
		}
		if i > 0 && r.Arrival == out[i-1].Arrival {
			equal++
		}
	}
	if equal > 0 {
		t.Errorf("%d rows arrive with another", equal)
	}
}

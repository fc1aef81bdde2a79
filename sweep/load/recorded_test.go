package load

import (
	"bytes"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/sweep/measure"
)

// What records tell is logged in the second in which each request ended, and
// failures not at all.
func TestIntervalsOfRecords(t *testing.T) {
	ms := time.Millisecond
	records := []measure.Record{
		{Due: 0, Sent: 0, First: 2100 * ms, Last: 2600 * ms, Output: 11, Outcome: measure.OK},
		{Due: 0, Sent: 0, First: 100 * ms, Last: 600 * ms, Output: 11, Outcome: measure.OK},
		{Due: 100 * ms, Sent: 100 * ms, First: 200 * ms, Last: 900 * ms, Output: 8, Outcome: measure.OK},
		{Due: 0, Sent: 0, First: -1, Last: 500 * ms, Outcome: measure.Timeout},
	}
	var b bytes.Buffer
	if err := WriteHistogramLog(&b, time.Unix(0, 0), Intervals(records)); err != nil {
		t.Fatal(err)
	}
	counts := map[int64]int64{}
	log := hdrhistogram.NewHistogramLogReader(&b)
	for {
		h, err := log.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		counts[h.StartTimeMs()] += h.TotalCount()
		if h.Tag() == "ttft" && h.StartTimeMs() == 0 && (h.TotalCount() != 2 || h.Max() < 99_000 || h.Max() > 101_000) {
			t.Errorf("TTFT of the first second: %d values up to %d us", h.TotalCount(), h.Max())
		}
	}
	// TTFT, TPOT and E2E of each request.
	if len(counts) != 2 || counts[0] != 6 || counts[2000] != 3 {
		t.Errorf("values by second: %v", counts)
	}
}

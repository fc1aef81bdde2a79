package load

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// MergeHistogramLogs merges the logs of several generators, which ran at the
// same time by their clocks, into one: histograms of one latency that begin in
// the same second are added. Nothing is lost by it.
func MergeHistogramLogs(w io.Writer, logs ...io.Reader) error {
	type key struct {
		second int64
		tag    string
	}
	merged := map[key]*hdrhistogram.Histogram{}
	var keys []key
	for i, log := range logs {
		r := hdrhistogram.NewHistogramLogReader(log)
		for {
			h, err := r.NextIntervalHistogram()
			if err != nil {
				return fmt.Errorf("read histogram log %d: %w", i+1, err)
			}
			if h == nil {
				break
			}
			k := key{h.StartTimeMs() / 1000, h.Tag()}
			into := merged[k]
			if into == nil {
				merged[k] = h
				keys = append(keys, k)
				continue
			}
			if n := into.Merge(h); n > 0 {
				return fmt.Errorf("merge histogram logs: %d values of %s beyond the range", n, k.tag)
			}
			into.SetStartTimeMs(min(into.StartTimeMs(), h.StartTimeMs()))
			into.SetEndTimeMs(max(into.EndTimeMs(), h.EndTimeMs()))
		}
	}
	slices.SortStableFunc(keys, func(a, b key) int { return int(a.second - b.second) })
	all := make([]*hdrhistogram.Histogram, len(keys))
	for i, k := range keys {
		all[i] = merged[k]
	}
	if len(all) == 0 {
		return errors.New("merge histogram logs: no histogram in any of them")
	}
	return writeLog(w, all[0].StartTimeMs(), all)
}

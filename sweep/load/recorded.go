package load

import (
	"cmp"
	"slices"
	"time"

	"planner/sweep/measure"
)

// Intervals makes of records what a load generator logs while it runs: the
// latencies of the requests that ended well, second by second, each in the second
// in which it ended. Records hold no gaps between tokens, so those are not in it.
func Intervals(records []measure.Record) []Interval {
	ended := make([]*measure.Record, 0, len(records))
	for i := range records {
		if _, ok := records[i].E2E(); ok {
			ended = append(ended, &records[i])
		}
	}
	slices.SortStableFunc(ended, func(a, b *measure.Record) int { return cmp.Compare(a.Last, b.Last) })
	var all []Interval
	log := latencyLog{now: newSecond()}
	for _, r := range ended {
		if from := r.Last.Truncate(time.Second); from > log.from {
			all = append(all, log.now.encode(log.from, log.from+time.Second)...)
			log.from = from
		}
		log.add(r, nil)
	}
	return append(all, log.now.encode(log.from, log.from+time.Second)...)
}

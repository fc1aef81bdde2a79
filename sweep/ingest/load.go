package ingest

import (
	"time"

	"planner/sweep/measure"
)

// window sets the time that was measured, unless it is not known.
func (p *pointReader) window(d time.Duration) {
	if d > 0 {
		p.m.Duration, p.m.Trial.Window = d, d
	}
}

// closed sets a closed loop of so many requests in flight.
func (p *pointReader) closed(concurrency int) {
	p.m.Trial.Concurrency, p.m.Trial.Requests = concurrency, p.m.Requests
}

// lasted measures over how long so many requests took at a rate under a key.
func (p *pointReader) lasted(requests int, rate float64, path string) {
	d, ok := duration(float64(requests)/rate, time.Second)
	if !ok || d == 0 {
		p.fail(path, "%d requests at %g/s: no run is so long", requests, rate)
	}
	p.window(d)
}

// keptUp clears the completed rate of an open loop of the drain.
func (p *pointReader) keptUp(completed int) {
	if m := &p.m; m.Achieved > 0 && m.Trial.Rate > 0 && m.Duration > 0 {
		m.Achieved = p.drained(completed, m.Duration, p.arrivals())
	}
}

// drained is a completed rate without the drain: a run lasts until its last request ends,
// which is one request behind the last arrival if the server kept up.
func (p *pointReader) drained(completed int, run, arrivals time.Duration) float64 {
	last := max(p.m.E2E.Mean, p.m.TTFT.Mean, 0)
	took := max(arrivals, run-last).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(completed) / took
}

// arrivals is how long the requests of an open loop take to arrive.
func (p *pointReader) arrivals() time.Duration {
	d, _ := duration(float64(p.m.Requests)/p.m.Trial.Rate, time.Second)
	return d
}

// latenciesIn are the keys of the latencies that a tool measures, empty for one that it does not.
func latenciesIn(unit time.Duration, ttft, tpot, itl, e2e string) (all []latencyKeys) {
	for i, path := range []string{ttft, tpot, itl, e2e} {
		if path != "" {
			all = append(all, latencyKeys{measure.TTFT + measure.Metric(i), path, unit})
		}
	}
	return all
}

package ingest

import (
	"time"

	"planner/internal/note"
)

func k6Format() ResultFormat {
	return ResultFormat{
		Name: "k6", Reads: "--summary-export FILE",
		Notes: []string{
			"only whole requests are timed: the first byte is no first token, and is left out",
			"a constant number of virtual users, all of them busy, is a closed loop; what rate a run aimed at is not in the file",
		},
		layouts: []layout{{
			marks:     []string{`"metrics"`, `"http_req_duration"`, `"http_reqs"`},
			latencies: latenciesIn(time.Millisecond, "", "", "", "metrics.http_req_duration{expected_response:true}.*"),
			stats:     []string{"avg", "med", "p(90)", "p(95)", "p(99)", "p(99.9)"},
			completed: "metrics.http_req_failed.fails", failed: "metrics.http_req_failed.passes",
			rest: (*pointReader).k6,
		}},
	}
}

func (p *pointReader) k6(completed int) {
	m := &p.m
	if all := p.rate("metrics.http_reqs.rate"); all > 0 && m.Requests > 0 {
		p.window(p.lasted(m.Requests, all, "metrics.http_reqs.rate"))
		m.Achieved = float64(completed) / float64(m.Requests) * all
	}
	// A run that failed nothing leaves out the part that is of the expected responses.
	if p.m.E2E.Mean < 0 && m.Failed == 0 {
		p.latency(&m.E2E, "metrics.http_req_duration.*", time.Millisecond)
	}
	// At a rate of arrivals more users are at hand than are busy.
	least, most, ready := p.count("metrics.vus.min"), p.count("metrics.vus.max"), p.count("metrics.vus_max.max")
	switch {
	case p.number("metrics.dropped_iterations.count") > 0:
		p.warn(note.LoopClosedBySlots)
	case least == most && most == ready:
		p.closed(most)
	}
}

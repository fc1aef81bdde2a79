package ingest

import (
	"strings"
	"time"

	"planner/internal/note"
)

var k6Format = ResultFormat{
	Name: "k6", Reads: "--summary-export FILE, or the data of handleSummary",
	Notes: []string{
		"only whole requests are timed: the first byte is no first token, and is left out",
		"a constant number of virtual users, all of them busy, is a closed loop; what rate a run aimed at is not in the file",
	},
	layouts: []layout{{
		marks:     []string{`"metrics"`, `"http_req_duration"`, `"http_reqs"`},
		latencies: latenciesIn(time.Millisecond, "", "", "", k6Keys("http_req_duration{expected_response:true}.*")),
		stats:     []string{"avg", "med", "p(90)", "p(95)", "p(99)", "p(99.9)"},
		completed: k6Keys("http_req_failed.fails"), failed: k6Keys("http_req_failed.passes"),
		rest: (*pointReader).k6,
	}},
}

// k6Keys returns the keys of a metric's figure, which handleSummary puts into an object of its own.
func k6Keys(path string) string {
	metric, figure, _ := strings.Cut(path, ".")
	return "metrics." + path + "|metrics." + metric + ".values." + figure
}

func (p *pointReader) k6(completed int) {
	m := &p.m
	if all := p.rate(k6Keys("http_reqs.rate")); all > 0 && m.Requests > 0 {
		p.lasted(m.Requests, all, k6Keys("http_reqs.rate"))
		m.Achieved = float64(completed) / float64(m.Requests) * all
	}
	// A run without failures leaves out the submetric of expected responses.
	if p.m.E2E.Mean < 0 && m.Failed == 0 {
		p.latency(&m.E2E, k6Keys("http_req_duration.*"), time.Millisecond)
	}
	// With an arrival rate, more users are allocated than are busy.
	least, most, ready := p.count(k6Keys("vus.min")), p.count(k6Keys("vus.max")), p.count(k6Keys("vus_max.max"))
	switch {
	case p.number(k6Keys("dropped_iterations.count")) > 0:
		p.warn(note.LoopClosedBySlots)
	case least == most && most == ready:
		p.closed(most)
	}
}

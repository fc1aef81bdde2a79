package ingest

import (
	"time"

	"github.com/valyala/fastjson"
)

var locustFormat = ResultFormat{
	Name: "locust", Reads: "--csv: NAME_stats_history.csv, and NAME_stats.csv, which does not tell the users",
	Notes: []string{
		"only whole requests are timed, failed ones too, in the mean and the quantiles",
		"a closed loop of users, whose pauses are not known here",
	},
	layouts: []layout{
		{
			marks: []string{"Timestamp,User Count,Type,Name", "Total Average Response Time"}, parse: parseLocust, text: true,
			latencies: latenciesIn(time.Millisecond, "", "", "", "Total * Response Time"), stats: []string{"Average", "Median"},
			completed: "Total Request Count", failed: "Total Failure Count", withFailed: true, limit: "User Count", rest: (*pointReader).locust,
		},
		{
			marks: []string{"Type,Name,Request Count,Failure Count", "Average Response Time"}, parse: parseLocust, text: true,
			latencies: latenciesIn(time.Millisecond, "", "", "", "*"),
			stats:     []string{"Average Response Time", "50%", "90%", "95%", "99%", "99.9%"},
			completed: "Request Count", failed: "Failure Count", withFailed: true, limit: "User Count", rest: (*pointReader).locust,
		},
	},
}

// parseLocust keeps the row of all requests; in a history, the last one with users.
func parseLocust(p *pointReader, data []byte) {
	at, kept := 0, (*fastjson.Value)(nil)
	for v := range p.keyed(data) {
		users := v.Get("User Count")
		if string(v.GetStringBytes("Name")) == "Aggregated" && (users == nil || string(users.GetStringBytes()) != "0") {
			at, kept = p.line, v
		}
	}
	if kept != nil {
		p.line = at
		p.document(kept)
	}
}

// locust reads a closed loop whose times include those of failed requests.
func (p *pointReader) locust(completed int) {
	m := &p.m
	m.E2E.N = m.Requests
	if rate := p.rate("Requests/s"); rate > 0 {
		p.lasted(m.Requests, rate, "Requests/s")
		m.Achieved = float64(completed) / m.Duration.Seconds()
	}
}

package ingest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// guidellmReport is the layout of the report in JSON and YAML.
var guidellmReport = layout{
	points: "benchmarks",
	latencies: []latencyKeys{
		{measure.TTFT, "metrics.time_to_first_token_ms.successful.*", time.Millisecond},
		{measure.E2E, "metrics.request_latency.successful.*", time.Second},
	},
	stats:     []string{"mean", "percentiles.p50", "percentiles.p90", "percentiles.p95", "percentiles.p99", "percentiles.p999"},
	completed: "metrics.request_totals.successful|request_totals.successful", failed: "metrics.request_totals.errored|request_totals.errored",
	outputTokens: "metrics.output_tokens_per_second.successful.mean", promptTokens: "metrics.prompt_tokens_per_second.successful.mean",
	achieved: "metrics.requests_per_second.successful.mean", run: "duration",
	rest: (*pointReader).guidellm,
}

var guidellmFormat = ResultFormat{
	Name: "guidellm", Reads: "the report in JSON, YAML or CSV, all schema versions",
	Notes: []string{
		serviceTime,
		"time_per_output_token includes TTFT and is left out; TPOT is the per-request inter_token_latency, where the report holds the requests",
		"with several worker processes its Poisson gaps repeat: arrivals are burstier than Poisson",
	},
	layouts: []layout{
		guidellmReport.as(nil, `"benchmarks"`, `"metrics"`),
		guidellmReport.as(parseYAML, "benchmarks:", "request_totals:", "time_to_first_token_ms:"),
		{
			marks: []string{"Run Info,", "Request Counts,", "Request Latency,", "Time to First Token,"},
			parse: parseGuidellmTable, text: true,
			latencies: []latencyKeys{
				{measure.TTFT, "Time to First Token/Successful ms/*", time.Millisecond},
				{measure.E2E, "Request Latency/Successful Sec/*", time.Second},
			},
			stats:     []string{"Mean", "Median", "p90", "p95", "p99"},
			completed: "Request Counts/Successful/", failed: "Request Counts/Errored/",
			outputTokens: "Token Throughput/Successful Output Tokens/Sec/Mean", promptTokens: "Token Throughput/Successful Input Tokens/Sec/Mean",
			achieved: "Server Throughput/Successful Requests/Sec/Mean", run: "Timings/Duration/Sec",
			rest: (*pointReader).guidellmRow,
		},
	},
}

func (p *pointReader) guidellm(completed int) {
	m := &p.m
	p.warnIf(p.count("metrics.request_totals.incomplete|request_totals.incomplete") > 0, note.OpenLeftOut)
	// The quantiles of the report's own summary are over tokens, not requests.
	summarize(&m.TPOT, list.FilterMap(p.doc.GetArray("requests", "successful"), func(r *fastjson.Value) (time.Duration, bool) {
		d, ok := duration(r.GetFloat64("inter_token_latency_ms"), time.Millisecond)
		return d, ok && d > 0
	}))
	if !p.has("duration") {
		// Up to version 0.3, times are here, and the strategy under args.
		run, _ := duration(p.number("run_stats.end_time")-p.number("run_stats.start_time"), time.Second)
		p.window(run)
	}
	strategy := func(key string) string { return "config.strategy." + key + "|args.strategy." + key }
	kind, streams := p.text(strategy("type_")), "streams"
	if kind == "throughput" {
		streams = "max_concurrency"
	}
	p.guidellmLoad(kind, p.number(strategy("rate")), p.count(strategy(streams)))
	p.keptUp(completed)
}

func (p *pointReader) guidellmLoad(kind string, rate float64, streams int) {
	switch kind {
	case "constant", "poisson", "async":
		p.m.Trial.Rate = rate
		p.warnIf(kind != "poisson", note.EvenArrivals)
	case "synchronous":
		p.closed(1)
	case "concurrent":
		p.closed(streams)
	case "throughput":
		p.closed(streams)
		p.warn(note.Flood)
	}
	p.m.Trial.Requests = p.m.Requests
}

// guidellmRow reads what no key of a row of the table holds.
func (p *pointReader) guidellmRow(completed int) {
	p.warnIf(p.count("Request Counts/Incomplete/") > 0, note.OpenLeftOut)
	kind, number, _ := strings.Cut(p.text("Benchmark/Strategy/"), "@")
	rate, _ := strconv.ParseFloat(number, 64)
	streams := 0
	if kind == "concurrent" {
		streams = p.whole("Benchmark/Strategy/", rate)
	}
	p.guidellmLoad(kind, rate, streams)
	p.keptUp(completed)
}

// guidellmQuantiles are those of a list of percentiles in the table; the median is elsewhere.
var guidellmQuantiles = []string{"min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max"}

// parseGuidellmTable reads the table, whose column names take three rows: a row of figures becomes
// an object under these names, joined by slashes.
func parseGuidellmTable(p *pointReader, data []byte) {
	var names []string
	n := 0
	for cells := range p.table(data) {
		switch n++; {
		case n == 1:
			names = cells
		case n <= 3 && len(cells) == len(names):
			for i, name := range cells {
				names[i] += "/" + name
			}
		default:
			row := p.under(names, cells)
			p.spreadPercentiles(row)
			p.document(row)
		}
	}
}

// spreadPercentiles gives each value in a list of percentiles a key of its own.
func (p *pointReader) spreadPercentiles(row *fastjson.Value) {
	var a fastjson.Arena
	lists := map[string]string{}
	row.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		if name, ok := strings.CutSuffix(string(key), "/Percentiles"); ok {
			lists[name] = string(v.GetStringBytes())
		}
	})
	for name, list := range lists {
		var values []json.Number
		if json.Unmarshal([]byte(list), &values) != nil || len(values) != len(guidellmQuantiles) {
			p.damaged(fmt.Errorf("%s/Percentiles: not a list of %d percentiles", name, len(guidellmQuantiles)))
			continue
		}
		for q, x := range values {
			row.Set(name+"/"+guidellmQuantiles[q], a.NewString(x.String()))
		}
	}
}

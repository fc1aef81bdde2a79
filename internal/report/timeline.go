package report

import (
	"fmt"

	"planner/sweep"
	"planner/sweep/measure"
)

// Trial is the report of one trial, with its course over time if available.
func Trial(m measure.Measurement, e Engines) (Document, error) {
	d := measurementDocument(m, e)
	err := addTimeline(&d, &e, &m)
	return d, err
}

// addTimeline draws a trial over time, if any and if that is known: arrivals and completions, requests in
// flight, KV cache usage, and times to first token.
func addTimeline(d *Document, e *Engines, m *measure.Measurement) error {
	if m.Trial.Number == 0 || e.Timeline == nil {
		return nil
	}
	line, err := e.Timeline(m.Trial)
	if err != nil || len(line.Moments) < 3 {
		return err
	}
	t := &line.Trial
	chart := func(name, title, label string, series ...Line) *Chart {
		return &Chart{Title: title, Name: "timeline-" + name, XLabel: "seconds since the start of the trial", YLabel: label, LinearY: true, Low: true, Series: series}
	}
	of := func(name string, value func(*sweep.Moment) float64) Line {
		return course(name, line.Moments, func(m *sweep.Moment) float64 { return m.At.Seconds() }, value)
	}
	charts := []*Chart{
		chart("rate", "Requests that came and that ended", "requests/s",
			of("came", func(m *sweep.Moment) float64 { return m.Arrived }), of("ended", func(m *sweep.Moment) float64 { return m.Ended })),
		chart("in-flight", "Requests in flight", "requests", of("in flight", func(m *sweep.Moment) float64 { return m.InFlight })),
		chart("kv", "KV cache in use", "%", of("KV cache", func(m *sweep.Moment) float64 { return 100 * m.KV })),
		chart("ttft", "Median TTFT of the requests due then", "ms", of("TTFT", func(m *sweep.Moment) float64 { return 1e3 * m.TTFT })),
	}
	blocks := []Element{Paragraph{Text: fmt.Sprintf("Trial %d, %s, in steps of %s; what is measured lies between the marks.", t.Number, load(t), latency(line.Step)), Tone: Quiet}}
	for _, c := range charts {
		if c.Empty() {
			continue
		}
		if t.Warmup > 0 {
			c.Rates = append(c.Rates, Reference{t.Warmup.Seconds(), "window"})
		}
		if t.Cooldown > 0 {
			c.Rates = append(c.Rates, Reference{(t.Warmup + t.Window).Seconds(), "its end"})
		}
		blocks = append(blocks, c)
	}
	d.section("A trial in time", blocks...)
	return nil
}

package ingest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/note"
	"planner/sweep/measure"
)

// pointReader gathers the load points of a file.
type pointReader struct {
	name   string
	layout *layout
	line   int
	// doc holds the load point that is being read into m, or one of its requests.
	doc    *fastjson.Value
	m      measure.Measurement
	points []measure.Measurement
	// models are the names of the models that served the load points.
	models []string
	// counted says that the number of failed requests of the point is known.
	counted bool
	// void names the figures without a value of the point being read, doubts reports those of the
	// points before it.
	void     []string
	doubts   note.Notes
	problems []error
	// all sums up the requests of a file that holds requests, rows are their hashes, and twice
	// counts those that are repeated.
	all   requests
	rows  map[uint64]bool
	twice int
}

// Limits on what is read of a file: load points, and values of one document, for each of which the
// parser takes half a kilobyte.
const (
	mostPoints = 20_000
	mostValues = 700_000
)

// mostProblems is how many problems of one file are reported.
const mostProblems = 20

func (p *pointReader) fail(field, format string, a ...any) {
	field, _, _ = strings.Cut(field, "|")
	if len(p.problems) < mostProblems {
		p.problems = append(p.problems, &fileError{p.name, p.line, field, fmt.Sprintf(format, a...)})
	}
}

func (p *pointReader) failIf(wrong bool, field, format string, a ...any) {
	if wrong {
		p.fail(field, format, a...)
	}
}

// documents reads the load points of a file.
func (p *pointReader) documents(data []byte) error {
	parse := p.layout.parse
	if parse == nil {
		parse = parseJSON
	}
	parse(p, data)
	if p.line = 1; p.layout.request != nil && p.first() == nil {
		p.requests()
	}
	if p.layout.marks == nil {
		return errors.Join(p.problems...)
	}
	return p.first()
}

// done reports whether the reading is over: at the first problem, or the last that is reported of a
// plain CSV.
func (p *pointReader) done() bool {
	return p.first() != nil && (p.layout.marks != nil || len(p.problems) == mostProblems)
}

// first returns the first problem, nil if there is none.
func (p *pointReader) first() error {
	if len(p.problems) == 0 {
		return nil
	}
	return p.problems[0]
}

// document reads the load points of a part of a file, or a request, unless there was a problem.
func (p *pointReader) document(v *fastjson.Value) {
	if p.first() != nil {
		return
	}
	all := []*fastjson.Value{v}
	if p.layout.points != "" {
		all = v.GetArray(p.layout.points)
	}
	for _, p.doc = range all {
		switch {
		case p.doc.Type() != fastjson.TypeObject:
			p.fail("", "a %s, not an object", p.doc.Type())
		case p.layout.request != nil:
			if r := p.layout.request(p); math.IsNaN(r.begin) || !p.again() {
				p.take(r)
			}
		default:
			p.point()
		}
	}
}

// again reports whether an identical request, with a time, came before in the file: a file that was
// appended to itself has each of them twice.
func (p *pointReader) again() bool {
	h := fnv.New64a()
	h.Write(p.doc.MarshalTo(nil))
	row := h.Sum64()
	if p.rows == nil {
		p.rows = map[uint64]bool{}
	}
	before := p.rows[row]
	if p.rows[row] = true; before {
		p.twice++
	}
	return before
}

func (p *pointReader) point() {
	l := p.layout
	p.begin()
	if name := p.text("model_id|model|input_config.endpoint.model_names.0|input_config.model_names.0"); name != "" {
		p.models = append(p.models, name)
	}
	completed := 0
	if l.completed != "" {
		if _, known, _ := p.figure(l.completed); !known {
			p.fail(l.completed, "is missing: without the number of completed requests this is no result of a run")
			return
		}
		if completed = p.count(l.completed); completed == 0 {
			p.fail(l.completed, "no request was completed: nothing was measured, leave it out")
			return
		}
	}
	p.m.Requests = completed
	if _, known, _ := p.figure(l.failed); known {
		p.failed(p.count(l.failed))
	}
	if l.withFailed {
		if completed -= p.m.Failed; completed <= 0 {
			p.fail(l.failed, "%d of %d requests failed: nothing was measured, leave it out", p.m.Failed, p.m.Requests-p.m.Failed)
			return
		}
		p.m.Requests -= p.m.Failed
	}
	for _, k := range l.latencies {
		s := p.m.Latency(k.metric)
		p.latency(s, k.path, k.unit)
		if known := slices.ContainsFunc(measure.Statistics, func(q float64) bool { return s.Stat(q) >= 0 }); known && k.metric != measure.ITL {
			s.N = completed
		}
	}
	p.m.OutputTokens, p.m.PromptTokens, p.m.Achieved = p.rate(l.outputTokens), p.rate(l.promptTokens), p.rate(l.achieved)
	p.m.MeanPrompt, p.m.MeanOutput = p.perRequest(l.prompt, p.m.PromptTokens), p.perRequest(l.output, p.m.OutputTokens)
	p.window(p.span(l.run, time.Second))
	if limit := p.count(l.limit); limit > 0 || l.limit != "" && l.rate == "" {
		p.closed(limit)
	} else {
		p.m.Trial.Rate = p.number(l.rate)
	}
	l.rest(p, completed)
	p.warnIf(!p.counted, note.FailuresUnknown)
	p.add()
}

func (p *pointReader) begin() { p.m, p.counted, p.all = newMeasurement(), false, requests{} }

// failed sets how many requests failed, in addition to those that were completed.
func (p *pointReader) failed(n int) {
	p.m.Requests += n - p.m.Failed
	p.m.Failed, p.counted = n, true
}

// add checks the load point and keeps it. A point with neither a known rate nor a known concurrency
// is kept as invalid.
func (p *pointReader) add() {
	m := &p.m
	for metric := measure.TTFT; metric <= measure.E2E; metric++ {
		err := ordered(m.Latency(metric))
		p.failIf(err != nil, metric.String(), "%v", err)
	}
	p.failIf(m.Failed < 0 || m.Failed > m.Requests && m.Requests > 0, "failed", "%d of %d requests", m.Failed, m.Requests)
	if rate := m.Trial.Rate; rate > 0 && (m.Achieved/rate-1)*math.Sqrt(float64(m.Requests)) > offSigmas {
		m.Valid = false
		p.warn(note.ArrivalsOff, m.Requests, rate*m.Duration.Seconds())
	}
	if m.TTFT.Mean > 0 && m.E2E.Mean > 0 && float64(m.TTFT.Mean) > aboveE2E*float64(m.E2E.Mean) {
		m.Valid = false
		p.warn(note.TTFTAboveE2E, m.TTFT.Mean, m.E2E.Mean)
	}
	switch {
	case m.Trial.Rate < 0 || m.Trial.Rate > mostPerSecond:
		p.fail("", "a rate of %g", m.Trial.Rate)
	case m.Trial.Rate == 0 && m.Trial.Concurrency <= 0:
		m.Valid = false
		p.warn(note.NoLoad)
	}
	m.Trial.Number = len(p.points) + 1
	if len(p.void) > 0 {
		figures := strings.Join(p.void, ", ")
		p.warn(note.WithoutValue, figures)
		p.doubts = append(p.doubts, note.New(note.WithoutValueAt, m.Trial.Number, p.line, figures))
		p.void = nil
	}
	if len(p.points) == mostPoints {
		p.fail("", "more than %d load points, which is the most that is read of a file", mostPoints)
		return
	}
	p.points = append(p.points, *m)
}

// aboveE2E is the ratio up to which the mean TTFT may exceed the mean time of the whole request:
// tools round. mostPerSecond is the highest rate, also of tokens, that is accepted. offSigmas is by
// how many standard deviations of a Poisson count the completed requests may exceed what the rate
// offers.
const (
	offSigmas     = 4
	aboveE2E      = 1.01
	mostPerSecond = 1e9
)

func (p *pointReader) warn(k note.Kind, figures ...any) {
	p.m.Warnings = append(p.m.Warnings, note.New(k, figures...))
}

func (p *pointReader) warnIf(holds bool, k note.Kind, figures ...any) {
	p.m.Warnings = append(p.m.Warnings, note.If(holds, k, figures...)...)
}

// at returns the value under the first key present among several, separated by |; nil if there is
// none.
func (p *pointReader) at(keys string) *fastjson.Value {
	for path := range strings.SplitSeq(keys, "|") {
		if v := find(p.doc, path); v != nil {
			return v
		}
	}
	return nil
}

// has reports whether the load point has a key with a value other than null.
func (p *pointReader) has(path string) bool {
	v := p.at(path)
	return v != nil && v.Type() != fastjson.TypeNull
}

func (p *pointReader) text(path string) string { return string(p.at(path).GetStringBytes()) }

// figure returns the number under a key. void says that the key is there without a value: tools
// write null or NaN if they could not compute a figure, which differs from a figure they do not
// have.
func (p *pointReader) figure(path string) (x float64, known, void bool) {
	v := p.at(path)
	switch {
	case path == "" || v == nil:
		return 0, false, false
	case v.Type() == fastjson.TypeNull:
		return 0, false, true
	case v.Type() == fastjson.TypeNumber:
		x = v.GetFloat64()
	case !p.layout.text || v.Type() != fastjson.TypeString:
		p.fail(path, "a %s, not a number", v.Type())
		return 0, false, false
	default:
		var err error
		text := strings.ReplaceAll(string(v.GetStringBytes()), ",", "")
		if x, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, false, true
		}
	}
	if math.IsInf(x, 0) {
		p.fail(path, "a number out of range")
		return 0, false, false
	}
	return x, true, false
}

func (p *pointReader) number(path string) float64 {
	x, _, _ := p.figure(path)
	return x
}

func (p *pointReader) count(path string) int { return p.whole(path, p.number(path)) }

func (p *pointReader) whole(path string, x float64) int {
	if x < 0 || x > 1e12 || x != math.Trunc(x) {
		p.fail(path, "%g is no count", x)
		return 0
	}
	return int(x)
}

// lacks records a figure that is there without a value.
func (p *pointReader) lacks(keys string) {
	path, _, _ := strings.Cut(keys, "|")
	p.void = append(p.void, path)
}

// rate returns a rate per second, NaN if the file does not have it: a run that completed requests
// has no rate of 0.
func (p *pointReader) rate(path string) float64 {
	x, known, void := p.figure(path)
	if void || known && x == 0 {
		p.lacks(path)
	}
	if !known || x == 0 {
		return math.NaN()
	}
	p.failIf(x < 0 || x > mostPerSecond, path, "%g is no rate", x)
	return x
}

// perRequest returns the mean tokens per request under a key, or else from their rate per second; 0
// if the file has neither.
func (p *pointReader) perRequest(path string, tokens float64) float64 {
	if x := p.number(path); x > 0 {
		return x
	}
	return max(orZero(tokens/p.m.Achieved), 0)
}

func (p *pointReader) span(path string, unit time.Duration) time.Duration {
	x := p.number(path)
	d, ok := duration(x, unit)
	p.failIf(!ok, path, "%g is no duration", x)
	return d
}

// units maps the unit names that files have beside figures to durations.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "sec": time.Second, "seconds": time.Second,
	"ms/token": time.Millisecond, "s/token": time.Second,
}

func (p *pointReader) unitBeside(block string) time.Duration {
	name := p.text(block + ".unit|" + block + ".units")
	p.failIf(units[name] == 0, block, "unit %q is unknown", name)
	return units[name]
}

func (p *pointReader) latency(s *measure.Summary, path string, unit time.Duration) {
	if block, _, _ := strings.Cut(path, ".*"); unit == 0 {
		if !p.has(block) {
			return
		}
		unit = p.unitBeside(block)
	}
	if !strings.Contains(path, "*") {
		p.statistic(s, 0, path, unit)
		return
	}
	for i, names := range p.layout.stats {
		for name := range strings.SplitSeq(names, "|") {
			p.statistic(s, measure.Statistics[i], strings.ReplaceAll(path, "*", name), unit)
		}
	}
}

// statistic reads one statistic of a latency, by its quantile, 0 for the mean.
func (p *pointReader) statistic(s *measure.Summary, quantile float64, path string, unit time.Duration) {
	x, known, void := p.figure(path)
	// The delay of a request that left early is negative, which is no lag.
	lag := s == &p.m.SendLag
	// Tools write 0 for latencies that they do not have; gaps between chunks may be 0.
	if void || known && x == 0 && !lag && s != &p.m.ITL {
		p.lacks(path)
	}
	if !known || x < 0 && lag {
		return
	}
	d, ok := duration(x, unit)
	p.failIf(!ok, path, "%g is no latency", x)
	if d > 0 {
		s.Set(quantile, d)
	}
}

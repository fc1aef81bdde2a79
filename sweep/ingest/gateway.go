package ingest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"planner/sweep/workload"
)

// gatewayFormat is the format of request logs that no trace defines.
const gatewayFormat = "gateway"

// gatewayLog gathers the requests of a log until all of them are known: only
// then the unit of bare numbers can be told.
type gatewayLog struct {
	o       TraceOptions
	parser  fastjson.Parser
	entries []gatewayRequest
	// others are lines that are no requests.
	others, failed, estimated, ends int
	// ambiguous says that a time may be the end of a request.
	ambiguous bool
}

// gatewayRequest is a request of a log.
type gatewayRequest struct {
	line int
	// at is the arrival, in units of the log where numeric, else since 1970.
	at      float64
	numeric bool
	unit    time.Duration
	// before is how much earlier than at the request arrived.
	before         time.Duration
	prompt, output int
	session        string
}

// isGateway reports whether a line of JSON is a request of a log rather than a
// row of a known trace.
func isGateway(line string) bool {
	var p fastjson.Parser
	v, err := p.Parse(line)
	if err != nil || v.Type() != fastjson.TypeObject {
		return false
	}
	has := func(key string) bool { return v.Exists(key) }
	if has("input_length") && has("output_length") || has("arrival_s") && has("input_tokens") {
		return false
	}
	var e logEntry
	e.read(v.GetObject(), 0, noRole)
	_, _, _, ok := e.tokens()
	return ok && (e.found[startRole].ok || e.found[endRole].ok)
}

// readGateway reads a log of one JSON object a line.
func (t *Trace) readGateway(l *lines, first string, o TraceOptions) error {
	t.Format = gatewayFormat
	g := &gatewayLog{o: o}
	for line, ok := first, true; ok; line, ok = l.next() {
		if !strings.HasPrefix(line, "{") {
			g.others++
			continue
		}
		v, err := g.parser.Parse(line)
		if err != nil {
			return l.problem("", "%s", shorten(err.Error()))
		}
		var e logEntry
		e.read(v.GetObject(), 0, noRole)
		if field, err := g.add(&e, l.line); err != nil {
			return l.problem(field, "%v", err)
		}
	}
	if err := l.err(); err != nil {
		return err
	}
	return g.settle(t, l.name)
}

// add keeps a request; the error names the field that it is about.
func (g *gatewayLog) add(e *logEntry, line int) (field string, err error) {
	r := gatewayRequest{line: line, session: e.found[sessionRole].text}
	if s := e.found[sessionRole]; s.numeric {
		r.session = fmt.Sprint(s.number)
	}
	at, ended := e.found[startRole], g.o.AtEnd
	if !at.ok {
		at, ended = e.found[endRole], true
	}
	estimated, ok := false, false
	r.prompt, r.output, estimated, ok = e.tokens()
	switch {
	case !at.ok:
		g.others++
		return "", nil
	case e.failed():
		g.failed++
		return "", nil
	case !ok:
		g.others++
		return "", nil
	}
	if estimated {
		g.estimated++
	}
	if r.at, r.numeric, err = instant(at); err != nil {
		return "time", err
	}
	r.unit = at.unit
	duration := e.found[durationRole]
	if ended {
		g.ends++
		if r.before, err = lasted(duration); err != nil {
			return "duration", err
		}
	} else if duration.ok && !e.found[endRole].ok && at.rank >= slices.Index(logKeys[startRole], "timestamp") {
		g.ambiguous = true
	}
	g.entries = append(g.entries, r)
	return "", nil
}

// settle turns the requests into rows.
func (g *gatewayLog) settle(t *Trace, name string) error {
	t.Skipped += g.failed
	t.Estimated = g.estimated
	if len(g.entries) == 0 {
		return nil
	}
	for _, r := range g.entries {
		if r.numeric != g.entries[0].numeric || r.unit != g.entries[0].unit {
			return &FileError{name, r.line, "time", "is written in another way than that of the request in line " + fmt.Sprint(g.entries[0].line)}
		}
	}
	unit := time.Second
	if g.entries[0].numeric {
		var err error
		if unit, err = g.unit(name); err != nil {
			return err
		}
	}
	origin := g.entries[0].at
	arrivals := make([]time.Duration, len(g.entries))
	for i, r := range g.entries {
		d, err := arrival(r.at-origin, unit)
		if err != nil {
			return &FileError{name, r.line, "time", err.Error()}
		}
		arrivals[i] = d - r.before
	}
	g.remark(t)
	g.rows(t, arrivals)
	return nil
}

// rows orders the requests by arrival and tells what sessions share.
func (g *gatewayLog) rows(t *Trace, arrivals []time.Duration) {
	order := make([]int, len(arrivals))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(arrivals[a], arrivals[b]) })
	growing, sessions := g.growing(order)
	for _, i := range order {
		r := g.entries[i]
		row := workload.TraceRow{Arrival: arrivals[i], Prompt: r.prompt, Output: r.output}
		if growing[r.session] && r.prompt > 0 {
			row.Shared = []workload.Segment{{Content: workload.TraceContent(hashName(r.session)), Tokens: r.prompt}}
		}
		t.add(row)
	}
	if len(growing) > 0 {
		t.warn("in %d of %d sessions of several requests each prompt is longer than the prompt and answer before it: it is taken to begin with that prompt",
			len(growing), sessions)
	}
}

// growing finds the sessions of several requests in which each prompt is at
// least as long as the prompt and the answer before it, as in a conversation.
func (g *gatewayLog) growing(order []int) (growing map[string]bool, sessions int) {
	type turns struct {
		n, length int
		grows     bool
	}
	seen := map[string]*turns{}
	for _, i := range order {
		r := g.entries[i]
		if r.session == "" {
			continue
		}
		s := seen[r.session]
		if s == nil {
			s = &turns{grows: true}
			seen[r.session] = s
		}
		s.grows = s.grows && r.prompt >= s.length
		s.n, s.length = s.n+1, r.prompt+r.output
	}
	growing = map[string]bool{}
	for name, s := range seen {
		if s.n > 1 {
			sessions++
			if s.grows {
				growing[name] = true
			}
		}
	}
	return growing, sessions
}

// remark says what a reader should know of the log.
func (g *gatewayLog) remark(t *Trace) {
	if g.others > 0 {
		t.warn("%d lines are no requests (without a time, or with neither token counts nor text) and are left out", g.others)
	}
	if g.estimated > 0 {
		t.warn("the lengths of %d of %d requests are estimated at %.0f characters a token: the log holds their text and no counts",
			g.estimated, len(g.entries), CharsPerToken)
	}
	if g.ends > 0 {
		t.warn("arrivals are the logged ends less the durations")
	}
	if g.ambiguous {
		t.warn("the logged time is taken as that of the arrival; a gateway that writes its line when a request ends needs that to be said")
	}
}

// unit tells the unit of numbers: the key says it, the option does, or the
// numbers are so large that they count from 1970. Otherwise it is asked for.
func (g *gatewayLog) unit(name string) (time.Duration, error) {
	first := g.entries[0]
	switch {
	case g.o.Unit > 0:
		return g.o.Unit, nil
	case first.unit > 0:
		return first.unit, nil
	}
	if u := epochUnit(first.at); u > 0 {
		return u, nil
	}
	low, high := first.at, first.at
	for _, r := range g.entries {
		low, high = min(low, r.at), max(high, r.at)
	}
	say := func(unit time.Duration) string {
		span := time.Duration(min((high-low)*float64(unit), math.MaxInt64/2))
		if span <= 0 {
			return "no time"
		}
		return fmt.Sprintf("%v (%.3g requests/s)", span.Round(time.Millisecond), float64(len(g.entries))/span.Seconds())
	}
	return 0, &FileError{File: name, Field: "time", What: fmt.Sprintf("the unit of %g to %g is not clear: in seconds the %d requests span %s, in milliseconds %s; name the unit, s, ms, us or ns",
		low, high, len(g.entries), say(time.Second), say(time.Millisecond))}
}

// epochUnit is the unit in which a number is a time since 1970 between 2001 and
// 2128; 0 if there is none.
func epochUnit(v float64) time.Duration {
	for _, u := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		if s := v * u.Seconds(); s >= 1e9 && s < 5e9 {
			return u
		}
	}
	return 0
}

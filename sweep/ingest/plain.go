package ingest

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"planner/internal/list"
	"planner/sweep/measure"
)

// latencyColumn matches the names of latencies in a plain CSV, which identify it.
var latencyColumn = regexp.MustCompile(`\b(ttft|tpot|itl|e2e)_(p[0-9.]+|mean)_ms\b`)

// headerOf returns the first line of a text that is neither empty nor a comment, and its number; "" for JSON.
func headerOf(text []byte) (header string, number int) {
	for line := range bytes.Lines(text) {
		number++
		header = strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff"))
		if header != "" && !strings.HasPrefix(header, "#") {
			if strings.ContainsAny(header[:1], "{[") {
				break
			}
			return header, number
		}
	}
	return "", 0
}

// isPlain reports whether a text begins with a header of measured points, complete or not.
func isPlain(head []byte) bool {
	header, _ := headerOf(head)
	header = strings.ToLower(header)
	return strings.Contains(header, "rate_per_s") || latencyColumn.MatchString(header)
}

// plainFigures are the columns of a plain CSV, apart from latencies and knobs.
var plainFigures = []string{
	"rate_per_s", "achieved_per_s", "sent_per_s", "output_tokens_per_s", "prompt_tokens_per_s", "mean_prompt_tokens", "mean_output_tokens", "requests", "failed", "duration_s",
}

var plainFormat = ResultFormat{
	Name: "csv", Reads: "plain CSV of measured points (rate_per_s, ttft_p50_ms, ttft_p99_ms, ...)",
	layouts: []layout{{
		parse: parsePlain, text: true, latencies: latenciesIn(time.Millisecond, "ttft_*_ms", "tpot_*_ms", "itl_*_ms", "e2e_*_ms"),
		stats:        []string{"mean", "p50", "p90", "p95", "p99", "p99.9|p999"},
		outputTokens: "output_tokens_per_s", promptTokens: "prompt_tokens_per_s", achieved: "achieved_per_s", run: "duration_s",
		prompt: "mean_prompt_tokens", output: "mean_output_tokens",
		rate: "rate_per_s", rest: (*pointReader).plain,
	}},
}

// parsePlain reads a table of measured load points: one row per point, a header that names the
// columns, numbers with a decimal point. Lines that begin with # are comments, and an empty cell is
// an unknown figure. Columns are rate_per_s (required), at least one latency such as ttft_p99_ms
// ({ttft, tpot, itl, e2e} x {mean, p50, p90, p95, p99, p99.9}), knobs, and plainFigures. Up to
// mostProblems problems are reported at once, joined, each a *fileError.
func parsePlain(p *pointReader, data []byte) {
	var header []string
	for cells := range p.table(data) {
		if header == nil {
			header = list.Map(cells, func(name string) string { return strings.ToLower(strings.TrimSpace(name)) })
			if p.plainHeader(header); p.first() != nil {
				return
			}
		} else if p.doc = p.under(header, cells); p.doc != nil && p.plainCells() {
			p.point()
		}
	}
	switch {
	case p.first() != nil:
	case header == nil:
		p.fail("", "no header: the first line names the columns, rate_per_s and latencies such as ttft_p99_ms")
	case len(p.points) == 0:
		p.line = 0
		p.fail("", "no rows below the header")
	}
}

func (p *pointReader) plainHeader(names []string) {
	if len(names) == 1 && strings.ContainsAny(names[0], ";\t") {
		p.fail("", "the columns are separated by semicolons or tabs, want commas, and points in the numbers")
		return
	}
	knobs := list.Map(measure.KnobTable, func(k measure.Knob) string { return k.Name })
	latency := false
	for i, n := range names {
		base, isTime := strings.CutSuffix(n, "_ms")
		metric, stat, _ := strings.Cut(base, "_")
		_, errMetric := measure.ParseMetric(metric)
		_, errStat := measure.ParseStat(stat)
		switch others := slices.Concat(plainFigures, knobs); {
		case slices.Contains(names[:i], n):
			p.fail(n, "the column is there twice")
		case isTime && errMetric == nil && errStat == nil:
			latency = true
		case !slices.Contains(others, n):
			p.fail(n, "unknown column; allowed: {ttft,tpot,itl,e2e}_{%s}_ms, %s", strings.Join(measure.Stats(), ","), strings.Join(others, ", "))
		}
	}
	p.failIf(!slices.Contains(names, "rate_per_s"), "rate_per_s", "the column is missing")
	p.failIf(!latency, "", "no column of latencies, such as ttft_p99_ms")
}

func (p *pointReader) plainCells() bool {
	before := len(p.problems)
	p.failIf(!p.has("rate_per_s"), "rate_per_s", "is empty; every row needs a rate")
	p.doc.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		name, cell := string(key), string(v.GetStringBytes())
		x, err := strconv.ParseFloat(cell, 64)
		counts := name == "requests" || name == "failed"
		switch {
		case slices.ContainsFunc(measure.KnobTable, func(k measure.Knob) bool { return k.Name == name }) || name == "failed" && x == 0 && err == nil:
		case err != nil || !(x > 0) || math.IsInf(x, 0):
			p.fail(name, "%q is not a finite number above 0", cell)
		case counts && x != math.Trunc(x):
			p.fail(name, "%q is not a whole number", cell)
		}
	})
	return len(p.problems) == before
}

// plain reads the figures that have one column each, and the knobs.
func (p *pointReader) plain(int) {
	m := &p.m
	m.Sent = p.rate("sent_per_s")
	m.Requests, m.Failed, p.counted = p.count("requests"), p.count("failed"), true
	p.failIf(m.Failed > 0 && m.Requests == 0, "failed", "%d of how many? requests is empty or missing", m.Failed)
	known := false
	for _, metric := range measure.AllLatencies() {
		s := m.Latency(metric)
		s.N = max(m.Requests-m.Failed, 0)
		known = known || slices.ContainsFunc(measure.Statistics, func(q float64) bool { return s.Stat(q) >= 0 })
	}
	p.failIf(!known && len(p.problems) == 0, "", "no latency in this row")
	for _, k := range measure.KnobTable {
		err := setKnob(k, &m.Trial.Knobs, p.text(k.Name))
		p.failIf(err != nil && p.has(k.Name), k.Name, "%v", err)
	}
}

func setKnob(k measure.Knob, to *measure.Knobs, cell string) (err error) {
	var v any = cell
	switch k.Zero.(type) {
	case int:
		if v, err = strconv.Atoi(cell); err != nil || v.(int) < 1 {
			return fmt.Errorf("%q is not a whole number of at least 1", cell)
		}
	case float64:
		if v, err = strconv.ParseFloat(cell, 64); err != nil || !(v.(float64) > 0 && v.(float64) <= 1) {
			return fmt.Errorf("%s is no share in 0..1", cell)
		}
	case bool:
		if v, err = strconv.ParseBool(cell); err != nil {
			return fmt.Errorf("%q is neither true nor false", cell)
		}
	}
	k.Set(to, v)
	return nil
}

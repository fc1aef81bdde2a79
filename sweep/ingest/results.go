package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/sweep/measure"
)

// ResultFormat is a kind of result file.
type ResultFormat struct {
	Name string
	// Reads says which files of the tool are read.
	Reads string
	// Notes say how the tool's figures differ from what is measured here; every
	// file read carries them as warnings.
	Notes  []string
	detect func(head []byte) bool
	// points reads the load points of one JSON document, line is where it begins.
	points func(p *pointReader, document []byte)
}

// serviceTime is true of every tool here: none counts from the intended time.
const serviceTime = "latencies count from the real send: a client that sent late hides its own queue"

// ResultFormats lists the formats of result files that are read, in the order in
// which they are tried.
func ResultFormats() []ResultFormat {
	return []ResultFormat{
		{Name: "csv", Reads: "plain CSV of measured points (rate_per_s, ttft_p50_ms, ttft_p99_ms, ...)", detect: isPlain},
		{Name: "inference-perf", Reads: "stage_N_lifecycle_metrics.json, summary_lifecycle_metrics.json", Notes: []string{
			serviceTime + " (its schedule_delay says how late)",
			"TTFT counts visible text only; arrivals called constant are exponential gaps, rescaled",
			"the inter-token figures hold zeros for tokens of one chunk and are left out",
		}, detect: has(`"load_summary"`), points: (*pointReader).inferencePerf},
		{Name: "guidellm", Reads: "the JSON report, all schema versions", Notes: []string{
			serviceTime,
			"time_per_output_token includes TTFT and is left out; TPOT is the per-request inter_token_latency, where the report holds the requests",
			"with several worker processes its Poisson gaps repeat: arrivals are burstier than Poisson",
		}, detect: hasAll(`"benchmarks"`, `"metrics"`), points: (*pointReader).guidellm},
		{Name: "aiperf", Reads: "profile_export_aiperf.json", Notes: []string{
			serviceTime + "; a schedule that fell behind is moved, not made up for",
			"inter_token_latency is one figure a request, our TPOT; inter_chunk_latency, gaps between chunks, is left out",
		}, detect: hasAll(`"time_to_first_token"`, `"aiperf_version"`), points: (*pointReader).aiperf},
		{Name: "genai-perf", Reads: "profile_export_genai_perf.json", Notes: []string{
			serviceTime,
			"TTFT is that of visible text: too long for models that reason first",
			"request_throughput counts failed and empty requests too and is left out",
		}, detect: hasAll(`"time_to_first_token"`, `"request_throughput"`, `"unit"`), points: (*pointReader).aiperf},
		{Name: "llmperf", Reads: "*_summary.json", Notes: []string{
			serviceTime,
			"a closed loop; its inter-token latency includes TTFT and is left out",
		}, detect: has(`"results_ttft_s_quantiles_p`), points: (*pointReader).llmperf},
		{Name: "sglang", Reads: "bench_serving lines of JSON", Notes: []string{
			serviceTime + ", behind the concurrency limit",
			"TPOT runs to the end of the stream and reads slightly high; ITL is the gap between chunks",
			"sends drift: each gap is slept after the last send",
		}, detect: hasAll(`"request_throughput"`, `_e2e_latency_ms"`), points: (*pointReader).sglang},
		{Name: "vllm", Reads: "vllm bench serve --save-result, also appended, in arrays, or of a sweep", Notes: []string{
			serviceTime + ", behind the concurrency limit",
			"ITL is the gap between chunks; arrivals are rescaled so that the last falls at n/rate",
			"the completed rate is corrected for the drain behind the last arrival",
		}, detect: hasAll(`"request_throughput"`, `"duration"`, `"completed"`), points: (*pointReader).vllm},
	}
}

func has(key string) func([]byte) bool { return hasAll(key) }

func hasAll(keys ...string) func([]byte) bool {
	return func(head []byte) bool {
		for _, k := range keys {
			if !bytes.Contains(head, []byte(k)) {
				return false
			}
		}
		return true
	}
}

func isPlain(head []byte) bool {
	for line := range bytes.Lines(head) {
		text := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff")))
		if text != "" && !strings.HasPrefix(text, "#") {
			return !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") && strings.Contains(text, "rate_per_s")
		}
	}
	return false
}

// detect finds the format of a result file from its beginning: the more of it,
// the surer. The error lists what is read.
func detect(name string, head []byte) (ResultFormat, error) {
	for _, f := range ResultFormats() {
		if f.detect(head) {
			return f, nil
		}
	}
	var known []string
	for _, f := range ResultFormats() {
		known = append(known, fmt.Sprintf("%s (%s)", f.Name, f.Reads))
	}
	return ResultFormat{}, &FileError{File: name, What: "no known results; read are: " + strings.Join(known, "; ")}
}

// Read reads a result file in the format that its content shows.
func Read(name string, data []byte) (*Results, error) {
	f, err := detect(name, data)
	if err != nil {
		return nil, err
	}
	return f.Read(name, data)
}

// Read reads a result file of the format. The first problem ends the reading,
// except in a plain CSV, where all are reported.
func (f ResultFormat) Read(name string, data []byte) (*Results, error) {
	r, err := f.read(name, data)
	if err == nil && tooFast(r.Measurements) {
		r.Warnings = append(r.Warnings, "every time to first token and of a whole request is below 1 ms: are these seconds where milliseconds are expected?")
	}
	return r, err
}

// tooFast reports whether no request of all load points took as long as the
// fastest server does: a millisecond passes on the network alone.
func tooFast(all []measure.Measurement) bool {
	longest := time.Duration(0)
	for i := range all {
		for _, s := range []*measure.Summary{&all[i].TTFT, &all[i].E2E} {
			longest = max(longest, s.Mean, s.P50, s.P90, s.P95, s.P99, s.P999)
		}
	}
	return longest > 0 && longest < time.Millisecond
}

func (f ResultFormat) read(name string, data []byte) (*Results, error) {
	if f.points == nil {
		return PlainCSV(name, data)
	}
	p := &pointReader{name: name}
	if err := p.documents(data, f.points); err != nil {
		return nil, err
	}
	if len(p.points) == 0 {
		return nil, &FileError{File: name, What: "holds no load point of " + f.Name}
	}
	r := &Results{Format: f.Name, Measurements: p.points, Warnings: slices.Concat([]string{}, f.Notes, p.doubts)}
	for i := range r.Measurements {
		r.Measurements[i].Trial.Number = i + 1
	}
	return r, nil
}

// pointReader gathers the load points of a file.
type pointReader struct {
	name   string
	line   int
	points []measure.Measurement
	// void names the figures without a value of the point being read, and doubts
	// say so of the points read before.
	void, doubts []string
	err          error
}

// fail records the first problem.
func (p *pointReader) fail(field, format string, a ...any) {
	if p.err == nil {
		p.err = &FileError{p.name, p.line, field, fmt.Sprintf(format, a...)}
	}
}

// documents calls read for every JSON object of a file that holds one, an array
// of them, or one a line.
func (p *pointReader) documents(data []byte, read func(*pointReader, []byte)) error {
	data = pythonJSON(data)
	d := json.NewDecoder(bytes.NewReader(data))
	for p.err == nil {
		// Lines count from where the last document ended.
		end := int(d.InputOffset())
		rest := data[end:]
		blank := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n\ufeff"))
		p.line = 1 + bytes.Count(data[:end+blank], []byte("\n"))
		if blank == len(rest) {
			return nil
		}
		var document json.RawMessage
		if err := d.Decode(&document); err != nil {
			p.fail("", "%v", err)
			break
		}
		if document[0] != '[' {
			read(p, document)
			continue
		}
		var list []json.RawMessage
		if err := json.Unmarshal(document, &list); err != nil {
			p.fail("", "%v", err)
		}
		for _, item := range list {
			read(p, item)
		}
	}
	return p.err
}

// pythonJSON replaces the tokens Infinity and NaN, which Python writes and JSON
// does not know, by null, and cuts a byte-order mark. Strings stay as they are.
func pythonJSON(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !bytes.Contains(data, []byte("Infinity")) && !bytes.Contains(data, []byte("NaN")) {
		return data
	}
	out := make([]byte, 0, len(data))
	quoted := false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case quoted && c == '\\' && i+1 < len(data):
			out = append(out, c)
			i++
			c = data[i]
		case c == '"':
			quoted = !quoted
		case quoted:
		default:
			if n := nonNumber(data[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func nonNumber(data []byte) int {
	for _, token := range []string{"-Infinity", "Infinity", "NaN"} {
		if bytes.HasPrefix(data, []byte(token)) {
			return len(token)
		}
	}
	return 0
}

// decode reads a document into v and records what is wrong with it.
func (p *pointReader) decode(document []byte, v any) bool {
	if err := json.Unmarshal(document, v); err != nil {
		p.fail(jsonField(err), "%v", jsonCause(err))
		return false
	}
	return true
}

// add checks a load point and keeps it. A point that is neither at a known rate
// nor at a known concurrency is kept as invalid.
func (p *pointReader) add(m measure.Measurement) {
	for metric := measure.TTFT; metric <= measure.E2E; metric++ {
		if err := ordered(m.Latency(metric)); err != nil {
			p.fail(metric.String(), "%v", err)
		}
	}
	if m.Failed < 0 || m.Requests < m.Failed {
		p.fail("", "%d of %d requests failed", m.Failed, m.Requests)
	}
	switch {
	case !(m.Trial.Rate >= 0) || math.IsInf(m.Trial.Rate, 0):
		p.fail("", "a rate of %g", m.Trial.Rate)
	case m.Trial.Rate == 0 && m.Trial.Concurrency <= 0:
		m.Valid = false
		m.Warnings = append(m.Warnings, "neither the offered rate nor the concurrency is known")
	}
	if d := p.doubt(fmt.Sprintf("load point %d, line %d", len(p.points)+1, p.line)); d != "" {
		m.Warnings = append(m.Warnings, d)
	}
	p.points = append(p.points, m)
}

// set sets a statistic, ignoring one that is not there or is no time. One without a
// value is left out, and remembered.
func (p *pointReader) set(s *measure.Summary, field string, quantile float64, v statistic, unit time.Duration) {
	if v.void {
		p.leaveOut(field)
	}
	if v.value == nil {
		return
	}
	d, ok := duration(*v.value, unit)
	if !ok {
		p.fail(field, "%g is no latency", *v.value)
		return
	}
	if d > 0 {
		setStat(s, quantile, d)
	}
}

// whole turns a count of a file into an int.
func (p *pointReader) whole(field string, v *float64) int {
	if v == nil {
		return 0
	}
	if *v < 0 || *v > 1e12 || *v != math.Trunc(*v) {
		p.fail(field, "%g is no count", *v)
		return 0
	}
	return int(*v)
}

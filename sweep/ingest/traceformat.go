package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/sweep/workload"
)

// TraceFormat is a format of request logs.
type TraceFormat struct {
	Name string
	// Reads names the columns or keys, with their units.
	Reads string
	// keys is the mapping, in the notation of parseMapping; json says that the log is lines of
	// JSON, and mark is a further key that such a log has.
	keys string
	json bool
	mark string
	// byName says that the format is read only when it is named.
	byName bool
}

// The keys of our own traces, and of traces with hashed blocks.
const (
	ownKeys    = "arrival=arrival_s:s,prompt=input_tokens,output=output_tokens,prefix=prefix_id,prefix_tokens=prefix_tokens"
	hashedKeys = "prompt=input_length,output=output_length,"
)

// TraceFormats lists the formats of request logs, most specific first.
var TraceFormats = []TraceFormat{
	{Name: "csv", Reads: "CSV: arrival_s,input_tokens,output_tokens[,prefix_id,prefix_tokens]; input_tokens counts the whole prompt", keys: ownKeys},
	{Name: "azure", Reads: "Azure LLM inference traces 2023, 2024 (CSV: TIMESTAMP,ContextTokens,GeneratedTokens; date and time)",
		keys: "arrival=TIMESTAMP,prompt=ContextTokens,output=GeneratedTokens"},
	{Name: "burstgpt", Reads: "BurstGPT (CSV: Timestamp,[Session ID,Elapsed time,]Model,Request tokens,Response tokens,...; seconds)",
		keys: "arrival=Timestamp:s,prompt=Request tokens,output=Response tokens"},
	{Name: "jsonl", Reads: "lines of JSON: arrival_s, input_tokens, output_tokens[, prefix_id, prefix_tokens]", keys: ownKeys, json: true},
	{Name: "qwen", Reads: "Qwen/Bailian (lines of JSON: chat_id, timestamp in seconds, input_length, output_length, hash_ids of 16 tokens)",
		keys: hashedKeys + "arrival=timestamp:s,blocks=hash_ids:16", json: true, mark: "chat_id"},
	{Name: "mooncake", Reads: "Mooncake (lines of JSON: timestamp in milliseconds, input_length, output_length, hash_ids of 512 tokens)",
		keys: hashedKeys + "arrival=timestamp:ms,blocks=hash_ids:512", json: true, mark: "hash_ids"},
	{Name: "guidellm", Reads: "GuideLLM traces (lines of JSON: timestamp in seconds, input_length, output_length); only when named, as Mooncake has the same keys in another unit",
		keys: hashedKeys + "arrival=timestamp:s", json: true, byName: true},
	{Name: "litellm", Reads: "LiteLLM's standard logging payload (lines of JSON: startTime in seconds, prompt_tokens, completion_tokens)",
		keys: "arrival=startTime:s,prompt=prompt_tokens,output=completion_tokens", json: true},
	{Name: "otel", Reads: "spans of OpenTelemetry (lines of JSON: startTimeUnixNano, attributes with gen_ai.usage.input_tokens, gen_ai.usage.output_tokens, error.type)",
		keys: "arrival=startTimeUnixNano:ns,prompt=attributes.gen_ai.usage.input_tokens,output=attributes.gen_ai.usage.output_tokens," +
			"error=attributes.error.type", json: true},
	{Name: "aiperf", Reads: "AIPerf's requests (lines of JSON: metadata.request_start_ns, metrics.input_sequence_length.value, metrics.output_sequence_length.value)",
		keys: "arrival=metadata.request_start_ns:ns,prompt=metrics.input_sequence_length.value,output=metrics.output_sequence_length.value,error=error", json: true},
}

// mapped is the format of a log whose keys the user names.
const mapped = "mapped"

// mapping says which column of CSV, or key of JSON, holds what in a request log.
type mapping map[string]key

// key is where a figure is, and its unit. Several names, whose figures are added, are for counts
// only; keys of nested objects are joined by dots.
type key struct {
	names []string
	unit  string
}

// String joins the names.
func (k key) String() string { return strings.Join(k.names, "+") }

// name returns the first of the names; "" if there is none.
func (k key) name() string {
	if len(k.names) == 0 {
		return ""
	}
	return k.names[0]
}

// mappingNames are the parts of a mapping, each with the units that it may have.
var mappingNames = []struct{ name, units string }{
	{"arrival", "s ms us ns"}, {"end", "s ms us ns"}, {"duration", "s ms us ns"}, {"prompt", "text"}, {"output", "text"},
	{"prefix", ""}, {"prefix_tokens", ""}, {"blocks", ""}, {"error", ""},
}

func (m mapping) needed() []key {
	if m["arrival"].names == nil {
		return []key{m["end"], m["duration"], m["prompt"], m["output"]}
	}
	return []key{m["arrival"], m["prompt"], m["output"]}
}

// parseMapping parses a mapping: "arrival=ts:ms,prompt=usage.prompt_tokens,...". A unit follows a
// colon: for times s, ms, us or ns, unless they are dates; for lengths "text", if they are to be
// estimated from it; for hashed blocks the tokens of each.
func parseMapping(text string) (mapping, error) {
	m := mapping{}
	for part := range strings.SplitSeq(text, ",") {
		name, at, _ := strings.Cut(strings.TrimSpace(part), "=")
		var names []string
		for _, n := range mappingNames {
			if names = append(names, n.name+"=KEY"); n.name == name && at != "" {
				m[name] = parseKey(at, strings.Fields(n.units), name == "blocks")
			}
		}
		if m[name].names == nil {
			return nil, fmt.Errorf("%q in the map is none of %s", part, strings.Join(names, ", "))
		}
	}
	switch {
	case m["prompt"].names == nil || m["output"].names == nil:
		return nil, errors.New("the map needs prompt=KEY and output=KEY")
	case m["arrival"].names == nil && (m["end"].names == nil || m["duration"].names == nil):
		return nil, errors.New("the map needs arrival=KEY, or end=KEY and duration=KEY")
	case m["blocks"].names != nil && m["blocks"].unit == "":
		return nil, errors.New("the map needs the tokens of a block, as in blocks=hash_ids:512")
	}
	return m, nil
}

// parseKey parses a key and any unit, which is a whole number if counts is set.
func parseKey(at string, units []string, counts bool) key {
	unit := ""
	if i := strings.LastIndexByte(at, ':'); i >= 0 {
		n, err := strconv.Atoi(at[i+1:])
		if slices.Contains(units, at[i+1:]) || counts && err == nil && n > 0 {
			at, unit = at[:i], at[i+1:]
		}
	}
	return key{strings.Split(at, "+"), unit}
}

// chooseMapping decides by the first record of a log where it has what: as the user maps it, as the
// named format does, or as the first format whose keys are all there.
func chooseMapping(e *logEntry, o TraceOptions) (format string, m mapping, err error) {
	if o.Map != "" {
		m, err := parseMapping(o.Map)
		return mapped, m, err
	}
	var names []string
	twoUnits := false
	for _, f := range TraceFormats {
		names = append(names, f.Name)
		if o.Format != "" && o.Format != f.Name {
			continue
		}
		m, err := parseMapping(f.keys)
		fits := err == nil && f.json == (e.columns == nil) && e.has(m.needed()...)
		switch {
		case o.Format != "" && e.columns == nil && !f.json:
			return "", nil, fmt.Errorf("lines of JSON are not %s: %s", f.Name, f.Reads)
		case o.Format != "" && e.columns != nil && !fits:
			return "", nil, fmt.Errorf("%s are not those of %s: %s", e.describe(), f.Name, f.Reads)
		case o.Format != "", fits && !f.byName && (f.mark == "" || e.has(key{names: []string{f.mark}})):
			return f.Name, m, err
		}
		twoUnits = twoUnits || fits && f.byName
	}
	switch {
	case o.Format != "":
		return "", nil, fmt.Errorf("unknown trace format %q; allowed: %s", o.Format, strings.Join(names, ", "))
	case len(e.columns) == 1 && strings.ContainsAny(e.columns[0], ";\t"):
		return "", nil, fmt.Errorf("%s are not divided by commas, as they must be", e.describe())
	case twoUnits:
		return "", nil, errors.New("timestamp may be in seconds or in milliseconds and nothing here tells: name the format, guidellm or mooncake (--format, in a configuration workload.trace_format)")
	}
	return "", nil, fmt.Errorf("no known trace has %s; say which of them are what: planner trace FILE --map arrival=KEY:s,prompt=KEY,output=KEY"+
		" (KEY:ms for milliseconds, KEY alone for dates), or name them arrival_s, input_tokens and output_tokens", e.describe())
}

// WriteTraceCSV writes rows in order of arrival as our own CSV, without text:
// arrival_s,input_tokens,output_tokens and, if prompts share beginnings, prefix_id,prefix_tokens. A
// beginning of several parts, as in a trace of hashed blocks, is a list of ids and one of lengths,
// separated by spaces. Ids are numbers in order of appearance: nothing is left of what the log
// called them. Trailing parts that no other request has are left out, since they mean nothing.
func WriteTraceCSV(w io.Writer, rows []workload.TraceRow) error {
	out := bufio.NewWriter(w)
	uses := map[workload.Content]int{}
	for i := range rows {
		for _, s := range rows[i].Shared {
			uses[s.Content]++
		}
	}
	shared := func(r workload.TraceRow) []workload.Segment {
		n := len(r.Shared)
		for n > 0 && uses[r.Shared[n-1].Content] < 2 {
			n--
		}
		return r.Shared[:n]
	}
	prefixes := slices.ContainsFunc(rows, func(r workload.TraceRow) bool { return len(shared(r)) > 0 })
	header := "arrival_s,input_tokens,output_tokens"
	if prefixes {
		header += ",prefix_id,prefix_tokens"
	}
	fmt.Fprintln(out, header)
	numbers := map[workload.Content]int{}
	for _, r := range rows {
		fmt.Fprintf(out, "%s,%d,%d", secondsText(r.Arrival-rows[0].Arrival), r.Prompt, r.Output)
		if prefixes {
			ids, tokens := partsText(shared(r), numbers)
			fmt.Fprintf(out, ",%s,%s", ids, tokens)
		}
		fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

func partsText(parts []workload.Segment, numbers map[workload.Content]int) (ids, tokens string) {
	var id, n []string
	for _, s := range parts {
		number, ok := numbers[s.Content]
		if !ok {
			number = len(numbers) + 1
			numbers[s.Content] = number
		}
		id, n = append(id, strconv.Itoa(number)), append(n, strconv.Itoa(s.Tokens))
	}
	return strings.Join(id, " "), strings.Join(n, " ")
}

// secondsText formats a time in seconds, exact to the nanosecond.
func secondsText(d time.Duration) string {
	s := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

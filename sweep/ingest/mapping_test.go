package ingest

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/workload"
)

// The ways in which gateways log the same two requests: 1,200 prompt and 85
// output tokens, and 1.5 s later 340 and 12; and the map that tells what is what.
var gatewayLogs = map[string]struct{ keys, text string }{
	"flat, RFC 3339": {"arrival=timestamp,prompt=prompt_tokens,output=completion_tokens",
		`{"timestamp":"2026-03-01T12:00:00Z","prompt_tokens":1200,"completion_tokens":85,"status":200,"latency_ms":900}
{"timestamp":"2026-03-01T12:00:01.5Z","prompt_tokens":340,"completion_tokens":12,"status":200,"latency_ms":200}`},
	"nested usage, epoch in s": {"arrival=time:s,prompt=response.usage.prompt_tokens,output=response.usage.completion_tokens",
		`{"time":1772366400.0,"request":{"model":"m","messages":[{"role":"user","content":"secret"}]},"response":{"created":1772366403,"usage":{"prompt_tokens":1200,"completion_tokens":85,"total_tokens":1285}}}
{"time":1772366401.5,"request":{"model":"m"},"response":{"created":1772366409,"usage":{"prompt_tokens":340,"completion_tokens":12}}}`},
	"camel case, epoch in ms, out of order": {"arrival=startTime:ms, prompt=usage.inputTokens, output=usage.outputTokens",
		`{"startTime":1772366401500,"endTime":1772366402000,"usage":{"inputTokens":"340","outputTokens":"12"}}
{"startTime":1772366400000,"endTime":1772366409000,"usage":{"inputTokens":1200,"outputTokens":85}}`},
	"a key with dots": {"arrival=startTimeUnixNano:ns,prompt=attributes.gen_ai.usage.input_tokens,output=attributes.gen_ai.usage.output_tokens", otelText},
	"common log time, ends and durations": {"end=ended_at,duration=took:s,prompt=input_tokens,output=output_tokens",
		`{"ended_at":"01/Mar/2026:12:00:09 +0000","took":9,"input_tokens":1200,"output_tokens":85}
{"ended_at":"01/Mar/2026:12:00:02 +0000","took":0.5,"input_tokens":340,"output_tokens":12}`},
	"durations with their unit": {"end=ended_at,duration=took,prompt=input_tokens,output=output_tokens",
		`{"ended_at":"01/Mar/2026:12:00:09 +0000","took":"9s","input_tokens":1200,"output_tokens":85}
{"ended_at":"01/Mar/2026:12:00:02 +0000","took":"500ms","input_tokens":340,"output_tokens":12}`},
	"Anthropic with a cache": {"arrival=ts,prompt=usage.input_tokens+usage.cache_read_input_tokens+usage.cache_creation_input_tokens,output=usage.output_tokens",
		`{"ts":"2026-03-01 12:00:00","usage":{"input_tokens":200,"cache_read_input_tokens":900,"cache_creation_input_tokens":100,"output_tokens":85}}
{"ts":"2026-03-01 12:00:01,500","usage":{"input_tokens":340,"cache_read_input_tokens":0,"output_tokens":12}}`},
	"CSV": {"arrival=at:ms,prompt=in,output=out", "id,at,in,out\n1,500,1200,85\n2,2000,340,12\n"},
	"among other lines": {"arrival=timestamp,prompt=prompt_tokens,output=completion_tokens,error=error",
		`{"timestamp":"2026-03-01T12:00:00Z","prompt_tokens":1200,"completion_tokens":85}
plain text of a server
{"level":"info","msg":"ready"}
{"timestamp":"2026-03-01T12:00:01Z","prompt_tokens":9,"completion_tokens":0,"error":503}
{"timestamp":"2026-03-01T12:00:01Z","prompt_tokens":9,"completion_tokens":3,"error":{"message":"no"}}
{"timestamp":"2026-03-01T12:00:01.5Z","prompt_tokens":340,"completion_tokens":12,"error":null}`},
}

func TestMappedLogs(t *testing.T) {
	for name, tc := range gatewayLogs {
		tr := readTrace(t, tc.text, TraceOptions{Map: tc.keys})
		if tr.Format != mapped || len(tr.Rows) != 2 {
			t.Errorf("%s: %s with %d rows", name, tr.Format, len(tr.Rows))
			continue
		}
		a, b := tr.Rows[0], tr.Rows[1]
		if a.Arrival != 0 || (b.Arrival-1500*time.Millisecond).Abs() > time.Microsecond || a.Prompt != 1200 || a.Output != 85 || b.Prompt != 340 || b.Output != 12 {
			t.Errorf("%s: %+v, %+v", name, a, b)
		}
		if tr.Estimated != 0 {
			t.Errorf("%s: %d estimated", name, tr.Estimated)
		}
	}
	among := gatewayLogs["among other lines"]
	if tr := readTrace(t, among.text, TraceOptions{Map: among.keys}); tr.Skipped != 2 || !strings.Contains(tr.Notes.String(), "2 lines are no requests") {
		t.Errorf("skipped %d, warnings %q", tr.Skipped, tr.Warnings)
	}
}

// The keys of every known format are a map as a user could write it.
func TestFormatsAreMaps(t *testing.T) {
	for _, f := range TraceFormats {
		if _, err := parseMapping(f.keys); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func TestMapProblems(t *testing.T) {
	const text = `{"ts":0,"usage":{"in":10,"out":5},"note":"x"}` + "\n"
	for _, tc := range []struct{ keys, want string }{
		{"", "t:1: no known trace has these keys: ts, usage.in, usage.out, note; say which of them are what: planner trace FILE --map arrival=KEY:s,prompt=KEY,output=KEY"},
		{"arrival", `t:1: "arrival" in the map is none of arrival=KEY, end=KEY, duration=KEY, prompt=KEY`},
		{"when=ts", `t:1: "when=ts" in the map is none of`},
		{"prompt=usage.in,output=usage.out", "t:1: the map needs arrival=KEY, or end=KEY and duration=KEY"},
		{"arrival=ts:s,prompt=usage.in", "t:1: the map needs prompt=KEY and output=KEY"},
		{"arrival=ts:s,prompt=usage.in,output=usage.out,blocks=ids", "t:1: the map needs the tokens of a block"},
		{"arrival=ts,prompt=usage.in,output=usage.out", "t:1: ts: the unit of 0 is not known: map it as ts:s, ts:ms, ts:us or ts:ns"},
		{"arrival=note:s,prompt=usage.in,output=usage.out", `t:1: note: "x" is no time in s`},
		{"arrival=ts:s,prompt=note,output=usage.out", `t:1: note: "x" is no number of tokens`},
		{"arrival=ts:s,prompt=usage.prompt,output=usage.out", "t:1: no line has all that the map names; this one has these keys: ts, usage.in, usage.out, note"},
	} {
		_, err := ReadTrace("t", strings.NewReader(text), TraceOptions{Map: tc.keys})
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || !inFile(err) {
			t.Errorf("%q: error %v, want %q", tc.keys, err, tc.want)
		}
	}
}

// Where a log holds text and no counts, tokens are estimated from the length of
// the text alone, and marked.
func TestMappedText(t *testing.T) {
	text := `{"timestamp":"2026-03-01T12:00:00Z","messages":[{"role":"user","content":"` + strings.Repeat("ä", 400) + `"},{"role":"user","content":[{"type":"text","text":"` +
		strings.Repeat("b", 40) + `"}]}],"response":{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("c", 80) + `"}}]}}`
	tr := readTrace(t, text, TraceOptions{Map: "arrival=timestamp,prompt=messages:text,output=response:text"})
	if r := tr.Rows[0]; r.Prompt != 110 || r.Output != 20 || tr.Estimated != 1 {
		t.Errorf("%+v, %d estimated; want 110 and 20 tokens", r, tr.Estimated)
	}
	if !strings.Contains(tr.Notes.String(), "1 of 1 requests are estimated at 4 characters") {
		t.Errorf("warnings %q", tr.Warnings)
	}
}

// What is written reads back as the same traffic.
func TestTraceCSVRoundTrip(t *testing.T) {
	for _, text := range []string{azureText, burstText, mooncakeText, qwenText, ownText, ownLines} {
		rows := readTrace(t, text, TraceOptions{}).Rows
		var out bytes.Buffer
		must.OK(WriteTraceCSV(&out, rows))
		again := readTrace(t, out.String(), TraceOptions{Format: "csv"})
		if !sameTraffic(rows, again.Rows) {
			t.Errorf("%s\nreads back as\n%+v, want\n%+v", out.String(), again.Rows, rows)
		}
	}
}

// sameTraffic compares arrivals, lengths and what repeats.
func sameTraffic(a, b []workload.TraceRow) bool {
	prefix := func(rows []workload.TraceRow) *workload.PrefixSummary {
		return cmp.Or(workload.Describe(rows).Prefix, &workload.PrefixSummary{})
	}
	if len(a) != len(b) || prefix(a).Repeated != prefix(b).Repeated {
		return false
	}
	for i := range a {
		if a[i].Arrival != b[i].Arrival || a[i].Prompt != b[i].Prompt || a[i].Output != b[i].Output {
			return false
		}
	}
	return true
}

func TestTraceCSVOfRandomBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		var rows []workload.TraceRow
		for i := range 1 + rng.IntN(40) {
			r := workload.TraceRow{Arrival: time.Duration(i) * 1234567891, Prompt: 1 + rng.IntN(3000), Output: 1 + rng.IntN(9)}
			for left := r.Prompt; left > 0; left -= 512 {
				r.Shared = append(r.Shared, segment(uint64(rng.IntN(5)), min(left, 512)))
			}
			rows = append(rows, r)
		}
		var out bytes.Buffer
		must.OK(WriteTraceCSV(&out, rows))
		if again := readTrace(t, out.String(), TraceOptions{Format: "csv"}); !sameTraffic(rows, again.Rows) {
			t.Fatalf("%s", out.String())
		}
	}
}

func FuzzMap(f *testing.F) {
	for _, tc := range gatewayLogs {
		f.Add(tc.text, tc.keys)
	}
	f.Add(mooncakeText, "arrival=timestamp:ms,prompt=input_length,output=output_length,blocks=hash_ids:512")
	f.Add(`{"t":1,"p":{"content":"x"},"o":9}`, "arrival=t:us,prompt=p:text,output=o")
	f.Fuzz(func(t *testing.T, text, keys string) {
		tr, err := ReadTrace("f", strings.NewReader(text), TraceOptions{Map: keys})
		if err != nil {
			return
		}
		for i, r := range tr.Rows {
			if r.Prompt <= 0 || r.Output <= 0 || r.Arrival < 0 || i > 0 && r.Arrival < tr.Rows[i-1].Arrival {
				t.Fatalf("row %d: %+v", i, r)
			}
		}
		must.OK(WriteTraceCSV(&bytes.Buffer{}, tr.Rows))
	})
}

package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"planner/sweep/workload"
)

// The ways in which gateways log the same two requests: 1,200 prompt and 85
// output tokens, and 1.5 s later 340 and 12.
var gatewayLogs = map[string]string{
	"flat, RFC 3339": `{"timestamp":"2026-03-01T12:00:00Z","prompt_tokens":1200,"completion_tokens":85,"status":200,"latency_ms":900}
{"timestamp":"2026-03-01T12:00:01.5Z","prompt_tokens":340,"completion_tokens":12,"status":200,"latency_ms":200}`,
	"nested usage, epoch in s": `{"time":1772366400.0,"request":{"model":"m","messages":[{"role":"user","content":"secret"}]},"response":{"created":1772366403,"usage":{"prompt_tokens":1200,"completion_tokens":85,"total_tokens":1285}}}
{"time":1772366401.5,"request":{"model":"m"},"response":{"created":1772366409,"usage":{"prompt_tokens":340,"completion_tokens":12}}}`,
	"camel case, epoch in ms, out of order": `{"startTime":1772366401500,"endTime":1772366402000,"usage":{"inputTokens":"340","outputTokens":"12"}}
{"startTime":1772366400000,"endTime":1772366409000,"usage":{"inputTokens":1200,"outputTokens":85}}`,
	"OpenTelemetry": `{"startTimeUnixNano":1772366400000000000,"attributes":{"gen_ai.usage.input_tokens":1200,"gen_ai.usage.output_tokens":85}}
{"startTimeUnixNano":1772366401500000000,"attributes":{"gen_ai.usage.input_tokens":340,"gen_ai.usage.output_tokens":12}}`,
	"common log time, ends and durations": `{"ended_at":"01/Mar/2026:12:00:09 +0000","duration_s":9,"input_tokens":1200,"output_tokens":85}
{"ended_at":"01/Mar/2026:12:00:02 +0000","duration":"500ms","input_tokens":340,"output_tokens":12}`,
	"Anthropic with a cache": `{"ts":"2026-03-01 12:00:00","usage":{"input_tokens":200,"cache_read_input_tokens":900,"cache_creation_input_tokens":100,"output_tokens":85}}
{"ts":"2026-03-01 12:00:01,500","usage":{"input_tokens":340,"cache_read_input_tokens":0,"output_tokens":12}}`,
	"totals": `{"ts":"2026-03-01 12:00:00","prompt_tokens":1200,"total_tokens":1285}
{"ts":"2026-03-01 12:00:01.5","prompt_tokens":340,"total_tokens":352}`,
	"among other lines": `{"timestamp":"2026-03-01T12:00:00Z","prompt_tokens":1200,"completion_tokens":85}
plain text of a server
{"level":"info","msg":"ready"}
{"timestamp":"2026-03-01T12:00:01Z","prompt_tokens":9,"completion_tokens":0,"status_code":503}
{"timestamp":"2026-03-01T12:00:01Z","prompt_tokens":9,"completion_tokens":3,"error":{"message":"no"}}
{"timestamp":"2026-03-01T12:00:01.5Z","prompt_tokens":340,"completion_tokens":12,"error":null}`,
}

func TestGatewayLogs(t *testing.T) {
	for name, text := range gatewayLogs {
		tr := readTrace(t, text, TraceOptions{})
		if tr.Format != gatewayFormat || len(tr.Rows) != 2 {
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
	if tr := readTrace(t, gatewayLogs["among other lines"], TraceOptions{}); tr.Skipped != 2 || !strings.Contains(strings.Join(tr.Warnings, "\n"), "2 lines are no requests") {
		t.Errorf("skipped %d, warnings %q", tr.Skipped, tr.Warnings)
	}
}

// Where a log holds text and no counts, tokens are estimated from the length of
// the text alone, and marked.
func TestGatewayText(t *testing.T) {
	text := `{"timestamp":"2026-03-01T12:00:00Z","messages":[{"role":"user","content":"` + strings.Repeat("ä", 400) + `"},{"role":"user","content":[{"type":"text","text":"` +
		strings.Repeat("b", 40) + `"}]}],"response":{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("c", 80) + `"}}]}}`
	tr := readTrace(t, text, TraceOptions{})
	if r := tr.Rows[0]; r.Prompt != 110 || r.Output != 20 || tr.Estimated != 1 {
		t.Errorf("%+v, %d estimated; want 110 and 20 tokens", r, tr.Estimated)
	}
	if !strings.Contains(strings.Join(tr.Warnings, "\n"), "1 of 1 requests are estimated at 4 characters") {
		t.Errorf("warnings %q", tr.Warnings)
	}
}

// Small bare numbers may be seconds or milliseconds: nothing is guessed, and the
// error says what either would mean.
func TestGatewayUnit(t *testing.T) {
	text := `{"ts":0,"prompt_tokens":10,"completion_tokens":5}
{"ts":90000,"prompt_tokens":10,"completion_tokens":5}`
	_, err := ReadTrace("log", strings.NewReader(text), TraceOptions{})
	if err == nil || !strings.Contains(err.Error(), "in seconds the 2 requests span 25h0m0s") || !strings.Contains(err.Error(), "in milliseconds 1m30s") {
		t.Fatalf("error %v", err)
	}
	tr := readTrace(t, text, TraceOptions{Unit: time.Millisecond})
	if tr.Rows[1].Arrival != 90*time.Second {
		t.Errorf("arrival %v, want 90 s", tr.Rows[1].Arrival)
	}
	named := strings.ReplaceAll(text, `"ts"`, `"start_ms"`)
	if _, err := ReadTrace("log", strings.NewReader(named), TraceOptions{}); err == nil {
		t.Error("start_ms is no key that is known")
	}
	named = strings.ReplaceAll(text, `"ts"`, `"timestamp_ms"`)
	if tr := readTrace(t, named, TraceOptions{}); tr.Rows[1].Arrival != 90*time.Second {
		t.Errorf("arrival %v with the unit in the key", tr.Rows[1].Arrival)
	}
}

func TestGatewayEnds(t *testing.T) {
	text := `{"timestamp":"2026-03-01T12:00:10Z","latency_ms":9000,"prompt_tokens":10,"completion_tokens":5}
{"timestamp":"2026-03-01T12:00:12Z","latency_ms":1000,"prompt_tokens":20,"completion_tokens":5}`
	tr := readTrace(t, text, TraceOptions{})
	if tr.Rows[1].Arrival != 2*time.Second || !strings.Contains(strings.Join(tr.Warnings, ""), "taken as that of the arrival") {
		t.Errorf("arrival %v, warnings %q", tr.Rows[1].Arrival, tr.Warnings)
	}
	tr = readTrace(t, text, TraceOptions{AtEnd: true})
	if tr.Rows[1].Arrival != 10*time.Second {
		t.Errorf("arrival %v from the end, want 10 s", tr.Rows[1].Arrival)
	}
	_, err := ReadTrace("log", strings.NewReader(`{"timestamp":"2026-03-01T12:00:10Z","latency":9,"prompt_tokens":10,"completion_tokens":5}`), TraceOptions{AtEnd: true})
	var p *FileError
	if !errors.As(err, &p) || p.Line != 1 || p.Field != "duration" {
		t.Errorf("a duration without a unit gives %v", err)
	}
}

// Prompts that grow from turn to turn share what was before; those that do not
// share nothing.
func TestGatewaySessions(t *testing.T) {
	var b strings.Builder
	line := func(at int, session string, prompt, output int) {
		fmt.Fprintf(&b, `{"ts":"2026-03-01T12:00:%02dZ","session_id":%q,"prompt_tokens":%d,"completion_tokens":%d}`+"\n", at, session, prompt, output)
	}
	line(0, "alice@example.org", 100, 50)
	line(1, "other", 100, 50)
	line(5, "alice@example.org", 180, 20)
	line(6, "other", 90, 20)
	line(7, "single", 90, 20)
	tr := readTrace(t, b.String(), TraceOptions{})
	p := workload.Describe(tr.Rows).Prefix
	if p.Distinct != 1 || p.Shared != 1 || p.Repeated != 100.0/560 {
		t.Errorf("%+v, want the 100 tokens of one session again", p)
	}
	var out bytes.Buffer
	if err := WriteTraceCSV(&out, tr.Rows); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "alice") {
		t.Errorf("the session's name is in the trace:\n%s", out.String())
	}
}

// What is written reads back as the same traffic.
func TestTraceCSVRoundTrip(t *testing.T) {
	for _, text := range []string{azureText, burstText, mooncakeText, qwenText, ownText, ownLines} {
		rows := readTrace(t, text, TraceOptions{}).Rows
		var out bytes.Buffer
		if err := WriteTraceCSV(&out, rows); err != nil {
			t.Fatal(err)
		}
		again := readTrace(t, out.String(), TraceOptions{Format: "csv"})
		if !sameTraffic(rows, again.Rows) {
			t.Errorf("%s\nreads back as\n%+v, want\n%+v", out.String(), again.Rows, rows)
		}
	}
}

// sameTraffic compares arrivals, lengths and what repeats.
func sameTraffic(a, b []workload.TraceRow) bool {
	if len(a) != len(b) || workload.Describe(a).Prefix.Repeated != workload.Describe(b).Prefix.Repeated {
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
		if err := WriteTraceCSV(&out, rows); err != nil {
			t.Fatal(err)
		}
		if again := readTrace(t, out.String(), TraceOptions{Format: "csv"}); !sameTraffic(rows, again.Rows) {
			t.Fatalf("%s", out.String())
		}
	}
}

func FuzzGateway(f *testing.F) {
	for _, text := range gatewayLogs {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := ReadTrace("f", strings.NewReader(text), TraceOptions{Format: gatewayFormat})
		if err != nil {
			return
		}
		for i, r := range tr.Rows {
			if r.Prompt <= 0 || r.Output <= 0 || r.Arrival < 0 || i > 0 && r.Arrival < tr.Rows[i-1].Arrival {
				t.Fatalf("row %d: %+v", i, r)
			}
		}
		if err := WriteTraceCSV(&bytes.Buffer{}, tr.Rows); err != nil {
			t.Fatal(err)
		}
	})
}

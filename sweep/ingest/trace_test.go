package ingest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"planner/internal/evidence/must"
	"planner/sweep/workload"
)

const (
	azureText = "TIMESTAMP,ContextTokens,GeneratedTokens\n" +
		"2023-11-16 18:15:46.6805900,374,44\n" +
		"2023-11-16 18:15:50.9951690,396,109\n" +
		"2023-11-16 18:15:51+00:00,0,7\n" +
		"2024-05-10T00:00:00Z,4808,10\n"
	burstText = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"5,a,1.2,ChatGPT,472,18,490,Conversation log\n" +
		"45,b,3,ChatGPT,1087,0,1087,Conversation log\n" +
		"118,c,3,GPT-4,417,276,693,API log\n"
	mooncakeText = `{"timestamp": 0, "input_length": 1100, "output_length": 52, "hash_ids": [46, 47, 48]}
{"timestamp": 3053, "input_length": 600, "output_length": 10, "hash_ids": [46, 50]}
`
	qwenText = `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 20, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [7, 8]}
{"chat_id": 2, "parent_chat_id": -1, "timestamp": 4, "input_length": 16, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [7]}
`
	ownText = "arrival_s,input_tokens,output_tokens,prefix_id,prefix_tokens\n" +
		"# a comment\n" +
		"10,100,20,a,40\n" +
		"10.25,50,5,,\n" +
		"11,200,30,a,40\n"
	ownLines = `{"arrival_s": 0, "input_tokens": 10, "output_tokens": 2}
{"arrival_s": 0.5, "input_tokens": 30, "output_tokens": 2, "prefix_id": "a", "prefix_tokens": 8}
`
	guideText = `{"timestamp": 0, "input_length": 256, "output_length": 128}
{"timestamp": 1.5, "input_length": 256, "output_length": 128}
`
	litellmText = `{"id":"a","startTime":1772366400.5,"endTime":1772366402,"prompt_tokens":300,"completion_tokens":20,"status":"success"}
{"id":"b","startTime":1772366401,"endTime":1772366402,"prompt_tokens":300,"completion_tokens":0,"status":"failure"}
`
	otelText = `{"startTimeUnixNano":1772366400000000000,"attributes":{"gen_ai.usage.input_tokens":1200,"gen_ai.usage.output_tokens":85}}
{"startTimeUnixNano":"1772366401500000000","attributes":{"gen_ai.usage.input_tokens":340,"gen_ai.usage.output_tokens":12}}
`
	aiperfText = `{"metadata":{"request_start_ns":1772366400000000000},"metrics":{"input_sequence_length":{"value":550,"unit":"tokens"},"output_sequence_length":{"value":120,"unit":"tokens"}},"error":null}
{"metadata":{"request_start_ns":1772366400100000000},"metrics":{},"error":{"code":503}}
`
)

func readTrace(t *testing.T, text string, o TraceOptions) *Trace {
	t.Helper()
	return must.Get(ReadTrace("t", strings.NewReader(text), o))
}

func segment(key uint64, tokens int) workload.Segment {
	return workload.Segment{Content: workload.TraceContent(key), Tokens: tokens}
}

func TestTraceFormats(t *testing.T) {
	shared := []workload.Segment{{Content: workload.NamedContent("a"), Tokens: 40}}
	for _, tc := range []struct {
		text, option, format string
		want                 []workload.TraceRow
		skipped              int
	}{
		{azureText, "", "azure", []workload.TraceRow{{Prompt: 374, Output: 44}, {Arrival: 4314579 * time.Microsecond, Prompt: 396, Output: 109},
			{Arrival: time.Date(2024, 5, 10, 0, 0, 0, 0, time.UTC).Sub(time.Date(2023, 11, 16, 18, 15, 46, 680590000, time.UTC)), Prompt: 4808, Output: 10}}, 1},
		{burstText, "", "burstgpt", []workload.TraceRow{{Prompt: 472, Output: 18}, {Arrival: 113 * time.Second, Prompt: 417, Output: 276}}, 1},
		{mooncakeText, "", "mooncake", []workload.TraceRow{
			{Prompt: 1100, Output: 52, Shared: []workload.Segment{segment(46, 512), segment(47, 512), segment(48, 76)}},
			{Arrival: 3053 * time.Millisecond, Prompt: 600, Output: 10, Shared: []workload.Segment{segment(46, 512), segment(50, 88)}}}, 0},
		{qwenText, "", "qwen", []workload.TraceRow{
			{Prompt: 20, Output: 3, Shared: []workload.Segment{segment(7, 16), segment(8, 4)}},
			{Arrival: 2500 * time.Millisecond, Prompt: 16, Output: 3, Shared: []workload.Segment{segment(7, 16)}}}, 0},
		{ownText, "", "csv", []workload.TraceRow{{Prompt: 100, Output: 20, Shared: shared}, {Arrival: 250 * time.Millisecond, Prompt: 50, Output: 5},
			{Arrival: time.Second, Prompt: 200, Output: 30, Shared: shared}}, 0},
		{ownLines, "", "jsonl", []workload.TraceRow{{Prompt: 10, Output: 2},
			{Arrival: 500 * time.Millisecond, Prompt: 30, Output: 2, Shared: []workload.Segment{{Content: workload.NamedContent("a"), Tokens: 8}}}}, 0},
		{guideText, "guidellm", "guidellm", []workload.TraceRow{{Prompt: 256, Output: 128}, {Arrival: 1500 * time.Millisecond, Prompt: 256, Output: 128}}, 0},
		{guideText, "mooncake", "mooncake", []workload.TraceRow{{Prompt: 256, Output: 128}, {Arrival: 1500 * time.Microsecond, Prompt: 256, Output: 128}}, 0},
		{litellmText, "", "litellm", []workload.TraceRow{{Prompt: 300, Output: 20}}, 1},
		{otelText, "", "otel", []workload.TraceRow{{Prompt: 1200, Output: 85}, {Arrival: 1500 * time.Millisecond, Prompt: 340, Output: 12}}, 0},
		{aiperfText, "", "aiperf", []workload.TraceRow{{Prompt: 550, Output: 120}}, 1},
	} {
		tr := readTrace(t, tc.text, TraceOptions{Format: tc.option})
		if tr.Format != tc.format || !reflect.DeepEqual(tr.Rows, tc.want) || tr.Skipped != tc.skipped {
			t.Errorf("read as %s, %d skipped:\n%+v\nwant %s:\n%+v", tr.Format, tr.Skipped, tr.Rows, tc.format, tc.want)
		}
	}
}

// Files are read packed as well, traces, lengths and results, in folders too.
func TestPacked(t *testing.T) {
	result := must.Get(os.ReadFile("testdata/vllm/open.json"))
	for kind, pack := range map[string]func(io.Writer) io.WriteCloser{
		".gz":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		".zst": func(w io.Writer) io.WriteCloser { return must.Get(zstd.NewWriter(w)) },
	} {
		packed := func(text string) *bytes.Buffer {
			var b bytes.Buffer
			z := pack(&b)
			fmt.Fprint(z, text)
			must.OK(z.Close())
			return &b
		}
		if tr, err := ReadTrace("t", packed(azureText), TraceOptions{}); err != nil || len(tr.Rows) != 3 {
			t.Errorf("%s: %v, %v", kind, tr, err)
		}
		if n, err := ReadLengths(packed("tokens\n5\n3\n")); err != nil || !slices.Equal(n, []int{3, 5}) {
			t.Errorf("%s: %v, %v", kind, n, err)
		}
		dir := t.TempDir()
		must.OK(os.WriteFile(filepath.Join(dir, "open.json"+kind), packed(string(result)).Bytes(), 0o600))
		all, err := ReadFiles([]string{dir})
		if want := must.Get(Read("f", result)); err != nil || len(all.Points) != 1 || all.Points[0].TTFT != want.Measurements[0].TTFT {
			t.Errorf("%s: %v, %v", kind, all, err)
		}
	}
}

func TestTraceProblems(t *testing.T) {
	for _, tc := range []struct{ text, format, want string }{
		{"", "", "t: the trace is empty"},
		{"a,b,c\n1,2,3\n", "", "t:1: no known trace has the columns a,b,c"},
		{"a;b;c\n1;2;3\n", "", "t:1: the columns a;b;c are not divided by commas"},
		{ownText, "azure", "t:1: the columns arrival_s,input_tokens"},
		{ownText, "nonsense", `t:1: unknown trace format "nonsense"; allowed: csv, azure`},
		{guideText, "", "t:1: timestamp may be in seconds or in milliseconds"},
		{guideText, "azure", "t:1: lines of JSON are not azure"},
		{`{"a":1}`, "", "t:1: no known trace has these keys"},
		{"{\n", "", "t:1: cannot parse JSON"},
		{`{"timestamp":"x","input_length":1,"output_length":1}`, "guidellm", `t:1: timestamp: "x" is no time in s`},
		{"arrival_s,input_tokens,output_tokens\n1,2\n", "", "t:2: 2 cells, the header has 3"},
		{"arrival_s,input_tokens,output_tokens,input_tokens\n1,2,3,4\n", "", "t:1: the column input_tokens is there twice"},
		{"arrival_s,input_tokens,output_tokens\nx,2,3\n", "", `t:2: arrival_s: "x" is no time in s`},
		{"arrival_s,input_tokens,output_tokens\n1e300,2,3\n", "", "t:2: arrival_s: 1e+300 is no time"},
		{"arrival_s,input_tokens,output_tokens\n1,-2,3\n", "", `t:2: input_tokens: "-2" is no number of tokens`},
		{"arrival_s,input_tokens,output_tokens\n1,2,0\n", "", "t: the trace holds no request (1 rows without"},
		{"arrival_s,input_tokens,output_tokens,prefix_id,prefix_tokens\n1,2,3,a,9\n", "", "t:2: prefix_tokens: 9 are more than the 2"},
		{"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,2,3\n", "", `t:2: TIMESTAMP: "yesterday" is no date and time`},
		{mooncakeText + `{"timestamp": 4000, "input_length": 600, "output_length": 10, "hash_ids": [1]}`, "", "t:3: 1 hash_ids for 600 tokens"},
	} {
		_, err := ReadTrace("t", strings.NewReader(tc.text), TraceOptions{Format: tc.format})
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || !inFile(err) {
			t.Errorf("%q as %q: error %v, want %q", tc.text, tc.format, err, tc.want)
		}
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestTraceEndlessLine(t *testing.T) {
	if _, err := ReadTrace("t", endless{}, TraceOptions{}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("error %v", err)
	}
}

// coarse is a log with a coarse clock: n Poisson arrivals at rate, rounded down to its
// step.
func coarse(n int, rate float64, step time.Duration, rounding time.Duration) []workload.TraceRow {
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Fixed, Value: 1}, Output: workload.Lengths{Dist: workload.Fixed, Value: 1}}}}
	var rows []workload.TraceRow
	for _, r := range w.Schedule(rate, time.Duration(float64(n)/rate*float64(time.Second)), 3) {
		rows = append(rows, workload.TraceRow{Arrival: (r.Due / step * step).Round(rounding), Prompt: len(rows) + 1, Output: 1})
	}
	return rows
}

func TestClockResolution(t *testing.T) {
	for _, tc := range []struct {
		name string
		rows []workload.TraceRow
		want time.Duration
	}{
		{"seconds, one in three", coarse(5000, 0.3, time.Second, 1), time.Second},
		{"volleys of about 3 s", coarse(12000, 4, 3053600*time.Microsecond, time.Millisecond), 3053600 * time.Microsecond},
		{"milliseconds are no matter", coarse(5000, 100, time.Millisecond, 1), 0},
		{"no step", coarse(5000, 100, 1, 1), 0},
	} {
		got, share := clockResolution(tc.rows)
		if math.Abs(float64(got-tc.want)) > float64(time.Millisecond) {
			t.Errorf("%s: %v, want %v (%.0f %% together)", tc.name, got, tc.want, 100*share)
		}
	}
	var constant []workload.TraceRow
	for i := range 100 {
		constant = append(constant, workload.TraceRow{Arrival: time.Duration(i) * time.Second})
	}
	if got, _ := clockResolution(constant); got != 0 {
		t.Errorf("even arrivals have a clock of %v", got)
	}
}

// Spreading keeps the order and the step of every row, repeats for a seed, and
// makes Poisson arrivals of Poisson counts: gaps of a coefficient of variation
// of 1.
func TestSpread(t *testing.T) {
	const step = 3 * time.Second
	rows := coarse(20000, 4, step, 1)
	once, again, other := slices.Clone(rows), slices.Clone(rows), slices.Clone(rows)
	spread(once, step, 1)
	spread(again, step, 1)
	spread(other, step, 2)
	if !reflect.DeepEqual(once, again) || reflect.DeepEqual(once, other) {
		t.Error("the seed does not decide the arrivals")
	}
	var sum, squares float64
	for i, r := range once {
		if r.Arrival/step != rows[i].Arrival/step || r.Prompt != rows[i].Prompt {
			t.Fatalf("row %d moved from %v to %v", i, rows[i].Arrival, r.Arrival)
		}
		if i > 0 {
			gap := (r.Arrival - once[i-1].Arrival).Seconds()
			if gap < 0 {
				t.Fatalf("row %d is before the one above", i)
			}
			sum += gap
			squares += gap * gap
		}
	}
	n := float64(len(once) - 1)
	mean := sum / n
	if cv := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(cv-1) > 0.03 {
		t.Errorf("coefficient of variation %.3f, want 1", cv)
	}
}

func TestTraceWarnings(t *testing.T) {
	var b strings.Builder
	b.WriteString("arrival_s,input_tokens,output_tokens,ttft_ms\n")
	for i := range 100 {
		fmt.Fprintf(&b, "%d,10,%d,5\n", i/3, i%7)
	}
	literal := readTrace(t, b.String(), TraceOptions{})
	drawn := readTrace(t, b.String(), TraceOptions{Spread: true, Seed: 4})
	if literal.Resolution != time.Second || literal.Spread || !drawn.Spread || literal.Rows[1].Arrival != 0 || drawn.Rows[1].Arrival == drawn.Rows[2].Arrival {
		t.Errorf("tick %v, spread %v and %v", literal.Resolution, literal.Spread, drawn.Spread)
	}
	for i, want := range []string{"not read: ttft_ms", "15 rows without", "same instant"} {
		if !strings.Contains(literal.Texts[i], want) {
			t.Errorf("warning %q, want %q", literal.Texts[i], want)
		}
	}
	if !strings.Contains(drawn.Texts[2], "seed 4") {
		t.Errorf("warning %q", drawn.Texts[2])
	}
	unsorted := readTrace(t, "arrival_s,input_tokens,output_tokens\n3,1,1\n2,2,1\n", TraceOptions{})
	if unsorted.Rows[0].Prompt != 2 || unsorted.Rows[0].Arrival != 0 || len(unsorted.Texts) != 1 {
		t.Errorf("rows %v, warnings %q", unsorted.Rows, unsorted.Texts)
	}
}

// A column of row numbers, which has no name, and errors that say nothing are no failures.
func TestNamelessColumn(t *testing.T) {
	tr := readTrace(t, ",arrival_s,input_tokens,output_tokens\n399,0,20,10\n400,1,20,10\n503,2,20,10\n", TraceOptions{})
	if len(tr.Rows) != 3 || tr.Skipped != 0 {
		t.Errorf("%d rows, %d failed", len(tr.Rows), tr.Skipped)
	}
	logged := readTrace(t, `{"at":1,"in":2,"out":3,"error":[]}
{"at":2,"in":2,"out":3,"error":{}}
{"at":3,"in":2,"out":3,"error":["no"]}
`, TraceOptions{Map: "arrival=at:s,prompt=in,output=out,error=error"})
	if len(logged.Rows) != 2 || logged.Skipped != 1 {
		t.Errorf("%d rows, %d failed", len(logged.Rows), logged.Skipped)
	}
}

func TestShareGPT(t *testing.T) {
	const text = `[{"id":"a","conversations":[{"from":"human","value":"12345678"},{"from":"gpt","value":"1234"}]},
		{"id":"b","conversations":[{"from":"human","value":"only"}]},
		{"id":"c","conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"äöüß äöüß äöü"},{"from":"human","value":"x"}]}]`
	s := must.Get(ReadShareGPT("s.json", strings.NewReader(text)))
	if !slices.Equal(s.Prompts, []int{1, 2}) || !slices.Equal(s.Outputs, []int{1, 3}) || s.Conversations != 3 || s.Skipped != 1 || len(s.Texts) != 2 {
		t.Errorf("%+v", s)
	}
	for _, text := range []string{"", "{}", "[]", "[1]", `[{"conversations":[]}]`, `[{"conversations":[{"value":"a"},{"value":"b"}]}`} {
		if _, err := ReadShareGPT("s.json", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "s.json: ") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// Whatever the bytes are, a trace has rows in order with lengths above 0, or
// reading ends with a problem that names the file.
func FuzzTrace(f *testing.F) {
	for _, s := range []string{azureText, burstText, mooncakeText, qwenText, ownText, ownLines, guideText, litellmText, otelText, aiperfText} {
		f.Add(s, "", true)
	}
	f.Add(guideText, "guidellm", false)
	f.Fuzz(func(t *testing.T, text, format string, spread bool) {
		tr, err := ReadTrace("f", strings.NewReader(text), TraceOptions{Format: format, Spread: spread})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error %q", err)
			}
			return
		}
		last := time.Duration(0)
		for i, r := range tr.Rows {
			shared := 0
			for _, s := range r.Shared {
				shared += s.Tokens
			}
			if r.Arrival < last || r.Prompt <= 0 || r.Output <= 0 || shared > r.Prompt {
				t.Fatalf("row %d: %+v after %v", i, r, last)
			}
			last = r.Arrival
		}
	})
}

func FuzzShareGPT(f *testing.F) {
	f.Add(`[{"conversations":[{"value":"a"},{"value":"b"}]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadShareGPT("f", strings.NewReader(text))
		if err == nil && (len(s.Prompts) == 0 || len(s.Prompts) != len(s.Outputs)) {
			t.Errorf("%+v", s)
		}
	})
}

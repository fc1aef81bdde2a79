package ingest

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/measure"
)

// readFixture reads a file of testdata.
func readFixture(file string) *Results {
	data := must.Get(os.ReadFile(filepath.Join("testdata", file)))
	return must.Get(Read(file, data))
}

// figureOf is a figure of a measurement by a name such as ttft.p99 (in milliseconds), requests,
// failed, output, prompt, achieved or run; NaN if it is not known.
func figureOf(t *testing.T, m *measure.Measurement, name string) float64 {
	t.Helper()
	metricName, stat, _ := strings.Cut(name, ".")
	if metric, err := measure.ParseMetric(metricName); err == nil {
		q, err := measure.ParseStat(stat)
		if err != nil {
			t.Fatal(name, err)
		}
		if d := m.Latency(metric).Stat(q); d >= 0 {
			return float64(d) / float64(time.Millisecond)
		}
		return math.NaN()
	}
	run := math.NaN()
	if m.Duration >= 0 {
		run = m.Duration.Seconds()
	}
	figures := map[string]float64{
		"completed": float64(m.Requests - m.Failed), "requests": float64(m.Requests), "failed": float64(m.Failed), "output": m.OutputTokens,
		"prompt": m.PromptTokens, "achieved": m.Achieved, "sent": m.Sent, "run": run, "rate": m.Trial.Rate,
		"mean_prompt": m.MeanPrompt, "mean_output": m.MeanOutput, "concurrency": float64(m.Trial.Concurrency),
	}
	x, ok := figures[name]
	if !ok {
		t.Fatal("no figure", name)
	}
	return x
}

var printedNumber = regexp.MustCompile(`[0-9][0-9,]*(\.[0-9]+)?`)

// printedRow finds the numbers of a line, behind its label.
func printedRow(t *testing.T, file, label string, nth int) []string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", file)))
	for line := range strings.Lines(string(text)) {
		if _, rest, ok := strings.Cut(line, label); ok {
			if nth--; nth < 0 {
				return printedNumber.FindAllString(rest, -1)
			}
		}
	}
	t.Fatalf("%s has no line of %q", file, label)
	return nil
}

// serving is what the table of a serving benchmark prints under which label.
func serving(e2e string) map[string]string {
	rows := map[string]string{"Successful requests:": "completed", "Output token throughput (tok/s):": "output"}
	for metric, label := range map[string]string{"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": e2e} {
		for stat, word := range map[string]string{"mean": "Mean", "p50": "Median", "p90": "P90", "p95": "P95", "p99": "P99"} {
			rows[word+" "+label+" (ms):"] = metric + "." + stat
		}
	}
	return rows
}

// asPrinted checks a figure of a fixture against a number that was printed, to its last digit.
func asPrinted(t *testing.T, file string, point int, figure, text string) {
	t.Helper()
	r := readFixture(file)
	want := must.Get(strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64))
	_, decimals, _ := strings.Cut(text, ".")
	off := 0.501 * math.Pow10(-len(decimals))
	if r.Format == "k6" {
		off *= 2 // it cuts where the others round
	}
	if got := figureOf(t, &r.Measurements[point], figure); !(math.Abs(got-want) <= off) {
		t.Errorf("%s, load point %d: %s is %g, printed: %s", file, point+1, figure, got, text)
	}
}

// Every figure of a serving benchmark is the one that the tool printed of the same run.
func TestServingAsPrinted(t *testing.T) {
	for _, tc := range []struct {
		file    string
		point   int
		printed string
		e2e     string
	}{
		{"vllm/open.json", 0, "vllm/open.txt", "E2EL"}, {"vllm/detailed.json", 0, "vllm/detailed.txt", "E2EL"},
		{"vllm/appended.json", 0, "vllm/appended-1.txt", "E2EL"}, {"vllm/appended.json", 1, "vllm/appended-2.txt", "E2EL"},
		{"vllm/ramp.json", 0, "vllm/ramp.txt", "E2EL"},
		{"sglang/bench.jsonl", 0, "sglang/rate.txt", "E2E Latency"}, {"sglang/bench.jsonl", 1, "sglang/concurrency.txt", "E2E Latency"},
	} {
		text := must.Get(os.ReadFile(filepath.Join("testdata", tc.printed)))
		n := 0
		for label, figure := range serving(tc.e2e) {
			if strings.Contains(string(text), label) {
				n++
				asPrinted(t, tc.file, tc.point, figure, printedRow(t, tc.printed, label, 0)[0])
			}
		}
		if n < 11 {
			t.Errorf("%s: %d figures compared", tc.printed, n)
		}
	}
}

// So is every other figure that testdata/figures.txt names.
func TestAsPrinted(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/figures.txt"))
	compared := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		c := strings.Split(line, "; ")
		if len(c) == 2 {
			m := readFixture(c[0]).Measurements[0]
			for pair := range strings.FieldsSeq(c[1]) {
				name, text, _ := strings.Cut(pair, "=")
				want, err := strconv.ParseFloat(text, 64)
				if got := figureOf(t, &m, name); err != nil || !(math.Abs(got-want) <= 1e-3*max(want, 1e-3)) {
					t.Errorf("%s: %s is %g, want %s", c[0], name, got, text)
				}
				compared++
			}
			continue
		}
		point, errPoint := strconv.Atoi(c[1])
		nth, errNth := strconv.Atoi(c[4])
		if err := errors.Join(errPoint, errNth); err != nil {
			t.Fatal(line, err)
		}
		numbers := printedRow(t, c[2], c[3], nth-1)
		for i, figure := range strings.Fields(c[5]) {
			if figure == "_" {
				continue
			}
			if compared++; i < len(numbers) {
				asPrinted(t, c[0], point-1, figure, numbers[i])
			} else {
				t.Errorf("%s: %s: the line has %d numbers", c[2], c[3], len(numbers))
			}
		}
	}
	if compared < 200 {
		t.Errorf("%d figures compared", compared)
	}
}

// Results that differ by their load or a tail are of two runs, whatever their means.
func TestSameRun(t *testing.T) {
	of := func(rate float64, concurrency int, mean, p99 time.Duration) *measure.Measurement {
		unknown := measure.Summary{Mean: -1, P99: -1}
		m := &measure.Measurement{Trial: measure.Trial{Rate: rate, Concurrency: concurrency},
			Latencies: measure.Latencies{TTFT: measure.Summary{Mean: mean, P99: p99}, E2E: unknown}}
		m.Requests = 1000
		return m
	}
	first := of(4, 0, 60*time.Millisecond, 100*time.Millisecond)
	for _, c := range []struct {
		other *measure.Measurement
		same  bool
	}{
		{of(4, 0, 60*time.Millisecond, 100*time.Millisecond), true},
		{of(4.001, 0, 60_050*time.Microsecond, -1), true},
		{of(0, 0, 60*time.Millisecond, -1), true},
		{of(6, 0, 60_050*time.Microsecond, 100*time.Millisecond), false},
		{of(0, 4, 60*time.Millisecond, 100*time.Millisecond), false},
		{of(4, 0, 60_050*time.Microsecond, 120*time.Millisecond), false},
	} {
		if got := sameRun(first, c.other); got != c.same {
			t.Errorf("%v at %v/s, %d at a time: %t", c.other.TTFT, c.other.Trial.Rate, c.other.Trial.Concurrency, got)
		}
	}
}

// Folders as the tools write them are read whole, each result once and no warm-up.
// Results of several models are not taken for one server's in silence.
func TestModelsDiffer(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/vllm.json"))
	for _, model := range []string{"meta-llama/Llama-3.1-8", "other-8"} {
		dir := t.TempDir()
		must.OK(os.WriteFile(filepath.Join(dir, "a.json"), data, 0o600))
		must.OK(os.WriteFile(filepath.Join(dir, "b.json"), bytes.Replace(data, []byte("meta-llama/Llama-3.1-8"), []byte(model), 1), 0o600))
		all := must.Get(ReadFiles([]string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")}))
		if differ := model == "other-8"; all.Doubts.Has(note.ModelsDiffer) != differ || all.Points[0].Warnings.Has(note.ModelsDiffer) != differ {
			t.Errorf("%s: %q", model, all.Doubts)
		}
	}
}

func TestFolders(t *testing.T) {
	for _, tc := range []struct{ folder, read, left string }{
		{"aiperf", "both/profile_export_aiperf.json concurrency/profile_export_aiperf.json rate/profile_export_aiperf.json",
			"aggregate/profile_export_aiperf_aggregate.json rate/phases/warmup/profile_export_aiperf.json " +
				"rate/profile_export.jsonl rate/profile_export_aiperf.csv"},
		{"inference-perf/rate", "stage_0_lifecycle_metrics.json stage_1_lifecycle_metrics.json",
			"inference-perf.partial.stage_0.yaml inference-perf.partial.stage_1.yaml summary_lifecycle_metrics.json"},
		{"vllm/sweep", "SERVE--ttft=20ms-BENCH--max_concurrency=4/run=0.json SERVE--ttft=20ms-BENCH--max_concurrency=4/run=1.json " +
			"SERVE--ttft=20ms-BENCH--request_rate=10/run=0.json SERVE--ttft=20ms-BENCH--request_rate=10/run=1.json",
			"SERVE--ttft=20ms-BENCH--max_concurrency=4/summary.json SERVE--ttft=20ms-BENCH--max_concurrency=4/warmup.json " +
				"SERVE--ttft=20ms-BENCH--request_rate=10/summary.json SERVE--ttft=20ms-BENCH--request_rate=10/warmup.json summary.csv"},
		{"guidellm", "concurrent.json poisson.json", "concurrent.csv poisson.csv poisson.yaml"},
	} {
		root := filepath.Join("testdata", tc.folder)
		all := must.Get(ReadFiles([]string{root}))
		var read []string
		for _, s := range all.Sources {
			read = append(read, strings.TrimPrefix(filepath.ToSlash(s.File), filepath.ToSlash(root)+"/"))
		}
		if strings.Join(read, " ") != tc.read {
			t.Errorf("%s: read %q, want %q", tc.folder, read, tc.read)
		}
		for name := range strings.FieldsSeq(tc.left) {
			if !strings.Contains(strings.Join(all.Warnings.Texts, "\n"), filepath.Join(root, name)+": not read: ") {
				t.Errorf("%s: nothing is said of %s", tc.folder, name)
			}
		}
		for _, m := range all.Points {
			// GuideLLM sent at twice the rate that it was asked for.
			if !loaded(m) || m.Valid == m.Warnings.Has(note.ArrivalsOff) {
				t.Errorf("%s: %s at rate %g and concurrency %d: %q", tc.folder, m.Trial.Why, m.Trial.Rate, m.Trial.Concurrency, m.Warnings)
			}
		}
	}
}

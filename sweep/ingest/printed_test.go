package ingest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"planner/sweep/measure"
)

// readFixture reads a file of testdata.
func readFixture(t *testing.T, file string) *Results {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Read(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return r
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
		"concurrency": float64(m.Trial.Concurrency),
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
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
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

// Every figure is the one that the tool itself printed of the same run, to the last digit
// that it printed.
func TestAsPrinted(t *testing.T) {
	same := func(file string, point int, printed, figure, text string) {
		t.Helper()
		r := readFixture(t, file)
		want, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		_, decimals, _ := strings.Cut(text, ".")
		off := 0.501 * math.Pow10(-len(decimals))
		if r.Format == "k6" {
			off *= 2 // it cuts where the others round
		}
		if got := figureOf(t, &r.Measurements[point], figure); !(math.Abs(got-want) <= off) {
			t.Errorf("%s, load point %d: %s is %g, printed in %s: %s", file, point+1, figure, got, printed, text)
		}
	}
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
		text, err := os.ReadFile(filepath.Join("testdata", tc.printed))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for label, figure := range serving(tc.e2e) {
			if strings.Contains(string(text), label) {
				n++
				same(tc.file, tc.point, tc.printed, figure, printedRow(t, tc.printed, label, 0)[0])
			}
		}
		if n < 11 {
			t.Errorf("%s: %d figures compared", tc.printed, n)
		}
	}
	for _, tc := range []struct {
		file    string
		point   int
		printed string
		label   string
		nth     int
		figures string // of the numbers in the line, _ for one that is not compared
	}{
		{"aiperf/rate/profile_export_aiperf.json", 0, "aiperf/rate.txt", "Time to First Token (ms)", 0, "ttft.mean _ _ ttft.p99 ttft.p90 ttft.p50"},
		{"aiperf/rate/profile_export_aiperf.json", 0, "aiperf/rate.txt", "Request Latency (ms)", 0, "e2e.mean _ _ e2e.p99 e2e.p90 e2e.p50"},
		{"aiperf/rate/profile_export_aiperf.json", 0, "aiperf/rate.txt", "Inter Token Latency (ms)", 0, "tpot.mean _ _ tpot.p99 tpot.p90 tpot.p50"},
		{"aiperf/rate/profile_export_aiperf.json", 0, "aiperf/rate.txt", "Output Token Throughput (tokens/sec)", 0, "output"},
		{"aiperf/rate/profile_export_aiperf.json", 0, "aiperf/rate.txt", "Input Token Throughput (tokens/sec)", 0, "prompt"},
		{"aiperf/rate/profile_export_aiperf.json", 0, "aiperf/rate.txt", "Completed Requests (Success + Error)", 0, "requests"},
		{"aiperf/rate/profile_export_aiperf.json", 0, "aiperf/rate.txt", "Request Count (requests)", 0, "completed"},
		{"aiperf/rate/profile_export_aiperf.csv", 0, "aiperf/rate.txt", "Time to First Token (ms)", 0, "ttft.mean _ _ ttft.p99 ttft.p90 ttft.p50"},
		{"aiperf/rate/profile_export_aiperf.csv", 0, "aiperf/rate.txt", "Request Latency (ms)", 0, "e2e.mean _ _ e2e.p99 e2e.p90 e2e.p50"},
		{"aiperf/rate/profile_export_aiperf.csv", 0, "aiperf/rate.txt", "Request Throughput (requests/sec)", 0, "achieved"},
		{"aiperf/rate/profile_export_aiperf.csv", 0, "aiperf/rate.txt", "Completed Requests (Success + Error)", 0, "requests"},
		{"aiperf/rate/profile_export.jsonl", 0, "aiperf/rate.txt", "Time to First Token (ms)", 0, "ttft.mean _ _ ttft.p99 ttft.p90 ttft.p50"},
		{"aiperf/rate/profile_export.jsonl", 0, "aiperf/rate.txt", "Request Latency (ms)", 0, "e2e.mean _ _ e2e.p99 e2e.p90 e2e.p50"},
		{"aiperf/rate/profile_export.jsonl", 0, "aiperf/rate.txt", "Completed Requests (Success + Error)", 0, "requests"},
		{"aiperf/concurrency/profile_export_aiperf.json", 0, "aiperf/concurrency.txt", "Time to First Token (ms)", 0, "ttft.mean _ _ ttft.p99 ttft.p90 ttft.p50"},
		{"aiperf/concurrency/profile_export_aiperf.json", 0, "aiperf/concurrency.txt", "Request Throughput (requests/sec)", 0, "achieved"},
		{"guidellm/poisson.json", 0, "guidellm/poisson.txt", "poisson@10.00 |", 0, "_ _ _ _ ttft.mean _ ttft.p50 ttft.p95"},
		{"guidellm/poisson.yaml", 0, "guidellm/poisson.txt", "poisson@10.00 |", 0, "_ _ _ _ ttft.mean _ ttft.p50 ttft.p95"},
		{"guidellm/poisson.csv", 0, "guidellm/poisson.txt", "poisson@10.00 |", 0, "_ _ _ _ ttft.mean _ ttft.p50 ttft.p95"},
		{"guidellm/concurrent.json", 0, "guidellm/concurrent.txt", "concurrent@2 |", 0, "_ _ _ _ ttft.mean _ ttft.p50 ttft.p95"},
		{"guidellm/concurrent.json", 1, "guidellm/concurrent.txt", "concurrent@4 |", 0, "_ _ _ _ ttft.mean _ ttft.p50 ttft.p95"},
		{"guidellm/concurrent.csv", 1, "guidellm/concurrent.txt", "concurrent@4 |", 0, "_ _ _ _ ttft.mean _ ttft.p50 ttft.p95"},
		{"inference-perf/rate/stage_0_lifecycle_metrics.json", 0, "inference-perf/rate.txt", "│     0 │", 0, "e2e.mean e2e.p50 e2e.p90 ttft.mean ttft.p50 ttft.p90"},
		{"inference-perf/rate/stage_0_lifecycle_metrics.json", 0, "inference-perf/rate.txt", "│     0 │", 1, "tpot.mean tpot.p50 tpot.p90"},
		{"inference-perf/rate/stage_1_lifecycle_metrics.json", 0, "inference-perf/rate.txt", "│     1 │", 0, "e2e.mean e2e.p50 e2e.p90 ttft.mean ttft.p50 ttft.p90"},
		{"inference-perf/rate/inference-perf.partial.stage_1.yaml", 0, "inference-perf/rate.txt", "│     1 │", 0, "e2e.mean e2e.p50 e2e.p90 ttft.mean ttft.p50 ttft.p90"},
		{"inference-perf/concurrent/per_request_lifecycle_metrics.json", 0, "inference-perf/concurrent.txt", "│     0 │", 0, "e2e.mean e2e.p50 e2e.p90 ttft.mean ttft.p50 ttft.p90"},
		{"inference-perf/concurrent/per_request_lifecycle_metrics.json", 0, "inference-perf/concurrent.txt", "│     0 │", 1, "tpot.mean tpot.p50 tpot.p90"},
		{"k6/vus.json", 0, "k6/vus.txt", "{ expected_response:true }...: avg=", 0, "e2e.mean _ e2e.p50 _ _ e2e.p90 _ e2e.p95 _ e2e.p99"},
	} {
		numbers := printedRow(t, tc.printed, tc.label, tc.nth)
		for i, figure := range strings.Fields(tc.figures) {
			if i >= len(numbers) {
				t.Errorf("%s: %s: the line has %d numbers", tc.printed, tc.label, len(numbers))
			} else if figure != "_" {
				same(tc.file, tc.point, tc.printed, figure, numbers[i])
			}
		}
	}
	for _, tc := range []struct{ file, figures string }{
		{"vllm/open.json", "rate=20 requests=40 failed=0"}, {"vllm/detailed.json", "concurrency=4 requests=30 failed=1"},
		{"sglang/bench.jsonl", "rate=20"}, {"aiperf/rate/profile_export_aiperf.json", "rate=20 requests=40 failed=1"},
		{"aiperf/concurrency/profile_export_aiperf.json", "concurrency=4 requests=24 failed=0"}, {"aiperf/both/profile_export_aiperf.json", "concurrency=4 rate=0"},
		{"guidellm/poisson.json", "rate=10 requests=30 failed=1"}, {"guidellm/poisson.csv", "rate=10 requests=30 failed=1"},
		{"guidellm/concurrent.csv", "concurrency=2 requests=12 failed=0"}, {"inference-perf/rate/stage_1_lifecycle_metrics.json", "rate=20 requests=40 failed=2"},
		{"inference-perf/concurrent/stage_0_lifecycle_metrics.json", "concurrency=4 rate=0 requests=20 failed=0"},
		{"mlperf/server/mlperf_log_summary.txt", "rate=20 achieved=20.83 sent=21.46 output=170.55 ttft.p99=39.222838 e2e.mean=61.846003 tpot.p90=5.187908"},
		{"mlperf/server/mlperf_log_detail.txt", "rate=20 achieved=20.8343 requests=44 failed=0 ttft.p99=39.222838 e2e.mean=61.846003 tpot.p90=5.187908"},
		{"mlperf/offline/mlperf_log_detail.txt", "requests=44 achieved=611.122 e2e.p99=71.998691"},
		{"llmperf/summary.json", "concurrency=4 requests=100 failed=0 ttft.mean=1713.7107673198806 ttft.p99=2246.308106680317 e2e.p95=9661.221329599448 output=64.53540931804359 run=246.6553293"},
		{"llmperf/individual_responses.json", "requests=6 failed=0 ttft.mean=588.7297383336166 ttft.p50=585.7524319999357 e2e.mean=7454.928289333414 tpot.mean=43.78754262229167"},
		{"vllm/sweep/SERVE--ttft=20ms-BENCH--request_rate=10/run=0.json", "rate=10 requests=12 failed=0"},
		{"k6/vus.json", "concurrency=4 requests=124 failed=9"}, {"locust/run_stats_history.csv", "concurrency=4 requests=100 failed=8 e2e.mean=72.7487040502092 e2e.p50=67"},
		{"locust/run_stats.csv", "concurrency=0 requests=100 failed=8 e2e.p50=67 e2e.p95=150 e2e.p99=390"},
	} {
		m := readFixture(t, tc.file).Measurements[0]
		for _, pair := range strings.Fields(tc.figures) {
			name, text, _ := strings.Cut(pair, "=")
			want, _ := strconv.ParseFloat(text, 64)
			if got := figureOf(t, &m, name); !(math.Abs(got-want) <= 1e-3*max(want, 1e-3)) {
				t.Errorf("%s: %s is %s, want %s", tc.file, name, fmt.Sprint(got), text)
			}
		}
	}
}

// Folders as the tools write them are read whole, each result once and no warm-up.
func TestFolders(t *testing.T) {
	for _, tc := range []struct{ folder, read, left string }{
		{"aiperf", "both/profile_export_aiperf.json concurrency/profile_export_aiperf.json rate/profile_export_aiperf.json",
			"aggregate/profile_export_aiperf_aggregate.json rate/phases/warmup/profile_export_aiperf.json rate/profile_export.jsonl rate/profile_export_aiperf.csv"},
		{"inference-perf/rate", "stage_0_lifecycle_metrics.json stage_1_lifecycle_metrics.json",
			"inference-perf.partial.stage_0.yaml inference-perf.partial.stage_1.yaml summary_lifecycle_metrics.json"},
		{"vllm/sweep", "SERVE--ttft=20ms-BENCH--max_concurrency=4/run=0.json SERVE--ttft=20ms-BENCH--max_concurrency=4/run=1.json " +
			"SERVE--ttft=20ms-BENCH--request_rate=10/run=0.json SERVE--ttft=20ms-BENCH--request_rate=10/run=1.json",
			"SERVE--ttft=20ms-BENCH--max_concurrency=4/summary.json SERVE--ttft=20ms-BENCH--max_concurrency=4/warmup.json " +
				"SERVE--ttft=20ms-BENCH--request_rate=10/summary.json SERVE--ttft=20ms-BENCH--request_rate=10/warmup.json"},
		{"guidellm", "concurrent.json poisson.json", "concurrent.csv poisson.csv poisson.yaml"},
	} {
		root := filepath.Join("testdata", tc.folder)
		all, err := ReadFiles([]string{root})
		if err != nil {
			t.Fatal(err)
		}
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
			if !loaded(m) || !m.Valid {
				t.Errorf("%s: %s at rate %g and concurrency %d: %q", tc.folder, m.Trial.Why, m.Trial.Rate, m.Trial.Concurrency, m.Warnings)
			}
		}
	}
}

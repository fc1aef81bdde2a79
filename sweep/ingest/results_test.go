package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/measure"
)

func ms(v float64) time.Duration { return time.Duration(math.Round(v * 1e6)) }

// Each file as its tool means it, in this project's terms.
func TestFormats(t *testing.T) {
	const none = float64(measure.Unresolved) / 1e6
	for _, tc := range []struct {
		file, format        string
		point               int
		rate                float64
		concurrency         int
		achieved            float64
		requests, failed    int
		ttft99, tpot50, e2e float64
	}{
		// 600 at 10/s arrive in 60 s; the run lasts 63.9 s, 1.87 s of them for the
		// last request, so 598 took 62.03 s.
		{"vllm.json", "vllm", 0, 10, 0, 598 / 62.03, 600, 2, 180.6, 14, 2410},
		{"vllm-appended.jsonl", "vllm", 0, 0, 8, 3.2, 64, 0, 80, none, none},
		// From the requests: TTFT 100 and 200 ms, E2E 160 and 250 ms, TPOT 30 and 50 ms.
		{"vllm-appended.jsonl", "vllm", 1, 2, 0, 2 / 1.795, 3, 1, 199, 40, 249.1},
		{"sglang.jsonl", "sglang", 0, 4, 0, 4, 500, 0, 150, 11.8, 4000},
		{"sglang.jsonl", "sglang", 1, 0, 16, 5, 200, 0, 240, none, 3600},
		// 473 at 8/s arrive in 59.13 s; the run of 60 s, with the 1.9 s of a request behind them, took no longer.
		{"guidellm.json", "guidellm", 0, 8, 0, 470 / 59.125, 473, 3, 160, 15, 2600},
		{"guidellm.json", "guidellm", 1, 0, 4, 3.3, 100, 0, 41, none, 1300},
		// 300 at 5/s arrive in 60 s, the run lasts 61.9 s and a request 2.05 s.
		{"profile_export_aiperf.json", "aiperf", 0, 5, 0, 299 / 60.0, 300, 1, 140, 15.5, 2800},
		{"profile_export_genai_perf.json", "genai-perf", 0, 0, 4, 0, 100, 0, 120, 15, 2500},
		{"llmperf_summary.json", "llmperf", 0, 0, 5, 1.47, 150, 3, 900, none, 4500},
		{"stage_0_lifecycle_metrics.json", "inference-perf", 0, 8, 0, 478 / 59.98, 480, 2, 200, 11, 9000},
	} {
		r := readFixture(tc.file)
		if r.Format != tc.format || len(r.Measurements) <= tc.point || len(r.Warnings) == 0 {
			t.Errorf("%s: read as %s, %d points, warnings %q", tc.file, r.Format, len(r.Measurements), r.Warnings)
			continue
		}
		m := r.Measurements[tc.point]
		if m.Trial.Rate != tc.rate || m.Trial.Concurrency != tc.concurrency || math.Abs(m.Achieved-tc.achieved) > 1e-3 ||
			m.Requests != tc.requests || m.Failed != tc.failed || !m.Valid || m.Trial.Number != tc.point+1 {
			t.Errorf("%s: rate %g, concurrency %d, achieved %g, %d requests, %d failed, valid %v", tc.file, m.Trial.Rate, m.Trial.Concurrency, m.Achieved, m.Requests, m.Failed, m.Valid)
		}
		if m.TTFT.P99 != ms(tc.ttft99) || m.TPOT.P50 != ms(tc.tpot50) || m.E2E.P99 != ms(tc.e2e) {
			t.Errorf("%s: TTFT p99 %v, TPOT p50 %v, E2E p99 %v", tc.file, m.TTFT.P99, m.TPOT.P50, m.E2E.P99)
		}
		if m.Counts != nil || m.Verdict != nil {
			t.Errorf("%s: counts or a verdict that nobody measured", tc.file)
		}
	}
}

func TestFormatDetails(t *testing.T) {
	first := func(file string) measure.Measurement { return readFixture(file).Measurements[0] }
	if k := first("vllm.json").Trial.Knobs; k != (measure.Knobs{MaxNumSeqs: 256, GPUMemoryUtilization: 0.9, PrefixUnknown: true}) {
		t.Errorf("knobs of a sweep: %+v", k)
	}
	if m := first("guidellm.json"); m.TPOT.N != 3 || m.TPOT.Mean != 15*time.Millisecond || m.TTFT.P999 != 190*time.Millisecond || m.ITL.P99 != measure.Unresolved || len(m.Warnings) != 1 {
		t.Errorf("guidellm: %+v", m)
	}
	if m := first("stage_0_lifecycle_metrics.json"); m.SendLag.P99 != 40*time.Millisecond || m.ITL.P99 != measure.Unresolved || m.Duration != 59980*time.Millisecond || m.Sent != 8.0025 {
		t.Errorf("inference-perf: %+v", m)
	}
}

// A report of inference-perf without the time of the run states the rate over it.
func TestInferencePerfWithoutTime(t *testing.T) {
	const file = "stage_0_lifecycle_metrics.json"
	data := must.Get(os.ReadFile(filepath.Join("testdata", file)))
	bare := must.Get(Read(file, bytes.Replace(data, []byte(`"benchmark_time_seconds"`), []byte(`"unheard_of"`), 1)))
	if a, b := readFixture(file).Measurements[0].Achieved, bare.Measurements[0].Achieved; b <= 0 || math.Abs(b/a-1) > 0.01 {
		t.Errorf("completed %g requests/s with the time of the run, %g without", a, b)
	}
}

// The last request of an open loop ends one request behind the last arrival: the time of a whole
// request may stand in the file, may follow from that of its tokens, or may not be known, and then
// neither is whether the server kept up.
func TestDrain(t *testing.T) {
	const run = `{"request_throughput":6.876,"completed":300,"failed":0,"duration":43.63,"request_rate":8,"total_output_tokens":60000,"output_throughput":1375.2`
	for times, want := range map[string]float64{
		`"mean_ttft_ms":160,"mean_tpot_ms":30,"mean_e2el_ms":6130`: 8,
		`"mean_ttft_ms":160,"mean_tpot_ms":30`:                     8,
		`"mean_ttft_ms":160,"mean_tpot_ms":10`:                     300 / (43.63 - 0.16 - 199*0.01),
		`"mean_ttft_ms":160`:                                       math.NaN(),
		`"mean_tpot_ms":30,"mean_itl_ms":30`:                       math.NaN(),
		`"p99_ttft_ms":160,"p99_tpot_ms":30`:                       math.NaN(),
	} {
		m := must.Get(Read("f.json", []byte(run+","+times+"}"))).Measurements[0]
		if got := m.Achieved; !(math.Abs(got-want) < 1e-3) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %g requests/s completed, want %g", times, got, want)
		}
	}
}

// A run that outlasts its arrivals by more than a backlog does has long answers at its end: whether
// the server kept up is then not known. The median time of requests is that of the file, or that of their tokens.
func TestDrainOfLongAnswers(t *testing.T) {
	for _, tc := range []struct {
		name, times string
		run, want   float64
	}{
		{"most requests are short", `"mean_e2el_ms":6130,"median_e2el_ms":4200`, 63.63, math.NaN()},
		{"the same by tokens", `"mean_ttft_ms":130,"median_ttft_ms":100,"mean_tpot_ms":30,"median_tpot_ms":20`, 63.63, math.NaN()},
		{"a backlog of 20 s", `"mean_e2el_ms":11000,"median_e2el_ms":11000`, 58.5, 300 / 47.5},
		{"hardly any drain", `"mean_e2el_ms":100,"median_e2el_ms":50`, 38.2, 300 / 38.1},
	} {
		run := fmt.Sprintf(`{"request_throughput":%g,"completed":300,"failed":0,"duration":%g,"request_rate":8,"total_output_tokens":60000,"output_throughput":%g,`,
			300/tc.run, tc.run, 60000/tc.run)
		m := must.Get(Read("f.json", []byte(run+tc.times+"}"))).Measurements[0]
		if got := m.Achieved; !(math.Abs(got-tc.want) < 1e-3) && !(math.IsNaN(got) && math.IsNaN(tc.want)) || m.Warnings.Has(note.DrainUnclear) != math.IsNaN(tc.want) {
			t.Errorf("%s: %g requests/s completed, want %g: %q", tc.name, got, tc.want, m.Warnings)
		}
	}
}

// A client that was late, a rate behind a limit, a burst and a load that nobody
// knows are told apart from an open loop.
func TestFormatDoubts(t *testing.T) {
	for _, tc := range []struct {
		name, text, warning string
		valid               bool
		concurrency         int
	}{
		{"late client", `{"load_summary":{"requested_rate":5,"send_duration":10,"schedule_delay":{"mean":9.25,"median":8}},"successes":{"count":50,"latency":{"time_to_first_token":{"mean":2.0}}},"failures":{"count":0}}`, "the client was the limit", false, 0},
		{"rate and limit", `{"request_throughput":1,"completed":10,"duration":10,"request_rate":5,"max_concurrency":4}`, "is a closed loop", true, 4},
		{"burst", `{"request_throughput":1,"completed":10,"duration":10,"request_rate":"inf","max_concurrency":null}`, "all 10 requests were sent at once", true, 10},
		{"unknown load", `{"aiperf_version":"0.1","request_count":{"avg":9},"request_throughput":{"unit":"requests/sec","avg":1},"time_to_first_token":{"unit":"ms","avg":10}}`, "neither the offered rate", false, 0},
		{"cancelled", `{"aiperf_version":"0.1","request_count":{"avg":9},"was_cancelled":true,"input_config":{"loadgen":{"concurrency":3}},"time_to_first_token":{"unit":"ms","avg":10}}`, "cancelled", false, 3},
	} {
		r, err := Read("f.json", []byte(tc.text))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		m := r.Measurements[0]
		if m.Valid != tc.valid || m.Trial.Concurrency != tc.concurrency || !strings.Contains(m.Warnings.String(), tc.warning) {
			t.Errorf("%s: valid %v, concurrency %d, warnings %q", tc.name, m.Valid, m.Trial.Concurrency, m.Warnings)
		}
	}
}

// A latency that the file has without a value is left out, and both its row and the
// file say so; one that the file does not have is nothing to talk about.
func TestLatenciesWithoutValue(t *testing.T) {
	for name, tc := range map[string]struct{ text, warning string }{
		"vllm":           {`{"request_throughput":1,"completed":9,"duration":9,"request_rate":1,"p50_ttft_ms":5,"p99_ttft_ms":NaN,"p99_tpot_ms":null}`, "p99_ttft_ms, p99_tpot_ms null, NaN or 0"},
		"vllm, in words": {`{"request_throughput":1,"completed":9,"duration":9,"request_rate":1,"p50_ttft_ms":5,"p99_ttft_ms":"nan"}`, "p99_ttft_ms null, NaN or 0"},
		"vllm, requests": {`{"request_throughput":1,"completed":2,"duration":2,"request_rate":1,"ttfts":[0.1,null],"itls":[[0.1],[0.1]],"output_lens":[2,2]}`, "entries of ttfts null"},
		"inference-perf": {`{"load_summary":{"requested_rate":5},"successes":{"count":5,"latency":{"time_to_first_token":{"mean":2.0,"p99":NaN}}},"failures":{"count":0}}`, "successes.latency.time_to_first_token.p99 null"},
		"guidellm":       {`{"benchmarks":[{"config":{"strategy":{"type_":"poisson","rate":1}},"metrics":{"request_totals":{"successful":3,"errored":0},"request_latency":{"successful":{"mean":1,"percentiles":{"p99":null}}}}}]}`, "metrics.request_latency.successful.percentiles.p99 null"},
		"aiperf":         {`{"aiperf_version":"0.1","request_count":{"avg":9},"input_config":{"loadgen":{"request_rate":3}},"time_to_first_token":{"unit":"ms","avg":10,"p99":-Infinity}}`, "time_to_first_token.p99 null"},
		"llmperf":        {`{"results_ttft_s_quantiles_p50":1,"results_ttft_s_quantiles_p99":NaN,"results_num_completed_requests":5,"num_concurrent_requests":1}`, "results_ttft_s_quantiles_p99 null"},
	} {
		r, err := Read("f.json", []byte(tc.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		row, file := r.Measurements[0].Warnings.String(), r.Warnings.String()
		if !strings.Contains(row, tc.warning) || !strings.Contains(file, "load point 1, line 1: "+tc.warning) {
			t.Errorf("%s: the row says %q, the file %q", name, row, file)
		}
	}
	for _, file := range []string{"vllm.json", "guidellm.json", "stage_0_lifecycle_metrics.json", "profile_export_aiperf.json", "llmperf_summary.json"} {
		if r := readFixture(file); strings.Contains(r.Warnings.String(), "null, NaN or 0") {
			t.Errorf("%s: %q", file, r.Warnings)
		}
	}
}

// TestEvenArrivals: a load that was sent more evenly than Poisson's says so, whatever the tool.
func TestEvenArrivals(t *testing.T) {
	for _, tc := range []struct{ file, from, to string }{
		{"vllm.json", `"burstiness": 1.0`, `"burstiness": 4.0`},
		{"profile_export_aiperf.json", `"arrival_pattern": "poisson"`, `"arrival_pattern": "constant"`},
		{"profile_export_genai_perf.json", `"concurrency": 4`, `"request_rate": 2`},
		{"guidellm.json", `"type_": "poisson"`, `"type_": "constant"`},
	} {
		text := string(must.Get(os.ReadFile("testdata/" + tc.file)))
		for _, of := range []struct {
			text string
			even bool
		}{{text, false}, {strings.Replace(text, tc.from, tc.to, 1), true}} {
			m := must.Get(Read("f.json", []byte(of.text))).Measurements[0]
			if said := strings.Contains(m.Warnings.String(), "evenly spaced"); said != of.even {
				t.Errorf("%s, sent evenly %v: warnings %q", tc.file, of.even, m.Warnings)
			}
		}
	}
}

func TestFormatProblems(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "f.json: no known results; read are: csv"},
		{`{"a":1}`, "f.json: no known results"}, {`{"a":1,"b":2}`, "f.json: no known results; read"},
		{"# ours\nqps,P99 TTFT\n1,120\n", "f.json:2: no known results: none of the columns qps,P99 TTFT is known; read are: csv (plain CSV of measured points (rate_per_s,"},
		{"rate,ttft_p99_ms\n1,120\n", "f.json:1: rate: unknown column; allowed:"},
		{`{"load_summary":{"requested_rate":"x"},"successes":{"count":1}}`, "f.json:1: load_summary.requested_rate: a string, not a number"},
		{`{"load_summary":{},"successes":{"count":1,"latency":{"time_to_first_token":{"p99":"x"}}}}`, "f.json:1: successes.latency.time_to_first_token.p99: a string, not a number"},
		{"\n{\"load_summary\":", "f.json:2: unexpected EOF within"},
		{`{"benchmarks":[],"metrics":1}`, "f.json: holds no load point of guidellm"},
		{`[{"request_throughput":1,"duration":1},{"completed":2}]`, "f.json:1: completed: is missing"},
		{`{"request_throughput":1,"completed":2.5,"duration":1}`, "f.json:1: completed: 2.5 is no count"},
		{`{"request_throughput":1,"completed":2,"duration":0,"request_rate":1}`, "f.json:1: duration: 0 s is no duration"},
		{`{"request_throughput":2,"completed":2,"duration":1,"p50_ttft_ms":5,"p99_ttft_ms":4}`, "f.json:1: ttft: p99 of 4ms is below p50 of 5ms"},
		{`{"aiperf_version":"1","request_count":{"avg":9},"time_to_first_token":{"unit":"parsec","avg":1}}`, `f.json:1: time_to_first_token: unit "parsec" is unknown`},
		{"{\"request_throughput\":2,\"completed\":2,\"duration\":1,\"max_concurrency\":1}\n{\"request_throughput\":1}\n", "f.json:2: completed: is missing"},
		{`{"request_throughput":600,"completed":600,"duration":1,"failed":0,"ttfts":[1,2],"output_lens":[1,2]}`, "f.json:1: ttfts: 2 entries for 600 requests"},
		{`{"request_throughput":2,"completed":2,"duration":1,"failed":0,"ttfts":[1,2],"output_lens":[1,2,3]}`, "f.json:1: ttfts: 2 entries, and 3 in output_lens"},
		{`{"request_throughput":2,"completed":2,"duration":1,"failed":0,"ttfts":[1,-2],"output_lens":[1,2]}`, "f.json:1: ttfts: -2 of request 2 is negative"},
		{`{"request_throughput":0,"completed":0,"duration":1,"failed":5,"request_rate":1}`, "f.json:1: completed: no request was completed"},
		{`{"request_throughput":9,"completed":2,"duration":1}`, "f.json:1: request_throughput: 9/s are not the 2 completed requests in 1 s"},
		{`{"request_throughput":2,"completed":2,"completed":3,"duration":1}`, `f.json:1: duplicate object member name "completed"`},
		{`{"request_throughput":2,"completed":2,"duration":-1,"request_rate":1}`, "f.json:1: duration: -1 is no duration"},
		{`{"request_throughput":2,"completed":2,"duration":1,"output_throughput":-5}`, "f.json:1: output_throughput: -5 is no rate"},
		{`{"request_throughput":2,"completed":2,"duration":1,"mean_ttft_ms":1e40}`, "f.json:1: mean_ttft_ms: 1e+40 is no latency"},
		{`{"num_sessions":3,"session_duration_sec":{"mean":1}}`, "f.json: sessions, not requests: read stage_N_lifecycle_metrics.json"},
	} {
		_, err := Read("f.json", []byte(tc.text))
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || !inFile(err) {
			t.Errorf("%s: error %v, want %q", tc.text, err, tc.want)
		}
	}
}

// Whatever the bytes are, reading ends with measurements that hold together or
// with an error that names the file.
func FuzzResults(f *testing.F) {
	smallest := map[string]string{} // of each layout: larger ones are slow to read, and tell no more
	for _, file := range fixtures(f) {
		_, l, err := detect(file.name, file.data)
		must.OK(err)
		kind := strings.Join(l.marks, "")
		if old, ok := smallest[kind]; len(file.data) < 8<<10 && (!ok || len(file.data) < len(old)) {
			smallest[kind] = string(file.data)
		}
	}
	for _, text := range slices.Sorted(maps.Values(smallest)) {
		f.Add(text)
	}
	f.Add("rate_per_s,ttft_p50_ms,ttft_p99_ms\n1,82,95\n5,85,110\n")
	f.Add("rate_per_s,e2e_mean_ms,requests,failed,duration_s\n1,82,95,3,60\n")
	f.Add("rate_per_s,e2e_mean_ms,requests,failed,duration_s\n1,82,,3,60\n")
	f.Add("rate_per_s,ttft_p99_ms\n1,\"2\n")
	f.Add("#\n\xef\xbb\xbf")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read("f", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error %q", err)
			}
			return
		}
		for _, m := range r.Measurements {
			if m.Trial.Rate < 0 || m.Trial.Concurrency < 0 || m.Failed > m.Requests || m.Achieved < 0 || math.IsInf(m.Achieved, 0) || m.Duration < measure.Unresolved {
				t.Errorf("measurement %+v", m)
			}
			for _, metric := range measure.AllLatencies() {
				if err := ordered(m.Latency(metric)); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// What other releases write elsewhere, or under other names, is the same figure.
func TestOtherReleases(t *testing.T) {
	type object = map[string]any
	for file, edit := range map[string]func(doc object){
		"guidellm.json": func(doc object) { // up to 0.3
			for _, b := range doc["benchmarks"].([]any) {
				b, metrics := b.(object), b.(object)["metrics"].(object)
				b["request_totals"], b["args"] = metrics["request_totals"], b["config"]
				delete(metrics, "request_totals")
				delete(b, "config")
			}
		},
		"stage_0_lifecycle_metrics.json": func(doc object) { // up to 0.1
			for _, m := range doc["successes"].(object)["latency"].(object) {
				m := m.(object)
				m["p50"] = m["median"]
				delete(m, "median")
			}
		},
		"k6/rate.json": func(doc object) { // of handleSummary
			metrics := doc["metrics"].(object)
			for name, values := range metrics {
				metrics[name] = object{"type": "trend", "contains": "time", "values": values}
			}
		},
	} {
		text := must.Get(os.ReadFile(filepath.Join("testdata", file)))
		var doc object
		must.OK(json.Unmarshal(text, &doc))
		edit(doc)
		was, is := must.Get(Read(file, text)), must.Get(Read(file, must.Get(json.Marshal(doc))))
		if fmt.Sprintf("%+v", was) != fmt.Sprintf("%+v", is) { // NaN is no equal of itself
			t.Errorf("%s: %+v\nwant %+v", file, is, was)
		}
	}
	trace := bytes.Replace(must.Get(os.ReadFile("testdata/sglang/bench.jsonl")), []byte(`"request_rate": 20.0`), []byte(`"request_rate": "trace"`), 1)
	if m := must.Get(Read("f", trace)).Measurements[0]; m.Valid || m.Trial.Closed() || !m.Warnings.Has(note.NoLoad) {
		t.Errorf("a replayed trace has no rate: %+v", m.Trial)
	}
}

// Requests that stand in a file twice, as one that was appended to itself has them, are
// counted once, and that is said.
func TestRequestsTwice(t *testing.T) {
	for _, file := range []string{"aiperf/rate/profile_export.jsonl", "inference-perf/concurrent/per_request_lifecycle_metrics.json"} {
		data := must.Get(os.ReadFile(filepath.Join("testdata", file)))
		once, twice := must.Get(Read(file, data)).Measurements[0], must.Get(Read(file, append(append(data, '\n'), data...))).Measurements[0]
		if twice.Requests != once.Requests || twice.Failed != once.Failed || twice.Achieved != once.Achieved || twice.TTFT != once.TTFT {
			t.Errorf("%s: %d requests (%d failed) at %g/s, twice %d (%d) at %g/s", file, once.Requests, once.Failed, once.Achieved, twice.Requests, twice.Failed, twice.Achieved)
		}
		if once.Warnings.Has(note.RowsTwice) || !twice.Warnings.Has(note.RowsTwice) {
			t.Errorf("%s: %q, twice %q", file, once.Warnings, twice.Warnings)
		}
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"planner/internal/evidence/must"
	"planner/sweep/serve"
)

// faultRun sends a closed loop to a server with a fault and returns what was
// measured, and what the server says that it did.
func faultRun(t *testing.T, fault string, args ...string) (measuredJSON, []serve.Emission) {
	t.Helper()
	dir := t.TempDir()
	cmd := planner(t, dir, "serve-sim", "--listen", "127.0.0.1:0", "--ttft", "20ms", "--tpot", "2ms", "--fault", fault, "--log", "emitted.jsonl")
	url, stop := begin(t, cmd)
	load := []string{"bench", "--url", url, "--json", "--quiet", "--concurrency", "8", "--requests", "48", "--set", "workload.prompt={dist=\"fixed\",value=20}",
		"--set", "workload.output={dist=\"fixed\",value=10}", "--set", "workload.timeout=500ms"}
	m := measuredBy(t, planner(t, dir, append(load, args...)...))
	stop()
	f := must.Get(os.Open(filepath.Join(dir, "emitted.jsonl")))
	defer f.Close()
	lines := json.NewDecoder(f)
	var start serve.LogStart
	must.OK(lines.Decode(&start))
	var emitted []serve.Emission
	for lines.More() {
		var e serve.Emission
		must.OK(lines.Decode(&e))
		emitted = append(emitted, e)
	}
	return m, emitted
}

// TestFaultsAreFailures: each way in which a server can fail a request is counted
// as that, as often as the server says that it did so, and gives no latency.
func TestFaultsAreFailures(t *testing.T) {
	for i, c := range []struct{ fault, class string }{
		{"error=500@0.3", "http_status"}, {"error=429@0.3", "http_status"},
		{"cut=3@0.3", "truncated"}, {"reset=3@0.3", "reset"}, {"malformed=4@0.3", "malformed"},
		{"short=2@0.3", "wrong_length"}, {"empty@0.3", "empty"}, {"event=2@0.3", "stream_error"}, {"hang@0.1", "timeout"},
	} {
		api := []string{"completions", "chat"}[i%2]
		t.Run(c.fault+"/"+api, func(t *testing.T) {
			t.Parallel()
			m, emitted := faultRun(t, c.fault, "--api", api)
			hit := 0
			for _, e := range emitted {
				if e.Fault != "" && e.Asked > 1 { // not those that measure how long texts are
					hit++
				}
			}
			if hit == 0 || m.Requests != 48 || m.Failed != hit || m.Failures[c.class] != hit || len(m.Failures) != 1 {
				t.Errorf("%d of %d requests failed, %v; the server failed %d", m.Failed, m.Requests, m.Failures, hit)
			}
			if good := 48 - hit; m.TTFT.N != good || m.E2E.N != good {
				t.Errorf("%d first tokens and %d ends in the latencies, %d requests ended well", m.TTFT.N, m.E2E.N, good)
			}
		})
	}
}

// TestServerGoes: a server that refuses connections for a while fails what it is
// sent in the meantime, and nothing else. A port that closes resets the connections
// that wait behind it.
func TestServerGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, _ := begin(t, planner(t, dir, "serve-sim", "--listen", "127.0.0.1:0", "--ttft", "exponential:30ms", "--tpot", "2ms", "--fault", "refuse=300ms@0.05"))
	m := measuredBy(t, planner(t, dir, "bench", "--url", url, "--json", "--quiet", "--rate", "200", "--duration", "3s", "--warm-up", "0s",
		"--set", "workload.prompt={dist=\"fixed\",value=20}", "--set", "workload.output={dist=\"fixed\",value=10}"))
	if m.Failed == 0 || m.TTFT.N > m.Requests-m.Failed || m.E2E.N != m.Requests-m.Failed {
		t.Errorf("%+v", m)
	}
	for class := range m.Failures {
		if class != "refused" && class != "reset" {
			t.Errorf("failures %v", m.Failures)
		}
	}
}

// TestServerTooSlow: a server that takes longer than the schedule gives it does not
// slow the schedule down. Latencies grow from the intended times, and that is said.
func TestServerTooSlow(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	url, _ := begin(t, planner(t, dir, "serve-sim", "--listen", "127.0.0.1:0", "--ttft", "5ms", "--tpot", "0s", "--slots", "1")) // 200 requests/s
	m := measuredBy(t, planner(t, dir, "bench", "--url", url, "--json", "--quiet", "--rate", "250", "--duration", "10.5s", "--warm-up", "0s",
		"--set", "workload.prompt={dist=\"fixed\",value=20}", "--set", "workload.output={dist=\"fixed\",value=1}", "--slo", "ttft.p90=200ms"))
	// At the end some 525 requests wait: the last ones for 2.6 s.
	if !m.Overloaded || m.Failed != 0 || m.TTFT.P90 == nil || *m.TTFT.P90 < 1200 || *m.TTFT.P90 > 4000 || m.Requests < 2400 || m.Requests > 2900 {
		t.Errorf("%+v", m)
	}
}

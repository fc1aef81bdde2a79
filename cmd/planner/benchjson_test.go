package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"planner/internal/evidence/must"
)

// begin starts a serve-sim and returns its address. It is ended by stop, or with
// the test.
func begin(t *testing.T, server *exec.Cmd) (url string, stop func()) {
	t.Helper()
	says := must.Get(server.StderrPipe())
	must.OK(server.Start())
	stop = sync.OnceFunc(func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	})
	t.Cleanup(stop)
	line, err := bufio.NewReader(says).ReadString('\n')
	url, ok := strings.CutPrefix(strings.Split(line, ";")[0], "serving on ")
	if err != nil || !ok {
		t.Fatalf("serve-sim says %q, %v", line, err)
	}
	return url, stop
}

// measuredJSON is what the tests look at of a measurement in JSON.
type measuredJSON struct {
	Rate     float64        `json:"rate_per_s"`
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"`
	Failures map[string]int `json:"failures"`
	TTFT     struct {
		Mean *float64 `json:"mean"`
		P50  *float64 `json:"p50"`
		P90  *float64 `json:"p90"`
		P99  *float64 `json:"p99"`
		N    int      `json:"n"`
	} `json:"ttft_ms"`
	ITL struct {
		N int `json:"n"`
	} `json:"itl_ms"`
	E2E struct {
		Mean *float64 `json:"mean"`
		N    int      `json:"n"`
	} `json:"e2e_ms"`
	Overloaded bool     `json:"overloaded"`
	Warnings   []string `json:"warnings"`
}

func (m *measuredJSON) warns(text string) bool {
	return strings.Contains(strings.Join(m.Warnings, "\n"), text)
}

// measuredBy runs planner and reads the measurement that it prints.
func measuredBy(t *testing.T, cmd *exec.Cmd) measuredJSON {
	t.Helper()
	var says strings.Builder
	cmd.Stderr = &says
	out, err := cmd.Output()
	var m measuredJSON
	if jerr := json.Unmarshal(out, &m); jerr != nil {
		t.Fatalf("%v: %v, %v\n%s%s", cmd.Args, err, jerr, out, says.String())
	}
	return m
}

// TestBenchAttached measures a server that runs already: every request of the
// schedule, and what the run folder must hold of them.
func TestBenchAttached(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	url, _ := begin(t, planner(t, dir, "serve-sim", "--listen", "127.0.0.1:0", "--ttft", "20ms", "--tpot", "10ms"))
	m := measuredBy(t, planner(t, dir, "bench", "--url", url, "--set", "workload.prompt={dist=\"fixed\",value=40}", "--set", "workload.output={dist=\"fixed\",value=8}",
		"--rate", "150", "--duration", "2s", "--warm-up", "500ms", "--json", "--quiet", "-o", "run"))
	if n := m.Requests; n < 200 || m.Rate != 150 || m.Failed != 0 || m.TTFT.N != n || m.ITL.N != 7*n && !m.warns("most or many came at once") {
		t.Errorf("%+v", m)
	}
	if m.TTFT.Mean == nil || *m.TTFT.Mean < 20 {
		t.Errorf("%+v: want a mean TTFT of 20 ms and what a busy machine adds", m.TTFT)
	}
	for _, name := range []string{"journal.jsonl", "records/0001.jsonl.zst", "histograms/0001.hlog", "report.txt", "config.toml"} {
		if info, err := os.Stat(filepath.Join(dir, "run", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if log := read(filepath.Join(dir, "run", "histograms/0001.hlog")); !strings.Contains(log, "Tag=ttft,") || !strings.Contains(log, "Tag=chunk_gap,") {
		t.Errorf("histogram log:\n%.300s", log)
	}
}

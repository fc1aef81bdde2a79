package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// begin starts a serve-sim and returns its address. It is ended by stop, or with
// the test.
func begin(t *testing.T, server *exec.Cmd) (url string, stop func()) {
	t.Helper()
	says, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
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
	Valid      bool     `json:"valid"`
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

// TestTwoGenerators: two processes send a part each of one schedule, from the same
// instant, and their runs are merged: all requests of the schedule, as one.
func TestTwoGenerators(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	url, _ := begin(t, planner(t, dir, "serve-sim", "--listen", "127.0.0.1:0", "--ttft", "20ms", "--tpot", "2ms"))
	load := []string{"bench", "--url", url, "--set", "workload.prompt={dist=\"fixed\",value=40}", "--set", "workload.output={dist=\"fixed\",value=8}",
		"--rate", "150", "--duration", "2s", "--warm-up", "500ms", "--json", "--quiet"}
	at := time.Now().Add(1500 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	var parts [2]measuredJSON
	done := make(chan bool)
	for i := range parts {
		go func() {
			defer func() { done <- true }()
			args := append(load, "--start-at", at, "--part", fmt.Sprintf("%d/2", i+1), "-o", fmt.Sprintf("part%d", i+1))
			parts[i] = measuredBy(t, planner(t, dir, args...))
		}()
	}
	<-done
	<-done
	both := measuredBy(t, planner(t, dir, "merge", "part2", "part1", "-o", "both", "--json"))
	if n := parts[0].Requests + parts[1].Requests; both.Requests != n || both.Rate != 150 || both.Failed != 0 || both.TTFT.N != n || both.ITL.N != 7*n {
		t.Errorf("merged %+v\nof %+v\nand %+v", both, parts[0], parts[1])
	}
	whole := measuredBy(t, planner(t, dir, append(load, "-o", "whole")...))
	if both.Requests != whole.Requests {
		t.Errorf("%d requests in parts, %d by one generator", both.Requests, whole.Requests)
	}
	if both.TTFT.Mean == nil || *both.TTFT.Mean < 20 || *both.TTFT.Mean > 60 {
		t.Errorf("mean TTFT %v ms, want 20 and what a busy machine adds", both.TTFT.Mean)
	}
	for _, name := range []string{"journal.jsonl", "records/0001.jsonl.zst", "histograms/0001.hlog", "report.txt", "config.toml"} {
		if info, err := os.Stat(filepath.Join(dir, "both", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if log := read(t, filepath.Join(dir, "both", "histograms/0001.hlog")); !strings.Contains(log, "Tag=ttft,") || !strings.Contains(log, "Tag=chunk_gap,") {
		t.Errorf("histogram log:\n%.300s", log)
	}
	if out, err := planner(t, dir, "report", "both").CombinedOutput(); err != nil || !strings.Contains(string(out), "joined on the hosts' clocks") {
		t.Errorf("report: %v\n%s", err, out)
	}
	for want, args := range map[string][]string{
		"missing or there twice":        {"part1", "part1"},
		"not of one schedule":           {"part1", "whole"},
		"two run folders at least":      {"part1"},
		"only runs of 'planner bench'":  {"both", "part1"},
		"exists already":                {"part1", "part2", "-o", "whole"},
		"no run folder":                 {"part1", "nothing"},
		"missing the run folder to wri": {"part1", "part2", "-o", ""},
	} {
		if !slices.Contains(args, "-o") {
			args = append(args, "-o", "x")
		}
		out, err := planner(t, dir, append([]string{"merge"}, args...)...).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("merge %v: %v, want exit code 2 and %q\n%s", args, err, want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("a refused merge left a folder")
	}
}

// TestPartsAreRefused: flags that cannot make one trial of several generators.
func TestPartsAreRefused(t *testing.T) {
	soon := time.Now().Add(time.Hour).Format(time.RFC3339)
	base := []string{"bench", "--url", "http://127.0.0.1:9", "--workload", "chat"}
	for want, args := range map[string][]string{
		"--part needs --start-at":       {"--rate", "1", "--part", "1/2"},
		"--part needs --warm-up":        {"--rate", "1", "--part", "1/2", "--start-at", soon},
		"is no share":                   {"--rate", "1", "--part", "3/2", "--start-at", soon, "--warm-up", "1s"},
		"has passed":                    {"--rate", "1", "--start-at", "2020-01-01T00:00:00Z"},
		"is not a date and time":        {"--rate", "1", "--start-at", "noon"},
		"is too small for 8 parts":      {"--concurrency", "4", "--part", "1/8", "--start-at", soon},
		"a server that runs already: g": {"--rate", "1", "--part", "1/2", "--set", "engine.kind=vllm"},
	} {
		out, err := planner(t, t.TempDir(), append(base, args...)...).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, want exit code 2 and %q\n%s", args, err, want, out)
		}
	}
}

//go:build realtime

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"planner/internal/evidence/must"
	"planner/internal/evidence/programtest"
	"planner/sweep"
	"planner/sweep/measure"
)

// agreeConfig is searched in virtual time as it stands, and with an engine of
// kind "command" on a real port.
const agreeConfig = `
[slo]
ttft = { p90 = "500ms" }
tpot = { p90 = "60ms" }
[model]
name = "llama-3.1-8b"
weights = "fp8"
[hardware]
gpu = "L4"
[knobs]
max_num_seqs = 32
max_num_batched_tokens = 2048
gpu_memory_utilization = 0.9
[workload]
prompt = { dist = "lognormal", median = 100, sigma = 0.4, min = 20, max = 300 }
output = { dist = "lognormal", median = 20, sigma = 0.4, min = 5, max = 60 }
[search]
precision = 0.2
`

// agreeLive turns it into the configuration of an engine that is launched.
const agreeLive = `warm_up = "4s"
trial = "20s"
budget = "3m"
[engine]
kind = "command"
command = ["planner", "serve-sim", "sim.toml", "-q", "--listen", "127.0.0.1:{port}"]
`

// The maximum rate of one configuration is the same in virtual time and over a
// real port, within the two intervals. It takes minutes and a machine that is
// otherwise idle: go test -tags realtime -run CommandEngineAgrees ./cmd/planner
func TestCommandEngineAgrees(t *testing.T) {
	dir := t.TempDir()
	must.OK(os.Symlink(must.Get(os.Executable()), filepath.Join(dir, "planner")))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, text := range map[string]string{"sim.toml": agreeConfig, "live.toml": agreeConfig + agreeLive} {
		put(t, filepath.Join(dir, name), text)
	}
	virtual, real := maxRate(t, dir, "sim.toml"), maxRate(t, dir, "live.toml", "-o", "run")
	t.Logf("virtual time: %.4g requests/s (%.4g to %.4g); over a port: %.4g (%.4g to %.4g)", virtual.Value, virtual.Low, virtual.High, real.Value, real.Low, real.High)
	trials, err := sweep.ReadJournal(filepath.Join(dir, "run", "journal.jsonl"))
	if err != nil || len(trials) == 0 {
		t.Fatalf("%d trials: %v", len(trials), err)
	}
	if all := measure.OverviewOf(trials); all.Invalid == all.Trials {
		t.Skipf("SKIPPED: this machine is too busy to measure on: %v", all.Doubts)
	}
	if virtual.High < real.Low || real.High < virtual.Low {
		t.Errorf("the intervals do not overlap: %+v in virtual time, %+v over a port", virtual, real)
	}
}

// rateJSON is a maximum rate as a search prints it.
type rateJSON struct{ Value, Low, High float64 }

// maxRate searches a configuration and returns its maximum rate.
func maxRate(t *testing.T, dir string, args ...string) rateJSON {
	t.Helper()
	cmd := planner(t, dir, append([]string{"search", "--json"}, args...)...)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	// A budget that ends early is exit code 4: an interval all the same.
	if code := programtest.ExitCode(err); code != exitDone && code != exitUndecided {
		t.Fatalf("%v: %s", err, data)
	}
	var found struct {
		MaxRate *rateJSON `json:"max_rate_per_s"`
	}
	must.OK(json.Unmarshal(data, &found))
	if found.MaxRate == nil {
		t.Skipf("SKIPPED: no rate is known: %s", data)
	}
	return *found.MaxRate
}

//go:build slurm && realtime

package clusters

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"planner/internal/evidence/programtest"
	"planner/sweep"
	"planner/sweep/measure"
)

// paced is a plan over two GPUs, two degrees and four knob sets, of rates that two
// processors serve in real time, and limits against which they are late by little.
const paced = `
[demand]
rate = 6
[slo]
ttft = { p90 = "3s" }
tpot = { p90 = "300ms" }
[model]
name = "llama-3.1-8b"
weights = "bf16"
[hardware]
gpu = ["L4", "L40S"]
[knobs]
max_num_seqs = [2, 4, 8, 16]
max_num_batched_tokens = 2048
gpu_memory_utilization = 0.9
[workload]
prompt = { dist = "lognormal", median = 1000, sigma = 0.4, min = 200, max = 3000 }
output = { dist = "lognormal", median = 20, sigma = 0.4, min = 5, max = 60 }
[search]
precision = 0.2
`

// virtual has the simulated engine of the plan serve in virtual time.
const virtual = `
[engine]
tensor_parallel = [1, 2]
`

// served has it serve in jobs, in real time.
const served = `warm_up = "2s"
trial = "10s"
budget = "3m"
[engine]
kind = "command"
command = ["PROGRAM", "serve-sim", "sim.toml", "-q", "--served-name", "SERVED", "--listen", "127.0.0.1:{port}", "--gpu", "{gpu}",
  "--tp", "{tensor_parallel}", "--set", "knobs.max_num_seqs={max_num_seqs}"]
tensor_parallel = [1, 2]
launcher = "slurm"
[cluster]
gpu = { "L4" = "a100", "L40S" = "l40s" }
`

// Four jobs at once take little more than a quarter of the time that they take one after
// the other, and the plan that they come to is that of virtual time.
func TestFourAtOnce(t *testing.T) {
	dir := folder(t, paced+served)
	if err := os.WriteFile(filepath.Join(dir, "sim.toml"), []byte(paced+virtual), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, 0, dir, "plan", "sim.toml", "-o", "virtual", "-q")
	var want choice
	read(t, filepath.Join(dir, "virtual", "plan.json"), &want)
	took, busy := map[int]time.Duration{}, ""
	for _, jobs := range []int{4, 1} {
		name := fmt.Sprint("jobs", jobs)
		began := time.Now()
		cmd, said := planner(dir, "plan", "p.toml", "-o", name, "--set", fmt.Sprint("cluster.max_jobs=", jobs))
		code := programtest.ExitCode(cmd.Run())
		took[jobs] = time.Since(began)
		nothingLeft(t, dir, name)
		all, err := sweep.ReadJournal(filepath.Join(dir, name, sweep.JournalFile))
		if err != nil {
			t.Fatal(err)
		}
		o := measure.OverviewOf(all)
		t.Logf("%d at once: %v, %d trials, %d of them invalid, exit code %d", jobs, took[jobs].Round(time.Second), o.Trials, o.Invalid, code)
		if 2*o.Invalid > o.Trials {
			busy = fmt.Sprint(o.Doubts)
			continue
		}
		var got choice
		read(t, filepath.Join(dir, name, "plan.json"), &got)
		if got.Knobs != want.Knobs || got.Rate.High < want.Rate.Low || got.Rate.Low > want.Rate.High {
			t.Errorf("planned %+v, in virtual time %+v: %s", got, want, said)
		}
	}
	if share := took[4].Seconds() / took[1].Seconds(); share > 0.35 {
		t.Errorf("four at once took %.2f of the time of one after the other", share)
	}
	if busy != "" {
		t.Skip("SKIPPED: this machine is too busy to plan on: ", busy)
	}
}

// choice is what a plan chooses, and the rate that it carries.
type choice struct {
	Knobs struct {
		GPU            string `json:"gpu"`
		TensorParallel int    `json:"tensor_parallel"`
		MaxNumSeqs     int    `json:"max_num_seqs"`
	} `json:"knobs"`
	Rate struct{ Low, High float64 } `json:"max_rate_per_s"`
}

//go:build slurm

package clusters

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/programtest"
)

// realEngine is a sweep of llama-server, one thread of it.
const realEngine = `
[model]
name = "FOLDER/model.gguf"
[hardware]
gpu = "L40S"
[engine]
kind = "llama-server"
served_name = "SERVED"
extra_args = ["-t", "1"]
ready_timeout = "5m"
launcher = "slurm"
[knobs]
max_num_seqs = [4, 2]
max_num_batched_tokens = 512
gpu_memory_utilization = 0.9
max_model_len = 2048
[workload]
prompt = { dist = "uniform", min = 16, max = 48 }
output = { dist = "fixed", value = 8 }
[cluster]
gpu = { "L40S" = "l40s" }
setup = ["export PATH=FOLDER:$PATH"]
`

// llama-server, as .ci/engines installs it, in a job.
func TestRealEngine(t *testing.T) {
	t.Parallel()
	cache, _ := os.UserCacheDir() // "" is no folder with an engine
	llama := filepath.Join(cmp.Or(os.Getenv("PLANNER_ENGINES_DIR"), filepath.Join(cache, "planner-engines")), "llama")
	if _, err := os.Stat(filepath.Join(llama, "installed")); err != nil {
		t.Skip("SKIPPED: .ci/engines llama installs llama-server: ", err)
	}
	dir := folder(t, strings.ReplaceAll(realEngine, "FOLDER", llama))
	sweep, said := planner(dir, "sweep", "p.toml", "-o", "run", "--rates", "0.5", "--duration", "10s", "--warm-up", "2s")
	if code := programtest.ExitCode(sweep.Run()); code != 0 && code != noneTrusted {
		t.Fatalf("exit code %d: %s", code, said)
	}
	seen := lines(dir, bothParts[0])
	if len(seen) != 2 {
		t.Errorf("%d trials, want 2: %s", len(seen), said)
	}
	for _, m := range seen {
		if m.Rejected.Text != "" || m.Failed == m.Requests {
			t.Errorf("rejected %q, %+v", m.Rejected.Text, m.Tally)
		}
	}
	nothingLeft(t, dir, "run")
}

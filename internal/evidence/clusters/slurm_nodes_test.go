//go:build slurm

package clusters

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/programtest"
)

// overNodes is a sweep of engines on eight GPUs, of which a node has four.
const overNodes = `
[model]
name = "llama-3.1-70b"
[hardware]
gpu = "A100 SXM 80GB"
node_gpus = 4
[engine]
kind = "vllm"
served_name = "SERVED"
tensor_parallel = 4
pipeline_parallel = 2
env = { NCCL_DEBUG = "INFO" }
launcher = "slurm"
[workload]
prompt = { dist = "fixed", value = 20 }
output = { dist = "fixed", value = 10 }
[knobs]
gpu_memory_utilization = 0.9
[cluster]
gpu = { "A100 SXM 80GB" = "a100" }
setup = ["export PATH=$PWD:$PATH"]
`

// fakeVLLM writes down what it is given on its node, and serves on the first; the others
// listen, too, to be found where they are left.
const fakeVLLM = `#!/bin/bash
echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $MASTER_ADDR $NCCL_DEBUG $*" > "rank-$SLURM_NODEID"
port=0
while [ $# -gt 0 ]; do
	[ "$1" != --port ] || [ "$SLURM_NODEID" != 0 ] || port=$2
	shift
done
exec PROGRAM serve-sim -q --ttft 20ms --tpot 2ms --served-name SERVED --listen "127.0.0.1:$port"
`

// An engine that takes more GPUs than a node has is started on as many as it fills: each
// is told its rank and where the first is, and has its own GPUs.
func TestEngineOverNodes(t *testing.T) {
	t.Parallel()
	dir := folder(t, overNodes)
	script := strings.NewReplacer("PROGRAM", program, "SERVED", servedName(t)).Replace(fakeVLLM)
	if err := os.WriteFile(filepath.Join(dir, "vllm"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	sweep, said := planner(dir, "sweep", "p.toml", "-o", "run", "--rates", "5,6", "--duration", "4s", "--warm-up", "1s")
	if code := programtest.ExitCode(sweep.Run()); code != 0 && code != noneTrusted {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if seen := lines(dir, "a100-sxm-80gb-tp4-pp2"); len(seen) != 2 || seen[0].Rejected.Text != "" {
		t.Errorf("%d trials, want 2: %s", len(seen), said)
	}
	for rank, want := range []struct{ node, ending string }{
		{"n1", "--nnodes 2 --node-rank 0 --master-addr 127.0.0.1"},
		{"n2", "--nnodes 2 --node-rank 1 --master-addr 127.0.0.1 --headless"},
	} {
		told, err := os.ReadFile(filepath.Join(dir, "rank-"+string(rune('0'+rank))))
		line := strings.TrimSpace(string(told))
		if err != nil || !strings.HasPrefix(line, want.node+" 8,9,10,11 127.0.0.1 INFO serve ") || !strings.HasSuffix(line, want.ending) ||
			!strings.Contains(line, " --tensor-parallel-size 4 --pipeline-parallel-size 2 ") {
			t.Errorf("rank %d was told %q, %v", rank, line, err)
		}
	}
	nothingLeft(t, dir, "run")
}

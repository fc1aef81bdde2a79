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
[ "$SLURM_NODEID" = 0 ] || [ ! -e dies ] || { sleep 6; echo "RuntimeError: the link is down" >&2; exit 5; }
exec PROGRAM serve-sim -q --ttft 20ms --tpot 2ms --served-name SERVED --listen "127.0.0.1:$port"
`

// An engine that takes more GPUs than a node has is started on as many as it fills: each
// is told its rank and where the first is, and has its own GPUs. Where one dies the engine
// has failed, in the words of that one.
func TestEngineOverNodes(t *testing.T) {
	t.Parallel()
	dir := folder(t, overNodes)
	script := strings.NewReplacer("PROGRAM", program, "SERVED", servedName(t)).Replace(fakeVLLM)
	if err := os.WriteFile(filepath.Join(dir, "vllm"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	sweep := func(name string) (int, string) {
		cmd, said := planner(dir, "sweep", "p.toml", "-o", name, "--rates", "5,6", "--duration", "4s", "--warm-up", "1s")
		code := programtest.ExitCode(cmd.Run())
		nothingLeft(t, dir, name)
		return code, said.String()
	}
	code, said := sweep("run")
	if code != 0 && code != noneTrusted {
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
	if err := os.WriteFile(filepath.Join(dir, "dies"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := sweep("dying"); code != 1 || !strings.Contains(strings.Join(strings.Fields(said), " "), "exit status 5: RuntimeError: the link is down") {
		t.Errorf("a rank died: exit code %d: %s", code, said)
	}
}

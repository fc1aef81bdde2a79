//go:build slurm

package clusters

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/programtest"
	"planner/sweep"
)

// overNodes is a sweep of engines on eight GPUs, of which a node has four.
const overNodes = `
[model]
name = "llama-3.1-70b"
[hardware]
gpu = "A100 SXM 80GB"
node_gpus = 4
[engine]
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

// fakeEngine writes down what it is given on its node, refuses what the argument parsers of
// vLLM and SGLang refuse, and serves on the first node; the others listen, too, to be found
// where they are left.
const fakeEngine = `#!/bin/bash
echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $MASTER_ADDR $NCCL_DEBUG $*" > "KIND-$SLURM_NODEID"
refuse() { echo "error: $*" >&2; exit 2; }
size=1 nodes=1 rank=0 headless=0
while [ $# -gt 0 ]; do
	case KIND$1 in
	*--port) [ "$SLURM_NODEID" = 0 ] && port=$2 || port=0 ;;
	*--tensor-parallel-size | *--pipeline-parallel-size | *--tp-size | *--pp-size) size=$((size * $2)) ;;
	*--nnodes) nodes=$2 ;;
	*--node-rank) rank=$2 ;;
	vllm--master-addr) [[ $2 != *:* ]] || refuse "a port in $2" ;;
	vllm--headless) headless=1 ;;
	sglang--dist-init-addr) [[ $2 =~ ^[^:]+:[0-9]+$ ]] || refuse "no address in $2" ;;
	*--master-addr | *--dist-init-addr | *--headless) refuse "unrecognized arguments: $1" ;;
	esac
	shift
done
[ $((size % nodes)) = 0 ] && [ "$rank" -lt "$nodes" ] || refuse "$size GPUs, rank $rank of $nodes"
[ KIND = sglang ] || [ $headless = $((rank > 0)) ] || refuse "rank $rank, headless $headless"
[ "$SLURM_NODEID" = 0 ] || [ ! -e dies ] || { sleep 6; echo "RuntimeError: the link is down" >&2; exit 5; }
exec PROGRAM serve-sim -q --ttft 20ms --tpot 2ms --served-name SERVED --listen "127.0.0.1:$port"
`

// An engine that takes more GPUs than a node has is started on as many as it fills: each
// is told its rank and where the first is, and has its own GPUs. Where one dies the engine
// has failed, in the words of that one.
func TestEngineOverNodes(t *testing.T) {
	t.Parallel()
	dir := folder(t, overNodes)
	engine := func(kind, name string) {
		script := strings.NewReplacer("KIND", kind, "PROGRAM", program, "SERVED", servedName(t)).Replace(fakeEngine)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	engine("vllm", "vllm")
	engine("sglang", "python3")
	swept := func(name, kind string) (int, string) {
		cmd, said := planner(dir, "sweep", "p.toml", "-o", name, "--rates", "5,6", "--duration", "4s", "--warm-up", "1s", "--set", "engine.kind="+kind)
		code := programtest.ExitCode(cmd.Run())
		nothingLeft(t, dir, name)
		return code, said.String()
	}
	for _, c := range []struct {
		kind, command, parallel string
		endings                 []string
	}{
		{"vllm", "serve ", " --tensor-parallel-size 4 --pipeline-parallel-size 2 ",
			[]string{"--nnodes 2 --node-rank 0 --master-addr 127.0.0.1", "--nnodes 2 --node-rank 1 --master-addr 127.0.0.1 --headless"}},
		{"sglang", "-m sglang.launch_server ", " --tp-size 4 --pp-size 2 ",
			[]string{"--nnodes 2 --node-rank 0 --dist-init-addr 127.0.0.1:20000", "--nnodes 2 --node-rank 1 --dist-init-addr 127.0.0.1:20000"}},
	} {
		code, said := swept(c.kind+"-run", c.kind)
		if code != 0 && code != noneTrusted {
			t.Fatalf("%s: exit code %d: %s", c.kind, code, said)
		}
		seen, _ := sweep.ReadJournal(filepath.Join(dir, c.kind+"-run", sweep.JournalFile))
		if len(seen) != 2 || seen[0].Rejected.Text != "" {
			t.Errorf("%s: %d trials, want 2: %s", c.kind, len(seen), said)
		}
		for rank, ending := range c.endings {
			told, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(c.kind, "-", rank)))
			line := strings.TrimSpace(string(told))
			if start := fmt.Sprintf("n%d 8,9,10,11 127.0.0.1 INFO %s", rank+1, c.command); err != nil || !strings.HasPrefix(line, start) ||
				!strings.HasSuffix(line, ending) || !strings.Contains(line, c.parallel) {
				t.Errorf("%s: rank %d was told %q, %v", c.kind, rank, line, err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "dies"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := swept("dying", "vllm"); code != 1 || !strings.Contains(strings.Join(strings.Fields(said), " "), "exit status 5: RuntimeError: the link is down") {
		t.Errorf("a rank died: exit code %d: %s", code, said)
	}
}

//go:build realengines

package realengines

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"planner/sweep/engine"
	"planner/sweep/measure"
)

// llamaServer serves SmolLM2-135M with one thread: two that wait for each other
// at every layer stand still whenever one processor is wanted elsewhere, and the
// client needs one.
func llamaServer() subject {
	folder := filepath.Join(root(), "llama")
	model := filepath.Join(folder, "model.gguf")
	extra := []string{"-t", "1"}
	return subject{
		folder: folder, program: filepath.Join(folder, "llama-server"),
		knobs: measure.Knobs{MaxNumSeqs: 4, MaxNumBatchedTokens: 512, PrefixCaching: true, MaxModelLen: 2048, TensorParallel: 1},
		settings: engine.Settings{
			Kind: "llama-server", Model: model, ServedName: "smol", ExtraArgs: extra, Timeouts: engine.Timeouts{Ready: 5 * time.Minute},
		},
		toml: fmt.Sprintf(`
[model]
name = %q
[engine]
kind = "llama-server"
served_name = "smol"
extra_args = ["-t", "1"]
ready_timeout = "5m"
[knobs]
max_num_seqs = [4, 2]
max_num_batched_tokens = 512
gpu_memory_utilization = 0.9
max_model_len = 2048
`, model),
		seqs: [2]int{4, 2}, output: 8, rate: 0.5,
	}
}

// An option that this build does not have is rejected. (A context beyond all
// memory is not tried: llama-server takes the memory and the host kills whom it
// likes.)
func TestLlamaUnknownOption(t *testing.T) {
	s := subjects()["llama-server"]
	need(t, s)
	s.settings.ExtraArgs = []string{"--frobnicate"}
	rejected(t, s, s.knobs, "args.parse")
}

// A file that holds no model is rejected.
func TestLlamaNoModel(t *testing.T) {
	s := subjects()["llama-server"]
	need(t, s)
	s.settings.Model = "/etc/passwd"
	rejected(t, s, s.knobs, engine.Class("model.load"))
}

//go:build realengines

package realengines

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"planner/sweep/engine"
	"planner/sweep/measure"
)

// vllm serves a model of four small layers with made-up weights.
func vllm() subject {
	folder := filepath.Join(root(), "vllm")
	return subject{
		folder: folder, program: filepath.Join(folder, "bin", "vllm"),
		knobs: measure.Knobs{MaxNumSeqs: 16, MaxNumBatchedTokens: 512, GPUMemoryUtilization: 0.3, PrefixCaching: true, MaxModelLen: 4096, TensorParallel: 1},
		settings: engine.Settings{
			Kind: "vllm", Model: filepath.Join(folder, "model"), ServedName: "tiny",
			ExtraArgs: []string{"--load-format", "dummy", "--skip-tokenizer-init", "--enforce-eager"},
			Env:       map[string]string{"HF_HUB_OFFLINE": "1"},
			Timeouts:  engine.Timeouts{Ready: 5 * time.Minute},
		},
		toml: fmt.Sprintf(`
[model]
config = %q
[engine]
kind = "vllm"
served_name = "tiny"
extra_args = ["--load-format", "dummy", "--skip-tokenizer-init", "--enforce-eager"]
env = { HF_HUB_OFFLINE = "1" }
ready_timeout = "5m"
[knobs]
max_num_seqs = [16, 4]
max_num_batched_tokens = 512
gpu_memory_utilization = 0.3
max_model_len = 4096
`, filepath.Join(folder, "model", "config.json")),
		seqs: [2]int{16, 4}, output: 16, rate: 2,
	}
}

// A share of the memory that is not there is rejected for what it is, and with
// it what needs no less.
func TestVLLMTooMuchMemory(t *testing.T) {
	s := subjects()["vllm"]
	need(t, s)
	timeFor(t, 2*time.Minute)
	k := s.knobs
	k.GPUMemoryUtilization = 0.98
	l, _ := rejected(t, s, k, "mem.cpu")
	k.GPUMemoryUtilization = 0.99
	k.MaxNumSeqs = 8
	began := time.Now()
	_, err := l.Run(t.Context(), s.trial(2, k, time.Second))
	if unable, ok := errors.AsType[*measure.Rejection](err); !ok || !strings.HasPrefix(unable.Reason.Text, "not started") || time.Since(began) > time.Second {
		t.Errorf("what needs more: %v after %v", err, time.Since(began))
	}
}

// A length beyond the model's is rejected, and its bound is taken from the log.
func TestVLLMTooLong(t *testing.T) {
	s := subjects()["vllm"]
	need(t, s)
	timeFor(t, 2*time.Minute)
	k := s.knobs
	k.MaxModelLen = 8192
	_, f := rejected(t, s, k, "args.len")
	if f.MaxModelLen != 4096 {
		t.Errorf("bound %d, want 4096", f.MaxModelLen)
	}
	k.MaxModelLen = 6000
	if !f.Condemns(k) || f.Condemns(s.knobs) {
		t.Error("what is above the bound is not condemned, or what is below is")
	}
}

// A pool that is too small for its load preempts, and says so.
func TestVLLMPreempts(t *testing.T) {
	s := subjects()["vllm"]
	need(t, s)
	timeFor(t, 4*time.Minute)
	dir := t.TempDir()
	l := s.live(dir)
	remark(t, l)
	// 2 x 4 layers x 4 heads x 64 x 2 bytes a token: 40 blocks of 128 tokens.
	l.Settings.ExtraArgs = append(l.Settings.ExtraArgs, "--kv-cache-memory-bytes", "20971520")
	trial := s.trial(1, s.knobs, 6*time.Second)
	trial.Rate = 20
	w := *trial.Workload
	w.Shapes[0].Prompt.Min, w.Shapes[0].Prompt.Max = 400, 500
	w.Shapes[0].Output.Value = 200
	trial.Workload = &w
	o, err := l.Run(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	blocks, preemptions, peak := o.Server.KVBlocks, o.Server.Preemptions, o.Server.PeakKV
	if blocks == nil || preemptions == nil || peak == nil || *blocks != 40 || *preemptions == 0 || *peak < 0.8 {
		t.Errorf("server %+v", o.Server)
	}
	l.Close()
	alone(t)
}

//go:build realengines

package realengines

import (
	"strings"
	"testing"
	"time"

	"planner/sweep"
)

// A share of the memory that is not there is rejected for what it is, and with
// it what needs no less.
func TestVLLMTooMuchMemory(t *testing.T) {
	s := subjects()["vllm"]
	need(t, s)
	k := s.sets[0]
	k.GPUMemoryUtilization = 0.98
	l := rejected(t, s, k, "mem.cpu")
	k.GPUMemoryUtilization = 0.99
	k.MaxNumSeqs = 8
	began := time.Now()
	_, err := l.Run(t.Context(), s.trial(2, k, s.rate, time.Second))
	if unable, ok := sweep.IsUnable(err); !ok || !strings.HasPrefix(unable.Reason, "not started") || time.Since(began) > time.Second {
		t.Errorf("what needs more: %v after %v", err, time.Since(began))
	}
}

// A length beyond the model's is rejected, and its bound is taken from the log.
func TestVLLMTooLong(t *testing.T) {
	s := subjects()["vllm"]
	need(t, s)
	k := s.sets[0]
	k.MaxModelLen = 8192
	l := rejected(t, s, k, "args.len")
	f := l.LastFailure()
	if f.MaxModelLen != 4096 {
		t.Errorf("bound %d, want 4096", f.MaxModelLen)
	}
	k.MaxModelLen = 6000
	if !f.Condemns(k) || f.Condemns(s.sets[0]) {
		t.Error("what is above the bound is not condemned, or what is below is")
	}
}

// A pool that is too small for its load preempts, and says so.
func TestVLLMPreempts(t *testing.T) {
	s := subjects()["vllm"]
	need(t, s)
	dir := t.TempDir()
	l := s.live(dir)
	remark(t, l)
	// 2 x 4 layers x 4 heads x 64 x 2 bytes a token: 40 blocks of 128 tokens.
	l.Settings.ExtraArgs = append(l.Settings.ExtraArgs, "--kv-cache-memory-bytes", "20971520")
	trial := s.trial(1, s.sets[0], 20, 6*time.Second)
	w := *trial.Workload
	w.Shapes[0].Prompt.Min, w.Shapes[0].Prompt.Max = 400, 500
	w.Shapes[0].Output.Value = 200
	trial.Workload = &w
	o, err := l.Run(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d blocks, %d preemptions, peak KV %.2f", o.Server.KVBlocks, o.Server.Preemptions, o.Server.PeakKV)
	if o.Server.KVBlocks != 40 || o.Server.Preemptions == 0 || o.Server.PeakKV < 0.8 {
		t.Errorf("server %+v", o.Server)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	alone(t)
}

package model

import (
	"math"
	"testing"

	"planner/internal/evidence/must"
)

// A state takes one block of each group of layers, whatever the request's length, and
// makes the blocks of attention as long as vLLM prints: 2096 tokens for Qwen3.5-397B-A17B on
// two GPUs (its pull request 35703), 544 for Qwen3-Next on one; the counts of parameters are
// those of the models' names.
func TestHybridsAreLaidOutAsVLLMDoes(t *testing.T) {
	for _, c := range []struct {
		model                     string
		tp, block, full, states   int
		total, active, kvPerToken float64
	}{
		{"Qwen3.5-397B-A17B", 2, 2096, 1, 3, 397e9, 17e9, 15 * 2 * 2 * 256 * 2},
		{"Qwen3-Next-80B-A3B", 1, 544, 1, 3, 79.7e9, 3.9e9, 12 * 2 * 2 * 256 * 2},
		{"Nemotron-3-Nano-30B-A3B", 1, 2096, 1, 4, 31.6e9, 3.6e9, 6 * 2 * 2 * 128 * 2},
		{"Nemotron-3-Super-120B-A12B", 2, 4160, 1, 5, 120.6e9, 12.7e9, 8 * 2 * 2 * 128 * 2},
		{"Nemotron-H-56B", 1, 2080, 1, 6, 56.3e9, 56.3e9, 10 * 2 * 8 * 128 * 2},
	} {
		d := deploy(t, c.model, "H100 SXM", c.tp)
		l := layoutOf(d.Normal(), EngineArgs{})
		if l.BlockTokens != c.block || l.FullGroups != c.full || l.StateGroups != c.states {
			t.Errorf("%s: %+v, want blocks of %d tokens, %d and %d groups", c.model, l, c.block, c.full, c.states)
		}
		if got := l.Blocks(10*c.block, 8192) - l.Blocks(c.block, 8192); got != 9 {
			t.Errorf("%s: ten blocks take %d more than one, want 9", c.model, got)
		}
		total, active := d.Arch.Params()
		if math.Abs(total/c.total-1) > 0.01 || math.Abs(active/c.active-1) > 0.03 || d.Arch.KVBytesPerToken(KVAuto) != c.kvPerToken {
			t.Errorf("%s: %.2f billion parameters, %.2f active, %v bytes a token", c.model, total/1e9, active/1e9, d.Arch.KVBytesPerToken(KVAuto))
		}
	}
}

// One group of states lies on every GPU, several are divided among them.
func TestStatesDivide(t *testing.T) {
	for _, c := range []struct {
		groups, gpus, undivided int
		delta                   bool
	}{{1, 8, 0, false}, {8, 8, 0, false}, {8, 16, 8, false}, {1, 2, 1, true}, {16, 8, 0, true}, {8, 3, 64, false}} {
		if got := (RecurrentState{Heads: 64, KeyHeads: c.groups, Delta: c.delta}).undivided(c.gpus); got != c.undivided {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// Long contexts cost a hybrid what its attention layers read, each request its states.
func TestStatesCostTheSameAtAnyContext(t *testing.T) {
	d := deploy(t, "Qwen3-Next-80B-A3B", "H100 SXM", 4)
	r := must.Get(NewRoofline(d, ConstantsFor(d.Hardware, EngineArgs{}), EngineArgs{}))
	at := func(n, context int) StepTime {
		return r.Step(Batch{Decodes: n, Context: n * context, Longest: context, Sampled: n})
	}
	perToken := 12.0 * 2 * 1 * 256 * 2 // of one KV head a GPU in twelve layers
	got := at(1, 100_000).DecodeAttention - at(1, 1000).DecodeAttention
	if want := 99_000 * perToken / (r.c.KV[BF16] * d.Hardware.Bandwidth); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("99,000 tokens more take %g s, want %g", got, want)
	}
	state := at(64, 0).DecodeAttention / 64
	if want := 2 * 36 * d.Arch.State.bytes(4) / (r.c.KV[BF16] * d.Hardware.Bandwidth); math.Abs(state/want-1) > 1e-9 {
		t.Errorf("the states of a request take %g s, want %g", state, want)
	}
	if w := r.Work(Batch{Decodes: 1}); w.KVBytes != 2*36*d.Arch.State.bytes(4) {
		t.Errorf("%v bytes moved for the states of a request", w.KVBytes)
	}
}

// The kernels of the recurrence alone take 433 us of a layer for 2,048 tokens on an A100 (vLLM 0.27, see
// stateMoves); with what stands around them a layer takes more, though not twice as much.
func TestStatesOfPromptsTakeTheirKernelsTime(t *testing.T) {
	d := deploy(t, "Qwen3.5-4B", "A100 SXM 40GB", 1)
	r := must.Get(NewRoofline(d, ConstantsFor(d.Hardware, EngineArgs{}), EngineArgs{}))
	if layer := 2048 * r.states.token / 24; layer < 433e-6 || layer > 866e-6 {
		t.Errorf("a layer takes %g s for 2,048 tokens", layer)
	}
}

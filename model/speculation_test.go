package model

import (
	"math"
	"testing"

	"planner/internal/evidence/must"
)

func drafted(t *testing.T, method DraftMethod, chance float64, tokens int) (Deployment, EngineArgs) {
	t.Helper()
	dep := deploy(t, "Llama-3.1-70B", "H100 SXM", 4)
	dep.Precision.Weights = FP8
	args := EngineArgs{MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, MaxModelLen: 8192}
	args.Speculation = Speculation{Method: method, Tokens: tokens, Accepted: AcceptedEach(chance, tokens), Draft: new(arch(t, "Llama-3.2-1B"))}
	return dep, args
}

func arch(t *testing.T, name string) Arch {
	t.Helper()
	return deploy(t, name, "H100 SXM", 1).Arch
}

func TestAcceptance(t *testing.T) {
	for _, length := range []float64{1, 1.3, 2.4, 3.99, 4} {
		if got := (Speculation{Accepted: AcceptedLength(length, 3)}).PerStep(); math.Abs(got-length) > 1e-9 {
			t.Errorf("length %v comes back as %v", length, got)
		}
	}
	got := AcceptedByPosition([]float64{0.8, 0.6}, 4)
	for i, want := range []float64{0.8, 0.6, 0.45, 0.3375} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("position %d: %v, want %v", i, got[i], want)
		}
	}
	s := Speculation{Tokens: 2, Accepted: []float64{0.8, 0.6}}
	if r := s.scaled(1).Accepted; math.Abs(r[0]-0.8)+math.Abs(r[1]-0.6) > 1e-12 {
		t.Errorf("unscaled: %v", r)
	}
	if r := s.scaled(2).Accepted; math.Abs(r[0]-0.6) > 1e-12 || math.Abs(r[1]-0.3) > 1e-12 { // 0.2 and 0.25 refused become 0.4 and 0.5
		t.Errorf("twice the refusals: %v", r)
	}
}

// Proposing takes memory and time: a step takes longer with every method, and longest for
// a model of its own.
func TestDraftsTakeTimeAndMemory(t *testing.T) {
	b := Batch{Decodes: 8, Context: 8000, Longest: 1000, Sampled: 8}
	dep, args := drafted(t, NoDraft, 0, 0)
	plain := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
	memory := must.Get(MemoryPlan(dep, args))
	step := plain.Step(b).Total
	last := 0.0
	for _, method := range []DraftMethod{DraftNGram, DraftEagle, DraftModel} {
		dep, args := drafted(t, method, 0.7, 3)
		r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
		with := b
		with.Drafted, with.Sampled = 24, 32
		got := r.Step(with)
		if got.Draft <= last || got.Total-got.Draft < step || got.Total > 2.5*step {
			t.Errorf("%v: %.2f ms, of which %.2f to propose; without %.2f", method, 1e3*got.Total, 1e3*got.Draft, 1e3*step)
		}
		last = got.Draft
		m := must.Get(MemoryPlan(dep, args))
		if more := method != DraftNGram; more != (m.Blocks < memory.Blocks) || m.Blocks < memory.Blocks*8/10 {
			t.Errorf("%v: %d blocks, without %d", method, m.Blocks, memory.Blocks)
		}
	}
}

// Speculation pays where steps wait for memory and not where they compute; the better the
// proposals the further.
func TestDraftingPaysAtSmallLoad(t *testing.T) {
	q := MeanRequest{Prompt: 500, Output: 300}
	last := 0.0
	for _, chance := range []float64{0.05, 0.4, 0.6, 0.8} {
		dep, args := drafted(t, DraftEagle, chance, 3)
		r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
		m := must.Get(MemoryPlan(dep, args))
		d := must.Get(r.Drafting(q, m))
		if d.Rate < last || (chance < 0.1) != (d.Rate == 0) {
			t.Errorf("chance %v: pays up to %+v, before %v/s", chance, d, last)
		}
		last = d.Rate
	}
}

// The layer that predicts tokens has one index at most, whatever the model has, and a head trained on its
// hidden states none: neither the cache nor the weights of the proposals grow with the model's layers.
func TestDraftLayerHasOneIndex(t *testing.T) {
	dep := deploy(t, "DeepSeek-V3.2", "H200 SXM", 8).Normal()
	dense := deploy(t, "DeepSeek-V3", "H200 SXM", 8).Normal()
	s := Speculation{Method: DraftMTP, Tokens: 1, Accepted: []float64{0.8}}
	if got, want := s.kvBytes(dep)-s.kvBytes(dense), dep.Arch.Attention.Sparse.bytes(); got != want {
		t.Errorf("the cache of the proposals has %v bytes of a token more than without an index, want %v", got, want)
	}
	a := dep.Arch.Attention
	index := 2 * float64(a.MLA.QueryRank*a.Sparse.Heads*a.Sparse.Dim+dep.Arch.Hidden*(a.Sparse.Dim+a.Sparse.Heads))
	if got := s.weightBytes(dep) - s.weightBytes(dense); got > index {
		t.Errorf("%.0f MB of weights more, those of an index are %.0f at most", got/1e6, index/1e6)
	}
	var head [2]float64
	for i, d := range []Deployment{dep, dense} {
		args := EngineArgs{MaxNumSeqs: 64, MaxNumBatchedTokens: 8192, MaxModelLen: 65536}
		args.Speculation = Speculation{Method: DraftEagle, Tokens: 1, Accepted: []float64{0.8}}
		r := must.Get(NewRoofline(d, ConstantsFor(d.Hardware, args), args))
		head[i] = r.draft.times.Step(Batch{Decodes: 32, Context: 32 * 16000, Longest: 16000, Sampled: 32}).Total
	}
	if head[0] != head[1] {
		t.Errorf("a head without an index takes %.3f ms, that of a model without one %.3f", 1e3*head[0], 1e3*head[1])
	}
}

// Each pass over a draft model reads all of its cache, its layers with a window too, also where
// the model that it drafts for has none.
func TestEachPassReadsWindows(t *testing.T) {
	for _, target := range []string{"Gemma-3-27B", "Llama-3.1-70B"} {
		dep := deploy(t, target, "H100 SXM", 4)
		draft := arch(t, "Gemma-3-4B")
		b := Batch{Decodes: 32, Context: 32 * 8000, Longest: 8000, Windowed: 32 * min(8000, 1024)}
		var proposing [2]float64
		var pass float64
		for i, tokens := range []int{1, 2} {
			args := EngineArgs{MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, MaxModelLen: 16384}
			args.Speculation = Speculation{Method: DraftModel, Tokens: tokens, Accepted: AcceptedEach(0.7, tokens), Draft: &draft}
			r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
			one := b
			one.Sampled = 32
			pass = r.draft.times.Step(one).Total
			with := b
			with.Drafted, with.Sampled = 32*tokens, 32*(1+tokens)
			if r.kv.size == 0 {
				with.Windowed = 0
			}
			proposing[i] = r.Step(with).Draft
		}
		if further := proposing[1] - proposing[0]; further < 0.98*pass {
			t.Errorf("%s: a further pass takes %.3f ms, want the %.3f of a step of the draft model", target, 1e3*further, 1e3*pass)
		}
	}
}

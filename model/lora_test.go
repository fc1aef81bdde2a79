package model

import (
	"math"
	"testing"

	"planner/internal/evidence/must"
)

func TestLoRA(t *testing.T) {
	dep := deploy(t, "Llama-3.1-8B", "H100 SXM", 1).Normal()
	l := LoRA{Adapters: 32, Slots: 8, Rank: 16}
	// 41,943,040 parameters: PEFT's count for rank 16 on all linear layers of Llama-3-8B.
	if got := l.adapterBytes(dep) / 2; got != 41943040 {
		t.Errorf("%v parameters in an adapter", got)
	}
	for rank, want := range map[int]int{1: 8, 16: 16, 24: 32, 300: 320, 512: 512} {
		if got := (LoRA{Rank: rank}).SlotRank(); got != want {
			t.Errorf("slots of rank %d for adapters of rank %d, want %d", got, rank, want)
		}
	}
	args := EngineArgs{MaxNumSeqs: 64, MaxNumBatchedTokens: 8192, MaxModelLen: 8192}
	plain := must.Get(MemoryPlan(dep, args))
	args.LoRA = l
	with := must.Get(MemoryPlan(dep, args))
	if got, want := float64(plain.Blocks-with.Blocks)*plain.Layout.blockBytes(dep), 8*l.adapterBytes(dep); math.Abs(got/want-1) > 0.01 {
		t.Errorf("slots take %v bytes of the pool, want %v", got, want)
	}
	r := must.Get(NewRoofline(dep, ConstantsFor(dep.Hardware, args), args))
	b := Batch{Decodes: 8, Context: 8000, Longest: 1000, Sampled: 8, Adapters: 1}
	one := r.Step(b).Total
	b.Adapters = 8
	eight := r.Step(b).Total
	b.Loads = 1
	if loading := r.Step(b).Total; !(one < eight && eight < 1.5*one && loading > eight+2e-3) {
		t.Errorf("one adapter %.2f ms, eight %.2f, one of them loaded first %.2f", 1e3*one, 1e3*eight, 1e3*loading)
	}
	if a := l.Distinct(1); math.Abs(a-1) > 1e-9 {
		t.Errorf("one request uses %v adapters", a)
	}
	if a := l.Distinct(1000); a != 8 {
		t.Errorf("a thousand use %v at once", a)
	}
}

package model

import "testing"

func h100() Hardware {
	return Hardware{Name: "H100 SXM", Generation: GenerationHopper, Memory: 80 * gib, Bandwidth: 3350e9,
		Flops: Flops{BF16: 989e12, FP8: 1979e12, INT8: 1979e12, MeasuredBF16: 794.5e12},
		Link:  Link{Kind: LinkNVLink, Name: "NVLink4", Rate: 450e9}, PCIe: 64e9}
}

func TestScratch(t *testing.T) {
	l2 := Arch{Name: "Llama-2-7B", Layers: 32, Hidden: 4096, Intermediate: 11008, Vocab: 32000, MaxPosition: 4096,
		Attention: Attention{Heads: 32, KVHeads: 32, HeadDim: 128}}
	m, err := MemoryPlan(Deployment{Arch: l2, Hardware: h100()}, Limits{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, Utilization: .9, EngineVersion: "0.15.1"})
	t.Log(m.Blocks, m.Arithmetic, err)
	for _, tp := range []int{1, 2, 4} {
		r, err := NewRoofline(Deployment{Arch: l2, Hardware: h100(), TP: tp}, ConstantsFor(h100(), "0.15.1"), Limits{EngineVersion: "0.15.1"})
		if err != nil {
			t.Fatal(err)
		}
		st := r.Step(Batch{Decodes: 1, Context: 480, Longest: 480, Sampled: 1})
		t.Logf("tp %d: %+v", tp, st)
	}
	_, err = MemoryPlan(Deployment{Arch: l2, Hardware: h100()}, Limits{MaxNumSeqs: 128, MaxNumBatchedTokens: 2048, Utilization: .15, EngineVersion: "0.15.1"})
	t.Log(err)
}

func BenchmarkStep(b *testing.B) {
	a := Arch{Name: "Llama-3-70B", Layers: 80, Hidden: 8192, Intermediate: 28672, Vocab: 128256, MaxPosition: 4096,
		Attention: Attention{Heads: 64, KVHeads: 8, HeadDim: 128}}
	r, err := NewRoofline(Deployment{Arch: a, Hardware: h100(), TP: 4}, ConstantsFor(h100(), ""), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	batch := Batch{Decodes: 64, Context: 64000, Longest: 2000, Sampled: 65, Chunks: []Chunk{{400, 100}}}
	b.ReportAllocs()
	for b.Loop() {
		r.Step(batch)
	}
}
func BenchmarkDecode(b *testing.B) {
	a := Arch{Name: "Llama-3-70B", Layers: 80, Hidden: 8192, Intermediate: 28672, Vocab: 128256, MaxPosition: 4096,
		Attention: Attention{Heads: 64, KVHeads: 8, HeadDim: 128}}
	r, _ := NewRoofline(Deployment{Arch: a, Hardware: h100(), TP: 4}, ConstantsFor(h100(), ""), Limits{})
	batch := Batch{Decodes: 64, Context: 64000, Longest: 2000, Sampled: 65}
	b.ReportAllocs()
	for b.Loop() {
		r.Decode(batch)
	}
}

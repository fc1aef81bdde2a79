package model

import (
	"math/rand/v2"
	"testing"

	"planner/internal/evidence/must"
)

// randomBatch is a step of any size.
func randomBatch(rng *rand.Rand) Batch {
	b := Batch{Decodes: rng.IntN(200), Longest: 1 + rng.IntN(8000)}
	b.Context = b.Decodes * (1 + b.Longest/2)
	for range rng.IntN(3) {
		b.Chunks = append(b.Chunks, Chunk{Tokens: 1 + rng.IntN(4000), Context: rng.IntN(4000)})
	}
	b.Sampled = b.Decodes + len(b.Chunks)
	return b
}

// Two nodes are never faster than one with all their GPUs, however an instance is spread.
func TestTwoNodesNeverBeatOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 1))
	models := []string{"DeepSeek-V3", "Llama-3.1-405B", "Qwen3-235B-A22B", "gpt-oss-120b"}
	gpus := []string{"H100 SXM", "H200 SXM", "B200 SXM", "MI300X", "A100 SXM 80GB", "GB200 (per GPU)"}
	valid := 0
	for range 400 {
		dep := deploy(t, models[rng.IntN(len(models))], gpus[rng.IntN(len(gpus))], 1<<rng.IntN(6))
		dep.PP, dep.DP = 1<<rng.IntN(3), 1<<rng.IntN(4)
		dep.EP = dep.Arch.MoE.Present() && rng.IntN(2) == 0
		if dep.Validate() != nil || dep.GPUs() < 2 {
			continue
		}
		whole, halves := dep, dep
		whole.NodeGPUs, halves.NodeGPUs = dep.GPUs(), (dep.GPUs()+1)/2
		args := EngineArgs{MaxNumSeqs: 256, MaxNumBatchedTokens: 8192}
		if args.Exchange.Backend = Exchanges()[rng.IntN(5)]; halves.Supports(args) != nil {
			args.Exchange = Exchange{}
		}
		c := ConstantsFor(dep.Hardware, args)
		one := must.Get(NewRoofline(whole, c, args))
		two := must.Get(NewRoofline(halves, c, args))
		valid++
		for range 5 {
			b := randomBatch(rng)
			// Replicas of a dense model never talk to each other.
			talk := b.Tokens() > 0 && (dep.DP == 1 || dep.Arch.MoE.Present())
			if x, y := one.Step(b), two.Step(b); y.Total < x.Total || talk && y.Communication <= x.Communication {
				t.Errorf("%s on %s TP %d PP %d DP %d EP %v %v: one node %.3f ms, two %.3f", dep.Arch.Name, dep.Hardware.Name, dep.TP, dep.PP, dep.DP, dep.EP, args.Exchange.Backend,
					1e3*x.Total, 1e3*y.Total)
			}
		}
	}
	if valid < 100 {
		t.Errorf("only %d deployments", valid)
	}
}

// One stage is no pipeline: cutting a step into one micro-batch changes nothing, and a step
// of two stages lasts no less than one of a single stage with half of the requests.
func TestOneStageIsNoPipeline(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 2))
	dep := deploy(t, "Llama-3.1-70B", "H100 SXM", 4)
	args := EngineArgs{MaxNumSeqs: 256, MaxNumBatchedTokens: 8192}
	c := ConstantsFor(dep.Hardware, args)
	none := must.Get(NewRoofline(dep, c, args))
	dep.PP = 1
	one := must.Get(NewRoofline(dep, c, args))
	dep.PP = 2
	two := must.Get(NewRoofline(dep, c, args))
	for range 200 {
		b := randomBatch(rng)
		whole := one.Step(b)
		if whole != none.Step(b) {
			t.Errorf("PP 1 differs from none: %+v", b)
		}
		l := one.sums(&b)
		if cut := l.micro(1, 8192); b.Tokens() > 0 && one.time(&cut) != whole {
			t.Errorf("one micro-batch differs from the batch: %+v", b)
		}
		if b.Tokens() == 0 {
			continue
		}
		half := l.micro(2, 8192)
		if got := two.Step(b).Total; got < one.time(&half).Total {
			t.Errorf("two stages take %v, half of the batch on one %v", got, one.time(&half).Total)
		}
	}
	// A stage holds half of the layers, so that twice the tokens fit and more.
	dep.PP = 1
	single := must.Get(MemoryPlan(dep, args))
	dep.PP = 2
	double := must.Get(MemoryPlan(dep, args))
	if double.Blocks < 2*single.Blocks {
		t.Errorf("%d blocks with two stages, %d with one", double.Blocks, single.Blocks)
	}
}

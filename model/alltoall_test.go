package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// wide is DeepSeek-V3 with attention and experts on so many GPUs, eight to a node, as DeepEP's README has it: H800, 50 GB/s
// of InfiniBand each.
func wide(t *testing.T, gpus int) Deployment {
	d := deploy(t, "DeepSeek-V3", "H800 SXM", 1)
	d.DP, d.EP = gpus, true
	d.Hardware.Node.Rate = 50e9
	return d
}

// through returns a roofline of a deployment whose tokens go a way to the experts, all of which have the same load.
func through(d Deployment, x Exchange, version string) *Roofline {
	args := EngineArgs{EngineVersion: version, MaxNumBatchedTokens: 8192, EngineFeatures: EngineFeatures{Exchange: x}}
	c := ConstantsFor(d.Hardware, args)
	c.Link.ExpertSpread = 0
	return must.Get(NewRoofline(d, c, args))
}

// The tables of DeepEP's README (2025-06): dispatch and combine together, per layer.
func TestExchangeTakesTheMeasuredTimes(t *testing.T) {
	for gpus, want := range map[int]float64{8: 77 + 114, 16: 118 + 195, 32: 155 + 273, 64: 173 + 314, 128: 192 + 369, 256: 194 + 360} {
		r := through(wide(t, gpus), Exchange{Backend: All2AllLowLatency}, "0.13.0")
		if got := 1e6 * r.Step(Batch{Decodes: 128, Context: 128}).Communication / 58; math.Abs(got/want-1) > 0.05 {
			t.Errorf("low latency, %d GPUs: %.0f us, measured %.0f", gpus, got, want)
		}
	}
	// 4,096 tokens whose experts lie on at most four nodes; the bandwidths count what a token sends to its own node, or
	// to its own GPU where there is one node.
	const there, back = 4096 * 7168 * (1 + 4.0/128), 4096 * 7168 * 2.0
	for gpus, c := range map[int]struct{ copies, there, back float64 }{
		8:  {8 * (1 - math.Pow(7.0/8, 8)), 153e9, 158e9},
		16: {2 * (1 - math.Pow(1.0/2, 8)), 43e9, 43e9},
		32: {4 * (1 - math.Pow(3.0/4, 8)), 58e9, 57e9},
		64: {4 * (1 - math.Pow(3.0/4, 8)), 51e9, 50e9},
	} {
		d := wide(t, gpus)
		if gpus < 64 {
			d.Arch.MoE.Groups = 0
		}
		r := through(d, Exchange{Backend: All2AllHighThroughput}, "0.13.0")
		got := r.Step(Batch{Chunks: []Chunk{{Tokens: 4096}}}).Communication/58 - deepEPLayout
		if want := c.copies * (there/c.there + back/c.back); got < 0.9*want || got > 1.15*want {
			t.Errorf("high throughput, %d GPUs: %.2f ms, measured %.2f", gpus, 1e3*got, 1e3*want)
		}
	}
}

// One layer by hand, 32 GPUs on four nodes, 100 tokens each: low latency sends 800 copies of 7,392 and 14,336 bytes, of
// which three quarters leave the node at 44 GB/s; high throughput sends each token to 2.91 nodes.
func TestExchangeByHand(t *testing.T) {
	step := func(x All2All) float64 {
		return through(wide(t, 32), Exchange{Backend: x}, "0.13.0").Step(Batch{Decodes: 100, Context: 100}).Communication / 58
	}
	bytes := 100 * (7168*(1+4.0/128) + 7168*2)
	floor := 2 * (30e-6 + 2e-6)
	if got, want := step(All2AllLowLatency), floor+8*bytes*0.75/44e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("low latency: %.1f us, want %.1f", 1e6*got, 1e6*want)
	}
	// Of the two groups of experts on a node none, one or both are among a token's four of eight: 15, 40 and 15 of 70.
	nodes := 4 * (1 - 15.0/70 - 40.0/70*math.Pow(3.0/4, 8) - 15.0/70*math.Pow(1.0/2, 8))
	if math.Abs(nodes-2.9107) > 1e-4 {
		t.Fatalf("%g nodes", nodes)
	}
	if got, want := step(All2AllHighThroughput), floor+54e-6+nodes*bytes*0.75/44e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("high throughput: %.1f us, want %.1f", 1e6*got, 1e6*want)
	}
	// An all-gather fetches the 3,100 tokens of the others at half of NVLink's 200 GB/s and, three quarters of all over
	// eight ports, from the other nodes; reduce-scatter takes as long.
	ring := 5.7e-6 + 31*2.65e-6 + 20e-6*math.Log2(8)/2
	gather := ring + 3200*14336*(31.0/32/100e9+0.75/8/(0.93*50e9))
	if got, want := step(All2AllByDefault), 2*gather; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("all-gather: %.1f us, want %.1f", 1e6*got, 1e6*want)
	}
	// Naive broadcasts 32 times and sums by an all-reduce, which moves everything twice.
	d := wide(t, 32)
	naive := through(d, Exchange{}, "0.10.2").Step(Batch{Decodes: 100, Context: 100}).Communication / 58
	if want := 3*gather - 2*ring + 32*(10e-6+20e-6*math.Log2(8)/2); math.Abs(naive/want-1) > 1e-9 {
		t.Errorf("naive: %.1f us, want %.1f", 1e6*naive, 1e6*want)
	}
}

func TestTokensReachParts(t *testing.T) {
	for _, c := range []struct {
		moe         MoE
		parts, want float64
	}{
		{MoE{Active: 8}, 1, 1}, {MoE{Active: 1}, 32, 1}, {MoE{Active: 8}, 1e9, 8},
		{MoE{Active: 8, Groups: 8, TopGroups: 4}, 1, 1}, {MoE{Active: 1, Groups: 8, TopGroups: 4}, 4, 1},
		{MoE{Active: 8, Groups: 8, TopGroups: 4}, 8, 4 * (1 - math.Pow(0.75, 8))},
		{MoE{Active: 8, Groups: 8, TopGroups: 4}, 3, 3 * (1 - math.Pow(2.0/3, 8))}, // a group would lie on two nodes
	} {
		if got := c.moe.reached(c.parts); math.Abs(got/c.want-1) > 1e-6 {
			t.Errorf("%+v: %g of %g parts, want %g", c.moe, got, c.parts, c.want)
		}
	}
	d := deploy(t, "DeepSeek-V3", "H200 SXM", 1)
	if d.Arch.MoE.Groups != 8 || d.Arch.MoE.TopGroups != 4 {
		t.Errorf("%+v", d.Arch.MoE)
	}
}

// However tokens get to them, evenly loaded experts take as long as sliced ones in the same kernels, and a link of infinite rate takes no time.
func TestExpertsTakeAsLongWhicheverWay(t *testing.T) {
	sliced := deploy(t, "DeepSeek-V3", "H200 SXM", 4)
	spread := sliced
	spread.TP, spread.DP, spread.EP = 1, 4, true
	for x := range All2AllFlashInfer + 1 {
		args := EngineArgs{EngineVersion: "0.16.0", EngineFeatures: EngineFeatures{Exchange: Exchange{Backend: x}, Kernels: Kernels{Experts: ExpertsTriton}}}
		c := ConstantsFor(spread.Hardware, args)
		c.Link.Scale, c.Link.ExpertSpread = 1e-12, 0
		if x == All2AllNaive {
			args.EngineVersion = "0.13.0"
		}
		tp, ep := must.Get(NewRoofline(sliced, c, args)), must.Get(NewRoofline(spread, c, args))
		one, all := ep.Step(Batch{Decodes: 32, Context: 32}), tp.Step(Batch{Decodes: 128, Context: 128})
		if got, want := one.ExpertWeights+one.ExpertCompute, all.ExpertWeights+all.ExpertCompute; math.Abs(got/want-1) > 1e-9 && x != All2AllHighThroughput {
			t.Errorf("%v: experts take %g s, sliced %g", x, got, want) // high throughput pads to no captured graph
		}
		if one.Communication > 1e-9 {
			t.Errorf("%v: %g s over an infinite link", x, one.Communication)
		}
	}
}

// More tokens, and the same GPUs on more nodes, never take less time; nor do a whole node's tokens at once.
func TestExchangeIsMonotone(t *testing.T) {
	for x := range All2AllFlashInfer + 1 {
		for _, dbo := range []bool{false, true} {
			if dbo && !x.deepEP() {
				continue
			}
			last := map[int]float64{}
			for tokens := 1; tokens < 8192; tokens = tokens*5/4 + 1 {
				before := 0.0
				for _, node := range []int{64, 16, 8, 4} {
					d := wide(t, 64)
					d.NodeGPUs = node
					if x == All2AllFlashInfer && node < 64 {
						continue
					}
					got := through(d, Exchange{Backend: x, DBO: dbo}, "0.16.0").toExperts.time(float64(tokens), 64, 1)
					if got < last[node] || got < before {
						t.Errorf("%v on nodes of %d: %d tokens take %g s, fewer %g, larger nodes %g", x, node, tokens, got, last[node], before)
					}
					last[node], before = got, got
				}
			}
		}
	}
}

// Halves overlap from the thresholds on, if all replicas have alike many tokens. Then a step takes no less than computing
// both halves, and no less than their way.
func TestHalvesOverlap(t *testing.T) {
	d := wide(t, 32)
	plain, dbo := through(d, Exchange{Backend: All2AllLowLatency}, "0.13.0"), through(d, Exchange{Backend: All2AllLowLatency, DBO: true}, "0.13.0")
	prompt := func(n int) Batch { return Batch{Chunks: []Chunk{{Tokens: n}}} }
	alone := prompt(4096)
	alone.Everywhere = 4096 + 31*100
	for _, b := range []Batch{{Decodes: 32, Context: 3200}, prompt(512), alone} {
		if one, two := plain.Step(b), dbo.Step(b); one != two {
			t.Errorf("%d tokens are halved: %g s, else %g", b.Tokens(), two.Total, one.Total)
		}
	}
	rng := rand.New(rand.NewPCG(3, 1))
	for range 100 {
		b := randomBatch(rng)
		if b.Tokens() <= 512 {
			continue
		}
		l := dbo.sums(&b)
		half := l.micro(2, max(1, l.tokens/2))
		work, travel := dbo.work(&half), 2*dbo.toExperts.time(half.all(), half.replicas, 1)
		computed, got := 2*work.Total-travel, dbo.time(&l)
		if got.Total-got.Host < max(computed, travel)*(1-1e-12) || got.Communication < 0 {
			t.Errorf("%+v takes %g s, of which computing %g and travelling %g", b, got.Total, computed, travel)
		}
		if want := max(computed, travel) + 0.25*min(computed, travel); math.Abs((got.Total-got.Host)/want-1) > 1e-9 {
			t.Errorf("%+v takes %g s, want %g", b, got.Total-got.Host, want)
		}
	}
}

// Balanced experts leave only chance between the fullest GPU and the mean.
func TestBalancedExpertsAreFaster(t *testing.T) {
	d := deploy(t, "DeepSeek-V3", "H200 SXM", 1)
	d.DP, d.EP = 32, true
	step := func(eplb bool, tokens int) StepTime {
		args := EngineArgs{MaxNumBatchedTokens: 8192, EngineFeatures: EngineFeatures{Exchange: Exchange{Backend: All2AllHighThroughput, EPLB: eplb}}}
		return must.Get(NewRoofline(d, ConstantsFor(d.Hardware, args), args)).Step(Batch{Chunks: []Chunk{{Tokens: tokens}}})
	}
	fullest := 1 + fullestOf(32)*math.Sqrt(0.4/8)
	uneven, even := step(false, 8192), step(true, 8192)
	if got := uneven.Communication / even.Communication; math.Abs(got/fullest-1) > 0.03 {
		t.Errorf("the way takes %.2f times as long, the fullest GPU has %.2f times the mean", got, fullest)
	}
	if uneven.ExpertCompute < 1.3*even.ExpertCompute {
		t.Errorf("uneven experts take %g s, even ones %g", uneven.ExpertCompute, even.ExpertCompute)
	}
}

func TestUnsupportedExchanges(t *testing.T) {
	h200, l40s := deploy(t, "DeepSeek-V3", "H200 SXM", 1), deploy(t, "Qwen3-30B-A3B", "L40S", 1)
	h200.DP, h200.EP, l40s.DP, l40s.EP = 32, true, 4, true
	one := h200
	one.DP, one.NodeGPUs = 32, 32
	sliced := l40s
	sliced.EP = false
	for _, c := range []struct {
		dep     Deployment
		x       Exchange
		version string
		want    string // part of the error; "": none
	}{
		{h200, Exchange{}, "0.10.0", ""}, {h200, Exchange{Backend: All2AllGather}, "0.10.2", "0.10 has no allgather"},
		{h200, Exchange{Backend: All2AllNaive}, "0.18.0", ""}, {h200, Exchange{Backend: All2AllNaive}, "0.19.0", "0.19 has no naive"},
		{h200, Exchange{Backend: All2AllPPLX}, "", "0.33 has no pplx"}, {h200, Exchange{Backend: All2AllLowLatency}, "", ""},
		{h200, Exchange{Backend: All2AllFlashInfer}, "", "4 nodes"}, {one, Exchange{Backend: All2AllFlashInfer}, "", ""},
		{h200, Exchange{DBO: true}, "", "all2all_backend auto"}, {h200, Exchange{Backend: All2AllGather, DBO: true}, "", "overlaps no batches"},
		{h200, Exchange{Backend: All2AllHighThroughput, DBO: true}, "0.10.2", "0.11 or later"}, {h200, Exchange{Backend: All2AllHighThroughput, DBO: true}, "0.11.0", ""},
		{l40s, Exchange{Backend: All2AllLowLatency}, "", "needs NVLink"}, {l40s, Exchange{}, "", ""},
		{sliced, Exchange{Backend: All2AllLowLatency}, "", ""}, // vLLM then gathers
	} {
		args := EngineArgs{EngineVersion: c.version, EngineFeatures: EngineFeatures{Exchange: c.x}}
		err := c.dep.Supports(args)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v on %s, vLLM %q: %v, want %q", c.x, c.dep.Hardware.Name, c.version, err, c.want)
		}
		if _, built := NewRoofline(c.dep, ConstantsFor(c.dep.Hardware, args), args); (built == nil) != (err == nil) {
			t.Errorf("%+v: %v, but the roofline %v", c.x, err, built)
		}
	}
	h200.DP = 3
	if err := h200.Supports(EngineArgs{}); err == nil || errors.Is(err, ErrNoFigure) {
		t.Errorf("256 experts on three GPUs: %v", err)
	}
}

// DeepEP's low latency keeps room for all tokens of all GPUs at every expert: 2,116.29 MB for 128 tokens and 288 experts
// (its issue 28). So vLLM 0.20 has no room for steps of 8,192 tokens (UCCL's issue 924), and until 0.19 sends 256 at a time.
func TestLowLatencyKeepsRoom(t *testing.T) {
	d := wide(t, 16)
	d.Arch.MoE.Experts = 288
	args := EngineArgs{EngineVersion: "0.20.0", MaxNumBatchedTokens: 128, EngineFeatures: EngineFeatures{Exchange: Exchange{Backend: All2AllLowLatency}}}
	if got := args.exchangeBytes(d) - gib; math.Abs(got-2116.288512e6) > 1 {
		t.Errorf("%.3f MB", got/1e6)
	}
	kimi := deploy(t, "Kimi-K2.6", "H200 SXM", 8)
	kimi.DP, kimi.EP = 2, true
	plan := func(version string, tokens int) error {
		args.EngineVersion, args.MaxNumBatchedTokens, args.MaxNumSeqs, args.MaxModelLen = version, tokens, 128, 32768
		_, err := MemoryPlan(kimi, args)
		return err
	}
	if err := plan("0.20.0", 8192); err == nil || !strings.Contains(err.Error(), "lower max_num_batched_tokens") {
		t.Errorf("8,192 tokens: %v", err)
	}
	for version, tokens := range map[string]int{"0.20.0": 256, "0.19.0": 8192} {
		if err := plan(version, tokens); err != nil {
			t.Errorf("%s, %d tokens: %v", version, tokens, err)
		}
	}
	// In passes of 256 tokens the experts are read 16 times for 4,096.
	d = deploy(t, "DeepSeek-V3", "H200 SXM", 1)
	d.DP, d.EP = 8, true
	low := Exchange{Backend: All2AllLowLatency}
	cut, whole := through(d, low, "0.19.0").Step(Batch{Chunks: []Chunk{{Tokens: 4096}}}), through(d, low, "0.20.0").Step(Batch{Chunks: []Chunk{{Tokens: 4096}}})
	if cut.ExpertWeights < 10*whole.ExpertWeights || cut.Communication-whole.Communication < 0.99*58*15*2*deepEPFloor {
		t.Errorf("in passes %+v, at once %+v", cut, whole)
	}
}

package model

import (
	"math"

	"planner/internal/note"
)

// All2All is the backend that takes the tokens of attention replicas to the GPUs of their experts and brings the
// results back (vLLM's --all2all-backend). It matters with expert parallelism over several replicas.
type All2All int

// The backends, by vLLM's names: the release's default; a broadcast by each replica and an all-reduce; an all-gather
// and a reduce-scatter; kernels of Perplexity, DeepSeek and FlashInfer, which send a token only where its experts are.
const (
	All2AllByDefault All2All = iota
	All2AllNaive
	All2AllGather
	All2AllPPLX
	All2AllHighThroughput
	All2AllLowLatency
	All2AllFlashInfer
)

// String is the backend's name in configurations and on vLLM's command line, "auto" for the release's default.
func (a All2All) String() string { return a.names()[a] }

func (All2All) names() []string {
	return []string{"auto", "naive", "allgather_reducescatter", "pplx", "deepep_high_throughput", "deepep_low_latency", "flashinfer_all2allv"}
}

// Exchanges lists the backends besides the release's default.
func Exchanges() []All2All {
	return []All2All{All2AllNaive, All2AllGather, All2AllPPLX, All2AllHighThroughput, All2AllLowLatency, All2AllFlashInfer}
}

// releases returns the first release 0.x of vLLM that has the backend and the first that no longer has it: the
// all-gather is of pull request 23964 (2025-09), FlashInfer's of 21003 (2025-09); 33724 (2026-02) removed pplx, and 0.19 has no naive:
// newer releases take the all-gather for them, with a warning. The default was naive in 0.10 (envs.py).
func (a All2All) releases() (from, until int) {
	switch a {
	case All2AllNaive:
		return oldestMinor, 19
	case All2AllPPLX:
		return oldestMinor, 17
	case All2AllGather, All2AllFlashInfer:
		return 11, newestMinor + 1
	}
	return oldestMinor, newestMinor + 1
}

// deepEP reports whether the backend is one of DeepEP's, the only ones that vLLM overlaps with computing.
func (a All2All) deepEP() bool { return a == All2AllHighThroughput || a == All2AllLowLatency }

// Exchange says how tokens travel between attention replicas and experts. Its zero value is the engine's default.
type Exchange struct {
	Backend All2All
	// DBO computes one half of a step's tokens while the other half travels (--enable-dbo).
	DBO bool
	// EPLB places experts so that each GPU has the same load in the mean (--enable-eplb).
	EPLB bool
}

// all2all returns the backend in use: the default without expert parallelism over replicas, as in vLLM
// (fused_moe/all2all_utils.py).
func (l EngineArgs) all2all(dep Deployment) All2All {
	switch {
	case l.Exchange.Backend != All2AllByDefault && dep.EP && dep.DP > 1:
		return l.Exchange.Backend
	case versionOf(l.EngineVersion).AtLeast(0, 11):
		return All2AllGather
	}
	return All2AllNaive
}

// Supports returns an error if the model cannot be divided as asked ([Deployment.Validate]) or if the engine refuses
// its exchange with experts on this hardware or in this release.
func (d Deployment) Supports(args EngineArgs) error {
	if err := d.Validate(); err != nil {
		return err
	}
	d = d.Normal()
	a, minor := args.all2all(d), max(versionOf(args.EngineVersion).minor(), oldestMinor)
	from, until := a.releases()
	wired := a > All2AllGather // straight from GPU to GPU
	switch {
	case minor < from || minor >= until:
		return note.New(note.ExchangeUnknown, minor, a.String())
	case wired && d.Hardware.Link.Kind != LinkNVLink && !(a.deepEP() && d.Hardware.CDNA()): // vLLM's image for ROCm has DeepEP
		return note.New(note.ExchangeUnwired, a.String(), d.Hardware.Name)
	case a == All2AllFlashInfer && d.Nodes() > 1:
		return note.New(note.ExchangeOneNode, a.String(), d.Nodes())
	case args.Exchange.DBO && (!args.Exchange.Backend.deepEP() || minor < 11):
		return note.New(note.OverlapUnknown, minor, args.Exchange.Backend.String())
	}
	return nil
}

// What DeepEP's kernels take, from the tables of its README (2025-06: H800, 200 GB/s of NVLink and 50 GB/s of InfiniBand
// a GPU, hidden size 7,168, eight experts a token, fp8 there and bf16 back).
//
// Low latency, 128 tokens: a token is sent once for each of its experts. These three figures meet the twelve latencies,
// of 8 to 256 GPUs, within 3 % (in the mean square). What moves within a node does not grow with the link: eight H20
// with 450 GB/s take 222 us both ways (DeepEP issue 303), H800 191, simulated are 190.
//
// High throughput, 4,096 tokens: a token is sent once to each node, and from there over NVLink once to each GPU, that
// has any of its experts. Within a node 0.67 of the link is reached on H800, 0.63 on eight H20 (issue 138), 0.62 on
// H200 and 0.27 to 0.41 on B200 (UCCL's tables); over two nodes 130 GB/s on H800, 116 to 134 on H200 (issue 493), 188 on
// H20 (issue 148), and 245 to 273 with DeepEP 2. Two nodes are bound by that, four and eight by 0.87 to 0.89 of what
// joins them.
const (
	deepEPFloor   = 30e-6 // seconds of a dispatch or a combine, however few tokens
	deepEPCopied  = 150e9 // bytes/s a GPU, all copies of a token together (low latency)
	deepEPLink    = 0.64  // of NVLink's rate, within a node (high throughput)
	deepEPForward = 130e9 // bytes/s a GPU, from node to GPU over NVLink (high throughput)
	nvlinkMost    = 0.8   // of NVLink's rate that anything reaches (160 of 200 GB/s, the README)
	deepEPNode    = 0.88  // of the rate between nodes
	deepEPLayout  = 54e-6 // seconds to count what goes where before a dispatch of high throughput (issue 261)
	nodeHop       = 2e-6  // seconds that the first byte takes longer to another node
	pplxNode      = 0.5   // of DeepEP's rate between nodes (Perplexity, 2025-04); within a node 128 tokens take 83.6 us, DeepEP 77
	dboSMs        = 20.0  // multiprocessors that high throughput takes from computing (DeepEPHTAll2AllManager)
	hopperSMs     = 132.0 // of an H100 or H200; an H20 has 78, a B200 148
)

// dpChunk is the number of tokens that low latency and pplx send at once until 0.19 (VLLM_MOE_DP_CHUNK_SIZE). In 0.20
// it is a whole step's (max_num_tokens in fused_moe/layer.py, 0.20.1).
const dpChunk = 256

// pass returns the most tokens of a replica that its experts take at once, 0 for no limit.
func (l EngineArgs) pass(dep Deployment) int {
	switch a := l.all2all(dep); {
	case a != All2AllLowLatency && a != All2AllPPLX:
		return 0
	case versionOf(l.EngineVersion).AtLeast(0, 20):
		return l.MaxNumBatchedTokens
	}
	return min(dpChunk, l.MaxNumBatchedTokens)
}

// exchangeBytes returns the buffers of a backend on one GPU: 1 GiB within a node and 1 GiB between nodes for DeepEP
// (VLLM_DEEPEP_BUFFER_SIZE_MB); low latency instead keeps room for every token of every GPU at every expert, twice each
// for sending and receiving (get_low_latency_rdma_size_hint: 2,116.29 MB for 128 tokens and 288 experts, as logged in
// DeepEP's issue 28).
func (l EngineArgs) exchangeBytes(dep Deployment) float64 {
	switch l.all2all(dep) {
	case All2AllHighThroughput:
		return gib * float64(min(dep.Nodes(), 2))
	case All2AllLowLatency:
		return gib + 4*float64(dep.Arch.MoE.Experts*l.pass(dep))*(2*float64(dep.Arch.Hidden)+16)
	}
	return 0
}

// exchange is the way to the experts and back, over all layers of a step. Its zero value takes no time.
type exchange struct {
	floor    float64 // seconds, however few tokens, of each pass
	gathered float64 // seconds per token of any replica, where each GPU gets all of them
	routed   float64 // seconds per token of a replica, where each goes to its experts alone
	replicas float64
	pass     float64 // the most tokens of a pass; 0: no limit
}

// passes returns how many times the experts are visited for the tokens of one replica.
func (x *exchange) passes(tokens float64) float64 {
	if x.pass == 0 {
		return 1
	}
	return math.Ceil(tokens / x.pass)
}

// time returns the seconds for the tokens of a replica among so many batches like it, if the fullest GPU receives
// fullest times the mean: a replica sends what it has, and receives its part of all.
func (x *exchange) time(tokens, replicas, fullest float64) float64 {
	if x.replicas == 0 {
		return 0
	}
	return x.floor*x.passes(tokens) + tokens*replicas*x.gathered + x.routed*max(tokens, tokens*replicas/x.replicas*fullest)
}

// reached returns on how many of so many equal parts of the experts those of a token lie, in the mean.
func (m MoE) reached(parts float64) float64 {
	groups, top, k := float64(max(m.Groups, 1)), float64(max(m.TopGroups, 1)), float64(m.Active)
	if groups == 1 || parts < groups && math.Mod(groups, parts) != 0 {
		groups, top = 1, 1
	}
	if parts >= groups {
		open := parts / groups * top
		return open * (1 - math.Pow(1-1/open, k))
	}
	empty, own := 0.0, groups/parts // groups of one part
	for chosen := 0.0; chosen <= min(own, top); chosen++ {
		chance := choose(own, chosen) * choose(groups-own, top-chosen) / choose(groups, top)
		empty += chance * math.Pow(1-chosen/top, k)
	}
	return parts * (1 - empty)
}

// choose is the number of ways to choose k of n.
func choose(n, k float64) float64 {
	ways := 1.0
	for i := 0.0; i < k; i++ {
		ways *= (n - i) / (i + 1)
	}
	return max(ways, 0)
}

// dispatched returns the bytes per value of what is sent to experts: fp8 with a scale for each 128 values if the experts
// are scaled in blocks, fp4 by FlashInfer for nvfp4, otherwise 16 bits (vLLM's prepare_finalize, 0.20).
func (d Deployment) dispatched(a All2All) float64 {
	_, native := d.Hardware.Flops.computeFormat(d.Precision.Weights)
	switch {
	case d.blockScaled():
		return 1 + 4.0/128
	case a == All2AllFlashInfer && d.Precision.Weights == NVFP4 && native:
		return 0.5 + 1.0/16
	}
	return 2
}

// What NCCL takes to gather a few tokens, or to scatter their sums, among n GPUs: ringFloor + (n-1) ringHop, the 8.3 and
// 13.6 us of two and four GPUs (FlashInfer's pull request 5023, 2026-09; over PCIe, but its all-reduce takes as long on
// eight H100, 19 us). Two models with eight replicas on B200 took 68 us a layer for both, 1.4 times as long as that, with
// whatever else is slower there (vLLM 0.17; gddezero/b200-perf-opt, 2026-03).
const ringFloor, ringHop = 5.7e-6, 2.65e-6

// setExchange sets the way between attention replicas and experts, latency and rate being those of a send within a node.
// With experts in parallel, the GPUs of a replica share its tokens between them (use_sequence_parallel_moe in vLLM's
// config/parallel.py, 0.11 to 0.33).
func (r *Roofline) setExchange(latency, rate float64) {
	d, l, x := r.dep, r.c.Link, &r.toExperts
	a, layers, nodes := r.args.all2all(d), float64(d.Arch.MoE.Layers), float64(d.Nodes())
	x.replicas, x.pass = float64(d.DP), float64(r.args.pass(d))
	between := 0.0 // seconds per byte
	if nodes > 1 {
		between = l.Scale / d.Hardware.Node.Rate
	}
	if a <= All2AllGather {
		// Each replica gathers the tokens of all others and scatters the sums, whichever experts were chosen. The GPUs
		// of a node fetch the tokens of all other nodes, each a part.
		gpus := d.DP
		if d.EP && versionOf(r.args.EngineVersion).AtLeast(0, 11) {
			gpus *= d.TP
		}
		across := 0.0
		if nodes > 1 {
			across = l.NodeLatency * l.Scale * math.Log2(2*nodes) / 2
		}
		ring := (ringFloor+float64(gpus-1)*ringHop)*l.Scale + across
		calls, times := 2*ring, 2.0
		if a == All2AllNaive {
			calls, times = ring+x.replicas*(latency+across), 3 // one broadcast for each replica; an all-reduce moves everything twice
		}
		within := max(1, float64(d.NodeGPUs/d.PP))
		x.floor = layers * calls
		x.gathered = layers * times * r.hiddenSize * ((x.replicas-1)/x.replicas/rate + (nodes-1)/nodes/within*between/l.NodeShare)
		return
	}
	link, gpus := d.Hardware.Link.Rate, x.replicas*float64(d.TP)
	local := gpus / nodes
	floor := 2 * deepEPFloor
	if nodes > 1 {
		floor += 2 * nodeHop
	}
	copies := float64(d.Arch.MoE.Active)
	inside, outside := copies*(gpus-1)/gpus, copies*(gpus-local)/gpus
	moved := min(deepEPCopied, nvlinkMost*link)
	between /= deepEPNode
	switch a {
	case All2AllPPLX:
		between /= pplxNode
	case All2AllHighThroughput, All2AllFlashInfer:
		inside, outside = d.Arch.MoE.reached(gpus)*(gpus-1)/gpus, d.Arch.MoE.reached(nodes)*(nodes-1)/nodes
		if moved = deepEPLink * link; nodes > 1 {
			moved = min(moved, deepEPForward)
		}
		if a == All2AllHighThroughput {
			floor += deepEPLayout
		}
	}
	width := r.hiddenSize / 2
	if d.Arch.MoE.Latent > 0 {
		width = float64(d.Arch.MoE.Latent)
	}
	x.floor = layers * floor * l.Scale
	x.routed = layers * width * (d.dispatched(a) + 2) / float64(d.TP) * max(inside/moved*l.Scale, outside*between)
}

// Tokens from which vLLM overlaps a step's two halves: of steps that only decode, and of others
// (dbo_decode_token_threshold and dbo_prefill_token_threshold).
const overlapDecodes, overlapPrompts = 32, 512

// Overlaps reports whether halves of steps may overlap ([Exchange].DBO).
func (r *Roofline) Overlaps() bool { return r.args.Exchange.DBO }

// overlaps reports whether a step's tokens are halved, so that one half is computed while the other travels. vLLM does
// so if every replica has enough tokens, and none so few that they would fill no second half of the largest's
// (v1/worker/dp_utils.py).
func (r *Roofline) overlaps(l *batchSums) bool {
	if !r.args.Exchange.DBO || r.toExperts.routed == 0 {
		return false
	}
	least := overlapDecodes
	if l.tokens > 0 {
		least = overlapPrompts
	}
	others := l.replicas / r.toExperts.replicas // tokens of the mean replica, of which this one has 1
	return others > 0.5 && l.all()*min(1, others) > float64(least)
}

// halves returns the work of a step in two halves, of which one travels while the other is computed. Whichever takes
// longer then sets the pace. Each half reads the weights.
func (r *Roofline) halves(l *batchSums) StepTime {
	half := l.micro(2, max(1, l.tokens/2))
	var t StepTime
	t.Add(r.work(&half), 2)
	travel := 2 * r.toExperts.time(half.all(), half.replicas, r.fullest(half.all()*half.replicas))
	hidden := min(travel, t.Total-travel) * r.c.Link.Overlap
	if r.args.all2all(r.dep) == All2AllHighThroughput {
		hidden *= 1 - dboSMs/hopperSMs
	}
	t.Communication -= hidden
	t.Total -= hidden
	return t
}

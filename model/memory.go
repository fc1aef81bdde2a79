package model

import (
	"fmt"
	"math"
	"slices"

	"planner/internal/note"
)

// blockTokens is vLLM's block size on GPUs.
const blockTokens = 16

// The parts of memory that no shape gives. Together they reproduce to about 1 % the pools of the few servers
// whose pool vLLM reported; see the tests.
const (
	// reservedBytes is what the driver and the context hold before the engine asks: an H100 of 80 GiB shows
	// 79.2 (vLLM start-up logs), an L40S of 44.99 GiB 44.4.
	reservedBytes = 0.75 * gib
	// nonTorchAlone and nonTorchGroup are memory outside PyTorch's allocator: 0.16 GiB in a start-up log on one
	// H100; in a group the buffers of NCCL and the custom all-reduce come on top (BLIS: 0.6 GiB).
	nonTorchAlone = 0.15 * gib
	nonTorchGroup = 0.60 * gib
	// The memory of graphs was fitted by hand to the pools of an A100 under 0.28 that ridgepoint 0.1.2 lists
	// (8B, 14B, a 16B MoE): a base plus a part proportional to the hidden size.
	graphsBase      = 0.20 * gib
	graphsPerHidden = 0.30 * gib / 4096
	// visionPass is per element of the tower's hidden state: one server of Llama-4 Scout (hidden 1408) reported
	// 7 GiB per GPU less than the text model alone leaves, of which attention in bf16 and the tower explain
	// 3.1. One observation: a rough guess for other towers.
	visionPass = 3.9 * gib / 1408
	// samplerBytes is per row and vocabulary entry: bf16 logits, their fp32 copy, and the sort (fp32 values,
	// int64 positions) in the warm-up of top-k and top-p. Every rank gathers the whole vocabulary.
	samplerBytes = 2 + 4 + 4 + 8 + 2
)

// Memory is how the memory of an instance's fullest GPU is divided, in bytes.
type Memory struct {
	Usable     float64 // what the engine may take: utilisation times the memory that it sees
	Weights    float64
	Activation float64 // peak of a forward pass or of the sampler, whichever is larger
	Graphs     float64 // CUDA graphs, from the release on that accounts for them (0.21)
	NonTorch   float64 // outside PyTorch's allocator
	Vision     float64 // a vision tower and the profiling pass over its largest images
	KV         float64 // left for the KV cache
	Blocks     int     // of the KV pool, per attention replica
	Layout     KVLayout
}

// KVLayout says how requests take blocks from the pool. Layers form groups of equal size; a block holds tokens
// for the layers of one group, so a request takes blocks for each group (vLLM's hybrid KV cache manager).
type KVLayout struct {
	BlockTokens  int
	GroupLayers  float64 // layers of one group, on one GPU
	FullGroups   int
	WindowGroups int
	Window       int
	// DraftBytes is what the layers of the draft model add to a block.
	DraftBytes float64
	// StateGroups are groups of layers with a state, each of which takes one block per request, whatever its
	// length, or blocks for what a compressed cache holds of a request besides.
	StateGroups int
}

// blockBytes is the size of a block on one GPU.
func (l KVLayout) blockBytes(dep Deployment) float64 {
	return dep.paged()*l.GroupLayers*float64(l.BlockTokens) + l.DraftBytes
}

// Blocks returns the blocks that a request of the given tokens holds while at most inFlight of them are being
// computed. A window group holds at most ceil((window-1+inFlight)/block)+1 of them, whatever the request's
// length.
func (l KVLayout) Blocks(tokens, inFlight int) int {
	full := ceilDiv(tokens, l.BlockTokens)
	n := l.FullGroups*full + l.StateGroups
	if l.WindowGroups > 0 {
		n += l.WindowGroups * min(full, ceilDiv(l.Window-1+inFlight, l.BlockTokens)+1)
	}
	return n
}

// MemoryPlan divides the memory of one GPU of a deployment as vLLM does at start-up: utilisation x total -
// weights - peak of a profiling pass - graphs - memory outside the allocator - vision = KV pool. Zero arguments
// mean the engine's defaults. It fails as [Deployment.Supports] does, or when the pool cannot hold one request
// of MaxModelLen tokens, which vLLM refuses too, or when a pinned pool and the weights exceed the memory.
func MemoryPlan(dep Deployment, args EngineArgs) (Memory, error) {
	if err := dep.Supports(args); err != nil {
		return Memory{}, err
	}
	dep = dep.Serving(args)
	args = args.withDefaults(dep)
	m := divide(dep, args)
	if room := dep.Hardware.Memory - m.Weights; args.KVBlocks > 0 && m.KV > room {
		return m, note.New(note.PoolTooLarge, dep.Arch.Name, dep.Hardware.Name, m.Blocks, m.KV/gib, m.Weights/gib, dep.Hardware.Memory/gib, max(0, int(room/m.Layout.blockBytes(dep))))
	}
	need, fits := m.holdsOne(args)
	if fits {
		return m, nil
	}
	return m, note.New(note.NoMemory, dep.Arch.Name, dep.Hardware.Name, dep.TP, m.arithmetic(dep, args), max(args.MaxModelLen, 1), need, advice(dep, args))
}

// divide computes the parts without judging them.
func divide(dep Deployment, args EngineArgs) Memory {
	m := Memory{
		Usable:     math.Ceil((dep.Hardware.Memory - reservedBytes) * args.Utilization),
		Weights:    weightBytes(dep) + paddedBytes(dep, args) + absorbedBytes(dep) + args.Speculation.weightBytes(dep) + args.LoRA.slotBytes(dep),
		Activation: max(forwardBytes(dep, args), samplerBytes*float64(args.MaxNumSeqs)*float64(dep.Arch.Vocab)),
		NonTorch:   nonTorchAlone,
		Vision:     visionBytes(dep.Arch.Details.Vision),
		Layout:     layoutOf(dep, args),
	}
	if dep.GPUs() > 1 {
		m.NonTorch = nonTorchGroup
	}
	m.NonTorch += args.exchangeBytes(dep)
	if versionOf(args.EngineVersion).AtLeast(0, 21) && args.graphs() != GraphsNone {
		m.Graphs = graphsBase + graphsPerHidden*float64(dep.Arch.Hidden)*float64(args.LargestGraph(dep.Hardware))/512
	}
	m.KV = m.Usable - m.Weights - m.Activation - m.Graphs - m.NonTorch - m.Vision
	block := m.Layout.blockBytes(dep)
	m.Blocks = max(0, int(m.KV/block))
	if args.KVBlocks > 0 {
		m.Blocks = args.KVBlocks
		m.KV = float64(args.KVBlocks) * block
	}
	return m
}

// arithmetic writes the division out in one sentence.
func (m Memory) arithmetic(dep Deployment, args EngineArgs) string {
	if args.KVBlocks > 0 {
		return fmt.Sprintf("pinned to %d KV blocks of %d tokens = %.2f GiB", args.KVBlocks, m.Layout.BlockTokens, m.KV/gib)
	}
	graphs := ""
	if m.Graphs > 0 {
		graphs = fmt.Sprintf(" - %.2f graphs", m.Graphs/gib)
	}
	if m.Vision > 0 {
		graphs += fmt.Sprintf(" - %.2f vision", m.Vision/gib)
	}
	return fmt.Sprintf("%.2f GiB usable at %.2f - %.2f weights - %.2f activation (%d tokens, %d sequences)%s"+
		" - %.2f other = %.2f GiB for KV cache = %d blocks of %d tokens at %.0f KiB",
		m.Usable/gib, args.Utilization, m.Weights/gib, m.Activation/gib, args.MaxNumBatchedTokens, args.MaxNumSeqs, graphs,
		m.NonTorch/gib, m.KV/gib, m.Blocks, m.Layout.BlockTokens, m.Layout.blockBytes(dep)/kib)
}

// holdsOne returns the blocks of a request of MaxModelLen tokens and whether the pool has them.
func (m Memory) holdsOne(args EngineArgs) (need int, ok bool) {
	need = 1
	if args.MaxModelLen > 0 {
		need = m.Layout.Blocks(args.MaxModelLen, args.MaxNumBatchedTokens)
	}
	return need, m.Blocks > need // one block is never handed out
}

// advice names the smallest changes with which a deployment would fit: a larger tensor-parallel degree, or else
// smaller weights or more pipeline stages.
func advice(dep Deployment, args EngineArgs) string {
	if room := args.exchangeBytes(dep); args.all2all(dep) == All2AllLowLatency && room > 0.1*dep.Hardware.Memory {
		return fmt.Sprintf("deepep_low_latency keeps %.2f GiB for steps of up to %d tokens: lower max_num_batched_tokens", room/gib, args.pass(dep))
	}
	if tp := smallestTP(dep, args); tp > 0 {
		return fmt.Sprintf("the smallest tensor_parallel that fits is %d", tp)
	}
	text := "no tensor_parallel up to 8 fits"
	if dep.Arch.MoE.Present() && !dep.EP {
		whole := dep
		whole.EP = true
		if tp := smallestTP(whole, args); tp > 0 {
			text += fmt.Sprintf("; with expert_parallel tensor_parallel %d fits", tp)
		}
	}
	for _, f := range []WeightFormat{FP8, INT4} {
		fewer := dep
		fewer.Precision.Weights = f
		if tp := smallestTP(fewer, args); tp > 0 {
			text += fmt.Sprintf("; with weights = %q tensor_parallel %d fits", f, tp)
			break
		}
	}
	for pp := 2 * dep.PP; pp <= 4*dep.PP; pp *= 2 {
		longer := dep
		longer.PP = pp
		if tp := smallestTP(longer, args); tp > 0 {
			return text + fmt.Sprintf("; with pipeline_parallel = %d tensor_parallel %d fits", pp, tp)
		}
	}
	return text
}

// smallestTP returns the smallest tensor-parallel degree, from the deployment's own on, at which it fits; 0 if
// none up to 8 does.
func smallestTP(dep Deployment, args EngineArgs) int {
	for ; dep.TP <= 8; dep.TP++ {
		if dep.Validate() != nil {
			continue
		}
		if _, fits := divide(dep, args).holdsOne(args); fits {
			return dep.TP
		}
	}
	return 0
}

// LoadedWhole returns the bytes of the weights of a GPU before vLLM quantises them to fp8, if these do not fit: until 0.15 it
// loads all of them first (pull request 31914, 2026-01).
func (d Deployment) LoadedWhole(args EngineArgs) float64 {
	d = d.Normal()
	if d.Precision.Weights != FP8 || d.Arch.Native != 0 && d.Arch.Native.Bytes() < 2 || versionOf(args.EngineVersion).AtLeast(0, 15) {
		return 0
	}
	d.Precision.Weights = BF16
	if whole := weightBytes(d); whole > d.Hardware.Memory-reservedBytes {
		return whole
	}
	return 0
}

// weightBytes returns the weights on one GPU of the fullest stage, which has one layer more if they do not
// divide evenly (get_pp_indices in vllm/distributed/utils.py). With several stages the embedding is on the
// first and the head on the last, so the fullest has at most one of them.
func weightBytes(dep Deployment) float64 {
	n := dep.Arch.counts()
	tp := float64(dep.TP)
	layers := n.rest * BF16.Bytes()
	for _, part := range slices.Concat(dep.expertParts(n), dep.parts(n)) {
		layers += part.parameters * dep.weight(part.format)
	}
	ends := (n.embeddings + n.head) / tp * BF16.Bytes()
	if dep.PP > 1 {
		ends = n.embeddings / tp * BF16.Bytes()
	}
	return layers*dep.fullestStage() + ends
}

// fullestStage is the share of the layers on the stage that has most.
func (d Deployment) fullestStage() float64 {
	return float64(ceilDiv(d.Arch.Layers, d.PP)) / float64(d.Arch.Layers)
}

// absorbedBytes returns the second copy, in 16 bits, of what expands a latent to keys and values, which decodes multiply
// with (MLACommonBaseImpl.process_weights_after_loading in vLLM's v1/attention/backends/mla/common.py).
func absorbedBytes(dep Deployment) float64 {
	at := dep.Arch.Attention
	if at.Compressed.Present() {
		return 0
	}
	return float64(dep.Arch.fullLayers()*at.Heads*at.MLA.KVRank*(at.MLA.NopeDim+at.MLA.ValueDim)) * BF16.Bytes() / float64(dep.TP) * dep.fullestStage()
}

// paddedBytes returns what the layouts of kernels add to mxfp4 experts on one GPU, beyond what their times count
// (expertPadding). Marlin pads the hidden size to 256 and an expert's width to 128, FlashInfer both to 256 (vLLM's
// mxfp4.py, 0.10 to 0.26). Triton's on Hopper pads each matrix to 128 along the sum and 256 along the columns
// (hopper_value.py of triton_kernels). On one H100 gpt-oss-120b so takes 66.0 and 64.4 GiB for 60.8, as vLLM logs (issues
// 23278 and 33155).
func paddedBytes(dep Deployment, args EngineArgs) float64 {
	bytes := 0.0
	for _, part := range dep.expertParts(dep.Arch.counts()) {
		if part.format == MXFP4 {
			bytes += part.parameters * dep.weight(MXFP4)
		}
	}
	if bytes == 0 {
		return 0
	}
	hidden, width := dep.Arch.Hidden, dep.Arch.MoE.Intermediate
	if !dep.EP {
		width = ceilDiv(width, dep.TP*dep.DP)
	}
	to := func(n, multiple int) float64 { return float64(multiple * ceilDiv(n, multiple)) }
	padded := 3 * to(hidden, 256) * to(width, 128)
	switch args.experts(dep) {
	case ExpertsFlashInfer:
		padded = 3 * to(hidden, 256) * to(width, 256)
	case ExpertsTriton:
		padded = to(hidden, 128)*to(2*width, 256) + to(width, 128)*to(hidden, 256)
	}
	return bytes * (padded/float64(3*hidden*width)/dep.expertPadding() - 1) * dep.fullestStage()
}

// visionBytes returns what a vision tower takes on every GPU: its weights, and the profiling pass over as many
// of its largest images as fit in a step.
func visionBytes(v Vision) float64 {
	if v.Params == 0 {
		return 0
	}
	return v.Params*BF16.Bytes() + visionPass*float64(v.Hidden)
}

// forwardBytes returns the peak of activations in a pass over the given tokens: residual, hidden state and one
// copy, plus the widest intermediate result and its product.
func forwardBytes(dep Deployment, args EngineArgs) float64 {
	a, tp, tokens := dep.Arch, float64(dep.TP), args.MaxNumBatchedTokens
	hidden := float64(a.Hidden)
	width := 3 * float64(a.Intermediate) / tp
	if a.MoE.Present() {
		// Each token's hidden state is copied for every expert that it visits; the up projection shares that
		// buffer with the result.
		k, im := float64(a.MoE.Active), float64(a.MoE.Intermediate)/tp
		if dep.EP {
			im *= tp
		}
		if pass := args.pass(dep); pass > 0 {
			k = float64(a.MoE.Experts*pass) / float64(tokens) // room for all tokens of all GPUs at each expert
		}
		experts := k * (max(2*im, hidden) + im)
		shared := 3 * float64(a.MoE.SharedIntermediate) / tp
		if a.denseLayers() == 0 {
			width = 0
		}
		width = max(width, experts+shared)
	}
	width = max(width, float64((max(a.Attention.Heads, a.Attention.WindowedHeads)+2*a.Attention.KVHeads)*a.Attention.HeadDim)/tp)
	return float64(tokens) * 2 * (3*hidden + width)
}

// layoutOf groups the layers of one stage. If two kinds of layers are mixed, groups have as many layers as the
// rarer kind, or as the commoner one if that has less than a quarter more; the last group of a kind may be
// padded. Window layers with larger KV per token count as proportionally more layers. If theirs is an nth part,
// a block holds n times as many tokens, for which full layers take n blocks.
func layoutOf(dep Deployment, args EngineArgs) KVLayout {
	l := KVLayout{BlockTokens: blockTokensOf(dep), Window: dep.Arch.Attention.Window}
	l.DraftBytes = args.Speculation.kvBytes(dep) * float64(l.BlockTokens)
	full := ceilDiv(dep.Arch.fullLayers(), dep.PP)
	window := ceilDiv(dep.Arch.Attention.WindowLayers, dep.PP)
	narrower := 1
	if at := dep.Arch.Attention; window > 0 && at.Windowed != (KVShape{}) {
		more := at.Windowed.bytes(KVFP8, dep.TP) / at.bytes(KVFP8, dep.TP)
		if narrower = max(1, int(1/more)); float64(narrower)*more != 1 || full == 0 {
			narrower = 1
			window = int(math.Ceil(float64(window) * more))
		}
	}
	if dep.Arch.Attention.Chunked && (!versionOf(args.EngineVersion).AtLeast(0, 14) || args.Speculation.Method == DraftEagle) {
		// vLLM frees a chunked layer's cache of past chunks since pull request 29627 (merged 2025-12), but not
		// beside EAGLE (config/vllm.py, 0.32).
		full, window = full+window, 0
	}
	if states := ceilDiv(dep.Arch.State.Layers, dep.PP); states > 0 {
		size := groupSize(full, states)
		l.GroupLayers, l.FullGroups, l.StateGroups, l.Window = float64(size), ceilDiv(full, size), ceilDiv(states, size), 0
		return l
	}
	switch {
	case window == 0:
		l.GroupLayers, l.FullGroups, l.Window = float64(full), 1, 0
		if dep.Arch.Attention.Compressed.Present() {
			l.StateGroups = int(math.Ceil(dep.held() / float64(dep.PP) / l.blockBytes(dep)))
		}
	case full == 0:
		l.GroupLayers, l.WindowGroups = float64(window), 1
	default:
		size := groupSize(full, window)
		l.BlockTokens *= narrower
		l.GroupLayers = float64(size) / float64(narrower)
		l.FullGroups, l.WindowGroups = narrower*ceilDiv(full, size), ceilDiv(window, size)
	}
	return l
}

// groupSize returns the number of layers per group for two kinds of layers.
func groupSize(a, b int) int {
	size, most := min(a, b), max(a, b)
	if float64(most) < 1.25*float64(size) {
		return most
	}
	return size
}

// ceilDiv returns a/b rounded up, 0 for a <= 0.
func ceilDiv(a, b int) int {
	if a <= 0 {
		return 0
	}
	return (a + b - 1) / b
}

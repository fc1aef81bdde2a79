package model

// This file holds every number of the step-time model that is not on a data sheet.
//
// Sources, named in the comments by their short form:
//
//	GEMM tables   aiconfigurator (Apache-2.0) kernel timings of vLLM 0.24 (A100: 0.14), as of
//	              2026-08, fitted as bytes/(e x bandwidth) + a floor per kernel; error 3-5 %
//	served        fitted to served H100 runs of vLLM 0.11 to 0.18: open loop Llama-2-7B,
//	              CodeLlama-34B, Mixtral-8x7B; closed loop Llama-3.1-70B fp8, gpt-oss-120b.
//	              internal/evidence/accuracy compares with these runs and says what the errors
//	              are with each of them left out of the fit
//	trace         one overload run of Llama-3.1-8B on an RTX PRO 6000, vLLM 0.19
//	analogy       no measurement: carried over from the nearest measured case

// ByFormat is one efficiency per weight format; fp16 uses that of bf16, mxfp4 that of nvfp4.
type ByFormat [MXFP4]float64

// For returns the efficiency of a format.
func (b ByFormat) For(f WeightFormat) float64 { return b[f.kin()] }

// kin returns the format whose efficiency a format uses.
func (f WeightFormat) kin() WeightFormat {
	switch f {
	case FormatUnset, FP16:
		return BF16
	case MXFP4:
		return NVFP4
	}
	return f
}

// Scaled returns a copy with every efficiency multiplied by a factor and limited to most.
func (b ByFormat) Scaled(by, most float64) ByFormat {
	for f := range b {
		b[f] = min(b[f]*by, most)
	}
	return b
}

// tileRows are the largest numbers of rows for each entry of [Constants].Tiles; the last one also holds beyond,
// and up to 16 rows nothing is lengthened.
var tileRows = [...]float64{32, 64, 128, 256}

// skinnyRows is the number of rows that small products are computed in. SmolLM2-135M in 4 bits, llama-server on one thread of
// an AMD EPYC of 2.6 GHz (2026-11-29): a step of 1 to 8 decodes takes 6, 16, 23, 30, 38, 42, 44 and 42 ms, a prompt 3.5 ms
// a token: each of two to four 2.3 times as long, which the formula (Roofline.rows) continues with 34, 37, 40 and 44.
const skinnyRows = 4

// Constants are the measured numbers of the step-time model for one generation of GPUs and one release of the
// engine. Efficiencies are shares of the data sheet's bandwidth or of its dense compute in the format computed
// in; times are seconds. [ConstantsFor] makes them; the zero value is of no use.
type Constants struct {
	Weights        ByFormat // bandwidth reached when a step's matrices are read
	Experts        ByFormat // the same for routed experts
	KV             ByFormat // bandwidth reached by decode attention, by the format of the cache
	Prefill        ByFormat // compute reached by large matrix products
	PrefillExperts ByFormat // the same for routed experts
	// Unpacked is the highest rate, in bytes per second, at which a GPU without fp4 units unpacks 4-bit
	// experts; 0: its bandwidth is the only limit.
	Unpacked float64
	// Uneven is the squared coefficient of variation of the experts' popularity.
	Uneven float64
	// Tiles are factors on the time to read fp8 matrices, by the rows of a step.
	Tiles [len(tileRows)]float64
	// Skinny is how many times as long as a row among many the processor computes each of two to [skinnyRows] rows of a
	// matrix product; a single one is multiplied as a vector. 0: as long, which is true of GPUs, that read the weights
	// meanwhile.
	Skinny    float64
	Attention AttentionConstants
	Head      struct{ Memory, Compute float64 } // the LM head's shares of bandwidth and of bf16 compute
	// Sampler is the seconds per row and vocabulary entry with top-p or top-k, by how these are found. Every
	// rank samples from the whole vocabulary.
	Sampler struct{ Sort, Triton float64 }
	Fixed   FixedConstants
	// Frontend is the seconds of a request outside the engine's loop: HTTP, tokenisation, the way to the
	// engine's process and back; and of what one process of the API server does one after the other: taking
	// in a request and streaming an event.
	Frontend struct{ Request, PromptToken, Intake, Event float64 }
	Link     LinkConstants
	Draft    DraftConstants
	States   float64 // how often a layer with a state moves the activations of a prompt
}

// kv returns the share of bandwidth that decode attention reaches.
func (c *Constants) kv(f KVFormat) float64 {
	if f == KVFP8 {
		return c.KV[FP8]
	}
	return c.KV[BF16]
}

// AttentionConstants describe attention beyond its bandwidth.
type AttentionConstants struct {
	Prefill   float64 // share of bf16 compute for long contexts
	ExtraKeys float64 // keys that each query costs on top of those it attends to
	Skew      float64 // how far unequal contexts pull the batch from its mean towards its longest: 0 to 1
}

// decodeCompute is the share of compute in decode; it matters for latent attention only. FlashMLA reports 660 of 989
// TFLOP/s on H800; 128 heads reach 0.70 of bf16 on an H200 and 0.69 of fp8 on a B200 (the timings at latentKey).
const decodeCompute = 0.69

// Norms, rotary embedding, quantisation and activations read and write the hidden state
// of every token.
const (
	elementwiseFree  = 512 // tokens that fit into the L2 cache
	elementwiseLayer = 12  // how often a layer moves the hidden state
	// Gathering, scattering and reducing move it so often per active expert, on every GPU of the group (the
	// timings at expertTile, of experts of 128 and 512 columns; served, gpt-oss: 3.4 to 6).
	elementwiseExperts = 5.7
	// Shared experts quantise it once more (one read, half a write), and their sum is read twice, scaled and
	// written (vLLM's code, 0.11 to 0.20).
	elementwiseShared = 4.5
)

// FixedConstants are the costs that no data sheet explains: launches, kernel floors, scheduling. In seconds.
type FixedConstants struct {
	Step        float64  // per step
	Layer       float64  // per layer
	FormatLayer ByFormat // per layer on top of Layer, for products in a format and quantising their inputs
	Launch      float64  // the host's time per layer to launch a step too large for the captured graphs
	LaunchAll   float64  // the same in modes that replay no graph for the step, not even of the pieces between attention layers
	LaunchPiece float64  // the same in steps that replay a graph per layer and launch attention between them
	MoELayer    float64  // per layer with experts, on top of Layer
	BlockExpert float64  // per layer with experts in block-scaled fp8, on top of MoELayer
	Latent      float64  // per layer with latent attention, on top of Layer, unless BlockExpert includes it
	Request     float64  // per running request
	Core        float64  // per request that a step answers: the engine's own process, which prepares steps while the GPUs compute
	SyncStep    float64  // per step if scheduling is not hidden behind execution; else 0
}

// DraftConstants describe how tokens are proposed for speculative decoding.
type DraftConstants struct {
	Pass     float64 // seconds per pass of the draft model besides its layers
	Search   float64 // seconds per request for a search in the text
	Refusals float64 // multiplies the chance that a proposed token is rejected; 1 as stated
}

// LinkConstants describe communication between GPUs beyond the tables of
// collective.go.
type LinkConstants struct {
	Scale        float64 // multiplies every collective; 1 as tabulated
	RankSkew     float64 // wait for the slowest rank, per call and log2 of the degree; 0 with full graphs
	NCCLLatency  float64 // seconds of an all-reduce too large for the custom kernels
	NCCLShare    float64 // share of the link's rate at which NCCL moves the payload
	SendLatency  float64 // of a send between pipeline stages or an exchange between experts
	SendShare    float64 // share of the link's rate that these reach
	NodeLatency  float64 // seconds that a collective over two nodes adds to one within a node
	NodeShare    float64 // share of the rate between nodes that collectives reach
	Overlap      float64 // share of the shorter of computing and travelling that two halves of a step hide
	ExpertSpread float64 // how much of the imbalance expected by chance the fullest rank of experts has; 0: perfect balance
}

// ConstantsFor returns the constants for a GPU and an engine; of the engine's settings only release and kernels
// matter. A GPU without timed kernels gets its generation's defaults, with prefill at 0.95 of its best measured
// matrix product if there is one: the ratio on the GPUs where both are known (H100 0.97, A100 1.00, B200 0.90). One
// whose relatives were timed gets no more than that: power limits differ, and an L4 sustains half of its peak at 72 W.
func ConstantsFor(hw Hardware, engine EngineArgs) Constants {
	c, timed := profileFor(hw)
	// Served, Mixtral-8x7B and gpt-oss-120b on H100: 0.90 in bf16 and mxfp4; other formats scale with the dense
	// matrices.
	c.Experts, c.PrefillExperts = c.Weights.Scaled(0.90/hopperWeightsBF16, highestShare), prefillExperts
	c.Experts[NVFP4] = c.Experts[BF16]
	c.setReleased(hw, engine)
	// Served trace: TTFT p99 error 13.8 -> 6.8 %; kernels timed with mixed contexts are 0.07 to 0.13 of the way
	// in the median.
	c.Attention.Skew = 0.10
	// Served: gpt-oss-120b and Llama-4 Scout at 4 to 128 requests, 0.3 to 0.5.
	c.Uneven = 0.4
	c.Head.Memory, c.Head.Compute = 0.85, 0.70 // GEMM tables
	c.Fixed.complete(hw, engine)
	// Served: 7 ms and 1.5 ms per 1,000 prompt tokens (6.5-8; 1-2). Of these, tokenising takes 1.07 us a token on the host
	// of a DGX H100 (vLLM issue 19012) and 1.15 on that of a GLM-5.2, where it was 47 % of the time of a server that found
	// most of its prompts of 38,000 tokens in the cache (TensorRT-LLM pull request 18389, 2026-08); on vLLM 0.32.0 a
	// token cost 2.7 us of processor time in all (docs/predictions.md).
	c.Frontend.Request, c.Frontend.PromptToken = 7e-3, 1.5e-6
	// Measured (2026-11-28, vLLM 0.32.0 on an AMD EPYC of 2.6 GHz): processor time of the API server's process for
	// prompts of 200 tokens and one token of answer, 2.2 to 2.5 ms a request, alone or 256 at once, when the mean
	// first token came after 2.1 to 2.4 ms times their number. Public bursts: 1.3 to 5.1 ms (docs/predictions.md).
	c.Frontend.Intake = 2.4e-3
	// Four processes on Grace streamed 268,700 tokens/s of Qwen3-0.6B, and 413,100 of an engine that only pretends
	// (vLLM pull request 43469, 2026-05); others ended at 6,400 to 19,000 a process (docs/predictions.md, 12287), but
	// mostly with a client of one Python process, which is no faster. In between, as it is not known which of the two
	// was full; the served runs go up to 14,400 unhindered (gpt-oss-120b, 2 x B200).
	c.Frontend.Event = 1.0 / 30_000
	// The engine's process schedules one step while the GPUs compute another, and no number of front ends makes that
	// faster: four engines on GB200 ended at 339,700 tokens/s of Qwen3-0.6B, 512 requests each, behind a front end in
	// Rust that streams 2.06 million (the same pull request), 11.8 us a request and step. The scheduler classes of
	// 0.32.0 alone take 13 to 24 us on an AMD EPYC of 2.6 GHz, for 64 to 1,024 requests (2026-11-28).
	c.Fixed.Core = 11.8e-6
	c.Link = linkConstants(engine)
	// Analogy: half of a step's cost besides its layers, since a pass prepares new inputs but schedules
	// nothing; a search scans some thousand tokens on the host.
	c.Draft = DraftConstants{Pass: c.Fixed.Step / 2, Search: 10e-6, Refusals: 1}
	c.States = stateMoves
	if by := 0.95 * hw.Flops.MeasuredBF16 / hw.Flops.BF16 / c.Prefill[BF16]; by > 0 && (!timed || by < 1 && !hw.Timed()) {
		c.Prefill = c.Prefill.Scaled(by, 1)
	}
	return c
}

// setReleased sets the constants that depend on the release and the chosen kernels.
func (c *Constants) setReleased(hw Hardware, engine EngineArgs) {
	v := versionOf(engine.EngineVersion)
	if hw.Generation == GenerationBlackwell {
		c.Weights[FP8], c.Weights[INT8] = familyFP8Gen5.at(v).value, familyFP8Gen5.at(v).value
		c.Weights[NVFP4] = familyFP4Gen5.at(v).value
		c.Experts[NVFP4] = 0.92 // served: gpt-oss-120b by FlashInfer's kernels
	}
	integers, floats := engine.fourBit(hw, INT4), engine.fourBit(hw, MXFP4)
	c.PrefillExperts[NVFP4], c.PrefillExperts[INT4] = floats.at(v).value, integers.at(v).value
	switch {
	case integers == familyFlashInfer:
		c.Unpacked = 0
	case hw.Generation == GenerationBlackwell:
		c.PrefillExperts[INT4] *= blackwellSync
	}
	if flash2(hw) {
		c.PrefillExperts[INT4] /= hopperSync
		if floats == familyMarlin {
			c.PrefillExperts[NVFP4] /= hopperSync
		}
	}
	c.Sampler.Sort, c.Sampler.Triton = familySort.at(v).value, familySampler.at(v).value
}

// hopperSync is the share of Hopper's peak that the instructions of earlier GPUs (mma.sync), which Marlin uses,
// reach on it (arXiv 2402.13499); those GPUs reach all of theirs.
const hopperSync = 0.63

// blackwellSync is the ratio of the shares of the peak that these instructions reach on a B200 and on Hopper:
// an SM does as much per cycle with them, but the peak belongs to Blackwell's own (tcgen05). Analogy.
const blackwellSync = 148 * 1.965 / (132 * 1.98) * 989 / 2250

func (f *FixedConstants) complete(hw Hardware, engine EngineArgs) {
	f.Step = 280e-6 // served: 275-311 us in the last fits
	// Served: the host's time to launch a layer, however little the GPUs have to do. On fast hosts 0.35 to 0.55
	// ms fit the steps beyond the captured graphs equally well; other hosts take longer (SpreadFor). LaunchAll is from the
	// eager steps of a B200 among the public measurements.
	f.Launch, f.LaunchAll = 0.50e-3, 0.70e-3
	// Voxtral-Mini-4B on one H200 replays 59 graphs a step and takes 5.9 ms, replayed as one 5.0 (vLLM pull request
	// 51167, 2026-08). Hosts differ: eight ranks of Llama-3.1-70B took at most 0.11 ms a layer (served, 0.10.2),
	// Qwen3-Coder-30B on one H100 some 0.36 in pieces and 0.25 replayed as one (pull request 25444).
	f.LaunchPiece = 0.10e-3
	// Served: Qwen3-235B-A22B-FP8 on 4 x H200, vLLM 0.12, five loads: activations are quantised and permuted
	// into tiles of 128 rows before each grouped product.
	f.BlockExpert = 95e-6
	// vLLM 0.20.0's whole attention module of DeepSeek-V3 takes 80 to 100 us for 1 to 16 tokens, its weights aside, on
	// H200 and B200 alike (mla_context_module_perf.txt, see latentKey), where an ordinary one is some 22 of a layer's
	// 33, but without the compiler. Served: Kimi-K2.5 with four requests on eight H200 and B200, GLM-4.7-Flash with one:
	// 0 to 25 (docs/predictions.md). On AMD's it was not timed, and all was slower.
	f.Latent = max(f.Latent, 25e-6)
	f.Request = 2e-6 // served: 1-3 us; asynchronous scheduling hides the rest
	if f.MoELayer > 0 {
		f.BlockExpert *= f.MoELayer / moeLayerH100 // by analogy
	} else {
		f.MoELayer = moeLayerH100
	}
	if !engine.Async(hw.Generation, 1) { // with several stages other batches hide it
		f.SyncStep = 280e-6 // served, Llama-3.1-70B of autumn 2025: TPOT error 2.1 -> 1.7 % when found
	}
}

// moeLayerH100 is served: router, top-k, sort, gather, reduce; 30-34 us.
const moeLayerH100 = 33e-6

// linkConstants returns what the tables of collective.go leave open.
func linkConstants(engine EngineArgs) LinkConstants {
	l := LinkConstants{
		Scale: 1,
		// Served: 60 us + bytes / 220 GB/s on NVLink 4 (450 GB/s) for 2, 4 and 8 GPUs.
		NCCLLatency: 60e-6,
		NCCLShare:   220.0 / 450,
		// aiconfigurator's point-to-point latency is 10 us; half of the link's rate is what NCCL's send and
		// receive typically reach. Analogy, not tested by any served run.
		SendLatency: 10e-6,
		SendShare:   0.5,
		// nccl-tests over two nodes: 19-20 us for one small message (its issue 150, HDR, 2023), 46 to 48 of 50
		// GB/s per port (its issue 290, NDR, 2025).
		NodeLatency: 20e-6,
		NodeShare:   0.93,
		// Halving the batch gave SGLang's prompts of DeepSeek-V3 on 32 H100 27 to 35 % more tokens/s (LMSYS, 2025-05-05);
		// here, where travelling takes 0.61 of the time of computing, hiding all of it would give 47 %, and 0.75 give 32 %.
		Overlap:      0.75,
		ExpertSpread: 1,
	}
	if engine.graphs() == GraphsPiecewise && versionOf(engine.EngineVersion).minor() < 11 {
		// Served, Llama-3.1-70B on 0.10.2, both with synchronous scheduling (H100) and without (H200), and
		// never with full graphs: attention is launched between the pieces of a graph, each rank by its own
		// host.
		l.RankSkew = 2.2e-6
	}
	return l
}

// prefillExperts are the shares of compute that grouped expert products reach on long prompts, padding aside.
// NVFP4, replaced by the kernels in releases.go, is a share of the bf16 rate where weights are unpacked and of
// the fp8 rate where the GPU has units for mxfp4; INT4 is Marlin's, which unpacks integers and nvfp4 alike. The
// others come from the timings at expertTile; INT8 is taken as FP8.
var prefillExperts = ByFormat{BF16: 0.55, FP8: 0.47, INT8: 0.47, INT4: 0.16, NVFP4: 0.16}

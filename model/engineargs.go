package model

import (
	"cmp"
	"strconv"
	"strings"
)

// EngineArgs are the engine's settings that bound a step and the memory. A zero field
// means the engine's own default on the GPU, see [DefaultArgs].
type EngineArgs struct {
	MaxNumSeqs          int     // running requests, per attention replica
	MaxNumBatchedTokens int     // tokens of one step
	Utilization         float64 // share of the GPU's memory that the engine may take
	MaxModelLen         int     // longest request, prompt and output; 0: the model's own
	KVBlocks            int     // pins the size of the KV pool; 0: computed
	EngineVersion       string  // release of vLLM; empty: the newest known
	EngineFeatures
}

// EngineFeatures are the settings of a simulated engine besides release and knobs. The zero value leaves all to
// the engine.
type EngineFeatures struct {
	Kernels     Kernels     // how steps are computed
	Exchange    Exchange    // how tokens get to experts on other GPUs
	Speculation Speculation // speculative decoding
	LoRA        LoRA        // adapters that requests choose from
	// LongPrefill is long_prefill_token_threshold: the most tokens of one request in a step; 0 means no such limit.
	LongPrefill int
	// WholePrefill switches chunked prefill off.
	WholePrefill bool
	// Streams says that each slot has a stream of its own in the KV cache, as in llama.cpp without --kv-unified: a step
	// is computed in parts, one for each run of neighbouring slots. By default it is off.
	Streams Choice
	// FrontEnds is api_server_count: the processes of the instance's API server; 0: one for each attention replica.
	FrontEnds int
}

// Following returns the features with which the simulated engine stands for an engine of a kind. llama-server and Text
// Generation Inference wait for a step's tokens before they choose the next one (update_slots in llama.cpp's
// tools/server/server-context.cpp, batching_task in TGI's backends/v3/src/backend.rs, 2026): a request that arrives
// during a step is in the next.
func (f EngineFeatures) Following(kind string) EngineFeatures {
	if f.Kernels.Async == ByDefault && (kind == "llama-server" || kind == "tgi") {
		f.Kernels.Async = Off
	}
	if f.Streams == ByDefault && kind == "llama-server" {
		f.Streams = On
	}
	return f
}

// With returns the features as arguments of vLLM's command line change them, and the options among these that are not
// modelled, or not with their value.
func (f EngineFeatures) With(args []string) (with EngineFeatures, rest []string) {
	for i := 0; i < len(args); i++ {
		option, value, given := strings.Cut(args[i], "=")
		values := 0 // words that follow it
		for !given && i+1+values < len(args) && !strings.HasPrefix(args[i+1+values], "-") {
			values++
		}
		if values == 1 {
			value = args[i+1]
		}
		n, err := strconv.Atoi(value)
		backend, unknown := Parse[All2All](value)
		flag, number := !given && values == 0, err == nil && n >= 0
		switch {
		case flag && option == "--enforce-eager":
			f.Kernels.Graphs = GraphsNone
		case flag && option == "--async-scheduling":
			f.Kernels.Async = On
		case flag && option == "--no-async-scheduling":
			f.Kernels.Async = Off
		case flag && option == "--enable-chunked-prefill":
			f.WholePrefill = false
		case flag && option == "--no-enable-chunked-prefill":
			f.WholePrefill = true
		case number && option == "--long-prefill-token-threshold":
			f.LongPrefill = n
		case number && (option == "--api-server-count" || option == "-asc") && n > 0:
			f.FrontEnds = n
		case number && option == "--max-cudagraph-capture-size" && n > 0:
			f.Kernels.GraphTokens = n
		case option == "--all2all-backend" && unknown == nil && backend != All2AllByDefault:
			f.Exchange.Backend = backend
		case flag && option == "--enable-dbo":
			f.Exchange.DBO = true
		case flag && (option == "--kv-unified" || option == "-kvu"):
			f.Streams = Off
		case flag && option == "--enable-eplb":
			f.Exchange.EPLB = true
		default:
			rest = append(rest, option)
		}
		i += values
	}
	return f, rest
}

// DefaultArgs returns the defaults of vLLM's API server on a GPU (from the sources of 0.10.1 to 0.24): 8192
// tokens and 1024 requests with at least 70 GiB unless it is an A100, otherwise 2048 and 256; the newest
// releases (main since 2026-08-11) use 16384 and 1024 from 160 GiB. The share of memory is 0.90, and 0.92 since
// 0.21.
func DefaultArgs(hw Hardware, engineVersion string) EngineArgs {
	v := versionOf(engineVersion)
	l := EngineArgs{MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, Utilization: 0.90, EngineVersion: engineVersion}
	total := hw.Memory / gib
	switch {
	case total >= 160 && v.AtLeast(0, 27):
		l.MaxNumSeqs, l.MaxNumBatchedTokens = 1024, 16384
	case total >= 70 && !strings.Contains(strings.ToLower(hw.Name), "a100"):
		l.MaxNumSeqs, l.MaxNumBatchedTokens = 1024, 8192
	}
	if v.AtLeast(0, 21) {
		l.Utilization = 0.92
	}
	return l
}

func (l EngineArgs) withDefaults(dep Deployment) EngineArgs {
	d := DefaultArgs(dep.Hardware, l.EngineVersion)
	l.MaxNumSeqs = cmp.Or(l.MaxNumSeqs, d.MaxNumSeqs)
	l.Utilization = cmp.Or(l.Utilization, d.Utilization)
	l.MaxModelLen = cmp.Or(l.MaxModelLen, dep.Arch.MaxPosition)
	if l.WholePrefill {
		d.MaxNumBatchedTokens = max(d.MaxNumBatchedTokens, l.MaxModelLen)
	}
	l.MaxNumBatchedTokens = cmp.Or(l.MaxNumBatchedTokens, d.MaxNumBatchedTokens)
	if l.all2all(dep) == All2AllHighThroughput {
		l.Kernels.Graphs = GraphsNone // compilation.py, 0.10 to 0.32: "incompatible with CUDA Graphs"
	}
	return l
}

// frontEnds returns the processes of the API server.
func (l EngineArgs) frontEnds(dep Deployment) int { return cmp.Or(l.FrontEnds, dep.DP) }

// LargestGraph returns the size in tokens of the largest captured CUDA graph: as configured, or twice what the
// running requests decode in a step, at most 512 (1024 on data-centre Blackwell since 0.20); in either case no
// more than a step's tokens.
func (l EngineArgs) LargestGraph(hw Hardware) int {
	if l.Kernels.GraphTokens > 0 {
		return min(l.Kernels.GraphTokens, l.MaxNumBatchedTokens)
	}
	top := 512
	if hw.Generation == GenerationBlackwell && versionOf(l.EngineVersion).AtLeast(0, 20) {
		top = 1024
	}
	return min(2*l.MaxNumSeqs*(1+l.Speculation.Tokens), top, l.MaxNumBatchedTokens)
}

// capturesMost reports whether graphs are also captured for max_num_seqs requests, where that is no usual size: since
// 0.31, with speculation since 0.30, unless sizes are configured (vllm/config/vllm.py).
func (l EngineArgs) capturesMost() bool {
	v := versionOf(l.EngineVersion)
	return l.Kernels.GraphTokens == 0 && (v.AtLeast(0, 31) || v.AtLeast(0, 30) && l.Speculation.Tokens > 0)
}

const (
	kib = 1024.0
	mib = 1024 * kib
	gib = 1024 * mib
)

package model

import (
	"math"
	"sort"
)

// MeanRequest is the mean request that bounds are stated for.
type MeanRequest struct {
	Prompt float64 // tokens, cached ones included
	Cached float64 // tokens of the prompt found in the prefix cache
	Output float64 // tokens
	// Shared is how many tokens of the prompt belong to one of Texts equally likely texts, whose KV the cache
	// holds once for all running requests.
	Shared, Texts float64
}

// Bounds are the limits that the data sheets set to a deployment with any engine, at the full bandwidth and the
// full dense compute of all its GPUs: the roofline of a report.
type Bounds struct {
	WeightSeconds     float64 `json:"weight_stream_ms"`           // to read the weights that one token needs: no step is shorter
	AllWeightSeconds  float64 `json:"all_weights_stream_ms"`      // to read all weights, as in a step whose many tokens visit all experts
	ExpertShare       float64 `json:"expert_share"`               // share of the experts that one token visits; 0 without experts
	StreamTokensPerS  float64 `json:"stream_tokens_per_s"`        // of a single request: one decode step reads the weights of one token and the KV cache of a mean context
	KVSeconds         float64 `json:"kv_read_ms"`                 // to read the KV cache of one mean context
	KVEqualsWeights   float64 `json:"kv_equals_weights_requests"` // requests whose caches take as long to read as all weights
	PrefillSeconds    float64 `json:"prefill_ms"`                 // to compute the uncached part of one mean prompt
	PromptsPerS       float64 `json:"prompts_per_s"`              // the rate at prefill_ms each, over all attention replicas and pipeline stages
	Concurrency       int     `json:"concurrency"`                // mean requests that the KV pool holds at once, over all attention replicas
	ConcurrencyLimit  int     `json:"concurrency_limit"`          // the same, limited by max_num_seqs
	OutputTokensPerS  float64 `json:"output_tokens_per_s"`        // at ConcurrencyLimit, bandwidth and compute both at their peak
	IdleTTFT          float64 `json:"idle_ttft_ms"`               // time to first token on an idle engine, as modelled
	IdleTPOT          float64 `json:"idle_tpot_ms"`               // time per token of a single request, as modelled
	WeightBytesPerGPU float64 `json:"weight_bytes_per_gpu"`       // weights on one GPU
	PeakFlops         float64 `json:"peak_flops_per_s"`           // of one GPU, dense, in the fastest format that the model's matrices are multiplied in
	PeakBandwidth     float64 `json:"peak_bandwidth_bytes_per_s"` // of one GPU
	// Stages and Replicas are the numbers of pipeline stages and attention replicas that requests are spread
	// over; 0 for 1.
	Stages   int `json:"-"`
	Replicas int `json:"-"`
	// LoRA are the adapters that requests choose from.
	LoRA LoRA `json:"-"`
}

// Bounds returns the bounds for a mean request and a memory plan of the same deployment.
func (r *Roofline) Bounds(q MeanRequest, mem Memory) Bounds {
	context := int(math.Round(q.Prompt + q.Output/2))
	alone := r.alone(context)
	w := r.Work(alone)
	bandwidth := r.dep.Hardware.Bandwidth
	replicas := r.dep.DP
	b := Bounds{
		WeightSeconds:     w.WeightBytes * float64(r.dep.PP) / bandwidth,
		KVSeconds:         w.KVBytes * float64(r.dep.PP) / bandwidth,
		WeightBytesPerGPU: mem.Weights,
		PeakBandwidth:     bandwidth,
		Stages:            r.dep.PP,
		Replicas:          replicas,
		LoRA:              r.args.LoRA,
	}
	b.PeakFlops = r.dep.peakFlops()
	b.StreamTokensPerS = r.args.Speculation.PerStep() / (b.WeightSeconds + b.KVSeconds)
	b.AllWeightSeconds = (r.dense.bytes + r.experts.bytes + r.head.bytes) / bandwidth
	if b.KVSeconds > 0 {
		b.KVEqualsWeights = float64(replicas*r.dep.PP) * b.AllWeightSeconds / b.KVSeconds
	}
	if r.experts.bytes > 0 {
		b.ExpertShare = r.touched(1)
	}
	b.PrefillSeconds = r.prefillSeconds(q)
	if b.PrefillSeconds > 0 {
		b.PromptsPerS = float64(replicas*r.dep.PP) / b.PrefillSeconds
	}
	b.Concurrency = replicas * r.holds(q, mem)
	b.ConcurrencyLimit = min(b.Concurrency, replicas*r.args.MaxNumSeqs)
	b.OutputTokensPerS = r.peakOutput(b)
	b.IdleTTFT, b.IdleTPOT = r.idle(q, alone)
	return b
}

// ReadSeconds returns how long a step with n decoding requests reads at the full bandwidth: their KV caches and
// the weights that they need. Under even routing n tokens visit a share 1 - (1 - share)^n of the experts on
// average. All stages work at once, each on its part of the requests, and the tokens of all attention replicas
// meet in the experts.
func (b *Bounds) ReadSeconds(n float64) float64 {
	weights := b.WeightSeconds
	least, replicas := min(n, 1), float64(max(b.Replicas, 1))
	n = max(n/float64(max(b.Stages, 1)), least)
	if missed := 1 - b.ExpertShare; b.ExpertShare > 0 && missed > 0 && n > replicas {
		weights = b.AllWeightSeconds - (b.AllWeightSeconds-weights)*math.Pow(missed, n-replicas)
	}
	return weights + max(n/replicas, least)*b.KVSeconds
}

// holds returns how many mean requests one pool holds at once while they decode, when window layers keep no
// more than their window. Texts that several requests share are stored once: n requests use
// Texts (1 - (1 - 1/Texts)^n) different ones on average.
func (r *Roofline) holds(q MeanRequest, mem Memory) int {
	blocks := func(tokens float64) int {
		return mem.Layout.Blocks(max(int(math.Ceil(tokens)), 1), 1+r.args.Speculation.Tokens)
	}
	pool := max(0, mem.Blocks-1)
	if q.Shared <= 0 || q.Texts < 1 {
		if need := blocks(q.Prompt + q.Output); need > 0 {
			return pool / need
		}
		return 0
	}
	own, text := blocks(q.Prompt-q.Shared+q.Output), blocks(q.Shared)
	fits := func(n int) bool {
		texts := q.Texts * -math.Expm1(float64(n)*math.Log1p(-1/q.Texts))
		return float64(n*own)+texts*float64(text) <= float64(pool)
	}
	if own == 0 {
		return 0
	}
	return max(0, sort.Search(pool/own+1, func(n int) bool { return !fits(n) })-1)
}

// alone is a step of one request that decodes at a mean context, with its proposed tokens.
func (r *Roofline) alone(context int) Batch {
	drafted := r.args.Speculation.Tokens
	return Batch{Decodes: 1, Drafted: drafted, Context: context, Longest: context, Sampled: 1 + drafted, Windowed: int(r.windowed(float64(context)))}
}

// prefillSeconds returns the time of a prompt's operations at the data sheet's rate.
func (r *Roofline) prefillSeconds(q MeanRequest) float64 {
	tokens := int(math.Round(max(q.Prompt-q.Cached, 0)))
	if tokens == 0 {
		return 0
	}
	w := r.Work(Batch{Chunks: []Chunk{{Tokens: tokens, Context: int(math.Round(q.Cached))}}, Sampled: 1})
	return w.Flops * float64(r.dep.PP) / r.dep.peakFlops()
}

// peakOutput returns output tokens per second at ConcurrencyLimit, with steps as long as the slower of memory
// and compute. Stages work at once, each on its part of the requests; the experts compute for all attention
// replicas.
func (r *Roofline) peakOutput(b Bounds) float64 {
	n := float64(b.ConcurrencyLimit) / float64(r.dep.DP*r.dep.PP)
	if n == 0 {
		return 0
	}
	memory := b.AllWeightSeconds + n*b.KVSeconds
	s := r.args.Speculation
	compute := n * float64(1+s.Tokens) * (r.dense.flops + r.experts.flops*r.routing.replicas + r.head.flops) / r.dep.peakFlops()
	return float64(b.ConcurrencyLimit) * s.PerStep() / max(memory, compute)
}

// idle returns time to first token and time per output token of a request alone on the engine.
func (r *Roofline) idle(q MeanRequest, alone Batch) (ttft, tpot float64) {
	ttft = r.Frontend(int(math.Round(q.Prompt)))
	done, end := int(math.Round(q.Cached)), int(math.Round(q.Prompt))
	for done < end {
		n := min(end-done, r.args.MaxNumBatchedTokens)
		ttft += r.Step(Batch{Chunks: []Chunk{{Tokens: n, Context: done}}, Sampled: 1}).Total
		done += n
	}
	return ttft, r.Step(alone).Total / r.args.Speculation.PerStep()
}

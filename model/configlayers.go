package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"planner/internal/list"
)

// moe returns the mixture of experts, the zero value for a dense model.
func (c *hfConfig) moe(a Arch) MoE {
	experts, ok := c.number("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
	if !ok && !c.known {
		for _, key := range slices.Sorted(maps.Keys(c.values)) {
			if field[float64](c.values, key) > 1 && strings.Contains(key, "expert") {
				c.fail(fmt.Errorf("%s: experts under a key that is not known, of the class %s: %w", key, c.class, errUnsupported))
			}
		}
	}
	if !ok || experts <= 1 {
		return MoE{}
	}
	m := MoE{
		Experts:      experts,
		Active:       c.need("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts", "moe_top_k"),
		Intermediate: c.need("moe_intermediate_size", "intermediate_size"),
		Layers:       c.expertLayers(a.Layers),
	}
	m.Latent = c.or(0, "moe_latent_size", "routed_expert_hidden_size")
	if groups, top := c.or(0, "n_group"), c.or(0, "topk_group"); top > 0 && top < groups && experts%groups == 0 {
		m.Groups, m.TopGroups = groups, top
	}
	switch {
	case c.has("shared_expert_intermediate_size"), c.has("shared_intermediate_size"), c.has("share_expert_dim"):
		m.SharedIntermediate = c.or(0, "shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
	case c.flag("enable_moe_block", false), c.flag("residual_moe", false):
		m.SharedIntermediate = c.need("intermediate_size") // the MLP of Gemma 4 and Grok 2 stays beside the experts
	case c.is("llama4"):
		m.SharedIntermediate = m.Intermediate // every Llama 4 layer with experts has one
	default:
		m.SharedIntermediate = c.or(0, "n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts") * m.Intermediate
	}
	return m
}

// expertLayers counts the layers with experts among the first n.
func (c *hfConfig) expertLayers(n int) int {
	if n > maxLayers {
		c.fail(fmt.Errorf("num_hidden_layers: %d is no count that a model can have", n))
		return 0
	}
	count, experts := 0, c.hasExperts()
	for i := range n {
		if experts(i) {
			count++
		}
	}
	return count
}

// hasExperts returns a function that reports whether layer i has experts.
func (c *hfConfig) hasExperts() func(i int) bool {
	if listed, ok := c.values["moe_layers"].([]any); ok { // Llama 4, spelt out
		return func(i int) bool { return slices.Contains(listed, any(float64(i))) }
	}
	if each, ok := c.values["moe_layer_freq"].([]any); ok {
		return func(i int) bool { return i < len(each) && isOne(each[i]) }
	}
	if text := c.text("moe_layers_enum"); text != "" { // Step 3.5: "3,4,5"
		listed := strings.Split(text, ",")
		return func(i int) bool { return slices.Contains(listed, strconv.Itoa(i)) }
	}
	dense := field[[]any](c.values, "mlp_only_layers")
	first := c.or(0, "first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
	freq := max(1, c.or(1, "moe_layer_freq"))
	step := max(1, c.or(1, "decoder_sparse_step", "moe_layer_interval", "interleave_moe_layer_step"))
	return func(i int) bool {
		return i >= first && i%freq == 0 && (i+1)%step == 0 && !slices.Contains(dense, any(float64(i)))
	}
}

// count returns how many entries of a per-layer list satisfy a condition, and whether the list exists. Some
// lists continue with the MTP layers, which are ignored.
func (c *hfConfig) count(key string, such func(any) bool) (n int, listed bool) {
	values, listed := c.values[key].([]any)
	return list.Count(values[:min(len(values), c.layers())], such), listed
}

func isOne(v any) bool { return v == 1.0 }

// maxLayers bounds what is counted layer by layer.
const maxLayers = 10_000

func (c *hfConfig) windows(a *Arch) {
	window, chunk := c.or(0, "sliding_window"), 0
	if c.is("llama4") {
		chunk = c.or(0, "attention_chunk_size")
	}
	window = cmp.Or(chunk, window)
	if window == 0 || a.Attention.Compressed.Present() || a.MaxPosition > 0 && window >= a.MaxPosition {
		return
	}
	if layers := c.windowLayers(a.Layers); layers > 0 {
		a.Attention.Window, a.Attention.WindowLayers, a.Attention.Chunked = window, layers, chunk > 0
	}
}

// windowLayers counts the layers with a window: from the list if there is one, otherwise by the class's
// pattern.
func (c *hfConfig) windowLayers(n int) int {
	if n, listed := c.count("hybrid_layer_pattern", isOne); listed {
		return n
	}
	if n, listed := c.count("layer_types", func(v any) bool { return v != "full_attention" }); listed {
		return n
	}
	if pattern := c.text("sliding_window_pattern"); pattern != "" { // EXAONE 4: LLLG, local and global
		return strings.Count(strings.Repeat(pattern, n/len(pattern)+1)[:n], "L")
	}
	switch every := c.family.fullEvery; {
	case every > 0:
		return n - n/max(1, c.or(every, c.family.fullKeys...))
	case c.is("qwen"):
		if !c.flag("use_sliding_window", false) {
			return 0 // the number in the file is inert
		}
		return max(0, n-c.or(n, "max_window_layers"))
	}
	if c.has("use_sliding_window") && !c.flag("use_sliding_window", true) {
		return 0
	}
	return n
}

// kinds counts the layers of which a list says that they are of a kind, or returns a default if the file lists none.
func (c *hfConfig) kinds(key, kind string, otherwise int) int {
	if n, listed := c.count(key, func(v any) bool { return v == kind }); listed {
		return n
	}
	return otherwise
}

// dtype returns the format of unquantised matrices.
func (c *hfConfig) dtype() WeightFormat {
	switch strings.TrimPrefix(cmp.Or(c.text("torch_dtype"), c.text("dtype")), "torch.") {
	case "float16", "half":
		return FP16
	case "bfloat16":
		return BF16
	default: // float32 checkpoints are served in two bytes
		return FormatUnset
	}
}

// quantization returns the quantisation section, nil if there is none.
func (c *hfConfig) quantization() map[string]any {
	return field[map[string]any](c.values, "quantization_config")
}

// blocks reports whether fp8 matrices have a scale per block of 128 x 128: DeepSeek's weight_block_size,
// ModelOpt's FP8_PB_WO, a strategy of compressed-tensors.
func (c *hfConfig) blocks() bool {
	q := c.quantization()
	return q["weight_block_size"] != nil || strings.HasPrefix(strings.ToUpper(field[string](q, "quant_algo")), "FP8_PB") ||
		slices.ContainsFunc(groupWeights(q, FP8), func(weights map[string]any) bool { return weights["strategy"] == "block" })
}

// group returns how many 4-bit integers share a scale, 0 for the usual number.
func (c *hfConfig) group() int {
	q := c.quantization()
	for _, of := range append(groupWeights(q, INT4), q) {
		if size := field[float64](of, "group_size"); size > 0 && size < 128 && size == math.Trunc(size) {
			return int(size)
		}
	}
	return 0
}

// weightOnly reports whether 8-bit integers quantise weights alone: always with GPTQ, AWQ and AutoRound, with
// compressed-tensors if no such group quantises its input.
func (c *hfConfig) weightOnly() bool {
	q := c.quantization()
	groups := field[map[string]any](q, "config_groups")
	for name := range groups {
		group := field[map[string]any](groups, name)
		if group["input_activations"] != nil && typedFormat(field[map[string]any](group, "weights")) == INT8 {
			return false
		}
	}
	return groups != nil || weightOnlyMark.MatchString(field[string](q, "quant_method"))
}

// weightOnlyMark matches weight-only quantisation in methods and in names of checkpoints.
var weightOnlyMark = regexp.MustCompile("(?i)gptq|awq|auto-round|w8a16")

// kvFormat returns the KV cache format that the checkpoint was calibrated for. compressed-tensors and ModelOpt
// write a scheme, ModelOpt's hf_quant_config.json a name. vLLM reads only fp8 from either.
func (c *hfConfig) kvFormat() KVFormat {
	q := c.quantization()
	name := cmp.Or(field[string](q, "kv_cache_scheme"), field[string](q, "kv_cache_quant_algo"))
	if typedFormat(field[map[string]any](q, "kv_cache_scheme")) == FP8 || strings.EqualFold(name, "FP8") {
		return KVFP8
	}
	return KVAuto
}

// vision returns the size of the vision tower, the zero value for a text model.
func (c *hfConfig) vision() Vision {
	tower := hfConfig{values: field[map[string]any](c.values, "vision_config")}
	layers := tower.or(0, "num_hidden_layers", "depth", "vt_num_hidden_layers", "layers")
	hidden := tower.or(0, "hidden_size", "vt_hidden_size", "width", "embed_dim")
	wide := tower.or(4*hidden, "intermediate_size", "vt_intermediate_size")
	return Vision{Params: float64(layers) * (4*float64(hidden)*float64(hidden) + 2*float64(hidden)*float64(wide)), Hidden: hidden}
}

// integerFormat reads the bits of AWQ and GPTQ.
func integerFormat(q map[string]any) (WeightFormat, error) {
	bits, ok := q["bits"].(float64)
	if !ok {
		bits, ok = q["w_bit"].(float64)
	}
	if !ok {
		bits = 4
	}
	f := typedFormat(map[string]any{"type": "int", "num_bits": bits})
	if f == FormatUnset {
		return f, fmt.Errorf("quantization_config.bits: %v, known are 4 and 8", bits)
	}
	return f, nil
}

// groupWeights returns the weights of the compressed-tensors groups in a format, in order of name.
func groupWeights(q map[string]any, in WeightFormat) []map[string]any {
	groups := field[map[string]any](q, "config_groups")
	weights := list.Map(slices.Sorted(maps.Keys(groups)), func(name string) map[string]any {
		return field[map[string]any](field[map[string]any](groups, name), "weights")
	})
	return list.Filter(weights, func(w map[string]any) bool { return typedFormat(w) == in })
}

// typedFormat maps a type and a number of bits to a format, FormatUnset if it is none.
func typedFormat(weights map[string]any) WeightFormat {
	bits, kind := field[float64](weights, "num_bits"), field[string](weights, "type")
	switch {
	case kind == "float" && bits == 8:
		return FP8
	case kind == "float" && bits == 4 && field[float64](weights, "group_size") == 32:
		return MXFP4
	case kind == "float" && bits == 4:
		return NVFP4
	case kind == "int" && bits == 8:
		return INT8
	case kind == "int" && bits == 4:
		return INT4
	}
	return FormatUnset
}

// quarkFormat reads the format of AMD Quark's weights, FormatUnset if unknown. Of several quantisation steps
// the last is what is stored.
func quarkFormat(config map[string]any) WeightFormat {
	weight := field[map[string]any](config, "weight")
	if steps := field[[]any](config, "weight"); len(steps) > 0 {
		weight, _ = steps[len(steps)-1].(map[string]any)
	}
	dtype := field[string](weight, "dtype")
	for _, known := range []struct {
		name string
		is   WeightFormat
	}{{"fp8", FP8}, {"fp4", MXFP4}, {"int8", INT8}, {"int4", INT4}, {"uint4", INT4}} {
		if strings.HasPrefix(dtype, known.name) {
			return known.is
		}
	}
	return FormatUnset
}

// modeloptFormat reads NVIDIA ModelOpt's algorithm.
func modeloptFormat(method, algorithm string) (WeightFormat, error) {
	upper := strings.ToUpper(algorithm)
	switch {
	case strings.Contains(upper, "NVFP4") || method == "modelopt_fp4":
		return NVFP4, nil
	case strings.Contains(upper, "MXFP4"):
		return MXFP4, nil
	case strings.HasPrefix(upper, "FP8") || strings.HasPrefix(upper, "MXFP8") || method == "modelopt_fp8":
		return FP8, nil
	case strings.HasPrefix(upper, "W4A16") || strings.HasPrefix(upper, "INT4"):
		return INT4, nil
	case strings.HasPrefix(upper, "W8A8") || strings.HasPrefix(upper, "INT8"):
		return INT8, nil
	}
	return FormatUnset, fmt.Errorf("quantization_config.quant_algo: %q is not known", algorithm)
}

// compressed reads DeepSeek-V4's attention: 4 tokens per vector in the layers with an index, 128 in others, and some with
// none. What it knows of a token is one vector, of which the last part has positions.
func (c *hfConfig) compressed(at *Attention, layers int) {
	rope, near := c.need("qk_rope_head_dim"), 4
	count := func(ratio int) int {
		n, _ := c.count("compress_ratios", func(v any) bool { return v == float64(ratio) })
		return n
	}
	at.MLA = MLA{QueryRank: c.need("q_lora_rank"), KVRank: at.HeadDim - rope, NopeDim: at.HeadDim - rope, RopeDim: rope, ValueDim: at.HeadDim}
	at.Sparse = Sparse{Keys: near * c.need("index_topk"), Heads: c.need("index_n_heads"), Dim: c.need("index_head_dim"), Layers: count(near)}
	at.Compressed = Compression{Near: near, Far: 128, FarLayers: count(128), Window: c.need("sliding_window"),
		OutputGroups: c.need("o_groups"), OutputRank: c.need("o_lora_rank"), Streams: c.or(0, "hc_mult")}
	if at.KVHeads = 1; at.MLA.KVRank <= 0 || at.Sparse.Layers == 0 || layers > at.Sparse.Layers+at.Compressed.FarLayers+count(0) {
		c.fail(fmt.Errorf("compress_ratios, head_dim: other vectors than DeepSeek-V4's: %w", errUnsupported))
	}
}

// blockwise reads MiniMax-M3's attention: an index selects blocks, except in the layers that list none.
func (c *hfConfig) blockwise(at *Attention, layers int) {
	of := hfConfig{values: field[map[string]any](c.values, "sparse_attention_config")}
	if !of.flag("use_sparse_attention", true) {
		return
	}
	c.values["sparse_attention_freq"] = of.values["sparse_attention_freq"]
	n, listed := c.count("sparse_attention_freq", isOne)
	if !listed {
		c.fail(fmt.Errorf("sparse_attention_config.sparse_attention_freq: missing: %w", ErrNoFigure))
	}
	block := of.need("sparse_block_size")
	at.Sparse = Sparse{Keys: block * of.need("sparse_topk_blocks"), Heads: of.need("sparse_num_index_heads"), Dim: of.need("sparse_index_dim"),
		Layers: n, Whole: layers - n, Block: block}
	c.fail(of.err)
}

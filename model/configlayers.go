package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// moe returns the mixture of experts, the zero value for a dense model.
func (c *hfConfig) moe(a Arch) MoE {
	experts, ok := c.number("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
	if !ok || experts <= 1 {
		return MoE{}
	}
	m := MoE{
		Experts:      experts,
		Active:       c.need("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts"),
		Intermediate: c.need("moe_intermediate_size", "intermediate_size"),
		Layers:       c.expertLayers(a.Layers),
	}
	switch {
	case c.has("shared_expert_intermediate_size"), c.has("shared_intermediate_size"):
		m.SharedIntermediate = c.or(0, "shared_expert_intermediate_size", "shared_intermediate_size")
	case c.flag("enable_moe_block", false):
		m.SharedIntermediate = c.need("intermediate_size") // the MLP of Gemma 4 stays beside the experts
	case c.is("llama4"):
		m.SharedIntermediate = m.Intermediate // every Llama 4 layer with experts has one
	default:
		m.SharedIntermediate = c.or(0, "n_shared_experts", "num_shared_experts") * m.Intermediate
	}
	return m
}

// expertLayers counts the layers with experts among n.
func (c *hfConfig) expertLayers(n int) int {
	if list, ok := c.values["moe_layers"].([]any); ok {
		return len(list) // Llama 4, spelt out
	}
	if list, ok := c.values["moe_layer_freq"].([]any); ok {
		return ones(list)
	}
	dense := map[int]bool{}
	if list, ok := c.values["mlp_only_layers"].([]any); ok {
		for _, v := range list {
			if f, ok := v.(float64); ok {
				dense[int(f)] = true
			}
		}
	}
	first := c.or(0, "first_k_dense_replace")
	freq := max(1, c.or(1, "moe_layer_freq"))
	step := max(1, c.or(1, "decoder_sparse_step", "interleave_moe_layer_step"))
	if n > maxLayers {
		c.fail(fmt.Errorf("num_hidden_layers: %d is no count that a model can have", n))
		return 0
	}
	count := 0
	for i := range n {
		if i >= first && i%freq == 0 && (i+1)%step == 0 && !dense[i] {
			count++
		}
	}
	return count
}

// ones counts the layers that a list marks with 1, beside 0 for the others.
func ones(list []any) int {
	count := 0
	for _, v := range list {
		if v == 1.0 {
			count++
		}
	}
	return count
}

// maxLayers bounds what is counted layer by layer.
const maxLayers = 100_000

func (c *hfConfig) windows(a *Arch) {
	window := c.or(0, "sliding_window")
	if chunk := c.or(0, "attention_chunk_size"); c.is("llama4") && chunk > 0 {
		window, a.Attention.Chunked = chunk, true
	}
	if window == 0 || a.MaxPosition > 0 && window >= a.MaxPosition {
		a.Attention.Chunked = false
		return
	}
	layers := c.windowLayers(a.Layers)
	if layers == 0 {
		a.Attention.Chunked = false
		return
	}
	a.Attention.Window, a.Attention.WindowLayers = window, layers
}

// windowLayers counts the layers with a window: from the list if there is one, else by
// the class's pattern.
func (c *hfConfig) windowLayers(n int) int {
	if list, ok := c.values["hybrid_layer_pattern"].([]any); ok {
		return ones(list)
	}
	if kinds := c.layerTypes(); kinds != nil {
		count := 0
		for _, k := range kinds {
			if k != "full_attention" {
				count++
			}
		}
		return count
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

// indexed counts the layers that have an index of their own for sparse attention.
func (c *hfConfig) indexed(layers int) int {
	kinds, _ := c.values["indexer_types"].([]any)
	if len(kinds) == 0 {
		return layers
	}
	n := 0
	for _, kind := range kinds {
		if kind == "full" {
			n++
		}
	}
	return n
}

func (c *hfConfig) format() (WeightFormat, error) {
	q := c.quantization()
	if q == nil {
		switch strings.TrimPrefix(cmp.Or(c.text("torch_dtype"), c.text("dtype")), "torch.") {
		case "float16", "half":
			return FP16, nil
		case "bfloat16":
			return BF16, nil
		default: // float32 checkpoints are served in two bytes
			return FormatUnset, nil
		}
	}
	method, _ := q["quant_method"].(string)
	algorithm, _ := q["quant_algo"].(string)
	switch strings.ToLower(method) {
	case "fp8", "fbgemm_fp8", "ptpc_fp8":
		return FP8, nil
	case "mxfp4":
		return MXFP4, nil
	case "awq", "gptq", "gptq_marlin", "awq_marlin", "auto-round", "auto_gptq", "intel/auto-round":
		return integerFormat(q)
	case "compressed-tensors", "quark":
		return groupFormat(q)
	case "modelopt", "modelopt_fp4", "modelopt_fp8", "":
		if mixed := c.mixedFormat("experts", "mlp"); mixed != FormatUnset {
			return mixed, nil
		}
		return modeloptFormat(method, algorithm)
	case "bitsandbytes":
		if eight, _ := q["load_in_8bit"].(bool); eight {
			return INT8, nil
		}
		return INT4, nil
	}
	return FormatUnset, fmt.Errorf("quantization_config.quant_method: %q is not known", method)
}

// quantization returns how the matrices are quantised, nil if they are not.
func (c *hfConfig) quantization() map[string]any {
	q, _ := c.values["quantization_config"].(map[string]any)
	return q
}

// mixedFormat returns what a checkpoint of mixed precision stores the modules of one of the
// parts in: that of the first of its list in the order of names.
func (c *hfConfig) mixedFormat(parts ...string) WeightFormat {
	layers, _ := c.quantization()["quantized_layers"].(map[string]any)
	for _, part := range parts {
		for _, module := range slices.Sorted(maps.Keys(layers)) {
			layer, _ := layers[module].(map[string]any)
			algorithm, _ := layer["quant_algo"].(string)
			if f, err := modeloptFormat("", algorithm); err == nil && strings.Contains(module, part) {
				return f
			}
		}
	}
	return FormatUnset
}

// formatOf returns what a checkpoint stores a part in where that may be another format than
// its weights'.
func (c *hfConfig) formatOf(part string) WeightFormat {
	if c.keeps(part) {
		return BF16
	}
	return c.mixedFormat(part)
}

// keeps reports whether the checkpoint leaves most matrices of a part in bf16: whether the
// list of modules that are not quantised names the part in general or layer by layer. Norms
// of a part are on such lists too, and parts of its drafts.
func (c *hfConfig) keeps(part string) bool {
	q := c.quantization()
	named := map[string]bool{}
	for _, key := range []string{"ignore", "exclude_modules", "modules_to_not_convert"} {
		list, _ := q[key].([]any)
		for _, v := range list {
			module, _ := v.(string)
			if !strings.Contains(module, part) || strings.Contains(module, "norm") || strings.Contains(module, "gate") {
				continue
			}
			if strings.HasPrefix(module, "re:") || strings.Contains(module, ".*") || strings.HasPrefix(module, "*") {
				return true
			}
			_, layer, _ := strings.Cut(module, "layers.")
			layer, _, _ = strings.Cut(layer, ".")
			named[layer] = true
		}
	}
	return 2*len(named) > c.or(0, "num_hidden_layers", "n_layer", "num_layers")
}

// vision returns the size of the vision tower, the zero value for a model of text.
func (c *hfConfig) vision() Vision {
	tower, _ := c.values["vision_config"].(map[string]any)
	number := func(keys ...string) float64 {
		for _, key := range keys {
			if f, ok := tower[key].(float64); ok && f > 0 && f <= largestCount {
				return f
			}
		}
		return 0
	}
	layers := number("num_hidden_layers", "depth", "vt_num_hidden_layers", "layers")
	hidden := number("hidden_size", "vt_hidden_size", "width", "embed_dim")
	wide := number("intermediate_size", "vt_intermediate_size")
	if wide == 0 {
		wide = 4 * hidden
	}
	return Vision{Params: layers * (4*hidden*hidden + 2*hidden*wide), Hidden: int(hidden)}
}

// integerFormat reads the bits of AWQ and GPTQ.
func integerFormat(q map[string]any) (WeightFormat, error) {
	bits, ok := q["bits"].(float64)
	if !ok {
		bits, ok = q["w_bit"].(float64)
	}
	switch {
	case !ok || bits == 4:
		return INT4, nil
	case bits == 8:
		return INT8, nil
	}
	return FormatUnset, fmt.Errorf("quantization_config.bits: %v, known are 4 and 8", bits)
}

// groupFormat reads compressed-tensors: the format's name if it says enough, else type
// and bits of the weights of the first group.
func groupFormat(q map[string]any) (WeightFormat, error) {
	name, _ := q["format"].(string)
	switch {
	case strings.HasPrefix(name, "nvfp4"):
		return NVFP4, nil
	case strings.HasPrefix(name, "mxfp4"):
		return MXFP4, nil
	}
	groups, _ := q["config_groups"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group, _ := groups[key].(map[string]any)
		weights, _ := group["weights"].(map[string]any)
		if f := typedFormat(weights); f != FormatUnset {
			return f, nil
		}
	}
	return FormatUnset, fmt.Errorf("quantization_config.config_groups: no group says type and num_bits of its weights")
}

// typedFormat maps a type and a number of bits to a format, FormatUnset if it is none.
func typedFormat(weights map[string]any) WeightFormat {
	bits, _ := weights["num_bits"].(float64)
	kind, _ := weights["type"].(string)
	size, _ := weights["group_size"].(float64)
	switch {
	case kind == "float" && bits == 8:
		return FP8
	case kind == "float" && bits == 4 && size == 32:
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

// modeloptFormat reads NVIDIA ModelOpt's algorithm.
func modeloptFormat(method, algorithm string) (WeightFormat, error) {
	upper := strings.ToUpper(algorithm)
	switch {
	case strings.Contains(upper, "NVFP4") || method == "modelopt_fp4":
		return NVFP4, nil
	case strings.Contains(upper, "MXFP4"):
		return MXFP4, nil
	case strings.HasPrefix(upper, "FP8") || method == "modelopt_fp8":
		return FP8, nil
	case strings.HasPrefix(upper, "W4A16") || strings.HasPrefix(upper, "INT4"):
		return INT4, nil
	case strings.HasPrefix(upper, "W8A8") || strings.HasPrefix(upper, "INT8"):
		return INT8, nil
	}
	return FormatUnset, fmt.Errorf("quantization_config.quant_algo: %q is not known", algorithm)
}

package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// largestCount exceeds any figure of a model's shape; larger ones are mistakes and would overflow products.
const largestCount = 1 << 28

// errUnsupported is wrapped by the error for a config.json of an architecture whose cost these equations do not
// describe.
var errUnsupported = errors.New("architecture not modelled, only measured: planner bench --url URL, or engine.kind = \"attach\"")

// checkModelled refuses names of models whose published config.json is refused.
func checkModelled(name string) error {
	for _, u := range []struct{ mark, why string }{
		{"jamba", "layers with the states of Mamba 1"}, {"deepseekv41", "tables of n-grams"},
		{"gemma3n", "layers that read the keys and values of others"},
	} {
		if strings.Contains(fold(name), u.mark) {
			return fmt.Errorf("model %q: %s: %w", name, u.why, errUnsupported)
		}
	}
	return nil
}

// ParseConfig reads a Hugging Face config.json: the shape, which layers have windows and experts, and the
// weight format. Multimodal models yield their text tower. The error names the missing key, or what cannot be
// modelled (wrapping [errUnsupported]): layers with a state outside the known hybrids, encoders.
func ParseConfig(r io.Reader) (Arch, error) { return ParseQuantized(r, nil) }

// ParseQuantized is [ParseConfig] with the hf_quant_config.json that NVIDIA's ModelOpt writes beside
// config.json, used if the latter says nothing of quantisation; nil is none.
func ParseQuantized(r, beside io.Reader) (Arch, error) {
	top, err := readObject(r)
	if err != nil {
		return Arch{}, fmt.Errorf("read config.json: %w", err)
	}
	c := newHFConfig(top)
	if beside != nil && !c.has("quantization_config") {
		quantised, err := readObject(beside)
		if err != nil {
			return Arch{}, fmt.Errorf("read hf_quant_config.json: %w", err)
		}
		c.values["quantization_config"] = quantised["quantization"]
	}
	a, err := c.arch()
	if err != nil {
		return Arch{}, fmt.Errorf("read config.json: %w", err)
	}
	if err := a.Check(); err != nil {
		return Arch{}, fmt.Errorf("read config.json: %w", err)
	}
	return a, nil
}

// readObject reads one JSON object.
func readObject(r io.Reader) (map[string]any, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(data, []byte("Infinity")) || bytes.Contains(data, []byte("NaN")) {
		data = unbounded.ReplaceAll(data, []byte("${1}0"))
	}
	var object map[string]any
	return object, json.Unmarshal(data, &object)
}

// unbounded matches numbers that Python writes and JSON lacks; they are replaced by 0.
var unbounded = regexp.MustCompile(`([:,\[]\s*)(-?Infinity|NaN)`)

// hfConfig is a config.json with the text tower's keys laid over the top level.
type hfConfig struct {
	values map[string]any
	class  string
	family family
	known  bool // the class is listed in families
	err    error
}

// textParts are the keys under which multimodal configurations keep the language model.
var textParts = []string{"thinker_config", "text_config", "language_config", "llm_config"}

// newHFConfig finds the language model's part and its class.
func newHFConfig(top map[string]any) *hfConfig {
	c := &hfConfig{values: map[string]any{}}
	maps.Copy(c.values, top)
	for _, part := range textParts {
		maps.Copy(c.values, field[map[string]any](c.values, part))
	}
	if list := field[[]any](top, "architectures"); len(list) > 0 {
		c.class, _ = list[0].(string)
	}
	if c.class == "" {
		c.class = strings.ReplaceAll(c.text("model_type"), "_", "")
	}
	c.family, c.known = familyOf(c.class)
	if older := field[map[string]any](c.values, "compression_config"); older != nil && !c.has("quantization_config") {
		older["quant_method"] = "compressed-tensors" // which wrote that key first
		c.values["quantization_config"] = older
	}
	return c
}

func (c *hfConfig) is(class string) bool { return strings.HasPrefix(strings.ToLower(c.class), class) }

func (c *hfConfig) has(key string) bool { return c.values[key] != nil }

func (c *hfConfig) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// number returns a count found under the first of several names.
func (c *hfConfig) number(keys ...string) (int, bool) {
	for _, key := range keys {
		v := c.values[key]
		if v == nil {
			continue
		}
		if list, ok := v.([]any); ok {
			if len(list) == 0 || slices.ContainsFunc(list, func(other any) bool { return other != list[0] }) {
				c.fail(fmt.Errorf("%s: %v, one figure for each layer: %w", key, list, errUnsupported))
				return 0, false
			}
			v = list[0]
		}
		f, ok := v.(float64)
		if !ok {
			c.fail(fmt.Errorf("%s: want a number, got %v", key, v))
			return 0, false
		}
		if f != math.Trunc(f) || f < 0 || f > largestCount {
			c.fail(fmt.Errorf("%s: %v is no count that a model can have", key, f))
			return 0, false
		}
		return int(f), true
	}
	return 0, false
}

// need returns a required count; the error names its usual key.
func (c *hfConfig) need(keys ...string) int {
	n, ok := c.number(keys...)
	if !ok || n == 0 {
		c.fail(fmt.Errorf("key %q is missing: %w", keys[0], ErrNoFigure))
	}
	return n
}

// or returns a count, or a default if absent.
func (c *hfConfig) or(otherwise int, keys ...string) int {
	if n, ok := c.number(keys...); ok {
		return n
	}
	return otherwise
}

// flag returns a boolean, or a default if absent.
func (c *hfConfig) flag(key string, otherwise bool) bool {
	if v, ok := c.values[key].(bool); ok {
		return v
	}
	return otherwise
}

// text returns a string, empty if there is none.
func (c *hfConfig) text(key string) string { return field[string](c.values, key) }

// field returns an object's value under a key, the zero value if absent or of another type.
func field[T any](object map[string]any, key string) T {
	v, _ := object[key].(T)
	return v
}

func (c *hfConfig) arch() (Arch, error) {
	if err := c.unsupported(); err != nil {
		return Arch{}, err
	}
	for key, value := range c.family.defaults {
		if !c.has(key) {
			c.values[key] = value
		}
	}
	a := Arch{
		Name: c.name(), Repo: c.repo(), Family: c.class,
		Layers:      c.layers(),
		Hidden:      c.need("hidden_size", "n_embd", "d_model", "dim"),
		Vocab:       c.need("vocab_size", "padded_vocab_size"),
		MaxPosition: c.maxPosition(),
		Tied:        c.flag("tie_word_embeddings", c.family.tied),
		Details:     c.details(),
	}
	a.Attention = c.attention(a)
	a.MoE = c.moe(a)
	a.Intermediate = c.intermediate(a)
	c.windows(&a)
	c.states(&a)
	c.formats(&a)
	a.Details.Vision = c.vision()
	a.Source = "config.json"
	if !c.known {
		a.Notes = fmt.Sprintf("class %q is not known: biases and norms are counted as a Llama's", c.class)
	}
	return a, c.err
}

// maxPosition returns the longest context, 0 if not given. Where rotary embeddings are scaled it is the trained
// length times their factor; for longrope, Llama 3 and Gemma 3, max_position_embeddings already includes that
// (_get_and_verify_max_len in vllm/config/model.py).
func (c *hfConfig) maxPosition() int {
	n := c.or(0, "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length")
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		rope := hfConfig{values: field[map[string]any](c.values, key)}
		factor := field[float64](rope.values, "factor")
		switch kind := cmp.Or(rope.text("rope_type"), rope.text("type")); {
		case c.is("gemma3") || factor <= 0:
			continue
		case kind == "yarn":
			n = rope.or(n, "original_max_position_embeddings")
		case kind != "linear" && kind != "dynamic":
			continue
		}
		if long := factor * float64(n); rope.err == nil && long <= largestCount {
			return int(long)
		}
		c.fail(cmp.Or(rope.err, fmt.Errorf("%s: %v times %d tokens is no context that a model can have", key, factor, n)))
	}
	return n
}

// layers returns the number of layers, or of Nemotron-H's blocks that layers are made of.
func (c *hfConfig) layers() int {
	if blocks := c.strings("layers_block_type"); c.is("nemotronh") && !c.has("num_hidden_layers") && len(blocks) > 0 {
		return len(blocks)
	}
	return c.need("num_hidden_layers", "n_layer", "num_layers", "n_layers")
}

// name returns the model's name: the last part of the path that it was saved under, or its type.
func (c *hfConfig) name() string {
	path := strings.TrimRight(c.text("_name_or_path"), "/")
	if name := path[strings.LastIndex(path, "/")+1:]; name != "" {
		return name
	}
	if kind := c.text("model_type"); kind != "" {
		return kind
	}
	return "model"
}

// repo returns the path that it was saved under if that is a Hugging Face id.
func (c *hfConfig) repo() string {
	path := c.text("_name_or_path")
	if strings.Count(path, "/") == 1 && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, ".") {
		return path
	}
	return ""
}

// undescribed are keys of features that the equations do not describe, unless their value is null, false, 0 or
// a list of ones.
var undescribed = []struct{ key, what string }{
	{"engram_layer_ids", "tables of n-grams (DeepSeek-V4.1)"},
	{"block_configs", "layers each of a shape of its own (DeciLM)"},
	{"num_kv_shared_layers", "layers that read the keys and values of others (Gemma 3n)"},
	{"hidden_size_per_layer_input", "an embedding for each layer (Gemma 3n)"},
	{"is_encoder_decoder", "encoder-decoder models"},
	{"type_vocab_size", "encoders (BERT)"},
	{"cross_attention_layers", "attention to images in layers of its own (Llama 3.2 Vision)"},
	{"use_cla", "layers that read the keys and values of others (Hunyuan-Large)"},
	{"attn_type_list", "layers with linear attention (MiniMax-Text-01)"},
	{"share_q_dim", "queries of all heads from one matrix (Step 3)"},
	{"zero_expert_num", "experts that compute nothing (LongCat)"},
	{"parallel_attn_mlp_res", "an MLP beside attention and experts (Arctic)"},
	{"use_logn_attn", "an MLP of half its intermediate_size (Qwen 1)"},
}

// unsupported refuses what the equations do not describe.
func (c *hfConfig) unsupported() error {
	for _, key := range []string{"linear_num_value_heads", "ssm_cfg", "state_size", "mamba_d_state", "ssm_state_size", "lru_width", "linear_attn_config", "conv_L_cache"} {
		if c.has(key) && !c.hybrid() {
			return fmt.Errorf("%s: layers without a KV cache (state-space or linear attention) of class %s; those of Qwen3-Next and 3.5, Nemotron-H, Granite 4 and Kimi-K3 are modelled: %w",
				key, c.class, errUnsupported)
		}
	}
	for _, u := range undescribed {
		switch v := c.values[u.key].(type) {
		case []any:
			if !slices.ContainsFunc(v, func(one any) bool { return !isOne(one) }) {
				continue
			}
		default:
			if v == nil || v == false || v == 0.0 {
				continue
			}
		}
		return fmt.Errorf("%s: %s: %w", u.key, u.what, errUnsupported)
	}
	for _, of := range []struct {
		key   string
		known bool
	}{{"index_topk", c.has("kv_lora_rank") || c.is("deepseekv4")}, {"compress_ratios", c.is("deepseekv4")}, {"sparse_attention_config", c.is("minimaxm3")}} {
		if c.has(of.key) && !of.known {
			return fmt.Errorf("%s: an index or a compressed cache of class %s: %w", of.key, c.class, errUnsupported)
		}
	}
	for _, kind := range c.strings("layer_types") {
		if !c.hybrid() && !slices.Contains([]string{"full_attention", "sliding_attention", "chunked_attention", "deepseek_sparse_attention"}, kind) {
			return fmt.Errorf("layer_types: %q: %w", kind, errUnsupported)
		}
	}
	return nil
}

// strings returns a list of strings, nil if not given.
func (c *hfConfig) strings(key string) []string {
	list, ok := c.values[key].([]any)
	if !ok {
		return nil
	}
	out := make([]string, len(list))
	for i, v := range list {
		out[i], _ = v.(string)
	}
	return out
}

// details returns the class's biases and norms, corrected by what the file says.
func (c *hfConfig) details() Details {
	d := c.family.details
	if c.has("attention_bias") && !d.Sinks {
		bias := c.flag("attention_bias", false)
		d.QKVBias, d.OutputBias = bias, bias
		if c.is("glm4moe") {
			d.OutputBias = false
		}
	}
	if c.flag("mlp_bias", false) {
		d.MLPBias = true
	}
	// GPT-2's key for an activation, unless of a gated kind, and activations of a single branch: no gate.
	if !c.known && c.has("activation_function") && !gateMark.MatchString(c.text("activation_function")) ||
		slices.Contains([]string{"relu", "relu2", "xielu"}, c.text("hidden_act")) {
		d.Ungated = true
	}
	if c.flag("use_qk_norm", false) && !c.is("llama4") {
		d.QKNorm = true // Llama 4's norm has no weights
	}
	if c.is("falcon") || c.is("rwforcausal") {
		bias := c.flag("bias", false)
		d.QKVBias, d.OutputBias, d.MLPBias = bias, bias, bias
		if c.flag("new_decoder_architecture", false) && c.or(2, "num_ln_in_parallel_attn") == 2 || !c.flag("parallel_attn", true) {
			d.NormsPerLayer = 2
		}
	}
	return d
}

// gateMark matches the names of activations with which one branch of an MLP gates the other.
var gateMark = regexp.MustCompile("(?i)silu|swish|glu")

// attention returns the attention's shape without its windows.
func (c *hfConfig) attention(a Arch) Attention {
	at := Attention{Heads: c.need("num_attention_heads", "n_head", "n_heads", "num_heads")}
	at.KVHeads = c.or(at.Heads, "num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "n_kv_heads", "num_key_value_heads_per_layer", "num_attention_groups")
	if c.flag("multi_query", false) && !c.flag("new_decoder_architecture", false) && !c.flag("multi_query_attention", false) {
		at.KVHeads = 1 // Falcon 7B, StarCoder
	}
	if at.Heads > 0 {
		at.HeadDim = c.or(a.Hidden/at.Heads, "head_dim", "kv_channels", "attention_head_dim")
	}
	c.twoShapes(&at)
	switch {
	case c.is("deepseekv4"):
		c.compressed(&at, a.Layers)
	case c.is("minimaxm3"):
		c.blockwise(&at, a.Layers)
	}
	if rank, ok := c.number("kv_lora_rank"); ok && rank > 0 {
		at.MLA = MLA{
			QueryRank: c.or(0, "q_lora_rank"), KVRank: rank, RopeDim: c.need("qk_rope_head_dim"),
			NopeDim: c.need("qk_nope_head_dim"), ValueDim: c.need("v_head_dim"),
		}
		at.KVHeads = at.Heads
		if keys, ok := c.number("index_topk"); ok && keys > 0 {
			at.Sparse = Sparse{Keys: keys, Heads: c.need("index_n_heads"), Dim: c.need("index_head_dim"), Layers: c.kinds("indexer_types", "full", a.Layers)}
		}
	}
	return at
}

// twoShapes reads the heads of window layers and of others if they differ: Gemma 4 gives the latter KV heads of
// their own (global), MiMo-V2 the former (swa), and Step 3.5 gives the former more query heads.
func (c *hfConfig) twoShapes(at *Attention) {
	if c.has("kv_lora_rank") {
		return
	}
	if n := c.or(at.HeadDim, "v_head_dim"); n != at.HeadDim {
		at.ValueDim = n
	}
	of := field[map[string]any](c.values, "attention_other_setting")
	other := hfConfig{values: of}
	windowed := KVShape{
		KVHeads: c.or(other.or(at.KVHeads, "num_attention_groups"), "swa_num_key_value_heads"),
		HeadDim: c.or(other.or(at.HeadDim, "head_dim"), "swa_head_dim"), ValueDim: c.or(at.ValueDim, "swa_v_head_dim"),
	}
	if heads := c.or(other.or(at.Heads, "num_attention_heads"), "swa_num_attention_heads"); heads != at.Heads {
		at.WindowedHeads = heads
	}
	if other.err != nil {
		c.fail(fmt.Errorf("attention_other_setting: %w", other.err))
	}
	if at.KeysOnly = c.flag("attention_k_eq_v", false); at.KeysOnly {
		at.KVHeads = c.or(at.KVHeads, "num_global_key_value_heads")
	}
	at.HeadDim = c.or(at.HeadDim, "global_head_dim")
	if windowed != at.KVShape {
		at.Windowed = windowed
	}
}

// intermediate returns the width of dense MLPs, which may be missing if every layer has experts.
func (c *hfConfig) intermediate(a Arch) int {
	keys := []string{"intermediate_size_mlp", "dense_intermediate_size", "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}
	if !c.is("llama4") {
		keys = keys[1:]
	}
	if n, ok := c.number(keys...); ok {
		if c.is("qwenlm") || c.is("molmofor") {
			return n / 2 // gate and up projection together
		}
		return n
	}
	switch {
	case c.family.wide:
		return 4 * a.Hidden
	case a.denseLayers() == 0:
		return 0
	}
	return c.need("intermediate_size")
}

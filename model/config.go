package model

import (
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

// largestCount is more than any figure of a model's shape; larger ones are mistakes,
// and would overflow products.
const largestCount = 1 << 28

// errUnsupported is wrapped by the error for a config.json of an architecture whose
// cost these equations do not describe.
var errUnsupported = errors.New("architecture not modelled")

// ParseConfig reads a Hugging Face config.json: the shape, the layers with windows and
// with experts, and the format of the weights. Multi-modal models give their text
// tower. The error names the key that is missing, or says what cannot be modelled
// (wrapping [errUnsupported]): layers with a state of other classes than hybrids, encoders.
func ParseConfig(r io.Reader) (Arch, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return Arch{}, fmt.Errorf("read config.json: %w", err)
	}
	var top map[string]any
	if err := json.Unmarshal(unbounded.ReplaceAll(data, []byte("${1}0")), &top); err != nil {
		return Arch{}, fmt.Errorf("read config.json: %w", err)
	}
	c := newHFConfig(top)
	a, err := c.arch()
	if err != nil {
		return Arch{}, fmt.Errorf("read config.json: %w", err)
	}
	if err := a.Check(); err != nil {
		return Arch{}, fmt.Errorf("read config.json: %w", err)
	}
	return a, nil
}

// unbounded are numbers that Python writes and JSON does not have. None is read.
var unbounded = regexp.MustCompile(`([:,\[]\s*)(-?Infinity|NaN)`)

// hfConfig is a config.json with the text tower's part laid over the top.
type hfConfig struct {
	values map[string]any
	class  string
	family family
	known  bool // the class is one that families lists
	err    error
}

// textParts are the keys under which multi-modal configurations keep the language
// model.
var textParts = []string{"text_config", "language_config", "llm_config"}

// newHFConfig finds the language model's part and its class.
func newHFConfig(top map[string]any) *hfConfig {
	c := &hfConfig{values: map[string]any{}}
	maps.Copy(c.values, top)
	for _, part := range textParts {
		text, _ := top[part].(map[string]any)
		maps.Copy(c.values, text)
	}
	if list, ok := top["architectures"].([]any); ok && len(list) > 0 {
		c.class, _ = list[0].(string)
	}
	if c.class == "" {
		kind, _ := c.values["model_type"].(string)
		c.class = strings.ReplaceAll(kind, "_", "")
	}
	c.family, c.known = familyOf(c.class)
	return c
}

func (c *hfConfig) is(class string) bool { return strings.HasPrefix(strings.ToLower(c.class), class) }

func (c *hfConfig) has(key string) bool { return c.values[key] != nil }

func (c *hfConfig) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// number returns a count, looked up under several names.
func (c *hfConfig) number(keys ...string) (int, bool) {
	for _, key := range keys {
		v := c.values[key]
		if v == nil {
			continue
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

// need returns a count that must be there; the error names its usual key.
func (c *hfConfig) need(keys ...string) int {
	n, ok := c.number(keys...)
	if !ok || n == 0 {
		c.fail(fmt.Errorf("key %q is missing: %w", keys[0], ErrNoFigure))
	}
	return n
}

// or returns a count or what it is when it is not given.
func (c *hfConfig) or(otherwise int, keys ...string) int {
	if n, ok := c.number(keys...); ok {
		return n
	}
	return otherwise
}

// flag returns a truth value or what it is when it is not given.
func (c *hfConfig) flag(key string, otherwise bool) bool {
	if v, ok := c.values[key].(bool); ok {
		return v
	}
	return otherwise
}

// text returns a string, empty if there is none.
func (c *hfConfig) text(key string) string {
	s, _ := c.values[key].(string)
	return s
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
		MaxPosition: c.or(0, "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length"),
		Tied:        c.flag("tie_word_embeddings", c.family.tied),
		Details:     c.details(),
	}
	a.Attention = c.attention(a)
	a.MoE = c.moe(a)
	a.Intermediate = c.intermediate(a)
	c.windows(&a)
	c.states(&a)
	native, err := c.format()
	if err != nil {
		c.fail(err)
	}
	a.Native = native
	if c.has("quantization_config") {
		a.Details.BlockFP8 = c.quantization()["weight_block_size"] != nil // a scale for each block of its matrices
		a.Details.KeepsAttention, a.Details.KeepsShared = c.keeps("attn"), c.keeps("shared_expert")
	}
	a.Details.Vision = c.vision()
	a.Source = "config.json"
	if !c.known {
		a.Notes = fmt.Sprintf("class %q is not known: biases and norms are counted as a Llama's", c.class)
	}
	return a, c.err
}

// layers returns the number of layers, or of blocks of which layers are made.
func (c *hfConfig) layers() int {
	if blocks := c.strings("layers_block_type"); c.is("nemotronh") && !c.has("num_hidden_layers") && len(blocks) > 0 {
		return len(blocks)
	}
	return c.need("num_hidden_layers", "n_layer", "num_layers", "n_layers")
}

// name returns the model's name: the last part of the path it was saved under, else
// its type.
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

// repo returns the Hugging Face id if the path it was saved under is one.
func (c *hfConfig) repo() string {
	path := c.text("_name_or_path")
	if strings.Count(path, "/") == 1 && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, ".") {
		return path
	}
	return ""
}

// unsupported refuses what the equations do not describe.
func (c *hfConfig) unsupported() error {
	for _, key := range []string{"linear_num_value_heads", "ssm_cfg", "state_size", "mamba_d_state", "ssm_state_size", "lru_width", "linear_attn_config"} {
		if c.has(key) && !c.hybrid() {
			return fmt.Errorf("%s: layers without a KV cache (state-space or linear attention): %w", key, errUnsupported)
		}
	}
	if c.has("compress_ratios") || c.has("index_topk") && !c.has("kv_lora_rank") {
		return fmt.Errorf("compress_ratios, index_topk: attention to a compressed cache (DeepSeek-V4): %w", errUnsupported)
	}
	if c.flag("is_encoder_decoder", false) {
		return fmt.Errorf("is_encoder_decoder: encoder-decoder models: %w", errUnsupported)
	}
	for _, kind := range c.layerTypes() {
		if !c.hybrid() && !slices.Contains([]string{"full_attention", "sliding_attention", "chunked_attention", "deepseek_sparse_attention"}, kind) {
			return fmt.Errorf("layer_types: %q: %w", kind, errUnsupported)
		}
	}
	return nil
}

// layerTypes returns the kinds of attention layer by layer, nil if not given.
func (c *hfConfig) layerTypes() []string { return c.strings("layer_types") }

// strings returns a list of them, nil if not given.
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

// attention returns the attention's shape without its windows.
func (c *hfConfig) attention(a Arch) Attention {
	at := Attention{Heads: c.need("num_attention_heads", "n_head", "n_heads", "num_heads")}
	at.KVHeads = c.or(at.Heads, "num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "n_kv_heads")
	if c.flag("multi_query", false) && !c.flag("new_decoder_architecture", false) && !c.flag("multi_query_attention", false) {
		at.KVHeads = 1 // Falcon 7B, StarCoder
	}
	if at.Heads > 0 {
		at.HeadDim = c.or(a.Hidden/at.Heads, "head_dim", "kv_channels")
	}
	if rank, ok := c.number("kv_lora_rank"); ok && rank > 0 {
		at.MLA = MLA{
			QueryRank: c.or(0, "q_lora_rank"), KVRank: rank, RopeDim: c.need("qk_rope_head_dim"),
			NopeDim: c.need("qk_nope_head_dim"), ValueDim: c.need("v_head_dim"),
		}
		at.KVHeads = at.Heads
		if keys, ok := c.number("index_topk"); ok && keys > 0 {
			at.Sparse = Sparse{Keys: keys, Heads: c.need("index_n_heads"), Dim: c.need("index_head_dim"), Layers: c.indexed(a.Layers)}
		}
	}
	return at
}

// intermediate returns the width of dense MLPs; not needed where every layer has
// experts.
func (c *hfConfig) intermediate(a Arch) int {
	keys := []string{"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}
	if !c.is("llama4") {
		keys = keys[1:]
	}
	if n, ok := c.number(keys...); ok {
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

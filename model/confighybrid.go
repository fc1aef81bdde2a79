package model

import (
	"fmt"
	"slices"
	"strings"
)

// hybrids are the classes whose layers with a state are modelled.
var hybrids = []string{"qwen3next", "qwen3_5", "nemotronh", "granitemoehybrid", "kimik3", "kimilinear"}

// hybrid reports whether the class is one of hybrids.
func (c *hfConfig) hybrid() bool { return slices.ContainsFunc(hybrids, c.is) }

// states reads the layers with a state.
func (c *hfConfig) states(a *Arch) {
	if !c.hybrid() {
		return
	}
	s := &a.State
	switch {
	case c.is("qwen3"):
		*s = RecurrentState{Heads: c.need("linear_num_value_heads"), HeadDim: c.need("linear_value_head_dim"), KeyHeads: c.need("linear_num_key_heads"),
			KeyDim: c.need("linear_key_head_dim"), Conv: c.or(4, "linear_conv_kernel_dim"), Delta: true}
		every := max(1, c.or(4, "full_attention_interval"))
		s.Layers = c.kinds("layer_types", "linear_attention", a.Layers-a.Layers/every)
		a.Details.OutputGate = c.flag("attn_output_gate", true)
	case c.is("kimi"):
		of := hfConfig{values: field[map[string]any](c.values, "linear_attn_config")}
		heads, dim := of.need("num_heads"), of.need("head_dim")
		c.fail(of.err)
		*s = RecurrentState{Layers: len(field[[]any](of.values, "kda_layers")), Heads: heads, HeadDim: dim, KeyHeads: heads, KeyDim: dim,
			Conv: of.or(4, "short_conv_kernel_size"), Delta: true, Wide: true}
		a.Details.OutputGate = c.flag("mla_use_output_gate", false)
	case c.is("granite"):
		*s = RecurrentState{Heads: c.need("mamba_n_heads"), HeadDim: c.or(0, "mamba_d_head"), KeyHeads: c.or(1, "mamba_n_groups"),
			KeyDim: c.need("mamba_d_state"), Conv: c.or(4, "mamba_d_conv")}
		if s.HeadDim == 0 && s.Heads > 0 { // "auto"
			s.HeadDim = c.or(2, "mamba_expand") * a.Hidden / s.Heads
		}
		s.Layers = c.kinds("layer_types", "mamba", 0)
	default:
		*s = RecurrentState{Heads: c.need("mamba_num_heads"), HeadDim: c.need("mamba_head_dim"), KeyHeads: c.need("n_groups"),
			KeyDim: c.need("ssm_state_size"), Conv: c.or(4, "conv_kernel")}
		c.pattern(a)
	}
	for _, key := range []string{"mamba_ssm_cache_dtype", "mamba_ssm_dtype"} {
		s.Wide = s.Wide || c.text(key) == "float32"
	}
}

// blockKinds returns the blocks of Nemotron-H, each half of a usual layer: M has a state, * attention, - an
// MLP, E experts.
func (c *hfConfig) blockKinds() string {
	blocks := c.text("hybrid_override_pattern")
	for _, kind := range c.strings("layers_block_type") {
		blocks += map[string]string{"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}[kind]
	}
	return blocks
}

// pattern counts the blocks of Nemotron-H.
func (c *hfConfig) pattern(a *Arch) {
	blocks := c.blockKinds()
	count := func(kind string) int { return strings.Count(blocks, kind) }
	mixers, narrow := count("M")+count("*"), count("-")+count("E")
	if mixers+narrow != len(blocks) || len(blocks) != a.Layers || narrow > mixers {
		c.fail(fmt.Errorf("hybrid_override_pattern, layers_block_type: %d blocks M *, %d blocks - E of num_hidden_layers = %d: %w", mixers, narrow, a.Layers, errUnsupported))
		return
	}
	a.Layers, a.Bare = mixers, mixers-narrow
	a.State.Layers, a.MoE.Layers = count("M"), count("E")
	if a.MoE.Layers == 0 {
		a.MoE = MoE{}
	}
	if n, ok := c.number("moe_shared_expert_intermediate_size"); ok {
		a.MoE.SharedIntermediate = n * c.or(1, "n_shared_experts")
	}
}

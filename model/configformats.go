package model

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"planner/internal/list"
)

// byName holds the formats of modules by name.
type byName struct {
	named    map[string]WeightFormat // by whole names, or by parts of them between dots
	patterns []namePattern
	numbered bool // names or patterns may apply to some layers only
}

func (b *byName) empty() bool { return len(b.named) == 0 && len(b.patterns) == 0 }

// namePattern can match only names that contain the text has, a cheap first test.
type namePattern struct {
	*regexp.Regexp
	has    string
	format WeightFormat
}

// add reads an entry: after re: comes a regular expression anchored at the start of a name; in any other entry
// a star stands for any text. The error is of an invalid regular expression.
func (b *byName) add(entry string, f WeightFormat) error {
	b.numbered = b.numbered || strings.ContainsAny(strings.ReplaceAll(entry, `\d`, "0"), "0123456789[")
	has := ""
	expression, isPattern := strings.CutPrefix(entry, "re:")
	switch {
	case isPattern:
		expression = "^(?:" + expression + ")"
	case strings.Contains(entry, "*"):
		has = slices.MaxFunc(strings.Split(strings.ReplaceAll(entry, ".*", "*"), "*"), func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		expression = starred.Replace(regexp.QuoteMeta(strings.TrimPrefix(entry, ".")))
		expression = `(?:^|\.)` + expression + `(?:\.|$)`
	default:
		b.named[entry] = f
		return nil
	}
	r, err := regexp.Compile("(?m)" + expression)
	if err != nil {
		return fmt.Errorf("quantization_config: modules %q: %v: %w", entry, err, errUnsupported)
	}
	b.patterns = append(b.patterns, namePattern{r, has, f})
	return nil
}

// starred translates a star into a regular expression. The dot of .* may be the expression's, or separate
// names: layers.1.* must not match layer 10.
var starred = strings.NewReplacer(`\.\*`, `(?:\..*)?`, `\*`, `.*`)

// of returns the format of the module with these names: that of the longest part of one that is listed,
// otherwise that of the first matching pattern.
func (b *byName) of(names []string) (WeightFormat, bool) {
	best, format := "", FormatUnset
	for _, name := range names {
		for rest := name; rest != "" && len(b.named) > 0; _, rest, _ = strings.Cut(rest, ".") {
			for part := rest; len(part) > len(best); part = part[:max(0, strings.LastIndexByte(part, '.'))] {
				if f, given := b.named[part]; given {
					best, format = part, f
				}
			}
		}
	}
	if best != "" {
		return format, true
	}
	lines := strings.Join(names, "\n")
	for _, p := range b.patterns {
		if strings.Contains(lines, p.has) && p.MatchString(lines) {
			return p.format, true
		}
	}
	return FormatUnset, false
}

// mostMatches is the most patterns times layers that are read; published files have some twenty patterns and at
// most 130 layers.
const mostMatches = 20_000

// storage is how a checkpoint stores its modules.
type storage struct {
	kept, own byName       // modules that are not quantised, and those with formats of their own
	otherwise WeightFormat // of the others
}

// of returns the format of the module with these names.
func (s *storage) of(names []string) WeightFormat {
	if _, kept := s.kept.of(names); kept {
		return BF16
	}
	if f, given := s.own.of(names); given {
		return f
	}
	return s.otherwise
}

// unquantised are the keys under which tools list the modules, or patterns of them, that stay unquantised.
var unquantised = []string{"ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers", "exclude"}

// storage reads how the checkpoint is quantised.
func (c *hfConfig) storage(q map[string]any) storage {
	s := storage{kept: byName{named: map[string]WeightFormat{}}, own: byName{named: map[string]WeightFormat{}}}
	for _, key := range unquantised {
		for _, v := range field[[]any](q, key) {
			module, _ := v.(string)
			c.fail(s.kept.add(module, BF16))
		}
	}
	// each adds an object's modules with the formats that read returns; longer, more specific names first.
	each := func(key, mark string, read func(of map[string]any) WeightFormat) {
		modules := field[map[string]any](q, key)
		for _, name := range slices.SortedFunc(maps.Keys(modules), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
		}) {
			if f := read(field[map[string]any](modules, name)); f != FormatUnset {
				c.fail(s.own.add(mark+strings.TrimPrefix(name, "+:"), f))
			}
		}
	}
	var err error
	switch method := strings.ToLower(field[string](q, "quant_method")); method {
	case "fp8", "fbgemm_fp8", "ptpc_fp8":
		s.otherwise = FP8
		switch { // DeepSeek-V4's experts
		case strings.EqualFold(field[string](q, "moe_quant_algo"), "NVFP4"):
			c.fail(s.own.add("*.experts", NVFP4))
		case c.text("expert_dtype") == "fp4":
			c.fail(s.own.add("*.experts", MXFP4))
		}
	case "mxfp8": // MiniMax-M3
		s.otherwise = FP8
	case "mxfp4":
		s.otherwise = MXFP4
	case "awq", "gptq", "gptq_marlin", "awq_marlin", "auto-round", "auto_gptq", "intel/auto-round":
		for name := range field[map[string]any](q, "dynamic") {
			if module, kept := strings.CutPrefix(name, "-:"); kept {
				c.fail(s.kept.add("re:"+module, BF16))
			}
		}
		each("dynamic", "re:", ownBits)
		each("extra_config", "", ownBits)
		s.otherwise, err = integerFormat(q)
	case "compressed-tensors":
		err = c.groups(q, &s)
	case "quark":
		each("layer_quant_config", "", quarkFormat)
		if s.otherwise = quarkFormat(field[map[string]any](q, "global_quant_config")); s.otherwise == FormatUnset {
			err = fmt.Errorf("quantization_config.global_quant_config: no dtype of the weights that is known")
		}
	case "modelopt", "modelopt_fp4", "modelopt_fp8", "":
		each("quantized_layers", "", func(of map[string]any) WeightFormat {
			f, _ := modeloptFormat("", field[string](of, "quant_algo"))
			return f
		})
		if !s.own.empty() {
			s.otherwise = BF16 // mixed precision lists all modules that are quantised
			break
		}
		s.otherwise, err = modeloptFormat(method, field[string](q, "quant_algo"))
	case "bitsandbytes":
		err = fmt.Errorf("quantization_config.quant_method: bitsandbytes unpacks all weights in each step: %w", errUnsupported)
	default:
		err = fmt.Errorf("quantization_config.quant_method: %q is not known", method)
	}
	c.fail(err)
	return s
}

// groups reads compressed-tensors' groups, each with a format and its modules: by name, by pattern, or all
// linear ones. Modules in no group are not quantised.
func (c *hfConfig) groups(q map[string]any, s *storage) error {
	groups := field[map[string]any](q, "config_groups")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group := field[map[string]any](groups, name)
		f := groupFormat(field[map[string]any](group, "weights"), cmp.Or(field[string](group, "format"), field[string](q, "format")))
		if f == FormatUnset {
			continue
		}
		targets := field[[]any](group, "targets")
		if len(targets) == 0 {
			targets = []any{"Linear"}
		}
		for _, v := range targets {
			if target, _ := v.(string); strings.HasSuffix(target, "Linear") {
				s.otherwise = cmp.Or(s.otherwise, f)
			} else {
				c.fail(s.own.add(target, f))
			}
		}
	}
	switch {
	case s.otherwise != FormatUnset:
	case !s.own.empty():
		s.otherwise = BF16
	default:
		if s.otherwise = groupFormat(nil, field[string](q, "format")); s.otherwise == FormatUnset {
			return fmt.Errorf("quantization_config.config_groups: no group says type and num_bits of its weights")
		}
	}
	return nil
}

// ownBits reads the format of a module with its own bits in GPTQ or AutoRound, FormatUnset if it has none.
func ownBits(of map[string]any) WeightFormat {
	bits := field[float64](of, "bits")
	if bits >= 16 {
		return BF16
	}
	return typedFormat(map[string]any{"type": "int", "num_bits": bits})
}

// groupFormat reads the weights' format of a compressed-tensors group, from its name where the weights do not
// suffice.
func groupFormat(weights map[string]any, name string) WeightFormat {
	f := typedFormat(weights)
	switch {
	case (f == FormatUnset || f == NVFP4) && strings.HasPrefix(name, "mxfp4"):
		return MXFP4
	case f == FormatUnset && strings.HasPrefix(name, "nvfp4"):
		return NVFP4
	}
	return f
}

// formats reads the formats of the checkpoint's parts. Native becomes that of most quantised parameters.
func (c *hfConfig) formats(a *Arch) {
	q := c.quantization()
	if q == nil {
		a.Native = c.dtype()
		return
	}
	s, d, n := c.storage(q), &a.Details, a.counts()
	if patterns := len(s.kept.patterns) + len(s.own.patterns); patterns*a.Layers > mostMatches {
		c.fail(fmt.Errorf("quantization_config: %d patterns of modules for %d layers are more than are read: %w", patterns, a.Layers, errUnsupported))
	}
	d.BlockFP8, d.Group, d.WeightOnly, a.NativeKV = c.blocks(), c.group(), c.weightOnly(), c.kvFormat()
	parts := []struct {
		mix        *Mix
		parameters float64
	}{{&d.AttentionFormats, n.attention + n.kv + n.state + n.latent}, {&d.MLPFormats, n.mlp}, {&d.SharedFormats, n.shared}, {&d.ExpertFormats, n.experts}}
	for _, p := range parts {
		*p.mix = Mix{}
	}
	if c.err == nil {
		c.eachModule(a, s.kept.numbered || s.own.numbered, func(of *Mix, parameters float64, names []string) { of[s.of(names)] += parameters })
	}
	var total Mix
	for _, p := range parts {
		sum := 0.0
		for _, parameters := range p.mix {
			sum += parameters
		}
		if sum == 0 {
			p.mix[s.otherwise], sum = 1, 1
		}
		for f := range p.mix {
			p.mix[f] /= sum
			total[f] += p.mix[f] * p.parameters
		}
	}
	total[BF16] = 0
	a.Native = BF16
	for f, parameters := range total {
		if parameters > total[a.Native] {
			a.Native = WeightFormat(f)
		}
	}
	for _, p := range parts {
		p.mix[FormatUnset], p.mix[a.Native] = p.mix[a.Native], 0
		if p.parameters == 0 || p.mix[FormatUnset] == 1 {
			*p.mix = Mix{}
		}
	}
}

// eachModule calls visit for every matrix of the layers, with its part, its parameters and its names in
// checkpoints, alone or fused with others. The first expert stands for all and, unless layer numbers matter,
// the first layer of a kind for its kind.
func (c *hfConfig) eachModule(a *Arch, numbered bool, visit func(of *Mix, parameters float64, names []string)) {
	d, at, m, s, hidden := &a.Details, a.Attention, a.Attention.MLA, a.State, float64(a.Hidden)
	prefixes, self, recurrent, mlp := []string{"model."}, "self_attn", "linear_attn|mamba", "mlp"
	if slices.ContainsFunc(textParts, c.has) {
		prefixes = append(prefixes, "model.language_model.", "language_model.model.")
	}
	switch {
	case c.is("nemotronh"):
		prefixes, self, recurrent, mlp = []string{"backbone."}, "mixer", "mixer", "mixer"
	case c.is("llama4"):
		mlp = "feed_forward"
	case c.is("kimi"):
		recurrent = self
	case c.is("mixtral"), c.is("minimax"), c.is("phimoe"), c.is("granitemoe"):
		mlp = "block_sparse_moe"
	}
	experts, shared := mlp+".experts.0|"+mlp+".experts", mlp+".shared_expert|"+mlp+".shared_experts|shared_mlp"
	if c.flag("enable_moe_block", false) || c.flag("residual_moe", false) {
		experts, shared = "experts.0|experts", "mlp"
	}
	kinds := c.layerKinds(a)
	for i, kind := range kinds {
		layers := 1
		if !numbered {
			if slices.Contains(kinds[:i], kind) {
				continue
			}
			layers = list.Count(kinds, func(other string) bool { return other == kind })
		}
		add := func(kinds string, of *Mix, parameters float64, parents, leaves string) {
			if parameters <= 0 || !strings.ContainsAny(kind, kinds) {
				return
			}
			var names []string
			for _, prefix := range prefixes {
				for parent := range strings.SplitSeq(parents, "|") {
					for leaf := range strings.SplitSeq(leaves, "|") {
						names = append(names, fmt.Sprintf("%slayers.%d.%s.%s", prefix, i, parent, leaf))
					}
				}
			}
			visit(of, float64(layers)*parameters, names)
		}
		mixer := &d.AttentionFormats
		add("M", mixer, hidden*(2*s.keys()+s.values()), recurrent, "in_proj_qkv|in_proj_qkvz|in_proj")
		add("M", mixer, hidden*s.values(), recurrent, "in_proj_z|in_proj_qkvz|in_proj")
		add("M", mixer, hidden*s.values(), recurrent, "out_proj")
		heads, queries, keys, values := float64(at.Heads), hidden*float64(at.HeadDim), hidden*float64(at.HeadDim*at.KVHeads), hidden*float64(cmp.Or(at.ValueDim, at.HeadDim))
		if d.OutputGate {
			queries *= 2
		}
		if m.Present() {
			rank, keyDim := float64(m.KVRank), float64(m.NopeDim+m.RopeDim)
			add("*", mixer, hidden*float64(m.QueryRank), self, "q_a_proj|fused_qkv_a_proj")
			add("*", mixer, cmp.Or(float64(m.QueryRank), hidden)*heads*keyDim, self, "q_b_proj|q_proj")
			add("*", mixer, hidden*(rank+float64(m.RopeDim)), self, "kv_a_proj_with_mqa|fused_qkv_a_proj")
			add("*", mixer, rank*heads*float64(m.NopeDim+m.ValueDim), self, "kv_b_proj")
			add("*", mixer, hidden*heads*float64(m.ValueDim), self, "o_proj")
		} else {
			add("*", mixer, heads*queries, self, "q_proj|qkv_proj")
			add("*", mixer, keys, self, "k_proj|qkv_proj")
			add("*", mixer, values*float64(at.KVHeads), self, "v_proj|qkv_proj")
			add("*", mixer, values*heads, self, "o_proj")
		}
		latent := hidden * float64(a.MoE.Latent)
		add("E", mixer, latent, mlp, "fc1_latent_proj")
		add("E", mixer, latent, mlp, "fc2_latent_proj")
		for _, of := range []struct {
			kinds, parents string
			mix            *Mix
		}{{"-", mlp + "|shared_mlp", &d.MLPFormats}, {"E", shared, &d.SharedFormats}, {"E", experts, &d.ExpertFormats}} {
			if !d.Ungated {
				add(of.kinds, of.mix, 1, of.parents, "gate_proj|gate_up_proj|w1|input_linear")
			}
			add(of.kinds, of.mix, 1, of.parents, "up_proj|gate_up_proj|w3|input_linear")
			add(of.kinds, of.mix, 1, of.parents, "down_proj|w2|output_linear")
		}
	}
}

// layerKinds returns each layer's mixer and what follows it: M a state, * attention, - an MLP, E experts.
func (c *hfConfig) layerKinds(a *Arch) []string {
	if c.is("nemotronh") {
		return strings.Split(cmp.Or(c.blockKinds(), "M*-E"), "") // of a checkpoint that is known by its name all kinds
	}
	if a.Layers > maxLayers {
		c.fail(fmt.Errorf("num_hidden_layers: %d is no count that a model can have", a.Layers))
		return nil
	}
	listed, every, experts := c.strings("layer_types"), c.or(4, "full_attention_interval"), c.hasExperts()
	kinds := make([]string, a.Layers)
	for i := range kinds {
		mixer, narrow := "*", "-"
		state := (i+1)%max(1, every) != 0
		if i < len(listed) {
			state = listed[i] == "linear_attention" || listed[i] == "mamba"
		}
		if state && a.State.Present() {
			mixer = "M"
		}
		if a.MoE.Present() && experts(i) {
			narrow = "E"
		}
		kinds[i] = mixer + narrow
	}
	return kinds
}

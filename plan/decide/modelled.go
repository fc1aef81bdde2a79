package decide

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/model"
	"planner/plan"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// modelled says how the simulated engine treats each feature of a configuration on the chosen knobs; nothing if
// the figures are measured.
func modelled(cfg *config.Config, g sweep.Ground, k measure.Knobs) []plan.Feature {
	if !g.Virtual || g.Predict == nil {
		return nil
	}
	args := g.Predict.Args(k)
	dep := g.Predict.Deployment(k).Serving(args)
	return slices.Concat(ofModel(dep), ofPlacement(dep), ofKnobs(k, dep.Arch, args), ofEngine(cfg, dep, args), ofTraffic(&cfg.Workload))
}

// feature is a feature with its configuration key: approximated, and how, if doubtful.
func feature(key string, value any, doubtful bool, how string) plan.Feature {
	f := plan.Feature{Name: fmt.Sprintf("%s = %v", key, value), State: plan.Modelled}
	if doubtful {
		f.State, f.How = plan.Approximated, how
	}
	return f
}

// untested explains a feature that no served run tests.
const untested = "no served run tests it, so intervals are wider"

// when returns a feature if the configuration has it.
func when(has bool, f plan.Feature) []plan.Feature {
	if !has {
		return nil
	}
	return []plan.Feature{f}
}

func ofModel(dep model.Deployment) []plan.Feature {
	a, w := dep.Arch, dep.Precision.Weights
	var kinds []string
	for _, k := range []struct {
		has  bool
		text string
	}{{a.Attention.MLA.Present(), "latent"}, {a.Attention.Compressed.Present(), "a compressed cache"},
		{a.Attention.Sparse.Keys > 0, fmt.Sprintf("to %d tokens that an index finds", a.Attention.Sparse.Keys)}} {
		if k.has {
			kinds = append(kinds, k.text)
		}
	}
	return slices.Concat([]plan.Feature{
		feature("model.name", fmt.Sprintf("%s (%s)", a.Name, a.Family), !a.KnownClass(),
			"its class is not known: biases and norms are counted as a Llama's"),
		feature("model.weights", w, w == model.INT4 || w == model.INT8 || w == model.NVFP4, untested),
		feature("model.kv_cache", dep.Precision.KV, dep.Precision.KV == model.KVFP8, untested),
	},
		when(kinds != nil, feature("attention", strings.Join(kinds, ", "), true, untested)),
		when(a.State.Present(), feature("layers with a state", a.State.Layers, true, "the prefix cache keeps a state where a chunk of a prompt ends and, "+
			"from vLLM 0.24 on, where others part from it; before 0.15 it keeps none of gated delta networks")),
		when(a.MoE.Present(), feature("experts", fmt.Sprintf("%d of %d", a.MoE.Active, a.MoE.Experts), w != model.BF16 && w != model.FP16 && w != model.MXFP4, untested)),
		when(a.Details.Vision != (model.Vision{}), plan.Feature{Name: "images", State: plan.Refused,
			How: "traffic is text; only the memory that the vision tower takes is counted"}))
}

func ofPlacement(dep model.Deployment) []plan.Feature {
	hw, nodes := dep.Hardware, dep.Nodes()
	return slices.Concat([]plan.Feature{feature("hardware.gpu", hw.Name, !hw.Timed(),
		"no kernel was timed on it that servers bear out; intervals are wider")},
		when(dep.TP > 1, feature("engine.tensor_parallel", dep.TP, hw.Link.Kind != model.LinkNVLink, "over "+hw.Link.Kind.String()+": "+untested)),
		when(dep.PP > 1, feature("engine.pipeline_parallel", dep.PP, true, untested)),
		when(dep.DP > 1, feature("engine.data_parallel", dep.DP, true, untested)),
		when(nodes > 1, feature("nodes", nodes, true, fmt.Sprintf("joined by %s at %.0f GB/s a GPU: %s", hw.Node.Link, hw.Node.Rate/1e9, untested))),
		when(dep.EP, feature("engine.expert_parallel", true, true, untested)))
}

func ofKnobs(k measure.Knobs, a model.Arch, args model.EngineArgs) []plan.Feature {
	var all []plan.Feature
	for _, n := range measure.KnobTable {
		if text := n.Text(k); text != "" && !n.Placement {
			all = append(all, feature("knobs."+n.Name, text, n.Name == "prefix_caching" && k.PrefixCaching && !args.CachesPrefixes(a),
				"the release switches it off for a model with states, and the simulated engine too"))
		}
	}
	chunked := "on"
	if args.WholePrefill {
		chunked = "off"
	}
	return append(all, feature("chunked prefill", chunked, false, ""))
}

func ofEngine(cfg *config.Config, dep model.Deployment, args model.EngineArgs) []plan.Feature {
	e, k, s, l := &cfg.Engine, args.Kernels, args.Speculation, args.LoRA
	aged := strings.TrimPrefix(strings.TrimSuffix(model.BeyondKnown(args.EngineVersion)+"; "+model.Aged(dep, args), "; "), "; ")
	chosen := func(key string, value fmt.Stringer, slow bool) []plan.Feature {
		text := value.String()
		return when(text != "" && text != "auto", feature(key, text, slow, untested))
	}
	all := slices.Concat([]plan.Feature{feature("engine.version", cmp.Or(args.EngineVersion, sweep.NewestKnown), aged != "", aged)},
		when(e.Kind != "simulated" && e.Kind != "vllm", feature("engine.kind", e.Kind, true, "the simulated engine schedules as vLLM does")),
		when(e.API == "chat", feature("engine.api", "chat", true, "the tokens of the chat template are those of workload.prompt")),
		when(!e.Stream, plan.Feature{Name: "engine.stream = false", State: plan.Refused,
			How: "a client sees no token before the whole answer; times to the first token, and between tokens, are of streams"}),
		when(s.On(), feature("engine.speculative", fmt.Sprintf("%s, %d tokens", s.Method, s.Tokens), true, untested)),
		when(l.On(), feature("engine.lora", fmt.Sprintf("%d adapters of rank %d, %d at once", l.Adapters, l.Rank, l.Slots), true,
			"each is as likely as the others, and all are in the host's memory; "+untested)),
		chosen("engine.graphs", k.Graphs, k.Graphs == model.GraphsDecodeOnly || k.Graphs == model.GraphsNone),
		chosen("engine.all2all_backend", args.Exchange.Backend, true),
		when(args.Exchange.DBO, feature("engine.dbo", true, true, untested)),
		when(args.Exchange.EPLB, feature("engine.eplb", true, true, "all GPUs are taken to have the same load but for chance; "+untested)),
		chosen("engine.moe_backend", k.Experts, false), chosen("engine.sampler", k.Sampler, false),
		when(k.Async != model.ByDefault, feature("engine.async_scheduling", k.Async == model.On, false, "")),
		when(k.FusedReduce != model.ByDefault, feature("engine.allreduce_fusion", k.FusedReduce == model.On, false, "")))
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		all = append(all, ofOption("engine.env", name, silentVariable.MatchString(name)))
	}
	return append(all, ofArguments(e.ExtraArgs)...)
}

// Options and variables that change what an engine logs, loads or checks but not how long its steps take.
var (
	silentOption = regexp.MustCompile(`^--(no-)?(api-key|allowed-\w+|allow-credentials|chat-template.*|config-format|disable-log-\w+|` +
		`disable-uvicorn.*|download-dir|enable-auto-tool-choice|enable-log-\w+|enable-prompt-tokens-details|enable-request-id-headers|` +
		`generation-config|hf-\w+|host|load-format|log-.*|port|reasoning-parser|response-role|revision|root-path|seed|served-model-name|ssl-.*|` +
		`tokenizer(-.*)?|tool-call-parser|tool-parser-plugin|trust-remote-code|uvicorn-.*)$`)
	silentVariable = regexp.MustCompile(`^(HF_|HUGGING|TRANSFORMERS_|` +
		`VLLM_(LOGGING|CONFIGURE_LOGGING|NO_USAGE|DO_NOT_TRACK|API_KEY|CACHE_ROOT|HOST_IP|PORT)|PYTHONUNBUFFERED|TMPDIR|HOME$|NCCL_DEBUG|` +
		`CUDA_VISIBLE_DEVICES|https?_proxy|no_proxy)`)
)

// ofArguments returns the options among the engine's further arguments.
func ofArguments(args []string) []plan.Feature {
	var all []plan.Feature
	_, rest := model.EngineFeatures{}.With(args)
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(name, "-") || len(strings.Trim(name, "-0123456789.")) == 0 {
			continue // the value of the option before
		}
		f := ofOption("engine.extra_args", name, silentOption.MatchString(name))
		if !slices.Contains(rest, name) {
			f = plan.Feature{Name: "engine.extra_args: " + name, State: plan.Modelled}
		} else if key := config.KeyOfOption(name); key != "" {
			f.How = "the command has it, the rates do not: " + key + " is what is modelled"
		}
		all = append(all, f)
	}
	return all
}

// ofOption is an option or a variable judged by its name alone.
func ofOption(key, name string, silent bool) plan.Feature {
	if silent {
		return plan.Feature{Name: key + ": " + name, State: plan.Modelled, How: "without effect on rates"}
	}
	return plan.Feature{Name: key + ": " + name, State: plan.Refused,
		How: "the command has it, the rates do not: they are of an engine without it"}
}

func ofTraffic(w *workload.Workload) []plan.Feature {
	return slices.Concat([]plan.Feature{feature("workload", traffic(w), false, "")},
		when(w.Turns > 1, feature("workload.turns", w.Turns, false, "")),
		when(w.Timeout > 0, feature("workload.timeout", w.Timeout, false, "")))
}

// uncalibrated warns of what the constants were not calibrated on, so that no served run tells how far off the
// rates are.
func uncalibrated(cfg *config.Config, g sweep.Ground, k measure.Knobs) note.Notes {
	if !g.Virtual || g.Predict == nil || cfg.Engine.Calibration != "" {
		return nil
	}
	what, within := model.Uncalibrated(g.Predict.Deployment(k))
	return note.If(len(what) > 0, note.Uncalibrated, strings.Join(what, ", "), 100*within)
}

// busyFrontEnd warns of a rate at which the front end of an instance is busy for more than half of the time: some hosts
// take twice as long.
func (s *searches) busyFrontEnd(k measure.Knobs, rate float64) note.Notes {
	if !s.ground.Virtual || s.ground.Predict == nil {
		return nil
	}
	roofline, _, err := s.ground.Predict.Model(k)
	if err != nil {
		return nil // told where the set is tried
	}
	prompt, output := s.cfg.Workload.MeanTokens()
	busy, processes := roofline.FrontEndBusy(rate, prompt, output/roofline.Args().Speculation.PerStep())
	each := rate / float64(processes)
	return note.If(busy > 0.5, note.BusyFrontEnd, 100*busy, each, each*prompt, each*output)
}

func unmodelled(features []plan.Feature) note.Notes {
	refused := list.Filter(features, func(f plan.Feature) bool { return f.State == plan.Refused })
	names := list.Map(refused, func(f plan.Feature) string { return f.Name })
	return note.If(len(names) > 0, note.NotModelled, strings.Join(names, "; "))
}

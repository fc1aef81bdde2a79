package config

import (
	"os"
	"slices"
	"strings"
	"time"

	"planner/internal/endpoint"
	"planner/model"
)

// EngineSettings configure the engine that serves the requests, simulated or real.
type EngineSettings struct {
	// Kind is "simulated", an engine's name, "command" or "attach".
	Kind string
	// Version is the release of the simulated engine; "" means the newest known.
	Version string
	// EngineFeatures are further settings of a simulated engine.
	model.EngineFeatures
	// DraftModel names the model that proposes tokens, if any.
	DraftModel string
	// Calibration is the path of a file of fitted constants; "" means none.
	Calibration string
	// Endpoint is the address of a running server, with Kind "attach", and headers and key for requests to any
	// real engine.
	Endpoint endpoint.Endpoint
	// ServedName is the model's name in requests; "" means the first one that the
	// server lists.
	ServedName string
	// API is "completions" or "chat".
	API    string
	Stream bool
	// Launcher is "local", "slurm" or "kubernetes".
	Launcher string
	// Command is the argument list of an engine of Kind "command".
	Command      []string
	Env          map[string]string
	ExtraArgs    []string
	ReadyTimeout time.Duration
}

// Features returns the settings of the simulated engine, as its kind and further arguments change them.
func (e *EngineSettings) Features() model.EngineFeatures {
	f, _ := e.With(e.ExtraArgs)
	return f.Following(e.Kind)
}

func (r *reader) checkEngine(c *Config) {
	e := &c.Engine
	switch {
	case e.Kind == "attach" && e.Endpoint.URL == "" && r.clean("engine.url"):
		r.missing("engine.url", "engine.kind").refuse(`is missing, want the server's URL, because kind is "attach"`)
	case e.Kind == "command" && len(e.Command) == 0 && r.clean("engine.command"):
		r.missing("engine.command", "engine.kind").refuse(`is missing, want the engine's argument list, because kind is "command"`)
	case e.Kind == "command" && len(e.Command) > 0 && e.Command[0] == "":
		r.at("engine.command").refuse("begins with an empty string, want the name of a program")
	case e.Kind == "command" && len(e.Command) > 0 && !strings.Contains(strings.Join(e.Command, " "), "{port}"):
		r.at("engine.command").refuse("has no {port}, want it where the engine takes the port to listen on: planner gives it a free one, and asks it there")
	}
	backend := e.Exchange.Backend
	r.at("engine.all2all_backend").refuseIf(e.Kind == "sglang" && (backend == model.All2AllNaive || backend == model.All2AllPPLX),
		"is %s, which SGLang lacks, want one of the others", backend)
	r.warnIf(e.Endpoint.URL != "" && e.Kind != "attach",
		`engine: url is given, and kind is %q: the server there is not used; want kind = "attach" to measure it`, e.Kind)
	r.warnIf(len(e.Command) > 0 && e.Kind != "command", `engine: command is given, and kind is %q: it is not run; want kind = "command" to measure it`, e.Kind)
	if _, err := model.ParseVersion(e.Version); err != nil && c.Simulated() {
		n := r.at("engine.version")
		n.value = e.Version
		n.wrong("a release such as 0.15.1, or nothing for the newest known")
	}
	other := model.BeyondKnown(e.Version)
	r.warnIf(other != "" && c.Simulated(), "engine: version: %s", other)
	if e.Calibration != "" && c.draft.need.Engine {
		if _, err := os.Stat(e.Calibration); err != nil {
			r.at("engine.calibration").refuse("%s cannot be read: %s, want a file from planner calibrate",
				e.Calibration, reason(err))
		}
	}
}

// mostRank is the largest rank for which vLLM has kernels.
const mostRank = 512

func lora() codec[model.LoRA] {
	return tableWith(func(l *model.LoRA) []tomlKey {
		count := orNothing(wholeIn(atLeast(1)))
		return []tomlKey{
			{"adapters", ": how many requests choose among", count.in(&l.Adapters)},
			{"slots", ": how many of them run at once", count.in(&l.Slots)},
			{"rank", "", orNothing(wholeIn(atLeast(1).atMost(mostRank))).in(&l.Rank)},
		}
	}, "adapters", "slots", "rank")
}

func (r *reader) checkLoRA(c *Config) {
	const key = "engine.lora"
	l := c.Engine.LoRA
	switch {
	case !l.On() || !r.clean(key, "model"):
	case l.Slots > l.Adapters:
		r.at(key).refuse("has %d slots for %d adapters, want at most as many", l.Slots, l.Adapters)
	case c.Simulated() && !l.Supports(c.Model.Arch):
		r.at(key).refuse("is not modelled for %s: adapters of experts and of latent attention are not; want a dense model, or none", c.Model.Name)
	}
}

// mostDraft bounds the tokens proposed per step; nobody uses more in service.
const mostDraft = 32

// speculative is [engine] speculative as it was written.
type speculative struct {
	method     model.DraftMethod
	tokens     int
	acceptance []float64 // one for each position, or a single one for all
	each       bool      // whether a single one for all was given
	accepted   float64
	model      string
}

func speculation() codec[speculative] {
	return tableWith(func(s *speculative) []tomlKey {
		return []tomlKey{
			{"method", ": " + strings.Join(model.Names[model.DraftMethod](), " "),
				orNothing(enumerated[model.DraftMethod]()).in(&s.method)},
			{"tokens", ": how many are proposed in a step", orNothing(wholeIn(atLeast(1).atMost(mostDraft))).in(&s.tokens)},
			{"acceptance", "", s.chances()},
			{"accepted", "", orNothing(numberIn(atLeast(1))).in(&s.accepted)},
			{"model", "", orNothing(filled()).in(&s.model)},
		}
	}, "method", "tokens")
}

// chances is one acceptance rate for all proposed tokens, or a list by position.
func (s *speculative) chances() binding {
	one := numberIn(atLeast(0).atMost(1))
	take := func(n input) {
		_, many := elements(n.value)
		s.each, s.acceptance = !many, nil
		for _, item := range n.list() {
			x := one.read(item)
			if before := len(s.acceptance) - 1; before >= 0 && x > s.acceptance[before] {
				item.wrong("no more than the position before it, as each is the share of steps in which all up to it are accepted")
			}
			s.acceptance = append(s.acceptance, x)
		}
	}
	text := func() string {
		switch {
		case len(s.acceptance) == 0:
			return ""
		case s.each:
			return one.print(s.acceptance[0])
		}
		return brackets(s.acceptance, one.print)
	}
	return binding{take, text, nil}
}

// resolveSpeculative fills in acceptance rates published for the model.
func (r *reader) resolveSpeculative(c *Config) {
	const key = "engine.speculative"
	given, n := c.draft.speculative, r.at(key)
	if given.tokens == 0 || !r.clean(key, "model") {
		return
	}
	s := model.Speculation{Method: given.method, Tokens: given.tokens}
	switch {
	case given.method == model.DraftMTP && c.Model.Arch.WithoutMTP():
		n.refuse("has method = mtp, but %s has no layers that predict several tokens; want eagle, ngram or draft", c.Model.Name)
	case len(given.acceptance) > 0 && given.accepted > 0:
		n.refuse("has acceptance and accepted, want one of them")
	case given.accepted > float64(1+given.tokens):
		n.refuse("has accepted = %s, want at most 1 + tokens = %d", number(given.accepted), 1+given.tokens)
	case given.accepted > 0:
		s.Accepted = model.AcceptedLength(given.accepted, given.tokens)
	case given.each:
		s.Accepted = model.AcceptedEach(given.acceptance[0], given.tokens)
	case len(given.acceptance) > 0:
		s.Accepted = model.AcceptedByPosition(given.acceptance, given.tokens)
	case c.Simulated():
		published := c.Model.Arch.Published
		if published.Method != given.method {
			n.refuse("lacks acceptance, and none is published for %s of %s; want acceptance = 0.7, a list by position as vLLM logs it, or accepted = 2.1, the mean tokens of a step",
				given.method, c.Model.Name)
			return
		}
		s.Accepted = model.AcceptedByPosition(published.Accepted, given.tokens)
	}
	n.refuseIf(given.method == model.DraftEagle && given.model == "" && !c.Simulated(),
		`lacks model, want the head that proposes, such as model = "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3"`)
	if given.method == model.DraftModel {
		s.Draft = new(r.draftModel(n, c, given.model))
		n.refuseIf(s.Draft.Vocab > 0 && c.Model.Known && s.Draft.Vocab != c.Model.Arch.Vocab,
			"has model = %q with a vocabulary of %d tokens, and %s has %d, with which vLLM does not start; want a smaller model of the same family", given.model, s.Draft.Vocab, c.Model.Name, c.Model.Arch.Vocab)
		v, err := model.ParseVersion(c.Engine.Version)
		r.warnIf(c.Simulated() && err == nil && !v.AtLeast(0, 14), "engine: speculative: the V1 engine of vLLM %s, which is simulated, refuses draft models: they came in 2026", c.Engine.Version) // pull request 24322
	}
	r.at("engine.async_scheduling").refuseIf(c.Simulated() && c.Engine.Kernels.Async == model.On && given.method == model.DraftNGram,
		"is true, want false or auto: vLLM does not start with it and speculative.method = ngram, which searches text that the host does not have yet")
	n.refuseIf(slices.ContainsFunc(c.Space["pipeline_parallel"], func(v any) bool { return v != 1 }), "with pipeline_parallel is not modelled, want pipeline_parallel = 1")
	c.Engine.Speculation, c.Engine.DraftModel = s, given.model
}

// SpeculationPublished reports whether no acceptance was given, so that the one published for the model
// applies.
func (c *Config) SpeculationPublished() bool {
	return len(c.draft.speculative.acceptance) == 0 && c.draft.speculative.accepted == 0
}

func (r *reader) draftModel(n input, c *Config, name string) model.Arch {
	if name == "" {
		n.refuse(`lacks model, want the smaller model that proposes, such as model = "llama-3.2-1b"`)
		return model.Arch{}
	}
	a, err := r.catalog.Model(name)
	n.refuseIf(err != nil && c.Simulated(), "model: %v; want a name from planner catalog models", err)
	return a
}

// warnUnusedEngine warns of engine settings that have no effect on the model or on a single GPU.
func (r *reader) warnUnusedEngine(c *Config) {
	kernels, usual := c.Engine.Kernels, unread().Engine.Kernels
	r.warnIf(kernels.Experts != usual.Experts && c.Model.Known && !c.Model.Arch.MoE.Present(), "engine: moe_backend has no effect: %s has no experts", c.Model.Name)
	spread := func(key string, usual any) bool {
		return slices.ContainsFunc(c.Space[key], func(v any) bool { return v != usual })
	}
	x := c.Engine.Exchange
	parallel := spread("expert_parallel", false)
	r.at("engine.eplb").refuseIf(x.EPLB && !parallel && c.Model.Known && c.Model.Arch.MoE.Present(), "is true, want expert_parallel = true besides, whose experts it places")
	r.warnIf(x.EPLB && !parallel || (x.DBO || x.Backend != model.All2AllByDefault) && !(parallel && spread("data_parallel", 1)),
		"engine: all2all_backend and dbo have no effect without expert_parallel and data_parallel above 1, eplb none without expert_parallel")
	r.warnIf(kernels.FusedReduce != usual.FusedReduce && !slices.ContainsFunc(c.draft.space["tensor_parallel"], func(v any) bool { return v != any(1) }),
		"engine: allreduce_fusion has no effect without tensor_parallel above 1")
}

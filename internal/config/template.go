package config

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/model"
	"planner/sweep/engine"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// The starter's defaults.
const (
	starterModel   = "llama-3.1-70b"
	starterWeights = "fp8"
	starterGPU     = "H100 SXM"
	starterEngine  = "simulated"
	starterFile    = "model.gguf"
)

// Template returns a commented starter configuration for planner init, which can be loaded as it is. The model
// may also be the path of a config.json; for llama-server it is that of a GGUF file, and the hardware need not
// be named. The error is a [Problems] that names the flags --model, --gpu, --engine and --launcher.
func Template(modelName, gpu, kind, launcher string) ([]byte, error) {
	given := []Override{
		{Key: "demand.rate", Value: "100"}, {Key: "slo.ttft", Value: `{ p99 = "500ms" }`}, {Key: "slo.tpot", Value: `{ p99 = "50ms" }`},
		{Key: "engine.kind", Value: cmp.Or(kind, starterEngine), Flag: "--engine"}, {Key: "engine.tensor_parallel", Value: "1"}, {Key: "workload.class", Value: "chat"},
	}
	put := func(key, value, flag string) { given = append(given, Override{Key: key, Value: value, Flag: flag}) }
	need := Need{Engine: true, Simulated: true, Lists: true}
	switch {
	case engine.LoadsFile(kind):
		need.Simulated = false
		put("model.name", cmp.Or(modelName, starterFile), "--model")
		put("knobs.max_num_seqs", "[1, 2, 4, 8]", "")   // slots, each with a context in memory
		put("knobs.max_num_batched_tokens", "2048", "") // the engine's default
	case strings.HasSuffix(modelName, ".json"):
		put("model.config", modelName, "--model")
	default:
		put("model.name", cmp.Or(modelName, starterModel), "--model")
	}
	if need.Simulated || gpu != "" {
		put("hardware.gpu", cmp.Or(gpu, starterGPU), "--gpu")
	}
	placed := cmp.Or(gpu, starterGPU)
	switch launcher {
	case "slurm":
		word, _, _ := strings.Cut(strings.ToLower(placed), " ") // the usual gres type: h100
		put("cluster.gpu", tableOf(filled()).print(map[string]string{placed: word}), "--gpu")
		put("cluster.partition", "", "")
		put("cluster.time_limit", "4h", "")
	case "kubernetes":
		word := "NVIDIA-" + strings.ReplaceAll(placed, " ", "-") // similar to the node label
		put("cluster.gpu", tableOf(filled()).print(map[string]string{placed: word}), "--gpu")
		put("cluster.image", "vllm/vllm-openai:latest", "")
		put("cluster.planner", "registry.example.com/planner:latest", "")
	}
	if launcher != "" {
		put("engine.launcher", launcher, "--launcher")
	}
	switch kind {
	case "attach":
		put("engine.url", "http://127.0.0.1:8000", "")
	case "command":
		put("engine.command", `["my-engine", "--port", "{port}", "--model", "{model}"]`, "")
	}
	if need.Simulated && strings.EqualFold(cmp.Or(modelName, starterModel), starterModel) {
		put("model.weights", starterWeights, "")
	}
	// Short requests, which fit every model.
	const short = `{ dist = "fixed", value = 2 }`
	c, err := Load("", append(given, Override{Key: "workload.prompt", Value: short}, Override{Key: "workload.output", Value: short}), need)
	if err != nil {
		return nil, err
	}
	set := list.Map(given, func(o Override) string { return o.Key }) // most others are shown commented out
	if c.shortenClass() {
		set = append(set, "workload.prompt", "workload.output")
	}
	if c.Model.File != "" {
		c.draft.model = cmp.Or(modelName, starterFile) // as it was written
	}
	c.draft.space["tensor_parallel"] = []any{startingDegree(c)}
	return printTemplate(c, set), nil
}

// shortenClass sets the workload's lengths to those of the starter's class, cut to the model's limit, and
// reports whether they were cut.
func (c *Config) shortenClass() bool {
	class, _ := workload.Class("chat")
	own := c.Model.Arch.MaxPosition
	cut := own > 0 && class.Prompt.Longest()+class.Output.Longest() > own
	if cut {
		class.Prompt.Max, class.Output.Max = own*2/3, own/3
		class.Prompt.Min, class.Output.Min = min(class.Prompt.Min, class.Prompt.Max), min(class.Output.Min, class.Output.Max)
	}
	c.draft.shape.Prompt, c.draft.shape.Output = class.Prompt, class.Output
	return cut
}

// printTemplate prints the keys that are set, and the others commented out with their defaults.
func printTemplate(c *Config, set []string) []byte {
	fallback := unread()
	for _, n := range measure.Searched() {
		fallback.draft.space[n.Name] = n.Usual
	}
	fallback.draft.budget = usualBudget // printed, although it applies only if given
	left := map[string]string{}
	for _, s := range fallback.sections() {
		for _, k := range s.rows {
			left[s.name+"."+k.name] = k.text()
		}
	}
	var b bytes.Buffer
	b.WriteString("# Starter configuration. What is commented out shows its default, or an example\n" +
		"# where there is none; planner plan --print-config shows all that holds.\n\n")
	sections := slices.DeleteFunc(c.sections(), func(s tomlTable) bool { return s.name == "cluster" && c.Engine.Launcher == "local" })
	for i, s := range sections {
		sections[i].rows = slices.DeleteFunc(s.rows, func(k tomlKey) bool { return slices.Contains(replaced, s.name+"."+k.name) })
	}
	printKeys(&b, sections, func(key string, k tomlKey) (mark, text, comment string) {
		if slices.Contains(set, key) {
			return "", k.text(), k.comment
		}
		return "# ", cmp.Or(left[key], examples[key]), k.comment
	})
	return b.Bytes()
}

// examples are shown in a starter for keys without a default.
var examples = map[string]string{
	"demand.availability":        "0.99",
	"demand.target_availability": "0.999",
	"hardware.price":             "{ on_demand = 2.99, reserved_1y = 2.10, spot = 1.40, purchase = 28000, amortise_years = 4, power_usd_per_kwh = 0.10, pue = 1.3 }",
}

// replaced are keys superseded by a newer one, which a starter shows instead.
var replaced = []string{"hardware.price_per_gpu_hour", "hardware.power_price_per_kwh"}

// startingDegree is the smallest valid power of two at which the weights take at most 60 % of the memory, or
// the largest up to 8.
func startingDegree(c *Config) int {
	if !c.Model.Known || len(c.GPUs) == 0 {
		return 1
	}
	params, _ := c.Model.Arch.Params()
	weights := params * c.Model.Precision.Weights.Bytes()
	best := 1
	for tp := 1; tp <= 8; tp *= 2 {
		if (model.Deployment{Arch: c.Model.Arch, Hardware: c.GPUs[0].Hardware, TP: tp}).Validate() != nil {
			continue
		}
		best = tp
		if weights <= 0.6*c.GPUs[0].Hardware.Memory*float64(tp) {
			break
		}
	}
	return best
}

package config

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"planner/model"
	"planner/sweep/measure"
)

// starters are the keys that a starter configuration sets; it shows the others
// commented out.
var starters = []string{"demand.rate", "slo.ttft", "slo.tpot", "model.name", "hardware.gpu", "engine.kind", "engine.tensor_parallel", "workload.class"}

// What a starter holds where nothing is asked for.
const (
	starterModel   = "llama-3.1-70b"
	starterWeights = "fp8"
	starterGPU     = "H100 SXM"
	starterEngine  = "simulated"
)

// Template is a commented starter configuration for planner init, which loads as it
// stands. Empty arguments mean Llama-3.1-70B in fp8, H100 SXM and the simulated
// engine. The degree of tensor parallelism is the smallest power of two at which the
// weights take at most 60 % of the GPUs' memory. The error is a [Problems] that
// names the flags --model, --gpu and --engine.
func Template(modelName, gpu, engine string) ([]byte, error) {
	given := []Override{
		{Key: "demand.rate", Value: "100"}, {Key: "slo.ttft.p99", Value: "500ms"}, {Key: "slo.tpot.p99", Value: "50ms"},
		{Key: "model.name", Value: cmp.Or(modelName, starterModel), Flag: "--model"},
		{Key: "hardware.gpu", Value: cmp.Or(gpu, starterGPU), Flag: "--gpu"},
		{Key: "engine.kind", Value: cmp.Or(engine, starterEngine), Flag: "--engine"},
	}
	set := slices.Clone(starters)
	more := func(key, value string) {
		given, set = append(given, Override{Key: key, Value: value}), append(set, key)
	}
	switch engine {
	case "attach":
		more("engine.url", "http://127.0.0.1:8000")
	case "command":
		more("engine.command", `["my-engine", "--port", "{port}", "--model", "{model}"]`)
	}
	if strings.EqualFold(cmp.Or(modelName, starterModel), starterModel) {
		more("model.weights", starterWeights)
	}
	c, err := Load("", given, Need{Engine: SimulatedEngine})
	if err != nil {
		return nil, err
	}
	c.draft.space["tensor_parallel"] = []any{startingDegree(c)}
	return printTemplate(c, set), nil
}

// printTemplate prints the keys that are set, and the others as comments with what
// they are when they are left alone.
func printTemplate(c *Config, set []string) []byte {
	fallback := unread()
	for _, n := range measure.Searched() {
		fallback.draft.space[n.Name] = n.Usual
	}
	fallback.draft.budget = usualBudget // printed, though it counts only when it is given
	left := map[string]string{}
	printKeys(&bytes.Buffer{}, fallback.sections(), func(key string, k row) (mark, text, comment string) {
		left[key] = k.text()
		return "", "", ""
	})
	var b bytes.Buffer
	b.WriteString("# Starter configuration. What is commented out shows its default, or an example\n" +
		"# where there is none; planner plan --print-config shows all that holds.\n\n")
	printKeys(&b, c.sections(), func(key string, k row) (mark, text, comment string) {
		if slices.Contains(set, key) {
			return "", k.text(), k.comment
		}
		return "# ", cmp.Or(left[key], examples[key]), k.comment
	})
	return b.Bytes()
}

// examples stand in a starter for the keys without a default.
var examples = map[string]string{
	"demand.availability":         "0.99",
	"demand.target_availability":  "0.999",
	"hardware.price_per_gpu_hour": "2.99",
}

// startingDegree is a degree of tensor parallelism to begin with.
func startingDegree(c *Config) int {
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

package config

import (
	"bytes"
	"cmp"
	"fmt"
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
	c := unread()
	d := &c.draft
	c.Demand.Rate, d.rateGiven = 100, true
	d.model.name, d.hardware.gpus = cmp.Or(modelName, starterModel), []string{cmp.Or(gpu, starterGPU)}
	c.Engine.Kind = cmp.Or(engine, starterEngine)
	set := slices.Clone(starters)
	if strings.EqualFold(d.model.name, starterModel) {
		d.model.weights, set = starterWeights, append(set, "model.weights")
	}
	tp, problems := startingDegree(d)
	if !slices.Contains(engineKinds, c.Engine.Kind) {
		problems = append(problems, Problem{Place: "--engine", Key: "engine.kind", Text: fmt.Sprintf("is %q, want one of %s (nearest: %s)",
			engine, strings.Join(engineKinds, ", "), nearest(engine, engineKinds))})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	d.space["tensor_parallel"] = []any{tp}
	switch c.Engine.Kind {
	case "attach":
		c.Engine.Endpoint.URL, set = "http://127.0.0.1:8000", append(set, "engine.url")
	case "command":
		c.Engine.Launch.Command = []string{"my-engine", "--port", "{port}", "--model", "{model}"}
		set = append(set, "engine.command")
	}
	return printTemplate(c, set)
}

// printTemplate prints the keys that are set, and the others as comments with what
// they are when they are left alone.
func printTemplate(c *Config, set []string) ([]byte, error) {
	fallback := unread()
	for _, n := range measure.Searched() {
		fallback.draft.space[n.Name] = n.Usual
	}
	fallback.Search.BudgetGiven = true // printed, though it counts only when it is given
	if err := fallback.draft.load.fill(); err != nil {
		return nil, err
	}
	fallbacks := fallback.keys()
	limits := map[string]string{"slo.ttft": `{ p99 = "500ms" }`, "slo.tpot": `{ p99 = "50ms" }`}
	var b bytes.Buffer
	b.WriteString("# Starter configuration. What is commented out shows its default, or an example\n" +
		"# where there is none; planner plan --print-config shows all that holds.\n")
	before := ""
	for i, k := range c.keys() {
		section, name := splitKey(k.name)
		if section != before {
			fmt.Fprintf(&b, "\n[%s]\n", section)
			before = section
		}
		text, mark := k.slot.text(), ""
		if limit, ok := limits[k.name]; ok {
			text = limit
		}
		if !slices.Contains(set, k.name) {
			mark, text = "# ", cmp.Or(fallbacks[i].slot.text(), examples[k.name])
		}
		fmt.Fprintf(&b, "%s%s = %s  # %s\n", mark, name, text, k.comment)
	}
	return b.Bytes(), nil
}

// examples stand in a starter for the keys without a default.
var examples = map[string]string{
	"demand.availability":         "0.99",
	"demand.target_availability":  "0.999",
	"hardware.price_per_gpu_hour": "2.99",
}

// startingDegree is a degree of tensor parallelism to begin with.
func startingDegree(d *draft) (int, Problems) {
	catalog, err := model.NewCatalog()
	if err != nil {
		return 0, Problems{{Place: "catalog", Text: err.Error()}}
	}
	var problems Problems
	arch, err := catalog.Model(d.model.name)
	if err == nil {
		err = arch.Check()
	}
	if err != nil {
		problems = append(problems, Problem{Place: "--model", Key: "model.name", Text: err.Error() + "; want a name from planner catalog models"})
	}
	hw, err := catalog.GPU(d.hardware.gpus[0])
	if err == nil {
		err = hw.Check()
	}
	if err != nil {
		problems = append(problems, Problem{Place: "--gpu", Key: "hardware.gpu", Text: err.Error() + "; want a name from planner catalog gpus"})
	}
	if len(problems) > 0 {
		return 0, problems
	}
	params, _ := arch.Params()
	weights := params * precisionOf(d.model, arch).Weights.Bytes()
	best := 1
	for tp := 1; tp <= 8; tp *= 2 {
		if (model.Deployment{Arch: arch, Hardware: hw, TP: tp}).Validate() != nil {
			continue
		}
		best = tp
		if weights <= 0.6*hw.Memory*float64(tp) {
			break
		}
	}
	return best, nil
}

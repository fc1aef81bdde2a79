package config

import (
	"bytes"
	"fmt"
	"slices"

	"planner/model"
)

// starters are the keys that a starter configuration sets; it shows the others
// commented out.
var starters = []string{"demand.rate", "slo.ttft", "slo.tpot", "model.name", "hardware.gpu", "engine.kind", "engine.tensor_parallel", "workload.class"}

// Template is a commented starter configuration for planner init. Empty arguments
// mean Llama-3.1-70B in fp8, H100 SXM and the simulated engine. The degree of tensor
// parallelism is the smallest power of two at which the weights take at most 60 %
// of the GPUs' memory. It loads as it stands if catalog and engines know the names.
func Template(modelName, gpu, engine string) []byte {
	d := defaults()
	d.demand.Rate, d.rateGiven = 100, true
	set := slices.Clone(starters)
	if modelName == "" {
		modelName, d.model.weights = "llama-3.1-70b", "fp8"
		set = append(set, "model.weights")
	}
	if gpu == "" {
		gpu = "H100 SXM"
	}
	if engine == "" {
		engine = "simulated"
	}
	d.model.name, d.hardware.gpus, d.engine.Kind = modelName, []string{gpu}, engine
	d.engine.Parallel.Tensor = []int{startingDegree(d.model, gpu)}
	switch engine {
	case "attach":
		d.engine.Endpoint.URL, set = "http://127.0.0.1:8000", append(set, "engine.url")
	case "command":
		d.engine.Launch.Command = []string{"my-engine", "--port", "{port}", "--model", "{model}"}
		set = append(set, "engine.command")
	}
	return printTemplate(&d, set)
}

// printTemplate prints the keys that are set, and the others as comments with what
// they are when they are left alone.
func printTemplate(d *draft, set []string) []byte {
	fallback := map[string]string{}
	for _, k := range Keys() {
		fallback[k.Name] = k.Default
	}
	limits := map[string]string{"slo.ttft": `{ p99 = "500ms" }`, "slo.tpot": `{ p99 = "50ms" }`}
	var b bytes.Buffer
	b.WriteString("# Starter configuration. What is commented out shows its default, or an example\n" +
		"# where there is none; planner plan --print-config shows all that holds.\n")
	before := ""
	for _, k := range keys() {
		section, name := splitKey(k.name)
		if section != before {
			fmt.Fprintf(&b, "\n[%s]\n", section)
			before = section
		}
		text, mark := k.bind(d).text(), ""
		if limit, ok := limits[k.name]; ok {
			text = limit
		}
		if !slices.Contains(set, k.name) {
			mark, text = "# ", fallback[k.name]
			if text == "" {
				text = examples[k.name]
			}
		}
		fmt.Fprintf(&b, "%s%s = %s  # %s\n", mark, name, text, k.comment)
	}
	return b.Bytes()
}

// examples stand in a starter for the keys without a default.
var examples = map[string]string{
	"demand.availability":         "0.99",
	"demand.target_availability":  "0.999",
	"hardware.price_per_gpu_hour": "2.99",
}

// startingDegree is a degree of tensor parallelism to begin with.
func startingDegree(m modelText, gpu string) int {
	catalog, err := model.NewCatalog()
	if err != nil {
		return 1
	}
	arch, err := catalog.Model(m.name)
	if err != nil {
		return 1
	}
	hw, err := catalog.GPU(gpu)
	if err != nil || hw.Memory <= 0 {
		return 1
	}
	params, _ := arch.Params()
	bytes := params * precisionOf(m, arch).Weights.Bytes()
	best := 1
	for tp := 1; tp <= 8; tp *= 2 {
		if (model.Deployment{Arch: arch, Hardware: hw, TP: tp}).Validate() != nil {
			continue
		}
		best = tp
		if bytes <= 0.6*hw.Memory*float64(tp) {
			break
		}
	}
	return best
}

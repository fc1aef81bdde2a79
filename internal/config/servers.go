package config

import (
	"cmp"
	"fmt"
	"slices"
)

// ServersDiffer lists the differences between two configurations' servers: model, GPU and engine, except how
// the engine is reached, and if knobs is true also knobs and degrees of parallelism. Settings of the simulated
// engine count only if both are simulated.
func ServersDiffer(a, b *Config, knobs bool) (differ []string) {
	left := []string{"url", "served_name", "launcher", "api", "stream", "headers", "env", "ready_timeout", "api_key_env", "calibration", "config", "name"}
	if !knobs {
		left = append(left, "tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
	}
	if a.Engine.Kind != "simulated" || b.Engine.Kind != "simulated" {
		left = append(left, "version", "async_scheduling", "graphs", "graph_tokens", "moe_backend", "allreduce_fusion", "sampler")
	}
	say := func(key, x, y string) {
		if x != y {
			differ = append(differ, fmt.Sprintf("%s %s and %s", key, cmp.Or(x, "not given"), cmp.Or(y, "not given")))
		}
	}
	say("model.name", a.Model.Name, b.Model.Name)
	others := b.sections()
	for i, s := range a.sections() {
		for j, k := range s.rows {
			of := s.name == "model" || s.name == "hardware" && k.name == "gpu" || s.name == "engine" || s.name == "knobs" && knobs
			if of && !slices.Contains(left, k.name) {
				say(s.name+"."+k.name, k.text(), others[i].rows[j].text())
			}
		}
	}
	return differ
}

package config

import "planner/model"

// mostRank is the largest rank that vLLM has kernels for.
const mostRank = 512

func lora() codec[model.LoRA] {
	return tableWith(func(l *model.LoRA) []row {
		count := orNothing(wholeIn(atLeast(1)))
		return []row{
			{"adapters", ": how many requests choose among", count.in(&l.Adapters)},
			{"slots", ": how many of them run at once", count.in(&l.Slots)},
			{"rank", "", orNothing(wholeIn(atLeast(1).atMost(mostRank))).in(&l.Rank)},
		}
	}, "adapters", "slots", "rank")
}

// checkLoRA refuses adapters of what is not modelled.
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

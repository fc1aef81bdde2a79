package config

import (
	"maps"
	"slices"

	"planner/sweep/workload"
)

// Pools lists the classes of a mix of which each may have instances of its own: all of
// them, where one has limits of its own.
func (c *Config) Pools() []string {
	if len(c.Objective.Classes()) == 0 {
		return nil
	}
	return c.Workload.Names()
}

// Pool is the configuration of instances that serve one class of the mix alone: its part
// of the demand, and its limits as those of all requests. Limits of the whole fleet are not
// those of a part, and are left out. Requests that are picked at random from a bunched
// stream are as much less bunched as they are fewer.
func (c *Config) Pool(class string) *Config {
	own := *c
	share := c.Workload.Share(class)
	i := slices.IndexFunc(c.Workload.Shapes, func(s workload.Shape) bool { return s.Name == class })
	own.Workload.Class, own.Workload.Shapes = class, []workload.Shape{c.Workload.Shapes[i]}
	own.Objective = c.Objective.Of(class)
	for _, b := range c.Objective.Bounds {
		if b.Class == "" {
			own.Objective.Bounds = append(own.Objective.Bounds, b)
		}
	}
	own.Objective.Throughput = len(own.Objective.Bounds) == 0
	d := &own.Demand
	d.Rate, d.MeanRate = share*d.Rate, share*d.MeanRate
	d.BurstIndex = 1 + share*(d.BurstIndex-1)
	d.MaxGPUs, d.MaxUSDPerHour = 0, 0
	if longest := own.Workload.Longest(); !c.Given("max_model_len") && longest > 0 && longest < c.Workload.MaxLen {
		own.Workload.MaxLen = longest
		own.Space = maps.Clone(c.Space)
		own.Space["max_model_len"] = []any{longest}
	}
	return &own
}

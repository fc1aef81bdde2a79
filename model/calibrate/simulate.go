package calibrate

import (
	"fmt"

	"planner/model"
	"planner/model/sim"
	"planner/sweep/measure"
)

// newEngine builds an idle engine with a cold prefix cache.
func newEngine(dep model.Deployment, c model.Constants, l model.EngineArgs, prefixCaching bool) (*sim.Engine, error) {
	roofline, err := model.NewRoofline(dep, c, l)
	if err != nil {
		return nil, err
	}
	memory, err := model.MemoryPlan(dep, l)
	if err != nil {
		return nil, err
	}
	config, err := sim.Configure(roofline, memory, prefixCaching)
	if err != nil {
		return nil, err
	}
	return sim.NewEngine(roofline, config), nil
}

// simulate runs the trial of a run with given constants.
func (r *Run) simulate(o *Options, c model.Constants) ([]measure.Record, error) {
	if r.EngineTimes {
		c.Frontend = model.FrontendConstants{}
	}
	k := r.Trial.Knobs
	e, err := newEngine(o.Deployment, c, model.EngineArgs{
		MaxNumSeqs: k.MaxNumSeqs, MaxNumBatchedTokens: k.MaxNumBatchedTokens, Utilization: k.GPUMemoryUtilization,
		MaxModelLen: k.MaxModelLen, KVBlocks: k.KVBlocks, EngineVersion: o.Version,
	}, k.PrefixCaching)
	if err != nil {
		return nil, fmt.Errorf("simulate run: %w", err)
	}
	return e.Run(sim.Load{Requests: r.Trial.Schedule(), Slots: r.Trial.Concurrency, Timeout: r.Trial.Workload.Timeout}).Records, nil
}

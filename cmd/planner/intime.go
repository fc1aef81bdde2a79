package main

import (
	"context"
	"math"
	"time"

	"planner/internal/config"
	"planner/internal/progress"
	"planner/plan"
	"planner/plan/fleet"
)

// inTimeSeeds is how many draws of the traffic a plan's fleets are replayed on.
const inTimeSeeds = 3

// inTime replays the traffic in time that a configuration gives on the fleet of a plan as
// it stands, and with an autoscaler: the configuration's, or that of the plan's manifests.
// It is nil where there is no such traffic, or nobody to scale by it.
func inTime(ctx context.Context, cfg *config.Config, p *plan.Plan, display func() *progress.Display) *plan.InTime {
	if !cfg.Fleet.InTime() {
		return nil
	}
	// It completes the policy too: by the start that was measured, and the rate of yesterday.
	once := &flagReader{values: map[string]string{"scale": "1", "repeat": "1"}}
	plant, _, err := plantOf(cfg, p.Offer.Knobs, once, false)
	static := cfg.Fleet.Policy
	static.Replicas, static.Autoscaler = p.Fleet.Instances, fleet.Autoscaler{Kind: fleet.None}
	scaled := cfg.Fleet.Policy
	switch a := p.Handover.Autoscaling; {
	case scaled.Replicas == 0 && scaled.Autoscaler.Kind != fleet.None:
	case a == nil || a.MinReplicas == a.MaxReplicas:
		return nil
	default:
		scaled.Replicas, scaled.Min, scaled.Max, scaled.Initial = 0, a.MinReplicas, a.MaxReplicas, a.MaxReplicas
		scaled.Autoscaler = fleet.Autoscaler{Kind: fleet.ByHPA, Metrics: []fleet.Metric{{Name: "in_flight", Target: math.Round(10*a.Level) / 10}},
			Monitor: fleet.Monitor{Scrape: 15 * time.Second}, HPA: fleet.UsualHPA()}
		scaled.Autoscaler.HPA.Down = fleet.Behavior{Stabilization: 10 * time.Minute, Select: "max",
			Policies: []fleet.ScalingPolicy{{Value: 1, Period: 2 * time.Minute}}}
	}
	if err != nil {
		return &plan.InTime{Note: "Not replayed: " + err.Error()}
	}
	show := display()
	defer show.Close()
	watch(plant, show, func() string { return "the plan's fleet, then an autoscaled one" })
	replay := func(policy fleet.Policy) *fleet.Answer {
		a := plant.Answer(policy, fleet.Seeds(cfg.Workload.Seed, inTimeSeeds))
		a.Timeline, a.Decisions = nil, nil
		return a
	}
	done := make(chan *plan.InTime, 1)
	go func() { done <- &plan.InTime{Static: replay(static), Autoscaled: replay(scaled)} }()
	select {
	case <-ctx.Done():
		return &plan.InTime{Note: "Not replayed: interrupted"}
	case t := <-done:
		return t
	}
}

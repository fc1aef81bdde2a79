package main

import (
	"context"

	"planner/internal/config"
	"planner/internal/progress"
	"planner/plan"
	"planner/plan/replay"
)

// inTime replays the traffic in time that a configuration gives on the fleet of a plan as
// it stands, and with an autoscaler. It is nil where there is nothing to replay.
func inTime(ctx context.Context, cfg *config.Config, p *plan.Plan, display func() *progress.Display) *plan.InTime {
	day, policies, err := replay.OfPlan(cfg, p)
	switch {
	case err != nil:
		return &plan.InTime{Note: "Not replayed: " + err.Error()}
	case day == nil:
		return nil
	}
	show := display()
	defer show.Close()
	watch(day.Plant, show, func() string { return "the plan's fleet, then an autoscaled one" })
	done := make(chan *plan.InTime, 1)
	go func() { done <- day.InTime(policies) }()
	select {
	case <-ctx.Done():
		return &plan.InTime{Note: "Not replayed: interrupted"}
	case t := <-done:
		return t
	}
}

package replay

import (
	"fmt"
	"math"
	"time"

	"planner/internal/config"
	"planner/plan"
	"planner/plan/fleet"
)

// inTimeSeeds is the number of draws of the traffic on which a plan's fleets are replayed.
const inTimeSeeds = 3

// OfPlan prepares a replay of a configuration's traffic over time on a plan's fleet as it stands, and with an
// autoscaler, that of the configuration or else that of the plan's manifests. It is nil if there is no such
// traffic or no autoscaler.
func OfPlan(cfg *config.Config, p *plan.Plan) (r *Replay, both [2]fleet.Policy, err error) {
	own := &cfg.Fleet.Policy
	scales := own.Replicas == 0 && own.Autoscaler.Kind != fleet.None
	a := p.Handover.Autoscaling
	if !cfg.Fleet.InTime() || !scales && (a == nil || a.MinReplicas == a.MaxReplicas) {
		return nil, both, nil
	}
	if r, err = New(cfg, p.Offer.Knobs, Extent{Scale: 1, Repeat: 1}); err != nil {
		return nil, both, err
	}
	both = [2]fleet.Policy{*own, *own}
	both[0].Replicas, both[0].Autoscaler = p.Fleet.Instances, fleet.Autoscaler{Kind: fleet.None}
	if s := &both[1]; !scales {
		s.Replicas, s.Min, s.Max, s.Initial = 0, a.MinReplicas, a.MaxReplicas, a.MaxReplicas
		s.Autoscaler = fleet.Autoscaler{Kind: fleet.ByHPA, Metrics: []fleet.Metric{{Name: "in_flight", Target: math.Round(10*a.Level) / 10}},
			Monitor: fleet.Monitor{Scrape: 15 * time.Second}, HPA: fleet.UsualHPA()}
		s.Autoscaler.HPA.Down = fleet.Behavior{Stabilization: 10 * time.Minute, Select: "max",
			Policies: []fleet.ScalingPolicy{{Value: 1, Period: 2 * time.Minute}}}
	}
	return r, both, nil
}

// InTime replays the traffic under both policies of [OfPlan].
func (r *Replay) InTime(by [2]fleet.Policy) *plan.InTime {
	replay := func(policy fleet.Policy) *fleet.Answer {
		a := r.Plant.Answer(policy, fleet.Seeds(r.cfg.Workload.Seed, inTimeSeeds))
		a.Timeline, a.Decisions = nil, nil
		return a
	}
	return &plan.InTime{Static: replay(by[0]), Autoscaled: replay(by[1]), Warning: r.otherPeak()}
}

// otherPeak warns that the peak of the traffic, without its spike, is not the rate that the plan was sized for;
// "" if it is.
func (r *Replay) otherPeak() string {
	calm, d := r.cfg.Fleet, &r.cfg.Demand
	calm.Spike = fleet.Spike{}
	peak, planned := calm.Traffic().Peak(), d.Rate*(1+d.Growth)
	if !(d.Rate > 0) || math.Abs(peak/planned-1) <= asGiven {
		return ""
	}
	return fmt.Sprintf("the traffic of [fleet] has %.3g requests/s at its peak, and the plan is of %.3g, growth included: both fleets are for another load than these figures", peak, planned)
}

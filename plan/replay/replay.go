// Package replay replays a configuration's traffic over time on fleets of its engine.
package replay

import (
	"fmt"
	"math"

	"planner/internal/config"
	"planner/internal/engines"
	"planner/model/sim"
	"planner/plan/fleet"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Extent says how the traffic of a configuration is replayed.
type Extent struct {
	// Scale multiplies the rate.
	Scale float64
	// Repeat is how many times the traffic is replayed in sequence.
	Repeat int
	// Search looks for the cheapest policy around the configuration's.
	Search bool
}

// A Replay is traffic and replicas to which policies are applied.
type Replay struct {
	Plant   *fleet.Plant
	cfg     *config.Config
	extent  Extent
	traffic traffic
}

// mostRequests is the number of requests, over all concurrent replays, that fits in a few gigabytes.
const mostRequests = 10_000_000

// New prepares replicas with some knobs under a configuration's traffic, and adds the measured start-up and
// yesterday's rate to its policy.
func New(cfg *config.Config, k measure.Knobs, extent Extent) (*Replay, error) {
	simulation, err := engines.Simulated(cfg)
	if err != nil {
		return nil, err
	}
	timer, settings, err := simulation.Parts(k)
	if err != nil {
		return nil, err
	}
	if err := measuredStart(&cfg.Fleet); err != nil {
		return nil, err
	}
	drawn := traffic{}
	if cfg.Workload.Replayed() {
		drawn, err = traced(cfg.Workload, &cfg.Fleet.Spike, extent)
	} else {
		drawn = staged(&cfg.Workload, &cfg.Fleet, extent)
	}
	if err != nil {
		return nil, err
	}
	if drawn.requests > mostRequests {
		return nil, fmt.Errorf("fleet: %.3g requests are too many to replay, want at most %.3g: shorten the traffic, or give planner fleet a --scale below 1", drawn.requests, float64(mostRequests))
	}
	spec := &cfg.Fleet
	gpus := cfg.Deployment(k).GPUs()
	plant := &fleet.Plant{GPUs: gpus, Traffic: drawn.draw, Together: int(mostRequests / max(drawn.requests, 1)), Scenario: fleet.Scenario{
		Engine:  func() *sim.Engine { return sim.NewEngine(timer, settings) },
		Timeout: cfg.Workload.Timeout, Retries: spec.Retries, Limits: spec.Limits, Nodes: spec.Nodes,
	}}
	plant.Nodes.Slots = max(cfg.GPUsPerNode(k.GPU)/gpus, 1)
	plant.USDPerGPUHour = math.NaN()
	if g, ok := cfg.GPU(k.GPU); ok && g.Priced() {
		plant.USDPerGPUHour = g.PricePerGPUHour
	}
	if a := &spec.Policy.Autoscaler; a.Kind == fleet.Forecast {
		a.Outlook.Yesterday = fleet.RateByMinute(plant.Traffic(workload.Draw64(cfg.Workload.Seed, 1<<32)))
	}
	return &Replay{plant, cfg, extent, drawn}, nil
}

// Answer replays the configuration's policy or, in a search, the cheapest around it that also meets the
// objective on held-out traffic.
func (r *Replay) Answer(seeds []uint64) *fleet.Answer {
	base := r.cfg.Fleet.Policy
	if r.traffic.heldOut == nil {
		return r.Plant.Answer(base, seeds)
	}
	others := fleet.Seeds(r.cfg.Workload.Seed+1_000_000, max(len(seeds), 2))
	answer, found := r.Plant.Find(base, seeds, others, r.traffic.heldOut)
	if answer == nil {
		answer = r.Plant.Answer(base, seeds)
		answer.Verdict = measure.Missed
		answer.Warnings = append(answer.Warnings, "no policy of the search keeps what is asked; the figures are those of the configuration's own")
	}
	answer.Search = found
	return answer
}

// asGiven is the share by which a replayed rate may differ from the demanded one without a warning.
const asGiven = 0.05

// OtherRate warns that a trace is replayed at another rate than demand.rate; "" if it is not.
func (r *Replay) OtherRate() string {
	demanded, rates := r.cfg.Demand.Rate, r.cfg.Demand.TraceRates
	if rates == nil || !(rates.Mean > 0) || !(demanded > 0) {
		return ""
	}
	rate := rates.Mean * rates.Peak()
	replayed := rate * r.extent.Scale
	if math.Abs(replayed/demanded-1) <= asGiven {
		return ""
	}
	return fmt.Sprintf("the trace is replayed at %.3g requests/s %s, and demand.rate is %.3g: planner fleet --scale %.3g replays that",
		replayed, rates.Meant(), demanded, demanded/rate)
}

// Package replay replays a configuration's traffic over time on fleets of its engine.
package replay

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/engines"
	"planner/internal/list"
	"planner/model/sim"
	"planner/plan/fleet"
	"planner/sweep"
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
	each := cfg.GPUsPerNode(k.GPU)
	plant.Nodes.Slots = max(each/gpus, 1)
	if span, n := (gpus+each-1)/each, &plant.Nodes; span > 1 { // replicas are placed on groups of nodes, lost with any of them
		if n.Max > 0 && n.Max < span {
			return nil, fmt.Errorf("fleet: a replica of %d GPUs takes %d nodes, and fleet.max_nodes is %d", gpus, span, n.Max)
		}
		n.Max, n.MTBF, n.SpotMTBF = n.Max/span, n.MTBF/time.Duration(span), n.SpotMTBF/time.Duration(span)
	}
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

const day = 24 * time.Hour

// traffic is the traffic drawn with a seed, and about how many requests it has.
type traffic struct {
	draw     func(seed uint64) []fleet.Stage
	requests float64
	// heldOut is the held-out traffic of a search: the last of several days, or else other draws; nil without one.
	heldOut func(seed uint64) []fleet.Stage
}

// traced returns the traffic of a trace.
func traced(w workload.Workload, spike *fleet.Spike, extent Extent) (traffic, error) {
	t := traffic{requests: float64(len(w.Replay)) * extent.Scale * float64(extent.Repeat)}
	t.draw = func(seed uint64) []fleet.Stage { return fleet.Replayed(&w, spike, extent.Scale, extent.Repeat, seed) }
	if !extent.Search {
		return t, nil
	}
	if w.TraceSpan() < 2*day {
		return t, errors.New("--search: the trace is shorter than two days, and a policy is to hold on a day that it was not chosen on: want a longer trace, or fleet.profile with its rates")
	}
	held := w
	cut := w.Replay[len(w.Replay)-1].Arrival - day
	k := slices.IndexFunc(w.Replay, func(r workload.TraceRow) bool { return r.Arrival > cut })
	w.Replay, held.Replay = w.Replay[:k], w.Replay[k:]
	t.heldOut = func(seed uint64) []fleet.Stage { return fleet.Replayed(&held, spike, extent.Scale, 1, seed) }
	return t, nil
}

// staged returns traffic with given rates.
func staged(w *workload.Workload, spec *config.FleetSettings, extent Extent) traffic {
	profile := spec.Traffic().Times(extent.Scale, 0, 1<<62)
	t := traffic{requests: profile.Mean() * profile.Length().Seconds() * float64(extent.Repeat)}
	t.draw = func(seed uint64) []fleet.Stage { return fleet.Staged(w, profile, extent.Repeat, seed) }
	if !extent.Search {
		return t
	}
	t.heldOut = t.draw
	if length := profile.Length(); length >= 2*day && len(spec.Stages) == 0 {
		var last workload.Profile
		profile, last = profile.Split((length - 1) / day * day)
		t.heldOut = func(seed uint64) []fleet.Stage { return fleet.Staged(w, last, 1, seed) }
	}
	return t
}

// measuredStart takes the stages of a start from the run folder that the configuration names: those of the
// median of its measured starts.
func measuredStart(f *config.FleetSettings) error {
	if f.StartUpRun == "" {
		return nil
	}
	var seen []sweep.EngineTelemetry
	folder, _, err := sweep.OpenFolder(f.StartUpRun)
	if err == nil {
		seen, err = folder.ReadEngineTelemetry()
	}
	if err != nil {
		return fmt.Errorf("fleet.start_up: %w", err)
	}
	engines := list.Map(seen, func(t sweep.EngineTelemetry) sweep.TrialEngine { return t.Engine })
	starts := list.Filter(engines, func(e sweep.TrialEngine) bool { return e.Fresh && e.Cold > 0 })
	if len(starts) == 0 {
		return fmt.Errorf("fleet.start_up: %s has no engine whose start was measured; want a run that started engines, or the stages themselves", f.StartUpRun)
	}
	slices.SortFunc(starts, func(a, b sweep.TrialEngine) int { return cmp.Compare(a.Cold, b.Cold) })
	f.Policy.StartUp = startOf(starts[len(starts)/2])
	return nil
}

// startOf assigns the stages of a measured start by their names; the rest is Init.
func startOf(s sweep.TrialEngine) fleet.StartUp {
	out := fleet.StartUp{Init: s.Cold}
	for _, stage := range s.Stages {
		name := strings.ToLower(stage.Name)
		var took *time.Duration
		switch {
		case stage.Took <= 0 || stage.Took > out.Init:
			continue
		case strings.Contains(name, "weight"):
			took = &out.Weights
		case strings.Contains(name, "compil"):
			took = &out.Compile
		case strings.Contains(name, "graph"):
			took = &out.Graphs
		default:
			continue
		}
		*took += stage.Took
		out.Init -= stage.Took
	}
	return out
}

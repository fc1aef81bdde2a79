package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/progress"
	"planner/model/sim"
	"planner/plan/fleet"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

const fleetName = "fleet"

func (p *program) fleetCommand() *cli.Command {
	return &cli.Command{
		Name:      fleetName,
		Usage:     "replay a day of traffic against replicas, router, start-up and autoscaler in virtual time",
		ArgsUsage: "CONFIG",
		Description: "Example: planner fleet planner.toml\n" +
			"         planner fleet planner.toml --seeds 10 --set fleet.autoscaler.target=30 --json\n" +
			"         planner fleet planner.toml --scale 2 --repeat 7 -o runs/week\n" +
			"Exit codes: 0 what is asked is kept, 3 it is not, 4 the seeds do not tell.",
		Flags: slices.Concat(fleetFlags(), []cli.Flag{
			&cli.StringFlag{Name: "seed", Usage: "the first seed: --seed 7"},
		}, configFlags(), []cli.Flag{outputFlag()}),
		Action: p.fleet,
	}
}

// fleetFlags are those that stand in [run] of the run folder.
func fleetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "seeds", Value: "5", Usage: "how many draws of the traffic; their scatter gives the intervals: --seeds 10"},
		&cli.StringFlag{Name: "scale", Value: "1", Usage: "multiply the traffic; a trace keeps its clock, and gets more or fewer requests: --scale 1.5"},
		&cli.StringFlag{Name: "repeat", Value: "1", Usage: "replay the traffic so many times, one behind the other: --repeat 7"},
		&cli.BoolFlag{Name: "search", Usage: "look for the cheapest policy around that of the configuration: floors, thresholds, windows, routers, static fleets"},
		&cli.BoolFlag{Name: "no-static", Usage: "do not look for the smallest static fleet"},
	}
}

func (p *program) fleet(c *cli.Context) error {
	cfg, done, err := p.begin(c)
	if err != nil || done {
		return err
	}
	cfg.Run = config.Call{Command: fleetName, Args: c.Args().Slice(), Flags: given(c, fleetFlags())}
	return p.conductFleet(c, &run{cfg: cfg})
}

// conductFleet replays what the configuration of a run says, and reports. A run that was
// cut is replayed again: replays keep no journal.
func (p *program) conductFleet(c *cli.Context, r *run) error {
	r.ground, r.started = sweep.Ground{Virtual: true}, time.Now()
	f := r.flags()
	n := f.count("seeds")
	if f.err != nil {
		return f.err
	}
	runnable, _ := r.cfg.Candidates()
	plant, heldOut, err := plantOf(r.cfg, runnable[0], f, f.is("search"))
	if err != nil {
		return err
	}
	seeds := fleet.Seeds(r.cfg.Workload.Seed, n)
	if c.Bool("dry-run") {
		return p.dryFleet(r.cfg, plant, seeds)
	}
	if r.folder == nil {
		err = p.newFolder(c, r, experiment{})
	} else {
		err = r.folder.Tidy()
	}
	if err != nil {
		return err
	}
	answer, err := p.replay(c, r, plant, heldOut, seeds)
	if err != nil {
		return p.conclude(c, r, sweep.Answer{}, err)
	}
	answer.Warnings = append(answer.Warnings, r.cfg.Warnings...)
	return p.conclude(c, r, sweep.Answer{State: stateOf(answer.Verdict), Value: answer}, nil)
}

// replay replays until it has the answer, or is interrupted: replays hold nothing that
// would have to be put in order, and end with the process.
func (p *program) replay(c *cli.Context, r *run, plant *fleet.Plant, heldOut func(uint64) []fleet.Stage, seeds []uint64) (*fleet.Answer, error) {
	debug.SetGCPercent(50) // most of the heap is requests and records, which stay
	debug.SetMemoryLimit(math.MaxInt64)
	show := p.display(c, r)
	defer show.Close()
	var now atomic.Value
	now.Store("the policy")
	watch(plant, show, func() string { return now.Load().(string) })
	done := make(chan *fleet.Answer, 1)
	go func() {
		policy := r.cfg.Fleet.Policy
		answer := answerFor(r.cfg, plant, heldOut, seeds)
		if !r.flags().is("no-static") {
			now.Store("static fleets")
			answer.Static = plant.Static(policy, 4*max(policy.Max, policy.Replicas), seeds)
		}
		done <- answer
	}()
	select {
	case <-c.Context.Done():
		return nil, sweep.ErrInterrupted
	case answer := <-done:
		return answer, nil
	}
}

// watch shows how much of the clock is replayed, and of what.
func watch(plant *fleet.Plant, show *progress.Display, now func() string) {
	var passed atomic.Int64
	plant.Watch = func(d time.Duration) { passed.Add(int64(d)) }
	show.See(progress.Work(func() string {
		return fmt.Sprintf("%.1f h of the clock replayed; now: %s", time.Duration(passed.Load()).Hours(), now())
	}))
}

func stateOf(v fleet.Verdict) sweep.State {
	switch v {
	case fleet.Met:
		return sweep.Done
	case fleet.Missed:
		return sweep.Infeasible
	}
	return sweep.Undecided
}

// answerFor answers for the policy of a configuration, or for the cheapest around it that
// keeps what is asked on traffic that it was not chosen on, too.
func answerFor(cfg *config.Config, plant *fleet.Plant, heldOut func(uint64) []fleet.Stage, seeds []uint64) *fleet.Answer {
	base := cfg.Fleet.Policy
	if heldOut == nil {
		return plant.Answer(base, seeds)
	}
	others := fleet.Seeds(cfg.Workload.Seed+1_000_000, max(len(seeds), 2))
	answer, found := plant.Find(base, fleet.Search{Seeds: seeds, HeldOut: others, HeldOutTraffic: heldOut})
	if answer == nil {
		answer = plant.Answer(base, seeds)
		answer.Verdict = fleet.Missed
		answer.Warnings = append(answer.Warnings, "no policy of the search keeps what is asked; the figures are those of the configuration's own")
	}
	answer.Search = found
	return answer
}

// plantOf is what policies are applied to: replicas with some knobs under the traffic of a
// configuration, and with split the traffic that a search holds out, of several days the
// last, else other draws.
func plantOf(cfg *config.Config, k measure.Knobs, f *flagReader, split bool) (*fleet.Plant, func(uint64) []fleet.Stage, error) {
	simulation, err := simulated(cfg)
	if err != nil {
		return nil, nil, err
	}
	timer, settings, err := simulation.Parts(k)
	if err != nil {
		return nil, nil, err
	}
	if err := measuredStart(&cfg.Fleet); err != nil {
		return nil, nil, err
	}
	spec := &cfg.Fleet
	gpus := cfg.Deployment(k).GPUs()
	plant := &fleet.Plant{GPUs: gpus, Scenario: fleet.Scenario{
		Engine:  func() *sim.Engine { return sim.NewEngine(timer, settings) },
		Timeout: cfg.Workload.Timeout, Retries: spec.Retries, Limits: spec.Limits, Nodes: spec.Nodes,
	}}
	plant.Nodes.Slots = max(cfg.GPUsPerNode(k.GPU)/gpus, 1)
	if g, ok := cfg.GPU(k.GPU); ok && g.Priced {
		plant.USDPerGPUHour = g.PricePerGPUHour
	}
	var heldOut func(uint64) []fleet.Stage
	var requests float64
	plant.Traffic, heldOut, requests, err = traffic(cfg, f, split)
	if err != nil {
		return nil, nil, err
	}
	if requests > mostRequests {
		return nil, nil, usagef("fleet: %.3g requests are too many to replay, want at most %.3g: shorten the traffic, or give planner fleet a --scale below 1", requests, float64(mostRequests))
	}
	plant.Together = int(mostRequests / max(requests, 1))
	if a := &cfg.Fleet.Policy.Autoscaler; a.Kind == fleet.Forecast {
		a.Outlook.Yesterday = fleet.RateByMinute(plant.Traffic(workload.Draw64(cfg.Workload.Seed, 1<<32)))
	}
	return plant, heldOut, nil
}

// traffic draws the stages of a seed, about so many requests, and with split those that
// are held out.
func traffic(cfg *config.Config, f *flagReader, split bool) (draw, heldOut func(uint64) []fleet.Stage, requests float64, err error) {
	scale, repeat := f.positive("scale"), f.count("repeat")
	if f.err != nil {
		return nil, nil, 0, f.err
	}
	spec := &cfg.Fleet
	w := cfg.Workload
	if w.Replayed() {
		draw = func(seed uint64) []fleet.Stage { return fleet.Replayed(&w, &spec.Spike, scale, repeat, seed) }
		requests = float64(len(w.Replay)) * scale * float64(repeat)
		if !split {
			return draw, nil, requests, nil
		}
		if w.TraceSpan() < 2*day {
			return nil, nil, 0, usagef("--search: the trace is shorter than two days, and a policy is to hold on a day that it was not chosen on: want a longer trace, or fleet.profile with its rates")
		}
		held := w
		cut := w.Replay[len(w.Replay)-1].Arrival - day
		k := slices.IndexFunc(w.Replay, func(r workload.TraceRow) bool { return r.Arrival > cut })
		w.Replay, held.Replay = w.Replay[:k], w.Replay[k:]
		return draw, func(seed uint64) []fleet.Stage { return fleet.Replayed(&held, &spec.Spike, scale, 1, seed) }, requests, nil
	}
	var drains []bool
	for _, s := range spec.Stages {
		drains = append(drains, s.Drain)
	}
	profile := spec.Traffic().Times(scale, 0, 1<<62)
	requests = profile.Mean() * profile.Length().Seconds() * float64(repeat)
	draw = func(seed uint64) []fleet.Stage { return fleet.Staged(&w, profile, drains, repeat, seed) }
	if !split {
		return draw, nil, requests, nil
	}
	if length := profile.Length(); length >= 2*day && drains == nil {
		var last workload.Profile
		profile, last = profile.Split((length - 1) / day * day)
		return draw, func(seed uint64) []fleet.Stage { return fleet.Staged(&w, last, nil, 1, seed) }, requests, nil
	}
	return draw, draw, requests, nil
}

const day = 24 * time.Hour

// mostRequests is what a few gigabytes hold, of all replays at a time.
const mostRequests = 10_000_000

// measuredStart takes the stages of a start from the run folder that the configuration
// names: of those that were started, the one of median length.
func measuredStart(f *config.FleetSettings) error {
	if f.StartUpRun == "" {
		return nil
	}
	folder, _, err := sweep.OpenFolder(f.StartUpRun)
	if err != nil {
		return usagef("fleet.start_up: %w", err)
	}
	seen, err := folder.ReadEngineTelemetry()
	if err != nil {
		return usagef("fleet.start_up: %w", err)
	}
	var starts []sweep.TrialEngine
	for _, t := range seen {
		if t.Engine.Fresh && t.Engine.Cold > 0 {
			starts = append(starts, t.Engine)
		}
	}
	if len(starts) == 0 {
		return usagef("fleet.start_up: %s has no engine whose start was measured; want a run that started engines, or the stages themselves", f.StartUpRun)
	}
	slices.SortFunc(starts, func(a, b sweep.TrialEngine) int { return cmp.Compare(a.Cold, b.Cold) })
	f.Policy.StartUp = startOf(starts[len(starts)/2])
	return nil
}

// startOf sorts the stages of a measured start by what their names say.
func startOf(s sweep.TrialEngine) fleet.StartUp {
	out := fleet.StartUp{Init: s.Cold}
	for _, stage := range s.Stages {
		name := strings.ToLower(stage.Name)
		for word, took := range map[string]*time.Duration{"weight": &out.Weights, "compil": &out.Compile, "graph": &out.Graphs} {
			if strings.Contains(name, word) && stage.Took > 0 && stage.Took <= out.Init {
				*took += stage.Took
				out.Init -= stage.Took
			}
		}
	}
	return out
}

// dryFleet says what would be replayed.
func (p *program) dryFleet(cfg *config.Config, plant *fleet.Plant, seeds []uint64) error {
	requests, length := 0, time.Duration(0)
	for _, s := range plant.Traffic(seeds[0]) {
		requests += len(s.Requests)
		length += s.Length
	}
	policy := &cfg.Fleet.Policy
	who := "a static fleet of " + strconv.Itoa(policy.Replicas)
	if policy.Replicas == 0 {
		who = fmt.Sprintf("%d to %d replicas by %s", policy.Min, policy.Max, policy.Autoscaler.Kind)
	}
	_, err := fmt.Fprintf(p.plain, "would replay %d requests in %v on %s, router %s, %d times\n", requests, length, who, policy.Router, len(seeds))
	return err
}

package main

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/progress"
	"planner/plan"
	"planner/plan/fleet"
	"planner/plan/replay"
	"planner/sweep"
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
		}, configFlags(), shared("output")),
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
	cfg.Run = config.Invocation{Command: fleetName, Args: c.Args().Slice(), Flags: given(c, fleetFlags())}
	return p.conductFleet(c, &run{cfg: cfg})
}

// conductFleet replays what the configuration of a run says, and reports. A run that was
// cut is replayed again: replays keep no journal.
func (p *program) conductFleet(c *cli.Context, r *run) error {
	r.ground, r.started = sweep.Ground{Virtual: true}, time.Now()
	f := r.flags()
	n, extent := f.count("seeds"), replay.Extent{Scale: f.positive("scale"), Repeat: f.count("repeat"), Search: f.is("search")}
	if f.err != nil {
		return f.err
	}
	runnable, _ := r.cfg.Candidates()
	day, err := replay.New(r.cfg, runnable[0], extent)
	if err != nil {
		return asMistake(err)
	}
	seeds := fleet.Seeds(r.cfg.Workload.Seed, n)
	if c.Bool("dry-run") {
		return p.dryFleet(r.cfg, day.Plant, seeds)
	}
	if r.folder == nil {
		err = p.newFolder(c, r, experiment{})
	} else {
		err = r.folder.Tidy()
	}
	if err != nil {
		return err
	}
	answer, err := p.replay(c, r, day, seeds)
	if err != nil {
		return p.conclude(c, r, sweep.Answer{}, err)
	}
	answer.Warnings = append(answer.Warnings, r.cfg.Warnings...)
	return p.conclude(c, r, sweep.Answer{State: stateOf(answer.Verdict), Value: answer}, nil)
}

// replay replays until it has the answer, or is interrupted: replays hold nothing that
// would have to be put in order, and end with the process.
func (p *program) replay(c *cli.Context, r *run, day *replay.Replay, seeds []uint64) (*fleet.Answer, error) {
	debug.SetGCPercent(50) // most of the heap is requests and records, which stay
	debug.SetMemoryLimit(math.MaxInt64)
	show := p.display(c, r)
	defer show.Close()
	var now atomic.Value
	now.Store("the policy")
	watch(day.Plant, show, func() string { return now.Load().(string) })
	done := make(chan *fleet.Answer, 1)
	go func() {
		policy := r.cfg.Fleet.Policy
		answer := day.Answer(seeds)
		if !r.flags().is("no-static") {
			now.Store("static fleets")
			answer.Static = day.Plant.Static(policy, 4*max(policy.Max, policy.Replicas), seeds)
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

// inTime replays the traffic in time that a configuration gives on the fleet of a plan as
// it stands, and with an autoscaler. It is nil where there is nothing to replay, or the
// replay is interrupted.
func inTime(ctx context.Context, cfg *config.Config, p *plan.Plan, display func() *progress.Display) (*plan.InTime, error) {
	day, policies, err := replay.OfPlan(cfg, p)
	switch {
	case err != nil:
		return &plan.InTime{Note: "Not replayed: " + err.Error()}, nil
	case day == nil:
		return nil, nil
	}
	show := display()
	defer show.Close()
	watch(day.Plant, show, func() string { return "the plan's fleet, then an autoscaled one" })
	done := make(chan *plan.InTime, 1)
	go func() { done <- day.InTime(policies) }()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w in the replay of the traffic in time", sweep.ErrInterrupted)
	case t := <-done:
		return t, nil
	}
}

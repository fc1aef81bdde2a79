package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/progress"
	"planner/internal/report"
	"planner/plan"
	"planner/plan/fleet"
	"planner/plan/replay"
	"planner/sweep"
	"planner/sweep/measure"
)

func fleetExperiment() experiment {
	return experiment{
		name: "fleet", usage: "replay a day of traffic against replicas, router, start-up and autoscaler in virtual time", args: "CONFIG",
		help: "Example: planner fleet planner.toml\n" +
			"         planner fleet planner.toml --seeds 10 --set fleet.autoscaler.target=30 --json\n" +
			"         planner fleet planner.toml --scale 2 --repeat 7 -o runs/week\n" +
			"Exit codes: 0 what is asked is kept, 3 it is not, 4 the seeds do not tell.",
		config: append(declared([]shortcut{seedShortcut}), configFlags()...),
		own: []cli.Flag{
			&cli.StringFlag{Name: "seeds", Value: "5", Usage: "how many draws of the traffic; their scatter gives the intervals: --seeds 10"},
			&cli.StringFlag{Name: "scale", Value: "1", Usage: "multiply the traffic; a trace keeps its clock, and gets more or fewer requests: --scale 1.5"},
			&cli.StringFlag{Name: "repeat", Value: "1", Usage: "replay the traffic so many times, one behind the other: --repeat 7"},
			&cli.BoolFlag{Name: "search", Usage: "look for the cheapest policy around that of the configuration: floors, thresholds, windows, routers, static fleets"},
			&cli.BoolFlag{Name: "no-static", Usage: "do not look for the smallest static fleet"},
		},
		study: fleetStudy, dry: (*program).dryFleet,
	}
}

// A fleetReplay is a study without trials. It is replayed before its answer, and again if that was interrupted:
// replays keep no journal.
type fleetReplay struct {
	sweep.List
	day    *replay.Replay
	seeds  []uint64
	answer *fleet.Answer
}

// Answer returns the replay's answer; empty if there is none yet.
func (s *fleetReplay) Answer() (sweep.Answer, error) {
	if s.answer == nil {
		return sweep.Answer{}, nil
	}
	ends := map[measure.State]sweep.StudyState{measure.Met: sweep.Done, measure.Missed: sweep.Infeasible, measure.Unsure: sweep.Undecided}
	return sweep.Answer{State: ends[s.answer.Verdict], Value: s.answer}, nil
}

// fleetStudy prepares the replay of a run's configuration.
func fleetStudy(_ *program, r *run) (sweep.Study, error) {
	f := r.flags()
	n, extent := f.count("seeds"), replay.Extent{Scale: f.positive("scale"), Repeat: f.count("repeat"), Search: f.is("search")}
	if f.err != nil {
		return nil, f.err
	}
	runnable, _ := r.cfg.Candidates()
	day, err := replay.New(r.cfg, runnable[0], extent)
	if err != nil {
		return nil, err
	}
	s := &fleetReplay{day: day, seeds: fleet.Seeds(r.cfg.Workload.Seed, n)}
	r.ground = sweep.Ground{Virtual: true}
	r.before = func(ctx context.Context) (err error) {
		debug.SetGCPercent(50) // most of the heap is long-lived requests and records
		s.answer, err = s.replay(ctx, r)
		return err
	}
	return s, nil
}

// replay replays until there is an answer or it is interrupted.
func (s *fleetReplay) replay(ctx context.Context, r *run) (*fleet.Answer, error) {
	var now atomic.Value
	now.Store("the policy")
	watch(s.day.Plant, r.see, func() string { return now.Load().(string) })
	return sweep.Interruptible(ctx, func() (*fleet.Answer, error) {
		policy := r.cfg.Fleet.Policy
		answer := s.day.Answer(s.seeds)
		if !r.flags().is("no-static") {
			now.Store("static fleets")
			answer.Static = s.day.Plant.Static(policy, 4*max(policy.Max, policy.Replicas), s.seeds)
		}
		answer.Warnings = append(answer.Warnings, r.cfg.Warnings...)
		if other := s.day.OtherRate(); other != "" {
			answer.Warnings = append(answer.Warnings, other)
		}
		return answer, nil
	})
}

func watch(plant *fleet.Plant, see sweep.Watcher, now func() string) {
	var passed atomic.Int64
	plant.Watch = func(d time.Duration) { passed.Add(int64(d)) }
	see.See(func() string {
		return fmt.Sprintf("%.1f h of the clock replayed; now: %s", time.Duration(passed.Load()).Hours(), now())
	})
}

func (p *program) dryFleet(r *run) []report.StartCommand {
	s := r.study.(*fleetReplay)
	requests, length := 0, time.Duration(0)
	for _, part := range s.day.Plant.Traffic(s.seeds[0]) {
		requests += len(part.Requests)
		length += part.Length
	}
	fmt.Fprintf(p.plain, "would replay %d requests in %v on %s, %d times\n", requests, length, fleet.Name(&r.cfg.Fleet.Policy), len(s.seeds))
	return nil
}

// inTime replays a configuration's traffic over time on the fleet of a plan, as it stands and with an
// autoscaler. It is nil if there is nothing to replay or the replay is interrupted.
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
	watch(day.Plant, show.See, func() string { return "the plan's fleet, then an autoscaled one" })
	t, err := sweep.Interruptible(ctx, func() (*plan.InTime, error) { return day.InTime(policies), nil })
	if err != nil {
		return nil, fmt.Errorf("%w in the replay of the traffic in time", err)
	}
	return t, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"planner/internal/engines"
	"planner/internal/list"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/design"
	"planner/sweep/measure"
)

// dryRun shows what a run would do: the study's description, what cannot run, what else the servers need, the
// cost in time, and the jobs on a cluster.
func (p *program) dryRun(ctx context.Context, r *run, e experiment) error {
	servers := e.dry(p, r)
	p.cannotRun(r)
	if len(servers) == 0 && len(r.study.Rejected()) > 0 {
		return exitStatus(exitInfeasible)
	}
	return errors.Join(p.beside(servers), p.forecast(ctx, r), p.dryJobs(r))
}

func (p *program) dryDecision(r *run) []report.StartCommand {
	what := "each stands for a server started so"
	if !r.cfg.Simulated() {
		what = "each is started so, but for the port, which is a free one"
	}
	runnable, _ := r.cfg.Candidates()
	runnable = slices.DeleteFunc(runnable, func(k measure.Knobs) bool {
		return slices.ContainsFunc(r.study.Rejected(), func(x measure.Rejection) bool { return x.Knobs == k })
	})
	servers := list.Map(runnable, func(k measure.Knobs) report.StartCommand { return engines.Start(r.cfg, k) })
	if len(runnable) > mostListed && !r.verbose {
		groups := list.Groups(runnable, measure.Knobs.Kind)
		fmt.Fprintf(p.plain, "would search %d knob sets of %d kinds of instance (--verbose lists each):\n", len(runnable), len(groups))
		for _, sets := range groups {
			fmt.Fprintf(p.plain, "  %5d  %s\n", len(sets), report.Settings(sets, true))
		}
		fmt.Fprintf(p.plain, "with %s; %s, the first:\n  %s\n", report.Settings(runnable, false), what, servers[0].Line)
	} else {
		fmt.Fprintf(p.plain, "would search %d knob sets; %s:\n", len(runnable), what)
		for _, s := range servers {
			fmt.Fprintf(p.plain, "  %s\n", s.Line)
		}
	}
	if classes := r.cfg.Pools(); len(classes) > 0 {
		fmt.Fprintf(p.plain, "and likewise for each of %s alone\n", strings.Join(classes, ", "))
	}
	if most := r.most(); most != "" {
		fmt.Fprintln(p.stderr, "planner:", most)
	}
	return servers
}

// most says how long a search on real engines may take; "" for other runs.
func (r *run) most() string {
	s, ok := r.study.(interface{ Searches() int })
	if !ok || r.cfg.Simulated() {
		return ""
	}
	text, n := "search.budget", s.Searches()
	if n > 1 {
		text += fmt.Sprintf(" for each of %d searches", n)
	}
	text = fmt.Sprintf("the trials take at most %v (%s)", time.Duration(n)*r.cfg.Search.Budget, text)
	if r.ground.Owned {
		text += fmt.Sprintf("; the starts of engines come on top, each of at most %v (engine.ready_timeout)", r.cfg.Engine.ReadyTimeout)
	}
	return text
}

// longestForecast is the time limit of a forecast.
const longestForecast = 30 * time.Second

func (p *program) forecast(ctx context.Context, r *run) error {
	d, ok := r.study.(interface {
		Forecast(context.Context) (string, error)
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestForecast)
	defer cancel()
	text, err := d.Forecast(ctx)
	if errors.Is(err, sweep.ErrInterrupted) {
		text, err = fmt.Sprintf("what it would take is not known: the search is longer than %v to simulate", longestForecast), nil
	}
	if err == nil && text != "" {
		fmt.Fprintln(p.stderr, "planner:", text)
	}
	return err
}

// mostListed is the number of knob sets up to which they are listed one by one.
const mostListed = 16

// cannotRun lists the rejected knob sets; if there are many, by kind of instance with the first reason of each.
func (p *program) cannotRun(r *run) {
	rejected := r.study.Rejected()
	if len(rejected) <= mostListed || r.verbose {
		for _, x := range rejected {
			fmt.Fprintf(p.plain, "cannot run: %s: %s\n", engines.Start(r.cfg, x.Knobs).Line, x.Reason.Text)
		}
		return
	}
	fmt.Fprintf(p.plain, "cannot run: %d knob sets\n", len(rejected))
	for _, alike := range list.Groups(rejected, func(x measure.Rejection) measure.Knobs { return x.Knobs.Kind() }) {
		sets := list.Map(alike, func(x measure.Rejection) measure.Knobs { return x.Knobs })
		fmt.Fprintf(p.plain, "  %5d  %s: %s\n", len(sets), report.Settings(sets, true), alike[0].Reason.Text)
	}
}

// dryProbe describes what a probe would run at most: its points are chosen as it goes.
func (p *program) dryProbe(r *run) []report.StartCommand {
	s := r.study.(*design.ProbeStudy)
	runnable, _ := r.cfg.Candidates()
	server := engines.Start(r.cfg, runnable[0])
	fmt.Fprintf(p.plain, "%s\n  %d closed loops, chosen one after another, and %d drawn at random, in at most %v\n", server.Line, s.Points, s.Held, s.Budget)
	return []report.StartCommand{server}
}

func (p *program) drySweep(r *run) (servers []report.StartCommand) {
	s := r.study.(*design.Sweep)
	var requests float64
	for i, t := range s.Trials {
		if i == 0 || t.Knobs != s.Trials[i-1].Knobs {
			servers = append(servers, engines.Start(r.cfg, t.Knobs))
			fmt.Fprintf(p.plain, "%s\n", servers[len(servers)-1].Line)
		}
		fmt.Fprintf(p.plain, "  %.4g requests/s for %v after %v of warm-up  %s\n", t.Rate, t.Window, t.Warmup, t.Why)
		requests += (t.Warmup + t.Window + t.Cooldown).Seconds() * t.Workload.MeanRate(t.Rate)
	}
	trials, load := s.Planned()
	fmt.Fprintf(p.plain, "would run %d trials: %v of load, about %.0f requests\n", trials, load.Round(time.Second), requests)
	return servers
}

func (p *program) dryRounds(r *run) (servers []report.StartCommand) {
	s := r.study.(*design.Rounds)
	for i, side := range s.Sides {
		servers = append(servers, engines.Start(side.Config, s.Trials[i].Knobs))
		fmt.Fprintf(p.plain, "%c: %s: %s\n", 'A'+i, side.Name, servers[i].Line)
	}
	_, load := s.Planned()
	fmt.Fprintf(p.plain, "would run: %d rounds, each side once, %v at %.4g requests/s after %v of warm-up: %v of load\n",
		s.Number, s.Window, s.Rate, s.Warmup, load.Round(time.Second))
	return servers
}

func (p *program) dryPoint(r *run) []report.StartCommand {
	t := r.study.(*design.PointStudy).Trial
	load := fmt.Sprintf("open loop at %g requests/s for %v after %v of warm-up", t.Rate, t.Window, t.Warmup)
	switch {
	case t.Closed():
		load = fmt.Sprintf("closed loop of %d slots, %d requests", t.Concurrency, t.Requests)
	case t.Rate == 0:
		load = fmt.Sprintf("the trace once on its own clock, %d requests in %v", len(t.Workload.Replay), t.Window.Round(time.Second))
	}
	server := engines.Start(r.cfg, t.Knobs)
	fmt.Fprintf(p.plain, "would run: %s\nengine: %s\n", load, server.Line)
	return []report.StartCommand{server}
}

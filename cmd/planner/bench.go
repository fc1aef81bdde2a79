package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func (p *program) benchCommand() *cli.Command {
	return &cli.Command{
		Name:      "bench",
		Usage:     "one measured load point against a live endpoint",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner bench --url http://127.0.0.1:8000 --workload chat --rate 4 --duration 120s --slo ttft.p99=500ms\n" +
			"         planner bench planner.toml --concurrency 16 --requests 320 --json\n" +
			"Open loop on a schedule that is never reset; latencies count from the intended time. Writes a run folder with\n" +
			"every request and HdrHistogram logs. Exit code 0: no SLO, or met; 3 missed; 4 unsure or invalid.",
		Flags: join([]cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "address of the server: --url http://127.0.0.1:8000"},
			&cli.StringFlag{Name: "model", Usage: "name that the server knows, sent as it stands (default: the first of its list): --model meta-llama/Llama-3.1-8B"},
			&cli.StringFlag{Name: "api", Usage: "completions or chat: --api chat"},
			&cli.StringFlag{Name: "dialect", Usage: "request fields of vllm, sglang, trtllm, tgi, llama-server, lmdeploy or simulated (default: of what the server says it is), or generic for the plain OpenAI ones: --dialect vllm"},
			&cli.StringFlag{Name: "workload", Usage: "traffic class: --workload chat"},
			&cli.StringFlag{Name: "seed", Usage: "seed of every draw: --seed 7"},
		}, loadFlags("default 1.5 x the longest request seen, at least 15s and at most the duration"), configFlags(), []cli.Flag{sloFlag(), outputFlag()}),
		Action: p.bench,
	}
}

// benchShortcuts are the flags of bench that set keys of the configuration.
var benchShortcuts = []shortcut{
	{flag: "url", key: "engine.url"}, {flag: "model", key: "engine.served_name"}, {flag: "api", key: "engine.api"},
	{flag: "workload", key: "workload.class"}, {flag: "seed", key: "workload.seed"},
}

func (p *program) bench(c *cli.Context) error {
	cfg, done, err := p.begin(c, "bench")
	if err != nil || done {
		return err
	}
	if cfg.Engine.Kind == "simulated" {
		return usagef("bench: measures a server that runs or is launched: give --url, or engine.kind in the configuration; 'planner simulate' asks the simulated engine")
	}
	t, err := loadPoint(c, cfg)
	if err != nil {
		return err
	}
	t.Number = 1
	if err := launchable(cfg); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return p.printTrial(cfg, t)
	}
	client, err := p.benchClient(c, cfg)
	if err != nil {
		return err
	}
	folder, err := p.newFolder(c, cfg, "bench", true)
	if err != nil {
		return err
	}
	t.Cooldown = min(t.Objective.Horizon(int(meanOutput(cfg))), t.Window, time.Minute)
	at := &point{cfg: cfg, client: client, trial: t, folder: folder}
	p.signals.patience(func(s string) { fmt.Fprintln(p.stderr, "planner:", s) })
	m, e, err := p.benchOn(c, at)
	if err != nil {
		return err
	}
	return p.benched(c, m, e, folder)
}

// point is a load point with where it is measured and kept.
type point struct {
	cfg    *config.Config
	client *load.Client
	trial  measure.Trial
	folder *sweep.Folder
}

// benchOn measures a load point on a server that runs, or on one that it
// launches, and says what was seen of the engine.
func (p *program) benchOn(c *cli.Context, at *point) (measure.Measurement, *report.Engines, error) {
	if at.cfg.Engine.Kind != "attach" {
		return p.benchLaunched(c, at)
	}
	if err := at.settleWarmup(c, at.client.Run); err != nil {
		return measure.Measurement{}, nil, err
	}
	return p.measureLive(c, at)
}

// settleWarmup derives the warm-up from the latency of single requests, unless
// the user gave it.
func (at *point) settleWarmup(c *cli.Context, run prober) (err error) {
	if !c.IsSet("warm-up") && !at.trial.Closed() {
		at.trial.Warmup, err = probeWarmup(c.Context, run, at.trial)
	}
	return err
}

func meanOutput(cfg *config.Config) float64 {
	_, output := cfg.Workload.MeanTokens()
	return output
}

// clientOf is the load generator for the configuration's endpoint.
func clientOf(cfg *config.Config, dialect string) *load.Client {
	e := cfg.Engine.Endpoint
	return &load.Client{URL: e.URL, Model: e.ServedName, Chat: e.API == "chat", Stream: e.Stream, Engine: dialect, Headers: e.Headers,
		APIKeyEnv: e.APIKeyEnv, Salt: uint64(time.Now().UnixNano())}
}

// benchClient is the load generator of bench. A server that runs already is asked
// which engine it is: then prompts have exact lengths and outputs, too, where the
// engine has a way.
func (p *program) benchClient(c *cli.Context, cfg *config.Config) (*load.Client, error) {
	client := clientOf(cfg, c.String("dialect"))
	if cfg.Engine.Kind != "attach" {
		return client, nil
	}
	if err := client.Check(); err != nil {
		return nil, usageError{fmt.Errorf("bench: %w", err)}
	}
	if client.Engine != "" {
		return client, nil
	}
	if client.Engine = client.Dialect(c.Context); client.Engine != "" && !c.Bool("quiet") {
		fmt.Fprintf(p.stderr, "the server says it is %s: requests are in its dialect\n", client.Engine)
	}
	return client, nil
}

// The warm-up of a measured trial: so many requests, one after another, show
// how long one takes.
const (
	probeRequests = 3
	leastWarmup   = 15 * time.Second
)

// prober runs a trial with its schedule.
type prober = func(context.Context, measure.Trial, []workload.Request) (measure.Observation, error)

// probeWarmup measures how long requests take and derives the warm-up from it.
func probeWarmup(ctx context.Context, run prober, t measure.Trial) (time.Duration, error) {
	probe := measure.Trial{Knobs: t.Knobs, Workload: t.Workload, Concurrency: 1, Requests: probeRequests, Seed: t.Seed + 1}
	o, err := run(ctx, probe, probe.Schedule())
	if err != nil {
		return 0, fmt.Errorf("probe the server: %w", err)
	}
	longest := time.Duration(0)
	for i := range o.Records {
		r := &o.Records[i]
		if d, ok := r.E2E(); ok {
			longest = max(longest, d)
		} else if r.Outcome != measure.OK {
			return 0, fmt.Errorf("probe the server: a request failed: %v %s", r.Outcome, r.Detail)
		}
	}
	return min(max(longest*3/2, leastWarmup), t.Window), nil
}

// measureLive runs one trial against a live endpoint, with a live line, and keeps
// what it brought.
func (p *program) measureLive(c *cli.Context, at *point) (m measure.Measurement, e *report.Engines, err error) {
	j, err := openJournal(at.folder)
	if err != nil {
		return m, nil, err
	}
	defer j.Close()
	t := at.trial
	witness := p.attend(c, at)
	run, err := at.client.Start(c.Context, t, t.Schedule())
	if err != nil {
		return m, nil, err
	}
	if witness != nil {
		witness.Watch(c.Context)
	}
	stop := p.liveLine(c, run)
	o, err := run.Wait()
	stop()
	if err != nil {
		return m, nil, fmt.Errorf("%w: %w", sweep.ErrInterrupted, err)
	}
	r := run.Telemetry()
	if witness != nil {
		book := &logbook{cfg: at.cfg, folder: *at.folder}
		if err := book.add(witness.Leave(c.Context, t, &o, r)); err != nil {
			return m, nil, err
		}
		e = book.engines()
	}
	if err := errors.Join(at.folder.WriteRecords(t.Number, o.Records), at.folder.WriteHistograms(t.Number, r.Histograms)); err != nil {
		return m, nil, err
	}
	m = measure.Reduce(t, o)
	return m, e, j.Add(m)
}

// liveLine draws the state of a running trial over itself on a terminal until
// the returned function is called.
func (p *program) liveLine(c *cli.Context, run *load.Test) (stop func()) {
	if c.Bool("quiet") || !p.isTerminal() {
		return func() {}
	}
	const wipe = "\r\x1b[2K"
	end := repeatedly(func() { fmt.Fprint(p.stderr, wipe+progressText(run.Snapshot())) })
	return func() {
		end()
		fmt.Fprint(p.stderr, wipe)
	}
}

// progressText is the live line of a trial.
func progressText(now load.Snapshot) string {
	s := fmt.Sprintf("%v  %.1f requests/s  %d in flight  %d done", now.Elapsed.Round(time.Second), now.Rate, now.InFlight, now.Done)
	if now.Failed > 0 {
		s += fmt.Sprintf("  %d failed", now.Failed)
	}
	if now.TTFT50 >= 0 {
		s += fmt.Sprintf("  TTFT p50 %v p99 %v", now.TTFT50.Round(time.Millisecond/10), now.TTFT99.Round(time.Millisecond/10))
	}
	if now.Left >= 0 {
		s += fmt.Sprintf("  %v left", now.Left.Round(time.Second))
	}
	return s
}

package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/plan/decide"
	"planner/sweep"
	"planner/sweep/design"
)

// An experiment is a command that measures: its syntax, the study that it makes of a configuration and its own
// flags, and its dry run.
type experiment struct {
	name, usage, args, help string
	// config are the flags that set configuration keys; own are those stored in [run] of the run folder, as
	// text.
	config, own []cli.Flag
	// study makes the study of a run and its ground.
	study func(*program, *run) (sweep.Study, error)
	// dry prints what would run and returns the start commands of its servers.
	dry func(*program, *run) []report.StartCommand
	// kept says that there is always a run folder, even on the simulated engine.
	kept bool
	// csv is the run folder's file with the figures of the trials; "" for none.
	csv string
	// action is the command's own action, if it does not take exactly one configuration.
	action func(*program, *cli.Context) error
}

func experiments() []experiment {
	return slices.Concat(decisions(), loadPoints(), designs(), []experiment{fleetExperiment()})
}

func experimentOf(command string) (experiment, bool) {
	return list.Find(experiments(), func(e experiment) bool { return e.name == command })
}

func (p *program) measuring() []*cli.Command {
	return list.Map(experiments(), func(e experiment) *cli.Command {
		act := e.action
		if act == nil {
			act = (*program).measure
		}
		return &cli.Command{Name: e.name, Usage: e.usage, ArgsUsage: e.args, Description: e.help,
			Flags:  slices.Concat(e.own, e.config, shared("output")),
			Action: func(c *cli.Context) error { return act(p, c) }}
	})
}

// decisions are the main command, the same on the simulated engine only, and the maximum rate of one set of
// knobs.
func decisions() []experiment {
	return []experiment{
		{
			name: "plan", usage: "the main job: search knobs and rates, size and price the fleet, write a run folder", args: "CONFIG",
			help: "Example: planner plan planner.toml\n" +
				"         planner plan planner.toml --set demand.rate=250 --json",
			config: append(configFlags(), shared("certify")...), own: shared("records"),
			study: study(decide.NewPlan), dry: (*program).dryDecision, kept: true, csv: report.TrialsSheet + ".csv",
		},
		{
			name: "estimate", usage: "the same answer in seconds from the simulated engine alone, also entirely from flags", args: "[CONFIG]",
			help: "Example: planner estimate --model llama-3.1-70b --weights fp8 --gpu \"H100 SXM\" --tp 4 \\\n" +
				"           --workload chat --rate 100 --slo ttft.p99=500ms --slo tpot.p99=50ms\n" +
				"         planner estimate planner.toml --gpu \"H100 SXM\" --gpu \"H200 SXM\" --tp 2 --tp 4",
			config: slices.Concat(declared(shortcuts), shared("slo"), configFlags(), shared("certify")), own: shared("records"),
			study: study(decide.NewPlan), dry: (*program).dryDecision, csv: report.TrialsSheet + ".csv",
		},
		{
			name: "search", usage: "the maximum rate under the SLO for one set of knobs", args: "[CONFIG]",
			help: "Example: planner search planner.toml --set engine.tensor_parallel=4\n" +
				"         planner search --model llama-3.1-8b --gpu L40S --workload chat --slo ttft.p99=1s --json",
			config: slices.Concat(configFlags(), instanceFlags(), shared("slo", "certify")),
			study:  study(decide.NewRateSearch), dry: (*program).dryDecision,
		},
	}
}

// study prepares the ground of a run with one configuration, and the study on it.
func study[S sweep.Study](of func(*config.Config, sweep.Ground) (S, error)) func(*program, *run) (sweep.Study, error) {
	return func(p *program, r *run) (_ sweep.Study, err error) {
		if r.ground, err = p.ground(r, r.cfg); err != nil {
			return nil, err
		}
		s, err := of(r.cfg, r.ground)
		if err != nil {
			return nil, err // a plain nil, not a typed one
		}
		return s, nil
	}
}

// designs are a grid or matrix, measurements that calibrate the simulated engine, and comparisons of two
// configurations or runs.
func designs() []experiment {
	return []experiment{
		{
			name: "sweep", usage: "measured trials over a grid of rates and knobs, or a matrix of traffic; no search, no plan", args: "CONFIG",
			help: "Example: planner sweep planner.toml --rates 1,2,5,10\n" +
				"         planner sweep planner.toml --rates 1:20:6 --strategy one-at-a-time\n" +
				"         planner sweep planner.toml --matrix\n" +
				"The lists of the configuration (knobs, GPUs, tensor_parallel) are crossed, or varied one at a time from the\n" +
				"first of each. Where prompts share prefixes, a cold and a warm prefix cache are trials of their own.",
			config: configFlags(), own: sweepFlags(),
			study: sweepStudy, dry: (*program).drySweep, kept: true, csv: "sweep.csv",
		},
		{
			name: "probe", usage: "ten to twenty load points that tell the simulated engine's constants; a calibration with its score", args: "[CONFIG]",
			help: "Example: planner probe planner.toml --budget 10m\n" +
				"         planner probe planner.toml --url http://127.0.0.1:8000\n" +
				"         planner probe --url http://127.0.0.1:8000 --model llama-3.1-8b \\\n" +
				"           --gpu \"H100 SXM\" --workload chat\n" +
				"Each point is chosen for what is not known of the constants yet. The last ones are drawn at random, predicted\n" +
				"and then measured, and not fitted to. The run folder has engine.calibration, which engine.calibration may name.",
			config: slices.Concat(declared(shortcuts), declared(benchShortcuts[:1]), configFlags()),
			own: append([]cli.Flag{
				&cli.StringFlag{Name: "points", Value: "12", Usage: "load points that constants are fitted to, the last two of them repeated: --points 16"},
				&cli.StringFlag{Name: "held", Value: "5", Usage: "further ones that they are scored on: --held 5"},
				&cli.StringFlag{Name: "budget", Value: "10m", Usage: "engine time of all trials: --budget 10m"},
			}, shared("dialect")...),
			study: probeStudy, dry: (*program).dryProbe, kept: true,
		},
		{
			name: "compare", usage: "two configurations, engines or runs: paired rounds, a test, an interval on the difference", args: "A B",
			help: "Example: planner compare a.toml b.toml --rate 8 --rounds 8\n" +
				"         planner compare runs/before runs/after --fail-if-worse 5%\n" +
				"Two configurations run in alternating rounds on the same requests. Two run folders are compared at the\n" +
				"loads that both have. Exit code 4: some figure stays undecided.",
			config: slices.Concat(shared("set", "json", "catalog", "dry-run"), declared([]shortcut{seedShortcut})),
			own:    compareFlags(),
			study:  compareStudy, dry: (*program).dryRounds, action: (*program).compare,
		},
	}
}

func sweepFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "rates", Usage: "requests per second, listed or lowest:highest:number (default: shares of the predicted maximum): --rates 1:20:5"},
		&cli.StringFlag{Name: "strategy", Usage: "crossed or one-at-a-time (default: search.strategy of the configuration): --strategy one-at-a-time"},
		&cli.BoolFlag{Name: "matrix", Usage: "six kinds of traffic instead, each with a question, a hypothesis and its outcome: --matrix"},
		&cli.StringFlag{Name: "duration", Usage: "window of a trial (default: what a p99 needs; 3 minutes at most on a real engine): --duration 120s"},
		&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted (default: 30s): --warm-up 15s"},
		&cli.StringFlag{Name: "repeats", Value: "1", Usage: "how often each trial runs, on other requests each time: --repeats 3"},
	}, shared("dialect")...)
}

func sweepStudy(p *program, r *run) (sweep.Study, error) {
	f := r.flags()
	s := design.Grid{Matrix: f.is("matrix"), OneAtATime: r.cfg.Search.Strategy == "one-at-a-time", Repeats: f.count("repeats"),
		Window: f.duration("duration", 0, false), Warmup: f.duration("warm-up", 0, false)}
	if f.err != nil {
		return nil, f.err
	}
	switch strategy := f.values["strategy"]; strategy {
	case "":
	case "crossed", "one-at-a-time":
		s.OneAtATime = strategy == "one-at-a-time"
	default:
		return nil, usagef("--strategy: %q is neither crossed nor one-at-a-time", strategy)
	}
	if f.is("rates") {
		var err error
		if s.Rates, err = design.ParseRates(f.values["rates"]); err != nil {
			return nil, usagef("--rates: %v", err)
		}
	}
	if s.Matrix && (f.is("rates") || f.is("strategy") || s.Repeats > 1) {
		return nil, usagef("sweep: --matrix has its own rates and knobs; leave out --rates, --strategy and --repeats")
	}
	if len(s.Rates) > 0 {
		if err := design.Bounded(slices.Max(s.Rates), s.Warmup+s.Window); err != nil {
			return nil, err
		}
	}
	return study(func(cfg *config.Config, on sweep.Ground) (*design.Sweep, error) { return design.NewSweep(cfg, on, s) })(p, r)
}

func probeStudy(p *program, r *run) (sweep.Study, error) {
	f := r.flags()
	spec := design.ProbeSpec{Points: f.count("points"), Held: f.count("held"), Budget: f.duration("budget", 10*time.Minute, false)}
	switch {
	case f.err != nil:
		return nil, f.err
	case spec.Points < 5 || spec.Points+spec.Held > 40:
		return nil, usagef("--points, --held: %d and %d, want at least 5 points and at most 40 in all", spec.Points, spec.Held)
	case !r.started.IsZero():
		spec.Date = r.started.UTC().Format(time.DateOnly)
	}
	return study(func(cfg *config.Config, on sweep.Ground) (*design.ProbeStudy, error) {
		return design.NewProbe(cfg, on, spec)
	})(p, r)
}

func compareFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "rate", Usage: "requests per second, of both (default: 80 % of the smaller predicted maximum): --rate 8"},
		&cli.StringFlag{Name: "duration", Usage: "window of a round (default: 1,500 requests, at least 60s): --duration 300s"},
		&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted (default: 30s, at most the window): --warm-up 15s"},
		&cli.StringFlag{Name: "rounds", Value: "8", Usage: "rounds; each side runs once in each: --rounds 12"},
		&cli.StringFlag{Name: "confidence", Value: "0.95", Usage: "of the intervals: --confidence 0.9"},
		&cli.StringFlag{Name: "indifference", Value: "0.02", Usage: "relative difference below which two figures are the same: --indifference 0.05"},
		&cli.StringFlag{Name: "fail-if-worse", Usage: "exit 3 if B is worse than A in some figure by more than that, 4 if nothing could be tested, else 0: --fail-if-worse 5%"},
	}, shared("dialect")...)
}

func compareTerms(f *flagReader) design.Terms {
	return design.Terms{Confidence: f.share("confidence"), Indifference: f.share("indifference"), FailIfWorse: ifGiven(f, "fail-if-worse", f.share)}
}

func compareStudy(p *program, r *run) (sweep.Study, error) {
	f := r.flags()
	s := &design.Rounds{Terms: compareTerms(f), Number: f.count("rounds"), Rate: ifGiven(f, "rate", f.positive),
		Window: f.duration("duration", 0, false), Warmup: f.duration("warm-up", -1, true)}
	if f.err != nil {
		return nil, f.err
	}
	for i, cfg := range []*config.Config{r.cfg, r.second} {
		ground, err := p.ground(r, cfg)
		if err != nil {
			return nil, err
		}
		s.Sides[i] = design.Side{Name: r.cfg.Run.Args[i], Config: cfg, Ground: ground}
	}
	if err := s.Plan(); err != nil {
		return nil, err
	}
	r.ground = s.Ground()
	return s, nil
}

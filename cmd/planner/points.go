package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/design"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// loadPoints are one load point in virtual time and one on a real server.
func loadPoints() []experiment {
	return []experiment{
		{
			name: "simulate", usage: "one load point on the simulated engine", args: "[CONFIG]",
			help: "Example: planner simulate planner.toml --rate 8 --duration 300s\n" +
				"         planner simulate planner.toml --concurrency 16 --requests 160 --json\n" +
				"Starts from an empty engine and a cold prefix cache. Exit code 0: no SLO, or met; 3 missed; 4 unsure.",
			config: slices.Concat(configFlags(), instanceFlags(), shared("slo")), own: loadFlags("default 0s"),
			study: pointStudy, dry: (*program).dryPoint,
		},
		{
			name: "bench", usage: "one measured load point against a live endpoint", args: "[CONFIG]",
			help: "Example: planner bench --url http://127.0.0.1:8000 --workload chat --rate 4 \\\n" +
				"           --duration 120s --slo ttft.p99=500ms\n" +
				"         planner bench planner.toml --concurrency 16 --requests 320 --json\n" +
				"Open loop on a schedule that is never reset; latencies count from the intended time. Writes a run folder with\n" +
				"every request and HdrHistogram logs. Exit code 0: no SLO, or met; 3 missed; 4 unsure or invalid.",
			config: slices.Concat(declared(benchShortcuts), configFlags(), shared("slo")),
			own: append(append(loadFlags("default 1.5 x the longest request seen, at least 15s and at most the duration"), shared("dialect")...),
				&cli.StringFlag{Name: "prometheus", Usage: "metrics of the running load test, as a page at :PORT/metrics or in a text file: --prometheus :9099"}),
			study: pointStudy, dry: (*program).dryPoint, kept: true,
		},
	}
}

func loadFlags(warmup string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "rate", Usage: "open loop: requests per second, of a trace in what demand.rate_of names: --rate 8.5"},
		&cli.StringFlag{Name: "duration", Usage: "window in which requests arrive; each of them is waited for (default: what a p99 needs): --duration 300s"},
		&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted, " + warmup + ", of conversations until they are steady: --warm-up 30s"},
		&cli.StringFlag{Name: "concurrency", Usage: "closed loop: slots that start together: --concurrency 16"},
		&cli.StringFlag{Name: "requests", Usage: "closed loop: requests in all (default: 10 a slot): --requests 160"},
	}
}

func pointStudy(p *program, r *run) (sweep.Study, error) {
	f := r.flags()
	t, err := loadPoint(f, r.cfg)
	if err != nil {
		return nil, err
	}
	if t.Closed() && f.is("warm-up") && r.folder == nil { // earlier versions stored it, without effect
		return nil, errors.New("--concurrency (closed loop) has no window for a --warm-up before it: give --rate, or no warm-up")
	}
	live := r.cfg.Run.Command == "bench"
	if live {
		_, output := r.cfg.Workload.MeanTokens()
		t.Cooldown = min(t.Objective.Horizon(int(output)), t.Window, time.Minute)
	}
	return study(func(_ *config.Config, on sweep.Ground) (sweep.Study, error) {
		if on.Virtual {
			if _, err := on.Predict.Engine(t.Knobs); err != nil {
				return nil, err
			}
		}
		point := design.NewPoint(t, live && !f.is("warm-up"))
		r.before = func(ctx context.Context) error {
			held, err := r.held()
			if err != nil {
				return err
			}
			return point.Prepare(ctx, r.ground.Run, held)
		}
		return point, nil
	})(p, r)
}

// loadPoint makes a trial of the only knob set from the load flags. Without any, a trace is replayed once as it
// is.
func loadPoint(f *flagReader, cfg *config.Config) (measure.Trial, error) {
	runnable, _ := cfg.Candidates()
	t := measure.Trial{Knobs: runnable[0], Workload: &cfg.Workload, Seed: cfg.Workload.Seed, Objective: cfg.Objective, Whole: true,
		Rate: ifGiven(f, "rate", f.positive)}
	if cfg.Workload.Turns > 1 {
		t.Warmup = cfg.Workload.Settling(t.Rate, 0)
	}
	t.Warmup = f.duration("warm-up", t.Warmup, true)
	switch {
	case f.err != nil:
		return t, f.err
	case f.is("concurrency") || f.is("requests"):
		err := closedPoint(f, &t)
		return t, err
	case t.Rate == 0 && !cfg.Workload.Replayed():
		return t, errors.New(cfg.Run.Command + ": give a load: --rate R [--duration D], or --concurrency N [--requests M], or a workload with a trace")
	}
	if t.Window = f.duration("duration", defaultWindow(&cfg.Workload, t.Rate), false); f.err != nil {
		return t, f.err
	}
	return t, design.Bounded(t.Workload.MeanRate(t.Rate), t.Warmup+t.Window)
}

// defaultWindow is one lap of a trace, or otherwise long enough for a p99.
func defaultWindow(w *workload.Workload, rate float64) time.Duration {
	const enough = 5000
	switch {
	case w.Replayed() && rate > 0:
		return w.Lap(rate)
	case w.Replayed():
		return w.TraceSpan()
	}
	return workload.WholeWindow(enough, rate)
}

func closedPoint(f *flagReader, t *measure.Trial) error {
	if f.is("rate") || f.is("duration") {
		return errors.New("--concurrency (closed loop) and --rate or --duration (open loop) exclude each other")
	}
	if !f.is("concurrency") {
		return errors.New("--requests needs --concurrency")
	}
	if turns := t.Workload.Turns; turns > 1 {
		return fmt.Errorf("--concurrency (closed loop) sends each request by itself, and workload.turns is %d: give --rate, or --set workload.turns=1 for first turns alone", turns)
	}
	t.Concurrency = f.count("concurrency")
	t.Requests = cmp.Or(ifGiven(f, "requests", f.count), 10*t.Concurrency)
	if f.err != nil {
		return f.err
	}
	return design.BoundedSlots(t.Concurrency, t.Requests)
}

package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/plan/decide"
	"planner/sweep"
	"planner/sweep/design"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// An experiment is a command that measures: its own flags, the study that it makes of
// a configuration and these, and what it says would run.
type experiment struct {
	// flags stand in [run] of the run folder, as texts.
	flags []cli.Flag
	// study makes the study of a run, and its ground.
	study func(*program, *run) (sweep.Study, error)
	// dry prints what would run.
	dry func(*program, context.Context, *run) error
	// kept says that there is always a run folder, on the simulated engine too.
	kept bool
}

// experiments are the commands that measure, by name.
func experiments() map[string]experiment {
	decision := func(p *program, r *run) (sweep.Study, error) {
		return study(p, r, func() (sweep.Study, error) { return asStudy(decide.New(r.cfg, r.ground)) })
	}
	return map[string]experiment{
		"plan":     {flags: []cli.Flag{recordsFlag()}, study: decision, dry: (*program).dryDecision, kept: true},
		"estimate": {flags: []cli.Flag{recordsFlag()}, study: decision, dry: (*program).dryDecision},
		"search": {dry: (*program).dryDecision, study: func(p *program, r *run) (sweep.Study, error) {
			return study(p, r, func() (sweep.Study, error) { return asStudy(decide.NewMaxRate(r.cfg, r.ground)) })
		}},
		"sweep":    {flags: sweepFlags(), study: sweepStudy, dry: (*program).drySweep, kept: true},
		"compare":  {flags: compareFlags(), study: compareStudy, dry: (*program).dryRounds},
		"simulate": {flags: loadFlags("default 0s"), study: pointStudy, dry: (*program).dryPoint},
		"bench": {flags: append(loadFlags("default 1.5 x the longest request seen, at least 15s and at most the duration"), dialectFlag()),
			study: pointStudy, dry: (*program).dryPoint, kept: true},
	}
}

// study prepares the ground of a run's only configuration, and the study on it.
func study(p *program, r *run, of func() (sweep.Study, error)) (sweep.Study, error) {
	var err error
	if r.ground, err = p.ground(r, r.cfg); err != nil {
		return nil, err
	}
	return of()
}

// asStudy is a study of its own type, or none.
func asStudy[S sweep.Study](s S, err error) (sweep.Study, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func recordsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "records", Usage: "write the records of every simulated trial into the run folder"}
}

func dialectFlag() cli.Flag {
	return &cli.StringFlag{Name: "dialect", Usage: "request fields of vllm, sglang, trtllm, tgi, llama-server, lmdeploy or simulated (default: of what the server says it is), or generic for the plain OpenAI ones: --dialect vllm"}
}

// sweepFlags say what to sweep.
func sweepFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "rates", Usage: "requests per second, listed or lowest:highest:number (default: shares of the predicted maximum): --rates 1:20:5"},
		&cli.StringFlag{Name: "strategy", Usage: "crossed or one-at-a-time (default: search.strategy of the configuration): --strategy one-at-a-time"},
		&cli.BoolFlag{Name: "matrix", Usage: "six kinds of traffic instead, each with a question, a hypothesis and its outcome: --matrix"},
		&cli.StringFlag{Name: "duration", Usage: "window of a trial (default: what a p99 needs; 3 minutes at most on a real engine): --duration 120s"},
		&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted (default: 30s): --warm-up 15s"},
		&cli.StringFlag{Name: "repeats", Value: "1", Usage: "how often each trial runs, on other requests each time: --repeats 3"},
		dialectFlag(),
	}
}

// sweepStudy reads what to sweep.
func sweepStudy(p *program, r *run) (sweep.Study, error) {
	f := flagValues(r.cfg.Run.Flags)
	s := design.Grid{Matrix: f.is("matrix"), OneAtATime: r.cfg.Search.Strategy == "one-at-a-time"}
	var err error
	if s.Repeats, err = f.count("repeats"); err != nil {
		return nil, err
	}
	switch strategy := f["strategy"]; strategy {
	case "":
	case "crossed", "one-at-a-time":
		s.OneAtATime = strategy == "one-at-a-time"
	default:
		return nil, usagef("--strategy: %q is neither crossed nor one-at-a-time", strategy)
	}
	if f.is("rates") {
		if s.Rates, err = design.ParseRates(f["rates"]); err != nil {
			return nil, usagef("--rates: %v", err)
		}
	}
	if s.Matrix && (f.is("rates") || f.is("strategy") || s.Repeats > 1) {
		return nil, usagef("sweep: --matrix has its own rates and knobs; leave out --rates, --strategy and --repeats")
	}
	if s.Window, err = f.duration("duration", 0, false); err != nil {
		return nil, err
	}
	if s.Warmup, err = f.duration("warm-up", 0, false); err != nil {
		return nil, err
	}
	if len(s.Rates) > 0 {
		if err := design.Bounded(slices.Max(s.Rates), s.Warmup+s.Window); err != nil {
			return nil, err
		}
	}
	return study(p, r, func() (sweep.Study, error) { return asStudy(design.NewSweep(r.cfg, r.ground, s)) })
}

// compareFlags say how two configurations are compared.
func compareFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "rate", Usage: "requests per second, of both (default: 80 % of the smaller predicted maximum): --rate 8"},
		&cli.StringFlag{Name: "duration", Usage: "window of a round (default: 1,500 requests, at least 60s): --duration 300s"},
		&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted (default: 30s, at most the window): --warm-up 15s"},
		&cli.StringFlag{Name: "rounds", Value: "8", Usage: "rounds; each side runs once in each: --rounds 12"},
		&cli.StringFlag{Name: "confidence", Value: "0.95", Usage: "of the intervals: --confidence 0.9"},
		&cli.StringFlag{Name: "indifference", Value: "0.02", Usage: "relative difference below which two figures are the same: --indifference 0.05"},
		dialectFlag(),
	}
}

// compareTerms are what a comparison is judged by.
func compareTerms(f flagValues) (t design.Terms, err error) {
	if t.Confidence, err = f.share("confidence"); err != nil {
		return t, err
	}
	t.Indifference, err = f.share("indifference")
	return t, err
}

// compareStudy compares the two configurations of a run in rounds.
func compareStudy(p *program, r *run) (sweep.Study, error) {
	f := flagValues(r.cfg.Run.Flags)
	terms, err := compareTerms(f)
	if err != nil {
		return nil, err
	}
	s := design.Round{Terms: terms}
	if s.Number, err = f.count("rounds"); err != nil {
		return nil, err
	}
	if f.is("rate") {
		if s.Rate, err = f.positive("rate"); err != nil {
			return nil, err
		}
	}
	if s.Window, err = f.duration("duration", 0, false); err != nil {
		return nil, err
	}
	if s.Warmup, err = f.duration("warm-up", -1, true); err != nil {
		return nil, err
	}
	var sides [2]design.Side
	for i, cfg := range []*config.Config{r.cfg, r.second} {
		sides[i] = design.Side{Name: r.cfg.Run.Args[i], Config: cfg}
		if sides[i].Ground, err = p.ground(r, cfg); err != nil {
			return nil, err
		}
	}
	rounds, err := design.NewRounds(sides[0], sides[1], s)
	if err != nil {
		return nil, err
	}
	r.ground = rounds.Ground()
	return rounds, nil
}

// loadFlags say which load one trial offers.
func loadFlags(warmup string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "rate", Usage: "open loop: requests per second: --rate 8.5"},
		&cli.StringFlag{Name: "duration", Usage: "window in which requests arrive; each of them is waited for (default: what a p99 needs): --duration 300s"},
		&cli.StringFlag{Name: "warm-up", Usage: "load before the window, not counted, " + warmup + ": --warm-up 30s"},
		&cli.StringFlag{Name: "concurrency", Usage: "closed loop: slots that start together: --concurrency 16"},
		&cli.StringFlag{Name: "requests", Usage: "closed loop: requests in all (default: 10 a slot): --requests 160"},
	}
}

// pointStudy measures one load point.
func pointStudy(p *program, r *run) (sweep.Study, error) {
	f := flagValues(r.cfg.Run.Flags)
	t, err := loadPoint(f, r.cfg)
	if held, _ := r.held(); len(f) == 0 && len(held) > 0 {
		// Earlier versions kept the load in the journal alone.
		was := held[0].Trial
		t.Rate, t.Concurrency, t.Requests, t.Warmup, t.Window = was.Rate, was.Concurrency, was.Requests, was.Warmup, was.Window
		err = nil
	}
	if err != nil {
		return nil, err
	}
	live := r.cfg.Run.Command == "bench"
	if live {
		_, output := r.cfg.Workload.MeanTokens()
		t.Cooldown = min(t.Objective.Horizon(int(output)), t.Window, time.Minute)
	}
	return study(p, r, func() (sweep.Study, error) {
		if r.ground.Virtual {
			if _, err := r.ground.Predict.Engine(t.Knobs); err != nil {
				return nil, err
			}
		}
		return design.NewPoint(t, r.ground.Owned, live && !f.is("warm-up")), nil
	})
}

// loadPoint reads the load flags into a trial of the configuration's only knob
// set. Without any, a workload with a trace is replayed once as it stands.
func loadPoint(f flagValues, cfg *config.Config) (measure.Trial, error) {
	runnable, _ := cfg.Candidates()
	t := measure.Trial{Knobs: runnable[0], Workload: &cfg.Workload, Seed: cfg.Workload.Seed, Objective: cfg.Objective, Whole: true}
	var err error
	if t.Warmup, err = f.duration("warm-up", 0, true); err != nil {
		return t, err
	}
	if f.is("concurrency") || f.is("requests") {
		return t, closedPoint(f, &t)
	}
	if f.is("rate") {
		if t.Rate, err = f.positive("rate"); err != nil {
			return t, err
		}
	} else if !cfg.Workload.Replayed() {
		return t, errors.New(cfg.Run.Command + ": give a load: --rate R [--duration D], or --concurrency N [--requests M], or a workload with a trace")
	}
	if t.Window, err = f.duration("duration", defaultWindow(&cfg.Workload, t.Rate), false); err != nil {
		return t, err
	}
	return t, design.Bounded(t.Rate, t.Warmup+t.Window)
}

// defaultWindow is one lap of a trace, and otherwise long enough for a p99.
func defaultWindow(w *workload.Workload, rate float64) time.Duration {
	const enough = 5000
	switch {
	case w.Replayed() && rate > 0:
		return workload.Span(float64(len(w.Replay)), rate)
	case w.Replayed():
		return w.TraceSpan()
	}
	return workload.WholeWindow(enough, rate)
}

func closedPoint(f flagValues, t *measure.Trial) error {
	if f.is("rate") || f.is("duration") {
		return errors.New("--concurrency (closed loop) and --rate or --duration (open loop) exclude each other")
	}
	if !f.is("concurrency") {
		return errors.New("--requests needs --concurrency")
	}
	slots, err := f.count("concurrency")
	if err != nil {
		return err
	}
	t.Concurrency, t.Requests = slots, 10*slots
	if f.is("requests") {
		if t.Requests, err = f.count("requests"); err != nil {
			return err
		}
	}
	return design.BoundedSlots(t.Concurrency, t.Requests)
}

// flagValues are flags of a command as texts, by name.
type flagValues map[string]string

// is reports whether a flag is given.
func (f flagValues) is(name string) bool { return f[name] != "" }

// positive reads a number above 0.
func (f flagValues) positive(name string) (float64, error) {
	x, err := strconv.ParseFloat(f[name], 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, usagef("--%s: %q is not a number above 0", name, f[name])
	}
	return x, nil
}

// share reads a number between 0 and 1.
func (f flagValues) share(name string) (float64, error) {
	x, err := strconv.ParseFloat(f[name], 64)
	if err != nil || !(x > 0 && x < 1) {
		return 0, usagef("--%s: %q is not a share between 0 and 1", name, f[name])
	}
	return x, nil
}

// count reads a whole number above 0.
func (f flagValues) count(name string) (int, error) {
	n, err := strconv.Atoi(f[name])
	if err != nil || n < 1 {
		return 0, usagef("--%s: %q is not a whole number above 0", name, f[name])
	}
	return n, nil
}

// duration reads a duration with a unit.
func (f flagValues) duration(name string, unset time.Duration, zero bool) (time.Duration, error) {
	if !f.is(name) {
		return unset, nil
	}
	d, err := time.ParseDuration(f[name])
	if err != nil || d < 0 || d == 0 && !zero {
		return 0, usagef("--%s: %q is not a duration above 0 with its unit, such as 90s or 5m", name, f[name])
	}
	return d, nil
}

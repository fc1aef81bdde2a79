package main

import (
	"math"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/sweep/measure"
)

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

// loadPoint reads the load flags into a trial of the configuration's only knob
// set. Without any, a workload with a trace is replayed once as it stands.
func loadPoint(c *cli.Context, cfg *config.Config) (measure.Trial, error) {
	runnable, _ := cfg.Candidates()
	t := measure.Trial{Knobs: runnable[0], Workload: &cfg.Workload, Seed: cfg.Workload.Seed, Objective: cfg.Objective, Whole: true}
	var err error
	if t.Warmup, err = durationFlag(c, "warm-up", 0, true); err != nil {
		return t, err
	}
	if c.IsSet("concurrency") || c.IsSet("requests") {
		return t, closedPoint(c, &t)
	}
	if c.IsSet("rate") {
		if t.Rate, err = positiveFlag(c, "rate"); err != nil {
			return t, err
		}
	} else if !cfg.Workload.Replayed() {
		return t, usagef("%s: give a load: --rate R [--duration D], or --concurrency N [--requests M], or a workload with a trace", c.Command.Name)
	}
	if t.Window, err = durationFlag(c, "duration", defaultWindow(cfg, t.Rate), false); err != nil {
		return t, err
	}
	return t, bounded(t.Rate, t.Warmup+t.Window)
}

// mostRequests is how many requests one trial may have: its whole schedule is
// drawn before it begins, and takes some 100 bytes a request.
const mostRequests = 20_000_000

// bounded refuses a load of more requests than memory holds.
func bounded(rate float64, span time.Duration) error {
	if n := rate * span.Seconds(); n > mostRequests {
		return usagef("--rate, --duration: %.4g requests/s for %v are %.3g requests, want at most %d in one trial", rate, span, n, mostRequests)
	}
	return nil
}

// defaultWindow is one lap of a trace, and otherwise long enough for a p99.
func defaultWindow(cfg *config.Config, rate float64) time.Duration {
	const enough = 5000
	w := &cfg.Workload
	switch {
	case w.Replayed() && rate > 0:
		return time.Duration(float64(len(w.Replay)) / rate * float64(time.Second))
	case w.Replayed():
		return w.TraceSpan()
	}
	return max(time.Minute, time.Duration(math.Ceil(enough/rate))*time.Second)
}

func closedPoint(c *cli.Context, t *measure.Trial) error {
	if c.IsSet("rate") || c.IsSet("duration") {
		return usagef("%s: --concurrency (closed loop) and --rate or --duration (open loop) exclude each other", c.Command.Name)
	}
	if !c.IsSet("concurrency") {
		return usagef("%s: --requests needs --concurrency", c.Command.Name)
	}
	slots, err := countFlag(c, "concurrency")
	if err != nil {
		return err
	}
	t.Concurrency, t.Requests = slots, 10*slots
	if c.IsSet("requests") {
		if t.Requests, err = countFlag(c, "requests"); err != nil {
			return err
		}
	}
	if t.Concurrency > mostRequests || t.Requests > mostRequests {
		return usagef("--concurrency, --requests: %d slots and %d requests, want at most %d in one trial", t.Concurrency, t.Requests, mostRequests)
	}
	return nil
}

// positiveFlag reads a number above 0.
func positiveFlag(c *cli.Context, name string) (float64, error) {
	x, err := strconv.ParseFloat(c.String(name), 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, usagef("--%s: %q is not a number above 0", name, c.String(name))
	}
	return x, nil
}

// countFlag reads a whole number above 0.
func countFlag(c *cli.Context, name string) (int, error) {
	n, err := strconv.Atoi(c.String(name))
	if err != nil || n < 1 {
		return 0, usagef("--%s: %q is not a whole number above 0", name, c.String(name))
	}
	return n, nil
}

// durationFlag reads a duration with a unit.
func durationFlag(c *cli.Context, name string, unset time.Duration, zero bool) (time.Duration, error) {
	if !c.IsSet(name) {
		return unset, nil
	}
	d, err := time.ParseDuration(c.String(name))
	if err != nil || d < 0 || d == 0 && !zero {
		return 0, usagef("--%s: %q is not a duration above 0 with its unit, such as 90s or 5m", name, c.String(name))
	}
	return d, nil
}

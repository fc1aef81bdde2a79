package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/model"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// configChecks judges a configuration that has been read.
func configChecks(cfg *config.Config) ([]report.Check, error) {
	fit, err := fitOf(cfg)
	if err != nil {
		return nil, err
	}
	checks := []report.Check{checkFit(fit, cfg.Workload.Longest()), checkLength(cfg.Workload.Longest(), cfg.Space.MaxModelLen), checkObjective(cfg.Objective)}
	if name := cfg.Engine.Endpoint.APIKeyEnv; name != "" {
		checks = append(checks, checkKey(name, keyIsSet(name)))
	}
	if cfg.Engine.Kind == "attach" {
		checks = append(checks, checkServer(cfg.Engine.Endpoint.URL, dial(cfg.Engine.Endpoint.URL)))
	}
	return checks, nil
}

// fitting is which of the knob sets of a configuration fit into memory.
type fitting struct {
	// known is false where model or hardware are not.
	known     bool
	fit, sets int
	// first is the memory of the first set that fits, reason why one does not.
	first  model.Memory
	reason string
}

// fitOf divides the memory for every knob set.
func fitOf(cfg *config.Config) (fitting, error) {
	f := fitting{known: cfg.Model.Known && len(cfg.GPUs) > 0}
	if !f.known {
		return f, nil
	}
	engine, err := simulated(cfg)
	if err != nil {
		return f, err
	}
	runnable, rejected := cfg.Candidates()
	f.sets = len(runnable) + len(rejected)
	for _, r := range rejected {
		f.reason = r.Reason
	}
	for _, k := range runnable {
		m, err := engine.Fit(k)
		if err != nil {
			f.reason = err.Error()
			continue
		}
		if f.fit++; f.fit == 1 {
			f.first = m
		}
	}
	return f, nil
}

func checkFit(f fitting, longest int) report.Check {
	const name = "model fit"
	switch {
	case !f.known:
		return warned(name, "give model and hardware to have it predicted", "model or hardware are not known here")
	case f.fit == 0:
		return problem(name, "more GPUs an instance (engine.tensor_parallel), a smaller format (model.weights), or a shorter max_model_len", "%s", f.reason)
	case f.fit < f.sets:
		return warned(name, "drop what cannot run from the lists", "%d of %d knob sets fit: %s", f.fit, f.sets, f.reason)
	}
	tokens := f.first.Blocks * f.first.BlockTokens
	found := fmt.Sprintf("%d of %d knob sets fit; the first has a KV cache of %d tokens", f.fit, f.sets, tokens)
	if longest <= 0 {
		return passed(name, "%s", found)
	}
	found += fmt.Sprintf(", %.1f of the longest requests", float64(tokens)/float64(longest))
	if tokens < 2*longest {
		return warned(name, "more GPUs an instance, or an fp8 KV cache (model.kv_cache)", "%s", found)
	}
	return passed(name, "%s", found)
}

// checkLength compares the longest request with where the engine cuts; what is
// too long was refused when the configuration was read.
func checkLength(longest, limit int) report.Check {
	const name = "request length"
	switch {
	case limit == 0:
		return warned(name, "set knobs.max_model_len", "where the engine cuts requests is not known")
	case longest == 0:
		return warned(name, "give the lengths a max, or requests are cut there", "lengths have no upper end; the engine cuts at %d tokens", limit)
	case longest > limit:
		return warned(name, "raise knobs.max_model_len if the model allows it", "conversations grow to %d tokens and are cut at %d", longest, limit)
	}
	return passed(name, "the longest request has %d tokens, max_model_len is %d", longest, limit)
}

func checkObjective(o measure.SLO) report.Check {
	if o.Empty() {
		return warned("objective", "add limits, such as [slo] ttft = { p99 = \"500ms\" }", "no latency limit: plan, estimate and search want one")
	}
	names := ""
	for i, b := range o.Bounds {
		if i > 0 {
			names += ", "
		}
		if b.Metric == measure.Goodput {
			names += fmt.Sprintf("%v %g %%", b, 100*b.Quantile)
			continue
		}
		names += fmt.Sprintf("%v %v", b, b.Limit)
	}
	return passed("objective", "%s", names)
}

func checkKey(name string, set bool) report.Check {
	if !set {
		return problem("API key", "export "+name+"=...", "the environment variable %s is not set", name)
	}
	return passed("API key", "%s is set", name)
}

func checkServer(address string, err error) report.Check {
	if err != nil {
		return problem("server", "start the server, or correct engine.url", "%s: %v", address, err)
	}
	return passed("server", "%s takes connections", address)
}

// dial opens a connection to where a URL points.
func dial(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
		if port == "" {
			port = "80"
		}
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(u.Hostname(), port), 3*time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// cost is what a plan of a configuration takes, as the simulated engine has it.
type cost struct {
	sets, tried, trials int
	load                time.Duration
	// hours are of GPUs, starts included; usd is their price, if there is one.
	hours, usd float64
	priced     bool
}

// start is how long an engine takes to start: 60 to 120 s for vLLM with weights
// on a local disk.
const start = 90 * time.Second

// longestForesight bounds the time that the estimate may take.
const longestForesight = 30 * time.Second

// costCheck simulates the search of a plan and says what it would cost on real
// engines.
func (p *program) costCheck(c *cli.Context, cfg *config.Config) report.Check {
	const name = "cost of a plan"
	if !cfg.Model.Known || len(cfg.GPUs) == 0 || cfg.Objective.Empty() {
		return warned(name, "give model, hardware and a latency limit", "not estimated")
	}
	over, err := overrides(c)
	if err != nil {
		return warned(name, "", "not estimated: %v", err)
	}
	catalog, err := config.ReadCatalog(c.String("catalog"))
	if err != nil {
		return warned(name, "", "not estimated: %v", err)
	}
	need := config.Need{Limit: true, Workload: true, Engine: config.SimulatedEngine, Lists: true, Search: true}
	wide, err := config.Loader{Catalog: catalog}.Load(c.Args().First(), over, need)
	if err != nil {
		return warned(name, "", "not estimated: %v", err)
	}
	ctx, cancel := context.WithTimeout(c.Context, longestForesight)
	defer cancel()
	spent, err := foreseeCost(ctx, wide)
	switch {
	case errors.Is(err, sweep.ErrInterrupted):
		return warned(name, "shorten the lists of knobs, GPUs and tensor_parallel", "not estimated: the search takes more than %v to simulate", longestForesight)
	case err != nil:
		return warned(name, "", "not estimated: %v", err)
	}
	return judgeCost(spent, cfg.Engine.Kind == "simulated", cfg.Search.Budget)
}

// foreseeCost runs the search of a plan in virtual time.
func foreseeCost(ctx context.Context, cfg *config.Config) (cost, error) {
	var out cost
	b, err := simulatedBed(cfg, 1)
	if err != nil {
		return out, err
	}
	d, err := newDecision(cfg, b)
	if err != nil {
		return out, err
	}
	for _, g := range d.groups {
		tried := map[measure.Knobs]bool{}
		race := search.NewRace(search.RaceConfig{Search: maxRateConfig(cfg, search.Prior{}), Candidates: g.priors, Default: g.standard,
			OneEngine: true})
		var load time.Duration
		starts, running := 0, measure.Knobs{}
		loop := sweep.Loop{Source: race, Run: b.run, Parallel: b.parallel, Observed: func(m measure.Measurement) {
			tried[m.Trial.Knobs] = true
			if m.Trial.Knobs != running {
				starts, running = starts+1, m.Trial.Knobs
			}
			load += m.Trial.Warmup + m.Duration + m.Trial.Cooldown
			out.trials++
		}}
		if err := loop.Drive(ctx); err != nil {
			return out, err
		}
		hours := (load + time.Duration(starts)*start).Hours() * float64(g.priors[0].Knobs.GPUs())
		out.sets, out.tried, out.load = out.sets+len(g.priors), out.tried+len(tried), out.load+load
		out.hours += hours
		if g.gpu.Priced {
			out.usd, out.priced = out.usd+hours*g.gpu.USDPerHour, true
		}
	}
	return out, nil
}

// judgeCost compares the cost with the budget; a simulated search has none.
func judgeCost(c cost, virtual bool, budget time.Duration) report.Check {
	const name = "cost of a plan"
	if c.sets == 0 {
		return problem(name, "see model fit", "no knob set can run")
	}
	text := fmt.Sprintf("%d knob sets; about %d are tried, the engine's own settings among them, in %d trials: %.1f h of load", c.sets, c.tried, c.trials, c.load.Hours())
	price := fmt.Sprintf("%.1f GPU hours with the starts", c.hours)
	if c.priced {
		price += fmt.Sprintf(", $%.2f", c.usd)
	}
	if virtual {
		return passed(name, "%s in virtual time; on real engines it would be %s", text, price)
	}
	if c.load > budget {
		return warned(name, "raise search.budget, pin knobs, or ask for less precision", "%s, %s; search.budget is %v and ends it earlier", text, price, budget)
	}
	return passed(name, "%s, %s; search.budget is %v", text, price, budget)
}

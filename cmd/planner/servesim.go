package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/engines"
	"planner/internal/list"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/serve"
)

func (p *program) serveSimCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve-sim",
		Usage:     "the simulated engine behind a real OpenAI-compatible HTTP port, in real time",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner serve-sim planner.toml --listen 127.0.0.1:8000 --log emitted.jsonl\n" +
			"         planner serve-sim --ttft 100ms --tpot 50ms\n" +
			"         planner serve-sim --ttft exponential:25ms --tpot 0s --slots 1 --fault error=503@0.01\n" +
			"Times are a duration, exponential:MEAN, lognormal:MEDIAN,SIGMA or uniform:LOW,HIGH. A fault is one of\n" +
			strings.Join(serve.FaultForms(), ", ") + "\n" +
			"with @SHARE of the requests behind it; a request can ask for one in its header X-Planner-Fault.\n" +
			"Requests may be as long as the model's own limit, or knobs.max_model_len. Clients that count tokens themselves count as the\n" +
			"server does with `--tokenizer DIR`, of the folder that --write-tokenizer writes.\n" +
			"--json prints the address and the name of the model once it listens.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8000", Usage: "address to listen on, port 0 for any: --listen 127.0.0.1:8000"},
			&cli.StringFlag{Name: "ttft", Usage: "time to first token without a model, a duration or a distribution: --ttft lognormal:100ms,0.5"},
			&cli.StringFlag{Name: "tpot", Usage: "time per further token without a model: --tpot 50ms"},
			&cli.StringFlag{Name: "slots", Value: "0", Usage: "requests served at once without a model, 0 for all: --slots 1"},
			&cli.StringFlag{Name: "log", Usage: "file for when each token was due and when it left: --log emitted.jsonl"},
			&cli.StringFlag{Name: "write-tokenizer", Usage: "folder for a tokenizer of Hugging Face that counts as the server does, for clients that want one: --write-tokenizer tokenizer"},
			&cli.StringSliceFlag{Name: "fault", Usage: "what goes wrong, with a share of the requests, repeatable: --fault error=503@0.01"},
			&cli.StringFlag{Name: "served-name", Usage: "name of the model in requests: --served-name tiny"},
		}, configFlags(), without(declared(shortcuts), "rate", "growth", "headroom", "spare", "price")),
		Action: p.serveSim,
	}
}

func (p *program) serveSim(c *cli.Context) error {
	server, err := p.simServer(c)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		_, err := fmt.Fprintf(p.plain, "would serve %s on %s\n", server.Model, server.Addr)
		return err
	}
	if path := c.String("log"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("emission log: %w", err)
		}
		defer f.Close()
		server.Log = f
	}
	if dir := c.String("write-tokenizer"); dir != "" {
		if err := server.WriteTokenizer(dir); err != nil {
			return err
		}
	}
	if err := server.Listen(); err != nil {
		return err
	}
	if c.Bool("json") {
		listening := struct {
			URL   string `json:"url"`
			Model string `json:"model"`
		}{server.URL(), server.Model}
		if err := p.printJSON(listening); err != nil {
			return err
		}
	}
	if !c.Bool("quiet") {
		fmt.Fprintf(p.stderr, "serving on %s; end with Ctrl-C\n", server.URL())
	}
	return server.Serve(c.Context)
}

func (p *program) simServer(c *cli.Context) (*serve.Simulator, error) {
	server := &serve.Simulator{Addr: c.String("listen"), Model: c.String("served-name")}
	for _, f := range c.StringSlice("fault") {
		fault, err := serve.ParseFault(f)
		if err != nil {
			return nil, usagef("--fault: %w", err)
		}
		server.Faults = append(server.Faults, fault)
	}
	if c.IsSet("ttft") || c.IsSet("tpot") {
		return server, fixedServer(c, server)
	}
	if c.IsSet("slots") {
		return nil, usagef("serve-sim: --slots is for fixed times, --ttft or --tpot; with a model max_num_seqs is the limit: --set knobs.max_num_seqs=1")
	}
	return server, p.modelledServer(c, server)
}

// fixedServer answers with fixed times. Flags that describe a model have no effect on it and are refused.
func fixedServer(c *cli.Context, s *serve.Simulator) error {
	if c.Args().Present() {
		return usagef("serve-sim: a configuration and --ttft or --tpot exclude each other")
	}
	modelled := list.Filter(list.Map(shortcuts, func(sh shortcut) string { return sh.flag }), func(flag string) bool { return flag != "seed" })
	modelled = append([]string{"set", "catalog", "print-config"}, modelled...)
	err := refuse(c, "and --ttft or --tpot exclude each other: fixed times know no model", modelled...)
	if err != nil {
		return err
	}
	if s.Fixed.TTFT, err = distributionFlag(c, "ttft"); err != nil {
		return err
	}
	if s.Fixed.TPOT, err = distributionFlag(c, "tpot"); err != nil {
		return err
	}
	f := flagsOf(c)
	if f.is("seed") {
		s.Seed = f.seed()
	}
	s.Model = cmp.Or(s.Model, "simulated")
	if f.values["slots"] != "0" {
		s.Fixed.Slots = f.count("slots")
	}
	return f.err
}

func distributionFlag(c *cli.Context, flag string) (serve.Distribution, error) {
	if !c.IsSet(flag) {
		return nil, nil
	}
	d, err := serve.ParseDistribution(c.String(flag))
	if err != nil {
		return nil, usagef("--%s: %w", flag, err)
	}
	return d, nil
}

// longestContext is the longest request of a server whose workload is not known: the model's own limit, or what
// fits into memory if less, but at least what k asks for.
func longestContext(engine *sweep.Simulated, k measure.Knobs, own int) int {
	least := k.MaxModelLen
	beyond := sort.Search(max(own-least, 0), func(i int) bool {
		k.MaxModelLen = least + i + 1
		_, err := engine.Fit(k)
		return err != nil
	})
	return least + beyond
}

func (p *program) modelledServer(c *cli.Context, s *serve.Simulator) error {
	cfg, err := p.begin(c)
	if err != nil {
		return err
	}
	engine, err := engines.Simulated(cfg)
	if err != nil {
		return usageError{err}
	}
	runnable, _ := cfg.Candidates()
	k := runnable[0]
	if !cfg.Given("max_model_len") {
		k.MaxModelLen = longestContext(engine, k, cfg.Model.Arch.MaxPosition)
	}
	if s.Timer, s.Config, err = engine.Parts(k); err != nil {
		return err
	}
	s.Seed, s.MaxModelLen = cfg.Workload.Seed, k.MaxModelLen
	s.Version, s.Model = cmp.Or(cfg.Engine.Version, sweep.NewestKnown), cmp.Or(s.Model, cfg.Model.Name)
	return nil
}

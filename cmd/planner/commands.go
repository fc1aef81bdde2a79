package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"planner/plan/decide"
	"planner/sweep"
	"planner/sweep/design"
	"planner/sweep/ingest"
	"planner/sweep/measure"
)

func (p *program) planCommand() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "the main job: search knobs and rates, size and price the fleet, write a run folder",
		ArgsUsage: "CONFIG",
		Description: "Example: planner plan planner.toml\n" +
			"         planner plan planner.toml --set demand.rate=250 --json",
		Flags: join(configFlags(), []cli.Flag{certifyFlag(), outputFlag()}, experiments()["plan"].flags),
		Action: func(c *cli.Context) error {
			if _, err := onePositional(c, "configuration"); err != nil {
				return err
			}
			return p.measure(c)
		},
	}
}

func (p *program) estimateCommand() *cli.Command {
	return &cli.Command{
		Name:      "estimate",
		Usage:     "the same answer in seconds from the simulated engine alone, also entirely from flags",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner estimate --model llama-3.1-70b --weights fp8 --gpu \"H100 SXM\" --tp 4 --workload chat \\\n" +
			"           --rate 100 --slo ttft.p99=500ms --slo tpot.p99=50ms\n" +
			"         planner estimate planner.toml --gpu \"H100 SXM\" --gpu \"H200 SXM\" --tp 2 --tp 4",
		Flags:  join(shortcutFlags(), []cli.Flag{sloFlag()}, configFlags(), []cli.Flag{certifyFlag(), outputFlag()}, experiments()["estimate"].flags),
		Action: p.measure,
	}
}

func (p *program) searchCommand() *cli.Command {
	return &cli.Command{
		Name:      "search",
		Usage:     "the maximum rate under the SLO for one set of knobs",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner search planner.toml --set engine.tensor_parallel=4\n" +
			"         planner search --model llama-3.1-8b --gpu L40S --workload chat --slo ttft.p99=1s --json",
		Flags:  join(configFlags(), without(shortcutFlags(), "rate", "growth", "headroom", "spare"), []cli.Flag{sloFlag(), certifyFlag(), outputFlag()}),
		Action: p.measure,
	}
}

func (p *program) sweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "measured trials over a grid of rates and knobs, or a matrix of traffic; no search, no plan",
		ArgsUsage: "CONFIG",
		Description: "Example: planner sweep planner.toml --rates 1,2,5,10\n" +
			"         planner sweep planner.toml --rates 1:20:6 --strategy one-at-a-time\n" +
			"         planner sweep planner.toml --matrix\n" +
			"The lists of the configuration (knobs, GPUs, tensor_parallel) are crossed, or varied one at a time from the\n" +
			"first of each. Where prompts share prefixes, a cold and a warm prefix cache are trials of their own.",
		Flags: join(experiments()["sweep"].flags, configFlags(), []cli.Flag{outputFlag()}),
		Action: func(c *cli.Context) error {
			if _, err := onePositional(c, "configuration"); err != nil {
				return err
			}
			return p.measure(c)
		},
	}
}

func (p *program) simulateCommand() *cli.Command {
	return &cli.Command{
		Name:      "simulate",
		Usage:     "one load point on the simulated engine",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner simulate planner.toml --rate 8 --duration 300s\n" +
			"         planner simulate planner.toml --concurrency 16 --requests 160 --json\n" +
			"Starts from an empty engine and a cold prefix cache. Exit code 0: no SLO, or met; 3 missed; 4 unsure.",
		Flags: join(experiments()["simulate"].flags, configFlags(), without(shortcutFlags(), "rate", "growth", "headroom", "spare"),
			[]cli.Flag{sloFlag(), outputFlag()}),
		Action: p.measure,
	}
}

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
			&cli.StringFlag{Name: "workload", Usage: "traffic class: --workload chat"},
			&cli.StringFlag{Name: "seed", Usage: "seed of every draw: --seed 7"},
		}, experiments()["bench"].flags, configFlags(), []cli.Flag{sloFlag(), outputFlag()}),
		Action: p.measure,
	}
}

func (p *program) compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "two configurations, engines or runs: paired rounds, a test, an interval on the difference",
		ArgsUsage: "A B",
		Description: "Example: planner compare a.toml b.toml --rate 8 --rounds 8\n" +
			"         planner compare runs/before runs/after --json\n" +
			"Two configurations run in alternating rounds on the same requests. Two run folders are compared at the\n" +
			"loads that both have. Exit code 4: some figure stays undecided.",
		Flags: join(experiments()["compare"].flags, []cli.Flag{
			&cli.StringFlag{Name: "seed", Usage: "seed of the first round: --seed 7"},
			outputFlag(), setFlag(), jsonFlag(), catalogFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "show what would run and end"},
		}),
		Action: p.compare,
	}
}

func (p *program) compare(c *cli.Context) error {
	if c.Args().Len() != 2 {
		return usagef("compare: two configurations or two run folders expected, %d given; see 'planner compare --help'", c.Args().Len())
	}
	a, b := c.Args().Get(0), c.Args().Get(1)
	_, _, errA := sweep.OpenFolder(a)
	_, _, errB := sweep.OpenFolder(b)
	switch {
	case errA == nil && errB == nil:
		return p.compareRuns(c, a, b)
	case errA == nil || errB == nil:
		return usagef("compare: %s and %s are not of one kind: two configurations or two run folders", a, b)
	}
	var r run
	var err error
	if r.cfg, err = p.configure(c, a, "compare"); err != nil {
		return err
	}
	if r.second, err = p.configure(c, b, "compare"); err != nil {
		return err
	}
	return p.start(c, &r)
}

// compareRuns compares what two runs have measured.
func (p *program) compareRuns(c *cli.Context, a, b string) error {
	terms, err := compareTerms(given(c, experiments()["compare"].flags))
	if err != nil {
		return err
	}
	var runs [2]design.RunTrials
	for i, path := range []string{a, b} {
		runs[i].Path = path
		if runs[i].Trials, err = sweep.ReadJournal(sweep.Folder{Path: path}.File(sweep.JournalFile)); err != nil {
			return err
		}
	}
	answer, err := design.CompareRuns(runs[0], runs[1], terms)
	if err != nil {
		return usageError{err}
	}
	return p.conclude(c, &run{}, answer, nil)
}

func (p *program) fitCommand() *cli.Command {
	return &cli.Command{
		Name:      "fit",
		Usage:     "curve, knee, maximum rate and plan from results that are on disk",
		ArgsUsage: "RESULTS...",
		Description: "Example: planner fit measured.csv --slo ttft.p99=500ms --rate 100 --gpus-per-instance 8 --headroom 0.2 --spare 0 --price 2.99\n" +
			"Reads run folders and CSV files with a header such as rate_per_s,ttft_p50_ms,ttft_p99_ms.",
		Flags: join([]cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "configuration with demand and limits: --config planner.toml"},
			&cli.StringFlag{Name: "gpus-per-instance", Value: "1", Usage: "GPUs of the instance that was measured: --gpus-per-instance 8"},
			&cli.StringFlag{Name: "gpu", Usage: "name of the GPU that was measured (default: that of the run): --gpu \"H100 SXM\""},
		}, without(shortcutFlags(), "model", "model-config", "weights", "kv-cache", "gpu", "tp", "engine-version", "workload"),
			[]cli.Flag{sloFlag(), setFlag(), jsonFlag()}),
		Action: p.fit,
	}
}

func (p *program) fit(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("fit: missing results; see 'planner fit --help'")
	}
	cfg, err := p.configure(c, c.String("config"), "fit")
	if err != nil {
		return err
	}
	m := decide.Measured{GPU: c.String("gpu")}
	gpus, err := flagValues{"gpus-per-instance": c.String("gpus-per-instance")}.count("gpus-per-instance")
	if err != nil {
		return err
	}
	if c.IsSet("gpus-per-instance") {
		m.GPUs = gpus
	}
	trials, err := readResults(c.Args().Slice(), &m)
	if err != nil {
		return err
	}
	answer, err := decide.Fit(cfg, trials, m)
	if err != nil {
		return usageError{err}
	}
	return p.conclude(c, &run{cfg: cfg}, answer, nil)
}

// readResults reads run folders and result files, with what is to be doubted of
// the latter.
func readResults(paths []string, m *decide.Measured) (all []measure.Measurement, err error) {
	for _, path := range paths {
		if folder, _, err := sweep.OpenFolder(path); err == nil {
			trials, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
			if err != nil {
				return nil, err
			}
			all = append(all, trials...)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, usageError{err}
		}
		results, err := ingest.Read(path, data)
		if err != nil {
			return nil, usageError{err}
		}
		all = append(all, results.Measurements...)
		m.Doubts = append(m.Doubts, results.Warnings...)
	}
	return all, nil
}

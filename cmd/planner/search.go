package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/model"
	"planner/search"
	"planner/sweep"
	"planner/sweep/load"
	"planner/sweep/measure"
)

func (p *program) searchCommand() *cli.Command {
	return &cli.Command{
		Name:      "search",
		Usage:     "the maximum rate under the SLO for one set of knobs",
		ArgsUsage: "[CONFIG]",
		Description: "Example: planner search planner.toml --set engine.tensor_parallel=4\n" +
			"         planner search --model llama-3.1-8b --gpu L40S --workload chat --slo ttft.p99=1s --json",
		Flags:  join(configFlags(), without(shortcutFlags(), "rate", "growth", "headroom", "spare"), []cli.Flag{sloFlag(), certifyFlag(), outputFlag()}),
		Action: func(c *cli.Context) error { return p.answer(c, "search", p.searchIn) },
	}
}

// searchIn searches the only knob set on top of what the journal of the folder
// holds.
func (p *program) searchIn(c *cli.Context, cfg *config.Config, folder *sweep.Folder) (err error) {
	d, err := p.newRun(c, cfg, folderPath(folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.bed.close()) }()
	if len(d.groups) == 0 {
		return &measure.Rejection{Knobs: d.rejected[0].Knobs, Reason: d.rejected[0].Reason}
	}
	if err := d.foresee(); err != nil {
		return err
	}
	if err := d.bed.recall(folder); err != nil {
		return err
	}
	j, err := openJournal(folder)
	if err != nil {
		return err
	}
	defer j.Close()
	show := p.display(c)
	show.budget = budgetOf(cfg, 1)
	d.bed.tell(show)
	r, trials, err := d.searchOne(c.Context, sweep.Loop{Journal: j, Stop: p.signals.patience(show.say), Proposed: show.proposed,
		Keep: d.bed.keeper(folder, false)}, show.observed)
	show.Close()
	switch {
	case errors.Is(err, sweep.ErrInterrupted):
		if r.Estimate.Value <= 0 {
			return hintResume(err, folder)
		}
		r.Reason = interruptedIn(r)
		return errors.Join(hintResume(err, folder), p.found(c, d, r, trials, folder))
	case err != nil:
		return err
	}
	if err := p.found(c, d, r, trials, folder); err != nil {
		return err
	}
	return searchEnd(r, cfg.Engine.Kind == "attach" && rejected(trials))
}

// rejected reports whether the last trial could not be run.
func rejected(trials []measure.Measurement) bool {
	return len(trials) > 0 && trials[len(trials)-1].Rejected != ""
}

// searchOne searches the only knob set, with what the loop says besides, and
// certifies a rate where the configuration asks for it.
func (d *decision) searchOne(ctx context.Context, loop sweep.Loop, seen func(measure.Measurement, search.Estimate, string)) (search.Result, []measure.Measurement, error) {
	s := search.NewMaxRate(maxRateConfig(d.cfg, d.groups[0].priors[0]))
	var trials []measure.Measurement
	loop.Source, loop.Observed = s, func(m measure.Measurement) {
		trials = append(trials, m)
		seen(m, s.Result().Estimate, "")
	}
	if loop.Run == nil {
		loop.Run = d.bed.run
	}
	err := loop.Drive(ctx)
	r := s.Result()
	r.Warnings = append(r.Warnings, ofOtherLoad(trials)...)
	if d.bed.live != nil && d.cfg.Engine.Kind != "attach" && r.Estimate.Value > 0 {
		r.Warnings = append(r.Warnings, "the engine was started for this search alone: what the maximum rate differs by from start to start is not in the interval")
	}
	if err == nil {
		loop.First = len(trials)
		err = d.certifyOne(ctx, loop, &r)
	}
	return r, trials, err
}

// ofOtherLoad is what the last trial to say so says of answers that were not those
// of the workload: the rate that was found is then of another load.
func ofOtherLoad(trials []measure.Measurement) []string {
	for _, m := range slices.Backward(trials) {
		for _, w := range m.Warnings {
			if strings.HasPrefix(w, load.ShorterAnswers) {
				return []string{w}
			}
		}
	}
	return nil
}

// interruptedIn says what an interrupted search had not done yet.
func interruptedIn(r search.Result) string {
	if r.Outcome == search.Searching {
		return "interrupted: the interval is not as narrow as asked yet"
	}
	return "interrupted: the rate is not certified yet"
}

// folderPath is where a run keeps its files, "" if nowhere.
func folderPath(folder *sweep.Folder) string {
	if folder == nil {
		return ""
	}
	return folder.Path
}

// found prints the result of a search, and keeps it where there is a run folder.
func (p *program) found(c *cli.Context, d *decision, r search.Result, trials []measure.Measurement, folder *sweep.Folder) error {
	doc := d.searched(r, trials)
	if folder != nil {
		if err := errors.Join(writeReport(*folder, doc), folder.WriteJSON("search.json", r)); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return p.printJSON(r)
	}
	return p.print(doc)
}

// searched is the report of a search.
func (d *decision) searched(r search.Result, trials []measure.Measurement) report.Document {
	b := report.Background{Trials: trials, Server: serverOf(d.cfg, r.Knobs), Engines: d.bed.engines()}
	return report.Search(r.Knobs, r, b)
}

// searchEnd is how a finished search ends. gone says that a server which planner
// did not start could not be measured: that is no word on its limits.
func searchEnd(r search.Result, gone bool) error {
	switch r.Outcome {
	case search.Infeasible:
		if gone {
			return outcome(exitFailed)
		}
		return outcome(exitInfeasible)
	case search.OutOfBudget:
		return outcome(exitUndecided)
	}
	return certifiedEnd(r.Certificate)
}

// rereadSearch walks the journal of a search again, without running anything.
func (p *program) rereadSearch(c *cli.Context, folder sweep.Folder, about sweep.About, trials []measure.Measurement) (report.Document, any, error) {
	cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.For(about.Command))
	if err != nil {
		return report.Document{}, nil, err
	}
	d, err := p.newRun(c, cfg, folder.Path)
	if err != nil {
		return report.Document{}, nil, err
	}
	if len(d.groups) == 0 {
		return report.Document{}, nil, &measure.Rejection{Knobs: d.rejected[0].Knobs, Reason: d.rejected[0].Reason}
	}
	if err := errors.Join(d.foresee(), d.bed.recall(&folder)); err != nil {
		return report.Document{}, nil, err
	}
	r, _, err := d.searchOne(c.Context, sweep.Loop{Run: notRun, Journal: sweep.Recorded(trials)}, silent().observed)
	if errors.Is(err, sweep.ErrNotRecorded) {
		r.Reason, err = interruptedIn(r), nil
	}
	return d.searched(r, trials), r, err
}

// maxRateConfig is the search that a configuration asks for.
func maxRateConfig(cfg *config.Config, prior search.Prior) search.MaxRateConfig {
	s := search.MaxRateConfig{
		Prior: prior, Workload: &cfg.Workload, SLO: cfg.Objective, Seed: cfg.Workload.Seed,
		Precision: cfg.Search.Precision, Confidence: cfg.Search.Confidence, MinRequests: cfg.Search.MinRequests,
		Warmup: cfg.Search.Warmup.Duration, Window: cfg.Search.Trial.Duration,
	}
	if !cfg.Simulated() || cfg.Search.BudgetGiven {
		s.Budget = cfg.Search.Budget
	}
	return s
}

// priorFor says what arithmetic knows of a configuration: whether it fits, and
// about which rate it carries. Without an engine to compute with, nothing is known.
func priorFor(cfg *config.Config, engine *sweep.Simulated, k measure.Knobs) (search.Prior, error) {
	if engine == nil {
		return search.Prior{Knobs: k}, nil
	}
	memory, err := engine.Fit(k)
	if err != nil {
		return search.Prior{}, err
	}
	roofline, err := engine.Roofline(k)
	if err != nil {
		return search.Prior{}, &measure.Rejection{Knobs: k, Reason: err.Error()}
	}
	capacity := roofline.Capacity(meanRequest(cfg), memory, targets(cfg.Objective))
	slowest := capacity.TTFT + capacity.Step*float64(longOutput(cfg))
	return search.Prior{Knobs: k, Rate: capacity.Rate, Spread: capacitySpread, Latency: time.Duration(slowest * float64(time.Second))}, nil
}

// capacitySpread is an allowance for how far arithmetic that knows no queueing
// scatters between knob sets, in the logarithm of the rate. It decides only
// which sets are tried, and in which order.
const capacitySpread = 0.2

// longOutput is the output length that 99 % of the requests stay below, in
// tokens.
func longOutput(cfg *config.Config) int {
	n := 1
	for _, s := range cfg.Workload.Shapes {
		n = max(n, s.Output.Quantile(0.99))
	}
	for _, r := range cfg.Workload.Replay {
		n = max(n, r.Output)
	}
	return n
}

// meanRequest is the workload's mean request.
func meanRequest(cfg *config.Config) model.MeanRequest {
	prompt, output := cfg.Workload.MeanTokens()
	return model.MeanRequest{Prompt: prompt, Output: output}
}

// targets are the limits of an objective as arithmetic takes them.
func targets(o measure.SLO) model.Targets {
	var t model.Targets
	tighten := func(x *float64, limit time.Duration) {
		if s := limit.Seconds(); *x == 0 || s < *x {
			*x = s
		}
	}
	for _, bound := range o.Bounds {
		for _, b := range append(bound.Limits.Parts(bound.Quantile), bound) {
			switch b.Metric {
			case measure.TTFT:
				tighten(&t.TTFT, b.Limit)
			case measure.TPOT, measure.ITL:
				tighten(&t.TPOT, b.Limit)
			}
		}
	}
	return t
}

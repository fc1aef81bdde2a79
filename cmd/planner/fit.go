package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/model"
	"planner/model/curve"
	"planner/plan"
	"planner/sweep"
	"planner/sweep/ingest"
	"planner/sweep/measure"
)

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
	gpus, err := countFlag(c, "gpus-per-instance")
	if err != nil {
		return err
	}
	trials, doubts, err := readResults(c.Args().Slice())
	if err != nil {
		return err
	}
	fits, rejected, err := fitSets(cfg, trials)
	if err != nil {
		return err
	}
	offers := offersOf(fits, c.String("gpu"), gpus, c.IsSet("gpus-per-instance"))
	if err := priceOffers(offers, cfg); err != nil {
		return err
	}
	made, err := plan.Solve(cfg.Demand, cfg.Objective, offers, rejected)
	if err != nil {
		return err
	}
	chosen, err := chosenFit(fits, made.Offer.Knobs)
	if err != nil {
		return err
	}
	if len(chosen.curves) > 0 {
		made.Evidence.Curve, made.Evidence.Curves = chosen.curves[0], chosen.curves[1:]
	}
	made.Warnings = append(made.Warnings, doubts...)
	if c.Bool("json") {
		return p.printJSON(made)
	}
	return p.print(report.Plan(made, report.Background{Trials: trials}))
}

// priceOffers gives each offer the price of its GPU: the configuration's, else
// the catalog's list price of a name that it knows.
func priceOffers(offers []plan.Offer, cfg *config.Config) error {
	catalog, err := model.NewCatalog()
	if err != nil {
		return err
	}
	for i := range offers {
		o := &offers[i]
		o.PricePerGPUHour, o.PricedBy = priceOf(cfg, catalog, o.GPU)
	}
	return nil
}

// priceOf is what an hour of a GPU costs in US dollars, and who says so; 0 where
// nobody does.
func priceOf(cfg *config.Config, catalog *model.Catalog, gpu string) (float64, string) {
	if usd, ok := cfg.FlatPrice(); ok {
		return usd, "the configuration"
	}
	hw, err := catalog.GPU(gpu)
	if gpu == "" || err != nil || hw.Price.USDPerHour <= 0 {
		return 0, ""
	}
	if g, ok := cfg.GPU(hw.Name); ok && g.Priced {
		return g.USDPerHour, g.PricedBy
	}
	return hw.Price.USDPerHour, priceNote(hw.Price)
}

// readResults reads run folders and result files, with what is to be doubted of
// the latter.
func readResults(paths []string) (all []measure.Measurement, doubts []string, err error) {
	for _, path := range paths {
		ms, warnings, err := readResult(path)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, ms...)
		for _, w := range warnings {
			if !slices.Contains(doubts, w) {
				doubts = append(doubts, w)
			}
		}
	}
	return all, doubts, nil
}

func readResult(path string) ([]measure.Measurement, []string, error) {
	if folder, _, err := sweep.OpenFolder(path); err == nil {
		ms, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
		return ms, nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, usageError{err}
	}
	results, err := ingest.Read(path, data)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return results.Measurements, results.Warnings, nil
}

// moreTrials says what helps where results do not give a curve.
const moreTrials = "longer trials resolve higher quantiles, and trials beyond the limit show where it lies"

// fitCurves fits a curve to each metric with a bound and finds the lowest
// crossing. The curve of the binding metric comes first.
func fitCurves(cfg *config.Config, trials []measure.Measurement) ([]*curve.Curve, curve.Crossing, error) {
	byMetric := map[measure.Metric]*curve.Curve{}
	var crossings []curve.Crossing
	for _, b := range cfg.Objective.Bounds {
		if b.Metric == measure.Goodput {
			return nil, curve.Crossing{}, usagef("fit: slo.goodput holds several limits against each request, and a curve is fitted to quantiles; " +
				"give limits on ttft, tpot, itl or e2e, or measure with `planner search`")
		}
		c := byMetric[b.Metric]
		if c == nil {
			var err error
			c, err = curve.Fit(b.Metric, curve.FromMeasurements(trials, b.Metric), cfg.Workload.Seed)
			if err != nil {
				return nil, curve.Crossing{}, usageError{fmt.Errorf("fit %v: %w; %s", b.Metric, err, moreTrials)}
			}
			byMetric[b.Metric] = c
		}
		x, err := c.Crossing(b)
		if err != nil {
			return nil, x, usageError{fmt.Errorf("%w; %s", err, moreTrials)}
		}
		crossings = append(crossings, x)
	}
	lowest, ok := curve.Lowest(crossings)
	if !ok {
		return nil, lowest, usageError{fmt.Errorf("fit: the results hold none of the statistics that the SLO bounds")}
	}
	curves := []*curve.Curve{byMetric[lowest.Bound.Metric]}
	for _, b := range cfg.Objective.Bounds {
		if c := byMetric[b.Metric]; c != nil && c != curves[0] {
			curves = append(curves, c)
			delete(byMetric, b.Metric)
		}
	}
	return curves, lowest, nil
}

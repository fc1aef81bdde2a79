package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/report"
	"planner/plan/decide"
	"planner/sweep"
)

// An experiment is a command that measures: how it is called, the study that it makes
// of a configuration and its own flags, and what it says would run.
type experiment struct {
	name, usage, args, help string
	// config are the flags that set keys of the configuration, own those that stand in
	// [run] of the run folder, as texts.
	config, own []cli.Flag
	// study makes the study of a run, and its ground.
	study func(*program, *run) (sweep.Study, error)
	// dry prints what would run.
	dry func(*program, context.Context, *run) error
	// kept says that there is always a run folder, on the simulated engine too.
	kept bool
	// csv names the file of the run folder that takes the figures of the trials; "" for none.
	csv string
	// action is the command's where it takes something else than one configuration.
	action func(*program, *cli.Context) error
}

// experiments lists the commands that measure.
func experiments() []experiment {
	return []experiment{planExperiment(), estimateExperiment(), simulateExperiment(), searchExperiment(), benchExperiment(), sweepExperiment(), probeExperiment(), compareExperiment()}
}

// experimentOf finds a command that measures by its name.
func experimentOf(command string) (experiment, bool) {
	all := experiments()
	i := slices.IndexFunc(all, func(e experiment) bool { return e.name == command })
	if i < 0 {
		return experiment{}, false
	}
	return all[i], true
}

// measuring are the commands that measure.
func (p *program) measuring() []*cli.Command {
	return list.Map(experiments(), func(e experiment) *cli.Command {
		act := e.action
		if act == nil {
			act = (*program).measure
		}
		return &cli.Command{Name: e.name, Usage: e.usage, ArgsUsage: e.args, Description: e.help,
			Flags:  slices.Concat(e.own, e.config, []cli.Flag{outputFlag()}),
			Action: func(c *cli.Context) error { return act(p, c) }}
	})
}

// planExperiment is the main job.
func planExperiment() experiment {
	return experiment{
		name: "plan", usage: "the main job: search knobs and rates, size and price the fleet, write a run folder", args: "CONFIG",
		help: "Example: planner plan planner.toml\n" +
			"         planner plan planner.toml --set demand.rate=250 --json",
		config: slices.Concat(configFlags(), []cli.Flag{certifyFlag()}), own: []cli.Flag{recordsFlag()},
		study: decisionStudy, dry: (*program).dryDecision, kept: true, csv: report.TrialsSheet + ".csv",
	}
}

// estimateExperiment is the main job on the simulated engine alone.
func estimateExperiment() experiment {
	return experiment{
		name: "estimate", usage: "the same answer in seconds from the simulated engine alone, also entirely from flags", args: "[CONFIG]",
		help: "Example: planner estimate --model llama-3.1-70b --weights fp8 --gpu \"H100 SXM\" --tp 4 \\\n" +
			"           --workload chat --rate 100 --slo ttft.p99=500ms --slo tpot.p99=50ms\n" +
			"         planner estimate planner.toml --gpu \"H100 SXM\" --gpu \"H200 SXM\" --tp 2 --tp 4",
		config: slices.Concat(declared(shortcuts), []cli.Flag{sloFlag()}, configFlags(), []cli.Flag{certifyFlag()}), own: []cli.Flag{recordsFlag()},
		study: decisionStudy, dry: (*program).dryDecision, csv: report.TrialsSheet + ".csv",
	}
}

// decisionStudy searches, sizes and prices.
func decisionStudy(p *program, r *run) (sweep.Study, error) {
	return study(p, r, decide.NewPlan)
}

// searchExperiment is the maximum rate of one set of knobs.
func searchExperiment() experiment {
	return experiment{
		name: "search", usage: "the maximum rate under the SLO for one set of knobs", args: "[CONFIG]",
		help: "Example: planner search planner.toml --set engine.tensor_parallel=4\n" +
			"         planner search --model llama-3.1-8b --gpu L40S --workload chat --slo ttft.p99=1s --json",
		config: slices.Concat(configFlags(), instanceFlags(), []cli.Flag{sloFlag(), certifyFlag()}),
		study:  rateStudy, dry: (*program).dryDecision,
	}
}

// rateStudy searches the maximum rate.
func rateStudy(p *program, r *run) (sweep.Study, error) {
	return study(p, r, decide.NewRateSearch)
}

// study prepares the ground of a run's only configuration, and the study on it.
func study[S sweep.Study](p *program, r *run, of func(*config.Config, sweep.Ground) (S, error)) (sweep.Study, error) {
	ground, err := p.ground(r, r.cfg)
	if err != nil {
		return nil, err
	}
	r.ground = ground
	s, err := of(r.cfg, ground)
	if err != nil {
		return nil, err // and no study of its type that is nil
	}
	return s, nil
}

func recordsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "records", Usage: "write the records of every simulated trial into the run folder"}
}

func dialectFlag() cli.Flag {
	return &cli.StringFlag{Name: "dialect", Usage: "request fields of vllm, sglang, trtllm, tgi, llama-server, lmdeploy or simulated (default: of what the server says it is), or generic for the plain OpenAI ones: --dialect vllm"}
}

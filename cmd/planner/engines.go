package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/report"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
)

// bed is what trials run on: the simulated engine or real ones.
type bed struct {
	// sim is the simulated engine of the configuration; nil where model or
	// hardware are not known. On a real engine it gives priors and a roofline.
	sim *sweep.Simulated
	// run runs a trial, parallel of them side by side.
	run      sweep.Runner
	parallel int
	// live is nil on the simulated engine; book is what was seen of real ones.
	live *sweep.Live
	book *logbook
}

// close stops whatever was started.
func (b *bed) close() error {
	if b.live == nil {
		return nil
	}
	return b.live.Close()
}

// simulatedBed runs trials in virtual time.
func simulatedBed(cfg *config.Config, parallel int) (*bed, error) {
	sim, err := simulated(cfg)
	if err != nil {
		return nil, err
	}
	return &bed{sim: sim, run: sim.Run, parallel: parallel}, nil
}

// liveBed runs trials on the engine of the configuration, whose logs and all that
// it says go into the run folder at path.
func (p *program) liveBed(c *cli.Context, cfg *config.Config, path string) (*bed, error) {
	if cfg.Engine.Launch.Launcher != "local" {
		return nil, usagef("engine.launcher: %q is not built in yet, want \"local\"", cfg.Engine.Launch.Launcher)
	}
	live := &sweep.Live{Settings: engineSettings(cfg), Client: *clientOf(cfg, c.String("dialect"))}
	live.Settings.Dir, live.Settings.Hurry = filepath.Join(path, "engine"), p.signals.hurrying()
	b := &bed{run: live.Run, parallel: 1, live: live, book: &logbook{cfg: cfg, folder: sweep.Folder{Path: path}}}
	if cfg.Model.Known && len(cfg.GPUs) > 0 {
		sim, err := simulated(cfg)
		if err != nil {
			return nil, err
		}
		b.sim = sim
	}
	return b, nil
}

// engineSettings say how to start or reach the engine of the configuration.
func engineSettings(cfg *config.Config) engine.Settings {
	e := cfg.Engine
	return engine.Settings{
		Kind: e.Kind, Model: servedModel(cfg), ServedName: e.Endpoint.ServedName, Argv: e.Launch.Command, ExtraArgs: e.Launch.ExtraArgs,
		Format: format(cfg), URL: e.Endpoint.URL, Env: e.Launch.Env, Headers: e.Endpoint.Headers, APIKeyEnv: e.Endpoint.APIKeyEnv, Chat: e.Endpoint.API == "chat",
		Timeouts: engine.Timeouts{Ready: e.Launch.ReadyTimeout},
	}
}

// format says in what the model of a configuration is to be served.
func format(cfg *config.Config) engine.Format {
	p := cfg.Model.Precision
	return engine.Format{Weights: p.Weights.String(), Stored: cfg.Model.Stored.String(), KV: p.KV.String()}
}

// tell shows what happens to engines, and writes down what was seen of them.
func (b *bed) tell(show *display) {
	if b.live == nil {
		return
	}
	l := b.live
	l.Remark = show.say
	l.Settings.Launching = func(c engine.Command) { show.say("starting: " + c.String()) }
	l.Started = func(e *engine.Engine) { show.say(startedText(e)) }
	l.Progress = show.starting
	l.Running = func(_ measure.Trial, run *load.Test) { show.running(run) }
	l.Seen = func(_ measure.Trial, s sweep.Sighting) {
		show.ended()
		if err := b.book.add(s); err != nil {
			show.say(err.Error())
		}
		show.cost(b.book.spent().String())
	}
	if len(b.book.seen) > 0 {
		show.cost(b.book.spent().String())
	}
}

// startedText says what an engine that serves is, and how long it took.
func startedText(e *engine.Engine) string {
	stages := make([]string, len(e.Stages))
	for i, s := range e.Stages {
		stages[i] = fmt.Sprintf("%s %.1f s", s.Name, s.Took.Seconds())
	}
	text := fmt.Sprintf("%s %s at %s", e.Kind, e.Facts.Version, e.URL)
	if e.Done() == nil {
		return "reached " + text
	}
	return fmt.Sprintf("%s serves after %.1f s (%s)", text, e.Cold.Seconds(), strings.Join(stages, ", "))
}

// recall tells real engines what an earlier process of the run learnt of knobs
// that do not run, and what it cost.
func (b *bed) recall(folder *sweep.Folder) error {
	if b.live == nil || folder == nil || !folder.Has(sweep.JournalFile) {
		return nil
	}
	seen, err := sweep.ReadJournal(folder.File(sweep.JournalFile))
	if err != nil {
		return err
	}
	b.live.Recall(seen)
	return b.book.read()
}

// keeper stores the records of trials: always those of real engines, of the
// simulated one, with their histograms, where the user wants them.
func (b *bed) keeper(folder *sweep.Folder, records bool) func(measure.Trial, measure.Observation) error {
	if folder == nil || b.live == nil && !records {
		return nil
	}
	return func(t measure.Trial, o measure.Observation) error {
		if err := folder.WriteRecords(t.Number, o.Records); err != nil || b.live != nil {
			return err
		}
		return folder.WriteHistograms(t.Number, load.HistogramLog(o.Records))
	}
}

// engines is what a report says of real engines, nil on the simulated one.
func (b *bed) engines() *report.Engines {
	if b == nil || b.book == nil {
		return nil
	}
	return b.book.engines()
}

// servedModel is what an engine is told to load.
func servedModel(cfg *config.Config) string {
	switch {
	case cfg.Model.Config != "":
		return filepath.Dir(cfg.Model.Config)
	case cfg.Model.Arch.Repo != "":
		return cfg.Model.Arch.Repo
	}
	return cfg.Model.Name
}

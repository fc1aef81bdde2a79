package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/engines"
	"planner/internal/expose"
	"planner/sweep"
	"planner/sweep/cluster"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// A run is a study on its ground, with its configuration and the folder for its files. New, resumed and reread
// runs are prepared alike, from a configuration alone: its [run] holds the command line.
type run struct {
	cfg *config.Config
	// second is the configuration of a comparison's other side; nil otherwise.
	second *config.Config
	// folder is nil if nothing is stored.
	folder *sweep.Folder
	ground sweep.Ground
	study  sweep.Study
	// follower runs the parts of the study through a cluster's scheduler; nil if they run here.
	follower *cluster.Follower
	// verbose makes a dry run list everything.
	verbose bool
	// started is the start of the run; zero if it is only read.
	started time.Time

	// dropped says which lists of knobs do not reach the started engines.
	dropped []string

	// settle sets where the files of real engines go; before, if set, inspects the ground before the first
	// trial.
	settle []func(*sweep.Folder)
	before func(context.Context) error
	// see receives events, and exposed exports to Prometheus; either may be nil.
	see     sweep.Watcher
	exposed *expose.Exporter
}

// secondConfig is the file name of the configuration of a comparison's other side.
const secondConfig = "config-b.toml"

// begin reads the configuration of a command with at most one file. For --print-config it prints it and returns
// an exitStatus of success.
func (p *program) begin(c *cli.Context) (cfg *config.Config, err error) {
	path := ""
	if c.Args().Present() || c.Command.ArgsUsage == "CONFIG" {
		if path, err = onePositional(c, "configuration"); err != nil {
			return nil, err
		}
	}
	cfg, err = p.configure(c, path, c.Command.Name)
	if err == nil && c.Bool("print-config") {
		if _, err = p.plain.Write(cfg.TOML()); err == nil {
			err = exitStatus(exitDone)
		}
	}
	return cfg, err
}

func (p *program) measure(c *cli.Context) error {
	cfg, err := p.begin(c)
	if err != nil {
		return err
	}
	return p.start(c, &run{cfg: cfg})
}

func (p *program) start(c *cli.Context, r *run) error {
	e, _ := experimentOf(c.Command.Name)
	r.verbose = c.Bool("verbose")
	r.cfg.Run = config.Invocation{Command: c.Command.Name, Args: c.Args().Slice(), Flags: given(c, e.own)}
	if err := p.prepare(r); err != nil {
		if unable, ok := errors.AsType[*measure.Rejection](err); ok && c.Bool("json") {
			err = cmp.Or(p.printJSON(measure.RejectedLine{Knobs: unable.Knobs, Rejected: unable.Reason.Text, Note: unable.Reason.Note}), err)
		}
		return err
	}
	p.warn(c, r.dropped)
	if c.Bool("dry-run") {
		return p.dryRun(c.Context, r, e)
	}
	if err := r.startable(); err != nil {
		return err
	}
	if err := p.newFolder(c, r, e); err != nil {
		return err
	}
	return p.conduct(c, r)
}

// live returns a run's configurations with real engines, starts those whose engines planner starts.
func (r *run) live() []*config.Config {
	return slices.DeleteFunc([]*config.Config{r.cfg, r.second}, func(cfg *config.Config) bool { return cfg == nil || cfg.Simulated() })
}

func (r *run) starts() []*config.Config {
	return slices.DeleteFunc(r.live(), func(cfg *config.Config) bool { return cfg.Engine.Kind == "attach" })
}

// startable checks, for each real engine of a run, what requests to it require and, if it is started, its
// program and command line.
func (r *run) startable() (err error) {
	if where := r.cfg.Run.Flags["prometheus"]; where != "" {
		if r.exposed, err = expose.New(where); err != nil {
			return usageError{err}
		}
	}
	if r.follower != nil {
		return nil // checked on the nodes
	}
	for _, cfg := range r.live() {
		client := engines.Client(cfg, r.cfg.Run.Flags["dialect"])
		client.URL = cmp.Or(client.URL, "http://127.0.0.1") // a placeholder, as it will be started here
		if err := client.Check(); err != nil {
			return usagef("%s: %w", r.cfg.Run.Command, err)
		}
	}
	for _, cfg := range r.starts() {
		if file := cfg.Model.File; file != "" {
			if _, err := os.Stat(file); err != nil {
				return usagef("model.name: %w", err)
			}
		}
		settings := engineSettings(cfg)
		runnable, _ := cfg.Candidates()
		for _, k := range runnable {
			command, err := settings.Command(k, engine.AnyPort)
			if err != nil {
				return usageError{err}
			}
			if _, err := command.Program(); err != nil {
				return fmt.Errorf("engine: %w", err)
			}
		}
	}
	return nil
}

// given returns a command's own flags as text, including defaults.
func given(c *cli.Context, flags []cli.Flag) map[string]string {
	out := map[string]string{}
	for _, f := range flags {
		name := f.Names()[0]
		if text := fmt.Sprint(c.Value(name)); text != "" && c.Value(name) != false {
			out[name] = text
		}
	}
	return out
}

// prepare makes the ground and study of a run. If a configuration does not allow that, the error is marked as a
// mistake.
func (p *program) prepare(r *run) error {
	e, ok := experimentOf(r.cfg.Run.Command)
	if !ok {
		return usagef("%s was made by 'planner %s', whose trials planner did not run itself", r.folder.Path, r.cfg.Run.Command)
	}
	for _, cfg := range r.starts() { // one of all knob sets with the same command line
		r.dropped = append(r.dropped, cfg.DropUnreached(func(k measure.Knobs) string {
			s := engines.Start(cfg, k)
			return s.Line + "\n" + s.Content
		})...)
	}
	var err error
	r.study, err = e.study(p, r)
	if err == nil {
		err = p.divide(r)
	}
	return asMistake(err)
}

// newFolder creates the run folder that the flags request or the command always has.
func (p *program) newFolder(c *cli.Context, r *run, e experiment) error {
	about := sweep.About{Command: r.cfg.Run.Command, Args: r.cfg.Run.Args, Version: version, Build: revision(), Started: time.Now()}
	files := map[string][]byte{sweep.ConfigFile: r.cfg.TOML()}
	if r.second != nil {
		files[secondConfig] = r.second.TOML()
	}
	var folder sweep.Folder
	var err error
	switch path := c.String("output"); {
	case path != "":
		folder, err = sweep.CreateFolder(path, about, files)
	case e.kept || !r.ground.Virtual || r.follower != nil:
		label := r.cfg.Model.Name
		if about.Command != "plan" {
			label += " " + about.Command
		}
		folder, err = sweep.NewFolder(r.cfg.OutputDir, label, about, files)
	default:
		return nil
	}
	if err != nil {
		return usageError{err}
	}
	r.folder = &folder
	if !c.Bool("quiet") {
		fmt.Fprintln(p.stderr, "run folder:", folder.Path)
	}
	return nil
}

// conduct runs what the journal does not yet hold, and reports.
func (p *program) conduct(c *cli.Context, r *run) error {
	r.started = time.Now()
	beLavish()
	show := p.display(c, r)
	if most := r.most(); most != "" {
		show.See(most)
	}
	streamed := &cluster.Stream{}
	if c.Bool("stream") {
		streamed.Folder, streamed.To = *r.folder, p.stdout
	}
	r.see = func(event any) {
		if r.exposed != nil {
			r.exposed.See(event)
		}
		show.See(event)
		if err := streamed.See(event); err != nil {
			show.See(err.Error())
		}
	}
	stop := func() bool { return false }
	if r.follower == nil && r.ground.Run != nil && (r.folder != nil || !r.ground.Virtual) {
		stop = p.signals.patience(func(line string) { show.See(line) })
	}
	p.signals.fleeting.Store(r.folder == nil && r.ground.Virtual)
	for _, settle := range r.settle {
		settle(r.folder)
	}
	ctx, release, err := r.lease(c.Context)
	if err != nil {
		show.Close()
		return err
	}
	var answer sweep.Answer
	if r.before != nil {
		err = r.before(ctx)
	}
	if err == nil {
		answer, err = sweep.Drive(ctx, r.folder, r.ground, r.study, stop, r.see)
		p.signals.patient.Store(false) // no trial is running
		err = r.explain(err)
	}
	if err == nil && r.follower != nil {
		err = r.follower.Finish(ctx)
	}
	if r.ground.Close != nil {
		r.ground.Close()
	}
	show.Close()
	if r.exposed != nil {
		err = errors.Join(err, r.exposed.Close())
	}
	if r.part() != "" {
		return errors.Join(r.endPart(ctx, err), streamed.End(), release())
	}
	if lost := context.Cause(ctx); errors.Is(lost, sweep.ErrLeaseLost) && errors.Is(err, sweep.ErrInterrupted) {
		err = fmt.Errorf("%w: %w", err, lost)
	}
	return errors.Join(p.conclude(c, r, answer, err), release())
}

func (r *run) explain(err error) error {
	var about sweep.About
	if !errors.Is(err, sweep.ErrOtherTrials) || r.folder.ReadJSON(sweep.AboutFile, &about) != nil {
		return err
	}
	why := "another build of planner began it, its configuration was changed since, or its journal is damaged"
	if about.Version != version || about.Build != revision() {
		why = fmt.Sprintf("planner %s began it, and this is %s, which chooses other trials", build(about.Version, about.Build), build(version, revision()))
	}
	return fmt.Errorf("%s cannot go on: %s; go on with what began it, or begin a new run (planner fit %s reads what it has measured): %w",
		r.folder.Path, why, r.folder.Path, err)
}

func build(version, revision string) string {
	return strings.TrimSuffix(version+" "+revision[:min(len(revision), 10)], " ")
}

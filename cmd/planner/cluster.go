package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/internal/wire"
	"planner/sweep"
	"planner/sweep/cluster"
)

// Flags in [run] of a part of a run: its name, and whether its last stages are requested.
const (
	partFlag  = "part"
	wholeFlag = "whole"
)

// slurmJob is the environment variable with the number of the current job.
const slurmJob = "SLURM_JOB_ID"

// part returns the part that a run folder belongs to, "" for a complete run.
func (r *run) part() string { return r.cfg.Run.Flags[partFlag] }

// divide narrows the study to the run's part, or has its parts run by the configured launcher.
func (p *program) divide(r *run) error {
	launcher := r.cfg.Launcher()
	if r.part() == "" && launcher == "local" {
		return nil
	}
	study, ok := r.study.(sweep.Divided)
	if !ok {
		return usagef("%s: engine.launcher is %q, and %s measures where it is called: want \"local\", or sweep, search, plan, compare",
			r.cfg.Run.Command, launcher, r.cfg.Run.Command)
	}
	if r.part() != "" {
		study.Narrow(r.part(), r.cfg.Run.Flags[wholeFlag] != "")
		return nil
	}
	if r.second != nil && r.second.Launcher() != launcher {
		return usagef("compare: engine.launcher is %q of A and %q of B, want the same for both", launcher, r.second.Launcher())
	}
	scheduler, err := cluster.New(r.cfg)
	if err != nil {
		return err
	}
	r.follower = &cluster.Follower{Launcher: launcher, Scheduler: scheduler, Study: study, MaxJobs: r.cfg.Cluster.MaxJobs,
		Files: r.partFiles, See: func(event any) { r.see(event) }}
	r.ground.Fetch, r.ground.Close = r.follower.Fetch, r.follower.Close
	r.ground.Parallel = allOfThem
	return nil
}

// allOfThem exceeds the number of trials that are ever proposed together.
const allOfThem = 1 << 20

// partFiles are the initial files of a part's run folder.
func (r *run) partFiles(part string, whole bool) (map[string][]byte, error) {
	of := func(cfg *config.Config) []byte {
		own := *cfg
		own.Engine.Launcher = "local"
		own.Run.Flags = map[string]string{partFlag: part}
		maps.Copy(own.Run.Flags, cfg.Run.Flags)
		if whole {
			own.Run.Flags[wholeFlag] = "true"
		}
		return own.TOML()
	}
	about, err := wire.Print(sweep.About{Command: r.cfg.Run.Command, Args: r.cfg.Run.Args, Version: version, Build: revision(), Started: time.Now()})
	files := map[string][]byte{sweep.AboutFile: about, sweep.ConfigFile: of(r.cfg)}
	if r.second != nil {
		files[secondConfig] = of(r.second)
	}
	return files, err
}

// Leases of run folders: a part's is taken from a process that outlived its job, a run's is not taken from its
// holder.
var (
	partLease = sweep.LeaseTerms{Beat: 5 * time.Second, Expiry: 45 * time.Second, Evict: true}
	runLease  = sweep.LeaseTerms{Beat: 5 * time.Second, Expiry: 20 * time.Second}
)

// lease ensures that no other process writes to a run folder that several machines may see. The context ends if
// another takes it over.
func (r *run) lease(ctx context.Context) (context.Context, func() error, error) {
	terms := runLease
	switch {
	case r.part() != "":
		terms = partLease
	case r.follower == nil:
		return ctx, func() error { return nil }, nil
	}
	l, ctx, err := r.folder.Lease(ctx, os.Getenv(slurmJob), terms)
	if err != nil {
		return ctx, nil, err
	}
	r.ground.Confirm = l.Confirm
	if r.part() != "" {
		err = r.folder.Begin()
	} else {
		r.follower.Folder = *r.folder
		held, bad := r.held()
		if err = bad; err == nil {
			err = r.follower.Start(ctx, held)
		}
	}
	if err != nil {
		err = errors.Join(err, l.Release())
	}
	return ctx, l.Release, err
}

// endPart records how the process of a part ended. One that lost its lease writes nothing.
func (r *run) endPart(ctx context.Context, stopped error) error {
	if lost := context.Cause(ctx); errors.Is(lost, sweep.ErrLeaseLost) {
		return lost
	}
	held, err := r.held()
	if err != nil {
		return errors.Join(stopped, err)
	}
	e := sweep.Ending{Done: stopped == nil, Whole: r.cfg.Run.Flags[wholeFlag] != "", Lines: len(held)}
	if stopped != nil && !errors.Is(stopped, sweep.ErrInterrupted) {
		e.Failure = stopped.Error()
	}
	return errors.Join(stopped, r.folder.WriteJSON(sweep.EndingFile, e))
}

// goesOn adds to an error how to resume a run that was interrupted or ran out of disk space.
func (r *run) goesOn(err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if r.folder == nil || !full && !errors.Is(err, sweep.ErrInterrupted) {
		return err
	}
	err = fmt.Errorf("%w; go on with: planner resume %s", err, r.folder.Path)
	if r.follower != nil {
		err = fmt.Errorf("%w (its jobs go on until then; planner clean %s ends them)", err, r.folder.Path)
	}
	return err
}

func (p *program) dryJobs(r *run) error {
	if r.follower == nil {
		return nil
	}
	runs, err := filepath.Abs(r.cfg.OutputDir)
	if err != nil {
		return err
	}
	for _, part := range r.follower.Study.Parts() {
		folder := filepath.Join(runs, "NAME", sweep.PartsDir, part.Name)
		script, err := r.follower.Scheduler.Script(cluster.PartJob{Run: "planner-RUN", Part: part, Folder: folder})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.plain, "\njob of %s:\n%s", part.Name, script); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) cleanCommand() *cli.Command {
	return &cli.Command{
		Name:      "clean",
		Usage:     "end the jobs of a run on a cluster, and remove what is left of them there",
		ArgsUsage: "RUN",
		Description: "Example: planner clean runs/20261121T090000Z-llama-3.1-70b\n" +
			"What was measured stays in the run folder: planner resume goes on with it.",
		Action: p.clean,
	}
}

// gone is the time in which cancelled jobs should end, as engines get time to stop.
const gone = 2 * time.Minute

func (p *program) clean(c *cli.Context) error {
	folder, about, err := openedFolder(c)
	if err != nil {
		return err
	}
	launcher, run, err := cluster.RunName(folder)
	if err != nil {
		return err
	}
	if run == "" {
		return usagef("clean: %s has no jobs: it did not run on a cluster", folder.Path)
	}
	cfg, err := config.Load(folder.File(sweep.ConfigFile), nil, config.For(about.Command))
	if err != nil {
		return err
	}
	scheduler, err := cluster.New(cfg)
	if err != nil {
		return err
	}
	before, err := cluster.Active(c.Context, scheduler, run)
	if err == nil {
		err = scheduler.Cancel(c.Context, run, "")
	}
	for began := time.Now(); err == nil; {
		var left int
		if left, err = cluster.Active(c.Context, scheduler, run); left == 0 {
			break
		}
		if time.Since(began) > gone {
			return fmt.Errorf("clean: %d jobs of %s still run after %v; their names begin with %s", left, launcher, gone, run)
		}
		time.Sleep(time.Second)
	}
	if err == nil {
		_, err = fmt.Fprintf(p.plain, "jobs cancelled: %d; nothing of %s is left at %s\n", before, folder.Path, launcher)
	}
	return err
}

func (p *program) installCommand() *cli.Command {
	return &cli.Command{
		Name:        "install",
		Usage:       "copy this program, for nodes and containers that do not have it",
		ArgsUsage:   "PATH",
		Description: "Example: planner install /shared/bin/planner",
		Action: func(c *cli.Context) error {
			path, err := onePositional(c, "path")
			if err != nil {
				return err
			}
			return install(path)
		},
	}
}

func install(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "planner")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// The program appears under its name only when complete, as jobs may be starting it.
	dir := sweep.Folder{Path: filepath.Dir(path)}
	beside := "." + filepath.Base(path) + "-" + rand.Text()
	program, err := os.ReadFile(self)
	if err == nil {
		err = dir.Write(beside, program)
	}
	if err == nil {
		defer os.Remove(dir.File(beside))
		err = os.Chmod(dir.File(beside), 0o755)
	}
	if err == nil {
		err = os.Rename(dir.File(beside), path)
	}
	if err != nil {
		return fmt.Errorf("install %s: %w", path, err)
	}
	return nil
}

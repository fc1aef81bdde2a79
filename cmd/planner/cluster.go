package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"syscall"
	"time"

	"planner/internal/config"
	"planner/internal/wire"
	"planner/sweep"
	"planner/sweep/cluster"
)

// Flags in [run] of the part of a run: its name, and that its last stages are asked for.
const (
	partFlag  = "part"
	wholeFlag = "whole"
)

// slurmJob is the variable with the number of the job that a process runs in.
const slurmJob = "SLURM_JOB_ID"

// part is the name of the part that a run folder is of, "" for a run of its own.
func (r *run) part() string { return r.cfg.Run.Flags[partFlag] }

// divide leaves one part of a study, or has the parts run by the configured launcher.
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
	r.ground.Fetch, r.ground.Recall, r.ground.Close = r.follower.Fetch, r.follower.Recall, r.follower.Close
	r.ground.Parallel = allOfThem
	return nil
}

// allOfThem is more trials than are ever proposed together.
const allOfThem = 1 << 20

// partFiles are the files that the run folder of a part begins with.
func (r *run) partFiles(part string, whole bool) (map[string][]byte, error) {
	of := func(cfg *config.Config) []byte {
		own := *cfg
		own.Engine.Launch.Launcher = "local"
		own.Run.Flags = maps.Clone(cfg.Run.Flags)
		if own.Run.Flags == nil {
			own.Run.Flags = map[string]string{}
		}
		own.Run.Flags[partFlag] = part
		if whole {
			own.Run.Flags[wholeFlag] = "true"
		}
		return own.TOML()
	}
	about, err := wire.Print(sweep.About{Command: r.cfg.Run.Command, Args: r.cfg.Run.Args, Version: version, Started: time.Now()})
	files := map[string][]byte{sweep.AboutFile: about, sweep.ConfigFile: of(r.cfg)}
	if r.second != nil {
		files[secondConfig] = of(r.second)
	}
	return files, err
}

// Leases of run folders: a part is taken from a process that survived its job, a run is
// left to whoever follows it.
var (
	partLease = sweep.LeaseTerms{Beat: 5 * time.Second, Expiry: 45 * time.Second, Evict: true}
	runLease  = sweep.LeaseTerms{Beat: 5 * time.Second, Expiry: 20 * time.Second}
)

// lease makes sure that no other process writes to the folder of a run that several
// machines may see. The context ends when one takes it over.
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
		err = r.follower.Start(ctx)
	}
	if err != nil {
		err = errors.Join(err, l.Release())
	}
	return ctx, l.Release, err
}

// endPart notes how the process of a part ended. One that lost its lease writes nothing.
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
	return errors.Join(stopped, r.folder.End(e))
}

// goesOn says how to go on with a run that was interrupted, or whose disk is full.
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

// dryJobs shows what would be submitted.
func (p *program) dryJobs(r *run) error {
	if r.follower == nil {
		return nil
	}
	for _, part := range r.follower.Study.Parts() {
		folder := fmt.Sprintf("%s/NAME/%s/%s", r.cfg.OutputDir, sweep.PartsDir, part.Name)
		script, err := r.follower.Scheduler.Script(cluster.Job{Run: "planner-RUN", Part: part, Folder: folder})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.plain, "\njob of %s:\n%s", part.Name, script); err != nil {
			return err
		}
	}
	return nil
}

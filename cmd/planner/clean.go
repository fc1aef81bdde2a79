package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/sweep"
	"planner/sweep/cluster"
)

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

// gone is how long jobs that were cancelled may take to end: an engine is given time to.
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

// install copies this program to a path, or into a folder.
func install(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "planner")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// It appears under its name ready to run: jobs may be starting it.
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

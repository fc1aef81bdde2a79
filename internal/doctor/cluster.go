package doctor

import (
	"context"
	"path/filepath"

	"planner/internal/config"
	"planner/sweep"
	jobs "planner/sweep/cluster"
)

// cluster checks that the configured scheduler answers and would take the job of each part; nothing if engines
// run here.
func cluster(ctx context.Context, cfg *config.Config) []Check {
	if cfg == nil || cfg.Launcher() == "local" {
		return nil
	}
	name := cfg.Launcher()
	scheduler, err := jobs.New(cfg)
	if err == nil {
		_, err = scheduler.List(ctx, "planner-doctor")
	}
	if err != nil {
		found := problem("run planner where the commands of "+name+" work, such as a login node", "%v", err)
		found.Name = name
		return []Check{found}
	}
	answers := passed("%s answers", name)
	answers.Name = name
	all := []Check{answers}
	dir, err := filepath.Abs(cfg.OutputDir)
	if err != nil {
		dir = cfg.OutputDir
	}
	runnable, _ := cfg.Candidates()
	for _, part := range sweep.KindsOf(runnable) {
		found := passed("%s would take it: %d x %s", name, part.GPUs, part.GPU)
		if _, err := scheduler.Submit(ctx, jobs.PartJob{Run: "planner-doctor", Part: part, Folder: filepath.Join(dir, part.Name), Check: true}); err != nil {
			found = problem("correct [cluster]; `planner plan --dry-run` shows the job", "%v", err)
		}
		found.Name = "job " + part.Name
		all = append(all, found)
	}
	return all
}

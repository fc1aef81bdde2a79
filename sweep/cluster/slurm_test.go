package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// A run folder may have blanks in its path: sbatch reads its options as a shell does.
func TestFolderWithBlanks(t *testing.T) {
	s := &Slurm{Spread: func(string, int) (int, int) { return 1, 1 }}
	script := must.Get(s.Script(PartJob{Run: "r", Folder: "/home/me/my runs/100%"}))
	if want := "#SBATCH --output='/home/me/my runs/100%%/job.log'\n"; !strings.Contains(script, want) {
		t.Errorf("no %q in:\n%s", want, script)
	}
}

// A limit on all jobs of a user passes when one of them ends, of this run or not, one on
// those of an account when a colleague's does; a limit on one job stands.
func TestLimitsThatPass(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	const running = `echo "1|RUNNING|None|n1|notebook"; `
	for name, c := range map[string]struct {
		jobs, reason string
		want         JobState
	}{
		"user's other job runs": {running, "QOSMaxJobsPerUserLimit", Queued},
		"nothing runs":          {"", "QOSMaxJobsPerUserLimit", Hopeless},
		"too long for a job":    {running, "QOSMaxWallDurationPerJobLimit", Hopeless},
		"account is in use":     {"", "AssocGrpGRES", Queued},
		"quality is in use":     {"", "QOSGrpNodeLimit", Queued},
		"no such node":          {running, "BadConstraints", Hopeless},
	} {
		must.OK(os.WriteFile(filepath.Join(bin, "squeue"), []byte("#!/bin/sh\n"+c.jobs+`echo "2|PENDING|(`+c.reason+`)||run-a"`+"\n"), 0o755))
		want := []JobStatus{{ID: "2", Part: "a", State: c.want, Reason: c.reason}}
		if got := must.Get((&Slurm{}).List(t.Context(), "run")); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

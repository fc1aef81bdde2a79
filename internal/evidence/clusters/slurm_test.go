//go:build slurm

package clusters

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the shared tests need to know of the site.
const (
	launcher      = "slurm"
	engineProgram = "PROGRAM"
	siteTable     = `
[cluster]
gpu = { "H100 SXM" = "h100", "L40S" = "l40s" }
`
)

// What Slurm refuses ends within ten seconds, in its own words, and so does a job that
// cannot start, in those of its log.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := folder(t, simulated)
	for i, c := range []struct {
		set, words string
		within     time.Duration
	}{
		{`cluster.gpu={ "L40S" = "b200" }`, "Requested node configuration is not available", 10 * time.Second},
		{"cluster.partition=nowhere", "Invalid partition name specified", 10 * time.Second},
		{`cluster.extra=["--gres=gpu:l40s:9"]`, "Requested node configuration is not available", 10 * time.Second},
		{`cluster.extra=["--nodes=3", "--ntasks=3"]`, "waits for what never comes: Partition", 10 * time.Second},
		{`cluster.extra=["--hold"]`, "JobHeldUser", 10 * time.Second},
		{"cluster.planner=/nowhere/planner", "/nowhere/planner: No such file or directory", 20 * time.Second},
	} {
		refused(t, dir, fmt.Sprint("r", i), c.words, c.within, c.set)
	}
}

// jobsOf are the active jobs of a run by part.
func jobsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	return activeJobs(t, runName(t, filepath.Join(dir, "run")))
}

// jobsEnded reports whether no job of a run will do more.
func jobsEnded(t *testing.T, dir string) bool { return len(jobsOf(t, dir)) == 0 }

// leftOf are the jobs of a run that Slurm still has.
func leftOf(t *testing.T, name string) string {
	if jobs := activeJobs(t, name); len(jobs) > 0 {
		return fmt.Sprint(jobs)
	}
	return ""
}

func activeJobs(t *testing.T, run string) map[string]string {
	t.Helper()
	jobs := map[string]string{}
	for line := range strings.Lines(slurmSays(t, "squeue", "-h", "--me", "-o", "%i|%j")) {
		id, job, _ := strings.Cut(strings.TrimSpace(line), "|")
		if part, ours := strings.CutPrefix(job, run+"-"); ours {
			jobs[part] = id
		}
	}
	return jobs
}

// slurmSays runs a command of Slurm, again where the controller is away.
func slurmSays(t *testing.T, argv ...string) string {
	t.Helper()
	for try := 0; ; try++ {
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err == nil {
			return string(out)
		}
		if try == 10 {
			t.Fatalf("%v: %v: %s", argv, err, out)
		}
		time.Sleep(time.Second)
	}
}

// Jobs that are preempted are requeued, and go on where they were.
func TestPreemptedJobs(t *testing.T) {
	t.Parallel()
	inOneGo(t, 6, func(v victim) {
		slurmSays(t, "srun", "-p", "urgent", "--gres=gpu:l40s:4,gpu:h100:4", "true")
		for _, id := range v.jobs {
			restart(t, id)
		}
	}, "--set", "cluster.partition=spot")
}

// restart has a job start now that Slurm requeues, which it would hold back for two minutes.
func restart(t *testing.T, id string) {
	t.Helper()
	await(t, 90*time.Second, func() bool { return stateOf(t, id) == "PENDING" })
	slurmSays(t, "scontrol", "update", "jobid="+id, "StartTime=now")
}

// stateOf is how Slurm says that a job is.
func stateOf(t *testing.T, id string) string {
	t.Helper()
	return strings.TrimSpace(slurmSays(t, "squeue", "-h", "-j", id, "-o", "%T"))
}

// A job that somebody cancels ends the run, once the other part is measured, and resume
// goes on with it.
func TestCancelledJob(t *testing.T) {
	t.Parallel()
	said := harmed(t, 4, func(v victim) { slurmSays(t, "scancel", v.jobs["l40s-tp1"]) })
	if !strings.Contains(said, "was cancelled by somebody else; go on with: planner resume run") {
		t.Errorf("nothing is said of that: %s", said)
	}
}

// A job that reaches its time limit goes on in another.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	said := harmed(t, 14, func(victim) {}, "--set", "cluster.time_limit=2m")
	if !strings.Contains(said, "the part goes on in another") {
		t.Errorf("no job reached its limit: %s", said)
	}
}

// The submitting process and all jobs are killed with signal 9: resume goes on.
func TestKilledJobs(t *testing.T) {
	t.Parallel()
	said := harmed(t, 4, func(v victim) {
		_ = v.submitter.Kill()
		for _, id := range v.jobs {
			slurmSays(t, "scancel", "-b", "-s", "KILL", id)
		}
	})
	if strings.Count(said, "l40s-tp1, 1 x L40S") < 2 {
		t.Errorf("no job was killed: %s", said)
	}
}

// Harm to the daemons is done while no other test runs: top-level tests that are not
// parallel run before those that are.

// The controller is away for a while: jobs go on, and so does who follows them.
func TestControllerDown(t *testing.T) {
	inOneGo(t, 10, func(victim) {
		if err := site.kill("slurmctld", syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := site.controller(); err != nil {
			t.Fatal(err)
		}
	})
}

// A node fails: Slurm starts the job again, while its old processes live on. These lose
// their lease, end their engine within a minute, and never write beside the new ones.
func TestNodeFailure(t *testing.T) {
	inOneGo(t, 10, func(v victim) {
		id := v.jobs["l40s-tp1"]
		node := strings.TrimSpace(slurmSays(t, "squeue", "-h", "-j", id, "-o", "%N"))
		if err := site.kill(node, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		restart(t, id)
		if len(engines(t)) == 0 {
			t.Error("the engine of the lost node did not survive it, as on a real one: nothing is shown")
		}
		for _, id := range v.jobs { // the other one may have been on the same node
			_ = exec.Command("scontrol", "update", "jobid="+id, "StartTime=now").Run()
		}
		await(t, time.Minute, func() bool { return stateOf(t, id) == "RUNNING" })
		began := time.Now()
		await(t, time.Minute, func() bool {
			log, _ := os.ReadFile(filepath.Join(v.dir, "run/parts/l40s-tp1/job.log"))
			return bytes.Contains(log, []byte("writes no more"))
		})
		t.Logf("the process on the lost node ended %v after another began", time.Since(began).Round(time.Second))
		if err := site.node(node); err != nil {
			t.Fatal(err)
		}
	})
	if err := site.ready(time.Minute); err != nil {
		t.Error(err)
	}
}

// inOneGo is harmed by what nobody needs to resume after.
func inOneGo(t *testing.T, n int, harm func(victim), set ...string) {
	t.Helper()
	if said := harmed(t, n, harm, set...); strings.Contains(said, "go on with") {
		t.Errorf("it had to be resumed: %s", said)
	}
}

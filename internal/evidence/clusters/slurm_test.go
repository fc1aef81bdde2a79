//go:build slurm

package clusters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"planner/sweep"
	"planner/sweep/measure"
)

// simulated is a plan over two GPUs, two degrees and four knob sets.
const simulated = `
[demand]
rate = 40
[slo]
ttft = { p99 = "500ms" }
tpot = { p99 = "30ms" }
[model]
name = "llama-3.1-8b"
[hardware]
gpu = ["L40S", "H100 SXM"]
[engine]
tensor_parallel = [1, 2]
[knobs]
max_num_seqs = [64, 256]
max_num_batched_tokens = [2048, 8192]
gpu_memory_utilization = 0.9
[cluster]
gpu = { "H100 SXM" = "h100", "L40S" = "l40s" }
`

// live is a sweep on engines in real time, whose command line names the test.
const live = `
[hardware]
gpu = ["L40S", "H100 SXM"]
[engine]
kind = "command"
command = ["PROGRAM", "serve-sim", "-q", "--ttft", "20ms", "--tpot", "2ms", "--served-name", "NAME", "--listen", "127.0.0.1:{port}"]
launcher = "slurm"
[workload]
prompt = { dist = "fixed", value = 20 }
output = { dist = "fixed", value = 10 }
[cluster]
gpu = { "H100 SXM" = "h100", "L40S" = "l40s" }
`

// planner is a command of planner in dir.
func planner(dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	var said bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stderr, cmd.Stdout = dir, &said, &said
	return cmd, &said
}

// run runs planner to its end, which must be with the exit code.
func run(t *testing.T, code int, dir string, args ...string) string {
	t.Helper()
	cmd, said := planner(dir, args...)
	if got := exitCode(cmd.Run()); got != code {
		t.Fatalf("planner %v: exit code %d, want %d: %s", args, got, code, said)
	}
	return said.String()
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// folder is a new folder with a configuration.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	text = strings.NewReplacer("PROGRAM", program, "NAME", t.Name()).Replace(text)
	if err := os.WriteFile(filepath.Join(dir, "p.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// plan reads a plan without what depends on clock and place.
func plan(t *testing.T, dir, run string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, run, "plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]any
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	delete(p, "run")
	return p
}

// The plan of a simulated engine is the same here and on the cluster, also where the
// process that submits is killed again and again.
func TestPlanIsTheLocalOne(t *testing.T) {
	t.Parallel()
	dir := folder(t, simulated)
	run(t, 0, dir, "plan", "p.toml", "-o", "here", "-q")
	run(t, 0, dir, "plan", "p.toml", "-o", "there", "--set", "engine.launcher=slurm")
	if diff := cmp.Diff(plan(t, dir, "here"), plan(t, dir, "there")); diff != "" {
		t.Error(diff)
	}
	cmd, said := planner(dir, "plan", "p.toml", "-o", "killed", "--set", "engine.launcher=slurm")
	for kill := range 10 {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(300+200*kill)*time.Millisecond, func() { cmd.Process.Kill() })
		if exitCode(cmd.Wait()) == 0 {
			break
		}
		if _, err := os.Stat(filepath.Join(dir, "killed")); err == nil {
			cmd, said = planner(dir, "resume", "killed")
		} else {
			cmd, said = planner(dir, "plan", "p.toml", "-o", "killed", "--set", "engine.launcher=slurm")
		}
	}
	_ = said
	run(t, 0, dir, "resume", "killed")
	if diff := cmp.Diff(plan(t, dir, "here"), plan(t, dir, "killed")); diff != "" {
		t.Error(diff)
	}
	nothingLeft(t, dir, "killed")
}

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
		began := time.Now()
		said := run(t, 1, dir, "search", "p.toml", "-o", fmt.Sprint("r", i), "--json", "--set", "hardware.gpu=L40S", "--set", "engine.tensor_parallel=1",
			"--set", "knobs.max_num_seqs=64", "--set", "knobs.max_num_batched_tokens=2048", "--set", "engine.launcher=slurm", "--set", c.set)
		if took := time.Since(began); took > c.within || !strings.Contains(said, c.words) {
			t.Errorf("%s: after %v, without %q: %s", c.set, took, c.words, said)
		}
		nothingLeft(t, dir, fmt.Sprint("r", i))
	}
}

// harmed starts a sweep of n rates, waits until every part has measured one, does harm,
// and brings the sweep to its end: with or without the first process, every trial is
// measured once, and no job and no engine is left.
func harmed(t *testing.T, n int, harm func(jobs map[string]string), set ...string) (said string) {
	t.Helper()
	t.Parallel()
	dir := folder(t, live)
	rates := make([]string, n)
	for i := range rates {
		rates[i] = fmt.Sprint(5 + i)
	}
	args := append([]string{"sweep", "p.toml", "-o", "run", "--rates", strings.Join(rates, ","), "--duration", "4s", "--warm-up", "1s"}, set...)
	cmd, out := planner(dir, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	parts := []string{"l40s-tp1", "h100-sxm-tp1"}
	await(t, time.Minute, func() bool {
		for _, p := range parts {
			if len(lines(dir, p)) == 0 {
				return false
			}
		}
		return true
	})
	harm(jobsOf(t, dir))
	code := exitCode(cmd.Wait())
	if code == 130 || code == -1 {
		code = exitCode(func() error {
			cmd, out2 := planner(dir, "resume", "run")
			err := cmd.Run()
			out.Write(out2.Bytes())
			return err
		}())
	}
	if code != 0 && code != noneTrusted {
		t.Fatalf("exit code %d: %s", code, out)
	}
	all, err := sweep.ReadJournal(filepath.Join(dir, "run", sweep.JournalFile))
	if err != nil || len(all) != 2*n {
		t.Errorf("%d trials, %v, want %d", len(all), err, 2*n)
	}
	for _, p := range parts {
		if seen := lines(dir, p); len(seen) != n {
			t.Errorf("%s: %d trials, want %d", p, len(seen), n)
		}
	}
	nothingLeft(t, dir, "run")
	return out.String()
}

// noneTrusted is how a sweep ends on a machine that is busy: its load left late.
const noneTrusted = 4

// lines are what a part has measured.
func lines(dir, part string) []measure.Measurement {
	all, _ := sweep.ReadJournal(filepath.Join(dir, "run", "parts", part, sweep.JournalFile))
	return all
}

// jobsOf are the active jobs of a run by part.
func jobsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	name := runName(t, filepath.Join(dir, "run"))
	jobs := map[string]string{}
	for line := range strings.Lines(slurmSays(t, "squeue", "-h", "--me", "-o", "%i|%j")) {
		id, job, _ := strings.Cut(strings.TrimSpace(line), "|")
		if part, ours := strings.CutPrefix(job, name+"-"); ours {
			jobs[part] = id
		}
	}
	return jobs
}

// runName is what the jobs of a run are called by.
func runName(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path, "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct{ Run string }
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	return state.Run
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

// nothingLeft looks for jobs of a run, and for engines of the test.
func nothingLeft(t *testing.T, dir, run string) {
	t.Helper()
	name := runName(t, filepath.Join(dir, run))
	if left := slurmSays(t, "squeue", "-h", "--me", "-o", "%j %T"); strings.Contains(left, name) {
		t.Errorf("jobs are left: %s", left)
	}
	if pids := engines(t); len(pids) > 0 {
		t.Errorf("engines are left: %v", pids)
	}
}

// engines are the processes that serve in this test.
func engines(t *testing.T) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if data, err := os.ReadFile(path); err == nil && bytes.HasPrefix(data, []byte(program+"\x00serve-sim")) && bytes.Contains(data, []byte("\x00"+t.Name()+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func await(t *testing.T, patience time.Duration, until func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !until(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v", patience)
		}
	}
}

// A job that is requeued, as by preemption, goes on where it was.
func TestRequeuedJob(t *testing.T) {
	harmed(t, 6, func(jobs map[string]string) {
		id := jobs["l40s-tp1"]
		slurmSays(t, "scontrol", "requeue", id)
		// Slurm holds a requeued job back for two minutes, which its owner may end.
		await(t, time.Minute, func() bool { return strings.Contains(slurmSays(t, "squeue", "-h", "-j", id, "-o", "%T"), "PENDING") })
		slurmSays(t, "scontrol", "update", "jobid="+id, "StartTime=now")
	})
}

// A job that somebody cancels ends the run, once the other part is measured, and resume
// goes on with it.
func TestCancelledJob(t *testing.T) {
	said := harmed(t, 4, func(jobs map[string]string) { slurmSays(t, "scancel", jobs["l40s-tp1"]) })
	if !strings.Contains(said, "was cancelled by somebody else; go on with: planner resume run") {
		t.Errorf("nothing is said of that: %s", said)
	}
}

// A job that reaches its time limit goes on in another.
func TestTimeLimit(t *testing.T) {
	said := harmed(t, 14, func(map[string]string) {}, "--set", "cluster.time_limit=2m")
	if !strings.Contains(said, "the part goes on in another") {
		t.Errorf("no job reached its limit: %s", said)
	}
}

// The submitting process and all jobs are killed with signal 9: resume goes on.
func TestKilledJobs(t *testing.T) {
	said := harmed(t, 4, func(jobs map[string]string) {
		for _, id := range jobs {
			slurmSays(t, "scancel", "-b", "-s", "KILL", id)
		}
	})
	if !strings.Contains(said, "the part goes on in another") {
		t.Errorf("no job was killed: %s", said)
	}
}

// Harm to the daemons is done while no other test runs: top-level tests that are not
// parallel run before those that are.

// The controller is away for a while: jobs go on, and so does who follows them.
func TestControllerDown(t *testing.T) {
	sequential(t, func(dir string, jobs map[string]string) {
		if err := site.kill("slurmctld", syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if err := site.controller(); err != nil {
			t.Fatal(err)
		}
	})
}

// A node fails: Slurm starts the job again, while its old processes live on. These lose
// their lease, end their engine within a minute, and never write beside the new ones.
func TestNodeFailure(t *testing.T) {
	sequential(t, func(dir string, jobs map[string]string) {
		id := jobs["l40s-tp1"]
		node := strings.TrimSpace(slurmSays(t, "squeue", "-h", "-j", id, "-o", "%N"))
		if err := site.kill(node, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		await(t, 90*time.Second, func() bool { return strings.Contains(slurmSays(t, "squeue", "-h", "-j", id, "-o", "%T"), "PENDING") })
		if len(engines(t)) == 0 {
			t.Error("the engine of the lost node did not survive it, as on a real one: nothing is shown")
		}
		for _, id := range jobs { // the other one may have been on the same node
			_ = exec.Command("scontrol", "update", "jobid="+id, "StartTime=now").Run()
		}
		await(t, time.Minute, func() bool { return strings.Contains(slurmSays(t, "squeue", "-h", "-j", id, "-o", "%T"), "RUNNING") })
		began := time.Now()
		await(t, time.Minute, func() bool {
			log, _ := os.ReadFile(filepath.Join(dir, "run/parts/l40s-tp1/job.log"))
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

// sequential is harmed in a test that runs alone.
func sequential(t *testing.T, harm func(dir string, jobs map[string]string)) {
	t.Helper()
	dir := folder(t, live)
	cmd, out := planner(dir, "sweep", "p.toml", "-o", "run", "--rates", "5,6,7,8,9,10,11,12,13,14", "--duration", "4s", "--warm-up", "1s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, time.Minute, func() bool { return len(lines(dir, "l40s-tp1")) > 0 && len(lines(dir, "h100-sxm-tp1")) > 0 })
	harm(dir, jobsOf(t, dir))
	if code := exitCode(cmd.Wait()); code != 0 && code != noneTrusted {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, p := range []string{"l40s-tp1", "h100-sxm-tp1"} {
		if n := len(lines(dir, p)); n != 10 {
			t.Errorf("%s: %d trials, want 10", p, n)
		}
	}
	nothingLeft(t, dir, "run")
}

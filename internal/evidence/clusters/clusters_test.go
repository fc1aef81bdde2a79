//go:build slurm || kubernetes

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

	"planner/internal/evidence/programtest"
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
` + siteTable

// live is a sweep on engines in real time, whose command line names the test.
const live = `
[hardware]
gpu = ["L40S", "H100 SXM"]
[engine]
kind = "command"
command = ["` + engineProgram + `", "serve-sim", "-q", "--ttft", "20ms", "--tpot", "2ms", "--served-name", "SERVED", "--listen", "127.0.0.1:{port}"]
launcher = "` + launcher + `"
[workload]
prompt = { dist = "fixed", value = 20 }
output = { dist = "fixed", value = 10 }
` + siteTable

// onSite has the cluster run what a configuration describes.
const onSite = "engine.launcher=" + launcher

// program is planner as the tests build it.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

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
	if got := programtest.ExitCode(cmd.Run()); got != code {
		t.Fatalf("planner %v: exit code %d, want %d: %s", args, got, code, said)
	}
	return said.String()
}

// folder is a new folder with a configuration.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	configure(t, dir, text)
	return dir
}

// configure writes a configuration into a folder.
func configure(t *testing.T, dir, text string) {
	t.Helper()
	text = strings.NewReplacer("PROGRAM", program, "SERVED", servedName(t)).Replace(text)
	if err := os.WriteFile(filepath.Join(dir, "p.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plan reads a plan without what depends on clock and place.
func plan(t *testing.T, dir, run string) (p map[string]any) {
	t.Helper()
	read(t, filepath.Join(dir, run, "plan.json"), &p)
	delete(p, "run")
	return p
}

// read reads a JSON document.
func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The plan of a simulated engine is the same here and on the cluster, also where the
// process that submits is killed again and again.
func TestPlanIsTheLocalOne(t *testing.T) {
	t.Parallel()
	dir := folder(t, simulated)
	run(t, 0, dir, "plan", "p.toml", "-o", "here", "-q")
	run(t, 0, dir, "plan", "p.toml", "-o", "there", "--set", onSite)
	if diff := cmp.Diff(plan(t, dir, "here"), plan(t, dir, "there")); diff != "" {
		t.Error(diff)
	}
	nothingLeft(t, dir, "there")
	cmd, _ := planner(dir, "plan", "p.toml", "-o", "killed", "--set", onSite)
	for kill := range 10 {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(300+200*kill)*time.Millisecond, func() { cmd.Process.Kill() })
		if programtest.ExitCode(cmd.Wait()) == 0 {
			break
		}
		if _, err := os.Stat(filepath.Join(dir, "killed")); err == nil {
			cmd, _ = planner(dir, "resume", "killed")
		} else {
			cmd, _ = planner(dir, "plan", "p.toml", "-o", "killed", "--set", onSite)
		}
	}
	run(t, 0, dir, "resume", "killed")
	if diff := cmp.Diff(plan(t, dir, "here"), plan(t, dir, "killed")); diff != "" {
		t.Error(diff)
	}
	nothingLeft(t, dir, "killed")
}

// refused runs a search that no job can be submitted or started for, and wants that said
// in the given words, within the time.
func refused(t *testing.T, dir, run, words string, within time.Duration, set ...string) {
	t.Helper()
	args := []string{"search", "p.toml", "-o", run, "--json"}
	for _, s := range append([]string{"hardware.gpu=L40S", "engine.tensor_parallel=1", "knobs.max_num_seqs=64", "knobs.max_num_batched_tokens=2048", onSite}, set...) {
		args = append(args, "--set", s)
	}
	cmd, said := planner(dir, args...)
	began := time.Now()
	code := programtest.ExitCode(cmd.Run())
	if took := time.Since(began); code != 1 || took > within || !strings.Contains(said.String(), words) {
		t.Errorf("%v: exit code %d after %v, want 1 and %q within %v: %s", set, code, took, words, within, said)
	} else {
		t.Logf("%v: rejected after %v", set, took.Round(100*time.Millisecond))
	}
	nothingLeft(t, dir, run)
}

// bothParts are those of a live sweep.
var bothParts = []string{"l40s-tp1", "h100-sxm-tp1"}

// victim is a sweep that harm is done to.
type victim struct {
	// dir is where its run folder is, jobs are its active jobs by part.
	dir  string
	jobs map[string]string
	// submitter is the process that follows, ended closed when it has ended.
	submitter *os.Process
	ended     chan struct{}
}

// harmed starts a sweep of n rates, waits until every part has measured one, does harm,
// and brings the sweep to its end: with or without the first process, every trial is
// measured once, and no job and no engine is left.
func harmed(t *testing.T, n int, harm func(victim), set ...string) (said string) {
	t.Helper()
	return harmedIn(t, folder(t, live), n, harm, set...)
}

// harmedIn does so in a folder with a configuration.
func harmedIn(t *testing.T, dir string, n int, harm func(victim), set ...string) (said string) {
	t.Helper()
	rates := make([]string, n)
	for i := range rates {
		rates[i] = fmt.Sprint(5 + i)
	}
	args := append([]string{"sweep", "p.toml", "-o", "run", "--rates", strings.Join(rates, ","), "--duration", "4s", "--warm-up", "1s"}, set...)
	cmd, out := planner(dir, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	code, ended := 0, make(chan struct{})
	go func() {
		code = programtest.ExitCode(cmd.Wait())
		close(ended)
	}()
	await(t, 3*time.Minute, func() bool { return len(lines(dir, bothParts[0])) > 0 && len(lines(dir, bothParts[1])) > 0 })
	harm(victim{dir, jobsOf(t, dir), cmd.Process, ended})
	<-ended
	if code == 130 || code == -1 || code == 1 && strings.Contains(out.String(), noSpace) {
		cmd, again := planner(dir, "resume", "run")
		code = programtest.ExitCode(cmd.Run())
		out.Write(again.Bytes())
	}
	if code != 0 && code != noneTrusted {
		t.Fatalf("exit code %d: %s", code, out)
	}
	all, err := sweep.ReadJournal(filepath.Join(dir, "run", sweep.JournalFile))
	if err != nil || len(all) != 2*n {
		t.Errorf("%d trials, %v, want %d", len(all), err, 2*n)
	}
	for _, p := range bothParts {
		if seen := lines(dir, p); len(seen) != n {
			t.Errorf("%s: %d trials, want %d", p, len(seen), n)
		}
	}
	nothingLeft(t, dir, "run")
	return out.String()
}

// noSpace is what the system says of a disk that is full.
const noSpace = "no space left on device"

// noneTrusted is how a sweep ends on a machine that is busy: its load left late.
const noneTrusted = 4

// lines are what a part has measured.
func lines(dir, part string) []measure.Measurement {
	all, _ := sweep.ReadJournal(filepath.Join(dir, "run", "parts", part, sweep.JournalFile))
	return all
}

// runName is what the jobs of a run are called by.
func runName(t *testing.T, path string) string {
	t.Helper()
	var state struct{ Run string }
	read(t, filepath.Join(path, "cluster.json"), &state)
	return state.Run
}

// nothingLeft looks for jobs of a run, and for engines of the test.
func nothingLeft(t *testing.T, dir, run string) {
	t.Helper()
	if left := leftOf(t, runName(t, filepath.Join(dir, run))); left != "" {
		t.Errorf("jobs are left: %s", left)
	}
	if pids := engines(t); len(pids) > 0 {
		t.Errorf("engines are left: %v", pids)
	}
}

// servedName is what the engines of a test call their model, by which they are found.
func servedName(t *testing.T) string { return "model-of-" + t.Name() }

// engines are the processes that serve in this test.
func engines(t *testing.T) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte("\x00"+servedName(t)+"\x00")) {
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

// The submitting process is killed with signal 9: its jobs go on to their end, and resume
// takes what they have measured.
func TestKilledSubmitter(t *testing.T) {
	t.Parallel()
	said := harmed(t, 4, func(v victim) {
		_ = v.submitter.Kill()
		await(t, 5*time.Minute, func() bool { return jobsEnded(t, v.dir) })
	})
	if strings.Count(said, "l40s-tp1, 1 x L40S") != 1 {
		t.Errorf("another job was submitted: %s", said)
	}
}

// The disk of the run folder fills up: nothing outlives the jobs, the process that follows
// says what and where, and once there is room resume goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("disk", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("SKIPPED: a small disk takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	configure(t, dir, live)
	said := harmedIn(t, dir, 8, func(v victim) {
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("the disk is not full: %v", err)
		}
		await(t, 3*time.Minute, func() bool { return len(engines(t)) == 0 })
		<-v.ended
		if err := os.Remove(ballast); err != nil {
			t.Error(err)
		}
	})
	if !strings.Contains(said, noSpace) || !strings.Contains(said, "go on with: planner resume run") {
		t.Errorf("nothing is said of the disk: %s", said)
	}
}

package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const killConfig = `
[demand]
rate = 40
[slo]
ttft = { p99 = "500ms" }
tpot = { p99 = "30ms" }
[model]
name = "llama-3.1-8b"
[hardware]
gpu = ["L40S", "H100 SXM"]
[knobs]
max_num_seqs = [64, 128, 256]
max_num_batched_tokens = [2048, 8192]
gpu_memory_utilization = 0.9
`

// planner is the program as a process of its own, in dir: this test binary under
// another name.
func planner(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = "planner"
	cmd.Dir = dir
	return cmd
}

// runFolder is the only run folder of dir, "" if none was made yet.
func runFolder(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "runs", "[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	switch len(found) {
	case 0:
		return ""
	case 1:
		return found[0]
	}
	t.Fatalf("several run folders: %v", found)
	return ""
}

// Killed with SIGKILL at random instants, again while it resumes, a run ends
// with the same plan and the same journal as one that nobody touched.
func TestKilledRunResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	whole := configured(t)
	began := time.Now()
	if out, err := planner(t, whole, "plan", "p.toml", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(began)
	want := storedAnswer(t, runFolder(t, whole))
	journal := read(t, filepath.Join(runFolder(t, whole), "journal.jsonl"))

	rng := rand.New(rand.NewPCG(1, 1))
	resumed := 0
	for range 6 {
		dir := configured(t)
		killAfter(t, planner(t, dir, "plan", "p.toml", "--quiet"), time.Duration(rng.Float64()*float64(took)))
		folder := runFolder(t, dir)
		if folder == "" {
			continue // killed before the run began: nothing to resume, and nothing left behind
		}
		resumed++
		killAfter(t, planner(t, dir, "resume", folder, "--quiet"), time.Duration(rng.Float64()*float64(took)/2))
		if out, err := planner(t, dir, "resume", folder, "--quiet").CombinedOutput(); err != nil {
			t.Fatalf("resume: %v\n%s", err, out)
		}
		if got := storedAnswer(t, folder); got != want {
			t.Errorf("killed and resumed: another plan\n%s\nthan in one go\n%s", got, want)
		}
		if got := read(t, filepath.Join(folder, "journal.jsonl")); got != journal {
			t.Error("killed and resumed: another journal than in one go")
		}
	}
	if resumed < 3 {
		t.Errorf("only %d of 6 kills hit a run that had begun", resumed)
	}
}

// configured is a new folder with the configuration in it.
func configured(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.toml"), []byte(killConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// killAfter starts a process and kills it after a while; one that ended before
// is as good.
func killAfter(t *testing.T, cmd *exec.Cmd, after time.Duration) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	cmd.Wait()
	timer.Stop()
}

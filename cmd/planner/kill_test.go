package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"planner/internal/evidence/must"

	"github.com/google/go-cmp/cmp"
)

const killConfig = smallDemand + `
[hardware]
gpu = ["L40S", "A10"]
[knobs]
max_num_seqs = [64, 128]
max_num_batched_tokens = 2048
gpu_memory_utilization = 0.9
[workload]
prompt = { dist = "uniform", min = 50, max = 150 }
output = { dist = "uniform", min = 20, max = 40 }
[search]
precision = 0.3
budget = "4m"
`

// planner is the program as a process of its own, in dir: this test binary under
// another name.
func planner(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(must.Get(os.Executable()), args...)
	cmd.Args[0] = "planner"
	cmd.Dir = dir
	return cmd
}

// runFolder is the only run folder of dir, "" if none was made yet.
func runFolder(t *testing.T, dir string) string {
	t.Helper()
	found := must.Get(filepath.Glob(filepath.Join(dir, "runs", "[0-9]*")))
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
	want := storedAnswer(runFolder(t, whole))
	journal := read(filepath.Join(runFolder(t, whole), "journal.jsonl"))

	files := textsOf(runFolder(t, whole))
	kills := must.Get(killCount())
	rng := rand.New(rand.NewPCG(1, 1))
	resumed := 0
	for range kills {
		dir := configured(t)
		killAfter(planner(t, dir, "plan", "p.toml", "--quiet"), time.Duration(rng.Float64()*float64(took)))
		folder := runFolder(t, dir)
		if folder == "" {
			continue // killed before the run began: nothing to resume, and nothing left behind
		}
		resumed++
		killAfter(planner(t, dir, "resume", folder, "--quiet"), time.Duration(rng.Float64()*float64(took)/2))
		if out, err := planner(t, dir, "resume", folder, "--quiet").CombinedOutput(); err != nil {
			t.Fatalf("resume: %v\n%s", err, out)
		}
		if got := storedAnswer(folder); got != want {
			t.Errorf("killed and resumed: another plan\n%s\nthan in one go\n%s", got, want)
		}
		if got := read(filepath.Join(folder, "journal.jsonl")); got != journal {
			t.Error("killed and resumed: another journal than in one go")
		}
		if diff := cmp.Diff(files, textsOf(folder)); diff != "" {
			t.Errorf("killed and resumed: other files than in one go:\n%s", diff)
		}
	}
	if resumed < kills/2 {
		t.Errorf("only %d of %d kills hit a run that had begun", resumed, kills)
	}
}

// killCount is how many kills are tried: PLANNER_KILLS, or a few.
func killCount() (int, error) {
	if text := os.Getenv("PLANNER_KILLS"); text != "" {
		return strconv.Atoi(text)
	}
	return 2, nil
}

// textsOf are the files of a run folder with their texts; those of images and those that
// tell of clock and place are empty.
func textsOf(folder string) map[string]string {
	files := map[string]string{}
	must.OK(filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files[name] = ""
		if !slices.Contains([]string{"run.json", "plan.json", storedFile}, name) {
			sum := sha256.Sum256([]byte(read(path)))
			files[name] = hex.EncodeToString(sum[:])
		}
		return err
	}))
	return files
}

// TestEndIsWrittenLast: the answer is written last, so that a run whose writing of the last files is cut is not taken
// for one that has ended, and is given all of its files when it is resumed. TestRunsAgree cuts it before any of them.
func TestEndIsWrittenLast(t *testing.T) {
	t.Parallel()
	dir, folder, _ := finishedRun(t)
	want := textsOf(folder)
	inOrder := slices.SortedFunc(maps.Keys(want), func(a, b string) int {
		return written(filepath.Join(finished().folder, a)).Compare(written(filepath.Join(finished().folder, b)))
	})
	last := len(inOrder) - 1
	if inOrder[last] != storedFile || inOrder[last-1] != "plan.json" {
		t.Errorf("written in this order: %v", inOrder)
	}
	must.OK(os.Remove(filepath.Join(folder, storedFile)))
	put(t, filepath.Join(folder, "plots", ".tmp-half"), "half")
	if again, _ := planned(t, dir, "resume", folder); again != exitDone {
		t.Errorf("without the last file: exit code %d", again)
	}
	if diff := cmp.Diff(want, textsOf(folder)); diff != "" {
		t.Errorf("without the last file: other files than in one go:\n%s", diff)
	}
}

// TestCutFleetIsReplayed: a fleet whose run was cut has no report, and is given all of its
// files when it is resumed.
func TestCutFleetIsReplayed(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "run")
	code, _, told := inProcess(t.Context(), "fleet", "testdata/fleet/llm-d.toml", "--seeds", "2", "--no-static", "-o", folder, "--set", `fleet.stages=[{rate=1,duration="60s"}]`)
	want := textsOf(folder)
	if len(want) != 7 {
		t.Fatalf("exit code %d: %s", code, told)
	}
	for name := range want {
		if name != "run.json" && name != "config.toml" {
			os.Remove(filepath.Join(folder, name))
		}
	}
	put(t, filepath.Join(folder, ".tmp-half"), "half")
	for _, c := range []struct {
		command string
		want    int
	}{{"report", exitFailed}, {"resume", code}} { // in this order: resume makes the report
		if got, _, told := inProcess(t.Context(), c.command, folder); got != c.want {
			t.Errorf("%s: exit code %d, want %d: %s", c.command, got, c.want, told)
		}
	}
	if diff := cmp.Diff(want, textsOf(folder)); diff != "" {
		t.Errorf("other files than in one go:\n%s", diff)
	}
}

func written(path string) time.Time {
	return must.Get(os.Stat(path)).ModTime()
}

// configured is a new folder with the configuration in it.
func configured(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "p.toml"), killConfig)
	return dir
}

func read(path string) string {
	return string(must.Get(os.ReadFile(path)))
}

// killAfter starts a process and kills it after a while; one that ended before
// is as good.
func killAfter(cmd *exec.Cmd, after time.Duration) {
	must.OK(cmd.Start())
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	cmd.Wait()
	timer.Stop()
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/sweep"
)

// A bench that launches its engine leaves all that a sweep leaves; a
// configuration that cannot run is a journaled result, with its cause.
func TestLiveBench(t *testing.T) {
	t.Parallel()
	l := newLive(t, "no-kv")
	bench := func(seqs string) (int, string, string) {
		return l.run(t, "bench", "p.toml", "--set", "knobs.max_num_seqs="+seqs, "--rate", "40", "--duration", "400ms", "--warm-up", "100ms", "-o", "run")
	}
	code, out, told := bench("16")
	if code != exitUndecided && code != exitDone || !strings.Contains(out, "CLIENT AND SERVER") || !strings.Contains(told, "serves after") {
		t.Errorf("exit code %d\n%s\n%s", code, out, told)
	}
	l.leaves(t, 1)
	if again, out2, _ := l.run(t, "report", "run"); again != 0 || out2 != out {
		t.Errorf("the report again: exit code %d\n%s\nwas\n%s", again, out2, out)
	}
	must.OK(os.Rename(filepath.Join(l.dir, "run"), filepath.Join(l.dir, "first")))
	code, out, told = bench("13")
	seen, err := sweep.ReadJournal(filepath.Join(l.dir, "run", "journal.jsonl"))
	if code != exitFailed || !strings.HasPrefix(out, "Cannot run: engine failed (mem.no_kv)") || err != nil || len(seen) != 1 || seen[0].Rejected.Text == "" {
		t.Errorf("exit code %d, %d in the journal (%v)\n%s\n%s", code, len(seen), err, out, told)
	}
	l.nothingLeft(t)
}

// A comparison of two launched engines runs them in turns and keeps what each
// trial brought.
func TestLiveCompare(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	l := newLive(t, "", "[16, 13]", "16")
	text := must.Get(os.ReadFile(filepath.Join(l.dir, "p.toml")))
	other := strings.Replace(string(text), "max_num_seqs = 16", "max_num_seqs = 8", 1)
	put(t, filepath.Join(l.dir, "b.toml"), other)
	code, out, told := l.run(t, "compare", "p.toml", "b.toml", "--rate", "40", "--rounds", "2", "--duration", "400ms", "--warm-up", "100ms", "-o", "run")
	if code != exitUndecided && code != exitDone || !strings.Contains(out, "CLIENT AND SERVER") || strings.Count(told, "starting: ") != 3 {
		t.Errorf("exit code %d\n%s\n%s", code, out, told)
	}
	for trial := range 4 {
		l.leaves(t, trial+1)
	}
	l.nothingLeft(t)
}

// Memory of a GPU that somebody else takes meanwhile is told of, and costs no answer.
func TestLiveBenchOnGPUOfOthers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits ten seconds for the memory")
	}
	l := newLive(t, "")
	tool := filepath.Join(l.dir, "bin", "nvidia-smi")
	script := "#!/bin/sh\nm=9216\nmkdir " + tool + ".asked 2>/dev/null && m=1024\necho \"0, NVIDIA L40S, 550, 46068, $m, 0, 50.0, 300, 0x1\"\n"
	must.OK(os.WriteFile(tool, []byte(script), 0o755))
	code, out, told := l.run(t, "bench", "p.toml", "--set", "knobs.max_num_seqs=16", "--rate", "40", "--duration", "400ms", "--warm-up", "100ms", "-o", "run")
	if code != exitUndecided && code != exitDone || !strings.Contains(out, "CLIENT AND SERVER") || strings.Count(told, "a GPU has 8.0 GiB more in use") != 1 {
		t.Errorf("exit code %d\n%s\n%s", code, out, told)
	}
	l.leaves(t, 1)
}

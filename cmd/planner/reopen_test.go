package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A run folder whose stored answer is damaged is read and resumed by its journal, which
// gives the same answer, and says so; without a study that could be replayed the remedy
// is named.
func TestDamagedAnswerIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := runsIn(t)
	whole := filepath.Join(dir, "whole")
	code, out := planned(t, dir, slices.Concat([]string{"estimate", "p.toml", "-o", whole}, single)...)
	damage := func(folder string) {
		if err := os.WriteFile(filepath.Join(folder, storedFile), []byte(`{"exit_code": 0, "ans`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage(whole)
	for _, command := range []string{"report", "resume"} {
		var stdout, stderr bytes.Buffer
		again := execute(t.Context(), []string{"planner", command, whole}, &stdout, &stderr, &interrupts{})
		if again != code || stdout.String() != out {
			t.Errorf("%s: exit code %d\n%s%s\nwas\n%s", command, again, stderr.String(), stdout.String(), out)
		}
		if n := strings.Count(stderr.String(), "report.json is damaged (unexpected end of JSON input): the answer is made of the journal again\n"); n != 1 {
			t.Errorf("%s: told %d times of the damage:\n%s", command, n, stderr.String())
		}
	}
	storedAnswer(t, whole) // whole again since the run was resumed
	results, imported := filepath.Join(dir, "results.csv"), filepath.Join(dir, "imported")
	if err := os.WriteFile(results, []byte("rate_per_s,ttft_p50_ms\n1,20\n2,30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	planned(t, dir, "import", results, "-o", imported)
	damage(imported)
	var stdout, stderr bytes.Buffer
	if again := execute(t.Context(), []string{"planner", "report", imported}, &stdout, &stderr, &interrupts{}); again != exitFailed ||
		!strings.Contains(stderr.String(), "make the folder again with planner import") {
		t.Errorf("exit code %d: %s", again, stderr.String())
	}
}

// Run folders hold prompts, addresses and logs: their owner alone reads them.
func TestRunsAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := runsIn(t)
	folder := filepath.Join(dir, "run")
	planned(t, dir, slices.Concat([]string{"simulate", "p.toml", "--rate", "2", "--duration", "5s", "-o", folder}, single)...)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

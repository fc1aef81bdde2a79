package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"planner/internal/evidence/must"
)

// A run folder whose stored answer is damaged is read and resumed by its journal, which
// gives the same answer, and says so; without a study that could be replayed the remedy
// is named.
func TestDamagedAnswerIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir, whole, out := finishedRun(t)
	damage := func(folder string) {
		put(t, filepath.Join(folder, storedFile), `{"exit_code": 0, "ans`)
	}
	cut := filepath.Join(dir, "cut")
	killed(t, whole, cut)
	if _, so := planned(t, dir, "report", cut); !strings.HasPrefix(so, "Interrupted, so far: ") {
		t.Errorf("the report of half a run does not say so first:\n%s", so)
	}
	damage(whole)
	for _, command := range []string{"report", "resume"} {
		again, text, told := inProcess(t.Context(), command, whole)
		if again != exitDone || text != out {
			t.Errorf("%s: exit code %d\n%s%s\nwas\n%s", command, again, told, text, out)
		}
		if n := strings.Count(told, "report.json is damaged (unexpected end of JSON input): the answer is made again\n"); n != 1 {
			t.Errorf("%s: told %d times of the damage:\n%s", command, n, told)
		}
	}
	storedAnswer(whole) // whole again since the run was resumed
	results, imported := filepath.Join(dir, "results.csv"), filepath.Join(dir, "imported")
	put(t, results, "rate_per_s,ttft_p50_ms\n1,20\n2,30\n")
	planned(t, dir, "import", results, "-o", imported)
	damage(imported)
	if code, _, told := inProcess(t.Context(), "report", imported); code != exitFailed || !strings.Contains(told, "make it again with: planner import") {
		t.Errorf("exit code %d: %s", code, told)
	}
}

// What is deleted from the folder of a finished run is made again of its journal; what is lost
// of the journal is not measured again without a word, and the report is still printed. A run
// that is not there is no configuration.
func TestDeletedFilesOfARun(t *testing.T) {
	t.Parallel()
	dir, whole, out := finishedRun(t)
	files, manifests := filesOf(whole), func() string { _, out := planned(t, dir, "manifests", whole); return out }
	want, plan := manifests(), filepath.Join(whole, "plan.json")
	try := func(code int, says string, args ...string) string {
		t.Helper()
		got, out, told := inProcess(t.Context(), args...)
		if got != code || !strings.Contains(told, says) {
			t.Errorf("%v: exit code %d, want %d and %q:\n%s", args, got, code, says, told)
		}
		return out
	}
	must.OK(errors.Join(os.Remove(plan), os.Remove(filepath.Join(whole, "report.md"))))
	try(exitUsage, "planner resume "+whole, "manifests", whole)
	if got := try(exitDone, whole+" lacks plan.json, report.md: its files are made again", "resume", whole); got != out {
		t.Errorf("the answer is\n%s\nand was\n%s", got, out)
	}
	if again := filesOf(whole); !slices.Equal(again, files) || manifests() != want {
		t.Errorf("the files are %v, want %v", again, files)
	}
	try(exitUsage, "compare: "+filepath.Join(dir, "none")+" is no run folder: ", "compare", whole, filepath.Join(dir, "none"))
	journal := filepath.Join(whole, "journal.jsonl")
	_, rest, _ := strings.Cut(read(journal), "\n")
	for code, lose := range map[int]func(){exitFailed: func() { put(t, journal, rest) }, exitDone: func() { os.Remove(journal) }} {
		lose()
		if got := try(exitDone, "this is the report as it was", "report", whole); got != out {
			t.Errorf("the report is\n%s\nand was\n%s", got, out)
		}
		try(code, "journal.jsonl is damaged: report.json was made of ", "resume", whole)
	}
}

// A run that was cut and whose planner chose other trials is refused in one sentence that
// names both planners and what to do.
func TestOtherPlannersRun(t *testing.T) {
	t.Parallel()
	dir, whole, _ := finishedRun(t)
	cut := filepath.Join(dir, "cut")
	killed(t, whole, cut)
	edit := func(name, from, to string) {
		path := filepath.Join(cut, name)
		changed := strings.Replace(read(path), from, to, 1)
		put(t, path, changed)
	}
	edit("journal.jsonl", `"rate_per_s":`, `"rate_per_s":1`)
	for _, c := range []struct{ from, to, want string }{
		{`"version": "`, `"version": "0.0.`, " cannot go on: planner 0.0." + version},
		{`"version": "0.0.`, `"version": "`, " cannot go on: another build of planner began it, its configuration was changed since, or its journal is damaged; "},
	} {
		edit("run.json", c.from, c.to)
		if code, _, said := inProcess(t.Context(), "resume", cut); code != exitFailed || !strings.Contains(said, c.want) || !strings.Contains(said, "planner fit "+cut) || strings.Count(said, "planner:") != 1 {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
}

// finished is a run that tests copy, so that only one has to search. A process of its own made it, with no mask of
// file modes.
var finished = sync.OnceValue(func() (r struct{ folder, out string }) {
	dir := must.Get(os.MkdirTemp(scratch, "finished"))
	program := filepath.Join(dir, "planner")
	must.OK(errors.Join(os.Symlink(must.Get(os.Executable()), program), os.WriteFile(filepath.Join(dir, "p.toml"), []byte(simulatedConfig), 0o600)))
	r.folder = filepath.Join(dir, "run")
	cmd := exec.Command("sh", slices.Concat([]string{"-c", `umask 0; exec "$@"`, "sh", program,
		"estimate", "p.toml", "--set", "search.budget=8m", "-o", r.folder}, single)...)
	cmd.Dir = dir
	r.out = string(must.Get(cmd.Output()))
	return r
})

// finishedRun is a folder with configurations and a copy of the finished run, and what that run printed.
func finishedRun(t *testing.T) (dir, whole, out string) {
	t.Helper()
	dir = runsIn(t)
	whole = filepath.Join(dir, "whole")
	must.OK(os.CopyFS(whole, os.DirFS(finished().folder)))
	return dir, whole, strings.ReplaceAll(finished().out, finished().folder, whole)
}

// Run folders hold prompts, addresses and logs: their owner alone reads them, whatever
// mask the shell has.
func TestRunsAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	folder := finished().folder
	seen := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		seen++
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil || seen < 10 {
		t.Fatalf("%d files and folders, %v", seen, err)
	}
}

// TestLinksAreNotFollowed: whatever is linked into a run folder, resume and report neither
// read nor change what lies outside.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir, whole, _ := finishedRun(t)
	outside := filepath.Join(dir, "outside")
	must.OK(os.Mkdir(outside, 0o700))
	precious := filepath.Join(outside, "precious")
	put(t, precious, "precious")
	for _, name := range []string{"journal.jsonl", "config.toml", "run.json", storedFile, "report.txt", "plan.json", "plots", "plots/01-latency.png"} {
		folder := filepath.Join(dir, "linked")
		must.OK(errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(whole)), os.Remove(filepath.Join(folder, storedFile)),
			os.RemoveAll(filepath.Join(folder, name))))
		target := precious
		if name == "plots" {
			target = outside
		}
		must.OK(os.Symlink(target, filepath.Join(folder, name)))
		for _, command := range []string{"report", "resume"} {
			code, _, told := inProcess(t.Context(), command, folder)
			if strings.Contains(name, "/") {
				continue // in a folder of the run it is written over, or left alone
			}
			if code == exitDone || !strings.Contains(told, name+" is n") {
				t.Errorf("%s with %s a link: exit code %d\n%s", command, name, code, told)
			}
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 || read(precious) != "precious" {
			t.Errorf("with %s a link, what it points to was changed", name)
		}
	}
}

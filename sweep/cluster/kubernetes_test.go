package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep"
)

// What a pod has printed is in the log of its job once, also where that could not be
// opened when it was first read.
func TestCollectLosesNoLine(t *testing.T) {
	bin := t.TempDir()
	must.OK(os.WriteFile(filepath.Join(bin, "kubectl"), []byte(`#!/bin/sh
echo "2026-01-02T03:04:05.000000001Z starting the engine"
echo "2026-01-02T03:04:06.000000001Z it serves"
`), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	k := &Kubernetes{read: map[string]time.Time{}}
	part := sweep.Folder{Path: t.TempDir()}
	log := part.File(JobLog)
	must.OK(os.Mkdir(log, 0o700))
	job := &JobStatus{ID: "pod", State: Running}
	if err := k.Collect(t.Context(), job, part); err == nil {
		t.Error("no error where the log is a folder")
	}
	must.OK(os.Remove(log))
	for range 2 {
		must.OK(k.Collect(t.Context(), job, part))
	}
	if got, want := string(must.Get(os.ReadFile(log))), "starting the engine\nit serves\n"; got != want {
		t.Errorf("the log says %q, want %q", got, want)
	}
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	"planner/internal/evidence/must"
)

// TestInstalledProgramAlwaysRuns: a job that starts the program while it is installed again
// finds the old one or the new one, and either can be run.
func TestInstalledProgramAlwaysRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "planner")
	must.OK(os.WriteFile(path, nil, 0o755))
	done := make(chan error, 1)
	go func() { done <- install(path) }()
	for {
		if info := must.Get(os.Stat(path)); info.Mode().Perm()&0o100 == 0 {
			t.Fatalf("is there and cannot be run: %v", info.Mode())
		}
		select {
		case err := <-done:
			must.OK(err)
			if info, left := must.Get(os.Stat(path)), must.Get(os.ReadDir(filepath.Dir(path))); info.Size() == 0 || len(left) != 1 {
				t.Errorf("%d bytes, beside %v", info.Size(), left)
			}
			return
		default:
		}
	}
}

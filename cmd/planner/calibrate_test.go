package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"planner/internal/evidence/must"
)

// TestCalibrateInterrupted: a fit to many loads takes minutes, and the first interrupt ends it.
func TestCalibrateInterrupted(t *testing.T) {
	dir := t.TempDir()
	file, run := filepath.Join(dir, "c.toml"), filepath.Join(dir, "run")
	must.OK(os.WriteFile(file, []byte("[model]\nname = \"llama-3.1-8b\"\n[hardware]\ngpu = \"H100 SXM\"\n[workload]\nclass = \"chat\"\n"), 0o600))
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"planner", "sweep", file, "--rates", "1,4,12", "--duration", "60s", "-o", run, "--quiet"}, &out, &errs, &interrupts{}); code != exitDone {
		t.Fatalf("code %d: %s", code, errs.String())
	}
	out.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := execute(ctx, []string{"planner", "calibrate", run, "--quiet"}, &out, &errs, &interrupts{}); code != exitInterrupted || out.Len() > 0 {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
}

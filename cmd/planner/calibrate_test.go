package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/model/calibrate"
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

// TestCalibrateToAnH200 fits to vLLM 0.26 on one H200 in a virtual machine, as measured: prompts of 1,000 tokens
// took as long as those of 4,000, which is the host that launches layers and neither weights nor products of
// matrices. The trial whose cache ran full is left out.
func TestCalibrateToAnH200(t *testing.T) {
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"planner", "calibrate", "../../testdata/h200/chat", "../../testdata/h200/long", "--json"}, &out, &errs, &interrupts{}); code != exitDone {
		t.Fatalf("code %d: %s", code, errs.String())
	}
	var fitted calibrate.File
	must.OK(json.Unmarshal(out.Bytes(), &fitted))
	if launch := fitted.Terms["launch"].Value; launch < 1.2e-3 || launch > 2.2e-3 {
		t.Errorf("a layer takes %.3g s to launch; 62 to 92 ms of 48 are 1.3 to 1.9e-3", launch)
	}
	for _, term := range []string{"weights", "prefill"} {
		if factor := fitted.Terms[term].Factor; math.Abs(factor-1) > 0.1 {
			t.Errorf("%s moved by a factor of %.3f", term, factor)
		}
	}
	for _, r := range fitted.Residuals {
		if strings.HasPrefix(r.Figure, "tpot") && math.Abs(r.After) > 6 || math.Abs(r.After) > 45 {
			t.Errorf("%s of run %d is off by %.1f %%, %.1f %% before", r.Figure, r.Run, r.After, r.Before)
		}
	}
	if !strings.Contains(errs.String(), "trial 3 of ../../testdata/h200/chat, whose requests waited ever longer") {
		t.Errorf("not said which trial is left out: %s", errs.String())
	}
}

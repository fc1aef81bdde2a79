package main

import (
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
	t.Parallel()
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "c.toml"), filepath.Join(dir, "run")
	must.OK(os.WriteFile(file, []byte("[model]\nname = \"llama-3.1-8b\"\n[hardware]\ngpu = \"H100 SXM\"\n[workload]\nclass = \"chat\"\n"), 0o600))
	if code, _, told := inProcess(t.Context(), "sweep", file, "--rates", "1,4,12", "--duration", "60s", "-o", folder, "--quiet"); code != exitDone {
		t.Fatalf("code %d: %s", code, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, told := inProcess(ctx, "calibrate", folder, "--quiet"); code != exitInterrupted || out != "" {
		t.Errorf("code %d: %s%s", code, out, told)
	}
}

// TestCalibrateToAnH200 fits to vLLM 0.26 on one H200 in a virtual machine, as measured: prompts of 1,000 tokens
// took as long as those of 4,000, which is the host that launches layers and neither weights nor products of
// matrices. The trial whose cache ran full is left out.
func TestCalibrateToAnH200(t *testing.T) {
	t.Parallel()
	code, out, told := inProcess(t.Context(), "calibrate", "../../testdata/h200/chat", "../../testdata/h200/long", "--json")
	if code != exitDone {
		t.Fatalf("code %d: %s", code, told)
	}
	var fitted calibrate.File
	must.OK(json.Unmarshal([]byte(out), &fitted))
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
	if !strings.Contains(told, "trial 3 of ../../testdata/h200/chat, whose requests waited ever longer") {
		t.Errorf("not said which trial is left out: %s", told)
	}
}

//go:build realengines

package realengines

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/programtest"
	"planner/sweep"
	"planner/sweep/measure"
)

// desk is where the program is used as its users do: with a configuration, and
// with the engine on PATH.
type desk struct {
	t       *testing.T
	dir     string
	program string
}

// configuration is what users write into planner.toml for a tiny workload; what
// engine and model are is put in front. A trial is eighteen times the limit: in one
// of a few times the limit all that is late may be one backlog.
const configuration = `
[slo]
e2e = { p90 = "1s" }
errors = 0.05

[workload]
prompt = { dist = "uniform", min = 16, max = 48 }
output = { dist = "fixed", value = %d }
timeout = "60s"

[search]
warm_up = "2s"
trial = "18s"
precision = 0.25
budget = "160s"
`

// desk builds the program and writes the configuration for an engine.
func (s subject) desk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	var err error
	if d.program, err = programtest.Build(d.dir, programtest.Planner); err != nil {
		t.Fatal(err)
	}
	d.write("planner.toml", s.toml+fmt.Sprintf(configuration, s.output))
	// The program finds the engine where a shell would.
	d.write(filepath.Join("bin", s.settings.Kind), "#!/bin/sh\nexec '"+s.program+"' \"$@\"\n")
	return d
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) write(name, text string) {
	d.t.Helper()
	path := d.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// use is the program under way.
type use struct {
	*exec.Cmd
	stdout  bytes.Buffer
	stderr  programtest.Transcript
	witness *witness
}

// start starts the program.
func (d *desk) start(args ...string) *use {
	d.t.Helper()
	u := &use{Cmd: exec.Command(d.program, args...)}
	u.Dir = d.dir
	u.Env = append(os.Environ(), "PATH="+d.path("bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	u.Stdout, u.Stderr = &u.stdout, &u.stderr
	if err := u.Start(); err != nil {
		d.t.Fatal(err)
	}
	u.witness = watch(u.Process.Pid)
	d.t.Logf("$ planner %s", strings.Join(args, " "))
	return u
}

// end waits until the program has ended, checks that nothing that it started is
// left, and returns its exit code.
func (d *desk) end(u *use) int {
	d.t.Helper()
	err := u.Wait()
	gone(d.t, u.witness.all())
	if u.ProcessState == nil {
		d.t.Fatal(err)
	}
	return programtest.ExitCode(err)
}

// must runs the program and returns what it printed; any exit code but 0 and
// those given ends the test.
func (d *desk) must(codes []int, args ...string) (stdout []byte, code int) {
	d.t.Helper()
	u := d.start(args...)
	code = d.end(u)
	for _, c := range append(codes, 0) {
		if c == code {
			return u.stdout.Bytes(), code
		}
	}
	d.t.Fatalf("exit code %d\n%s%s", code, u.stderr.String(), u.stdout.Bytes())
	return nil, code
}

// journal reads the trials of a run folder; there may be none yet.
func (d *desk) journal(run string) []measure.Measurement {
	seen, err := sweep.ReadJournal(filepath.Join(d.path(run), sweep.JournalFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return seen
}

// telemetry reads what was seen of the engine.
func (d *desk) telemetry(run string) []sweep.EngineTelemetry {
	d.t.Helper()
	folder, _, err := sweep.OpenFolder(d.path(run))
	if err != nil {
		d.t.Fatal(err)
	}
	seen, err := folder.ReadEngineTelemetry()
	if err != nil {
		d.t.Fatal(err)
	}
	return seen
}

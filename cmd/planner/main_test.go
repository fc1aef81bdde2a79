package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
	"planner/internal/evidence/programtest"
	"planner/sweep/engine"
)

// TestMain lets test scripts call the program as a command of its own, and makes
// this binary the guard of its engines and an engine that passes for vLLM.
func TestMain(m *testing.M) {
	if code, ran := engine.Guard(os.Args); ran {
		os.Exit(code)
	}
	// Half of the tests wait for engines and servers, so more of them run side by side than there are processors.
	must.OK(flag.Set("test.parallel", "4"))
	testscript.Main(inScratch{m}, map[string]func(){"planner": main, "vllm": serveFake, "kubectl": fakeKubectl})
}

// scratch is a folder for what several tests share.
var scratch string

// inScratch runs the tests with such a folder.
type inScratch struct{ m *testing.M }

func (s inScratch) Run() int {
	scratch = must.Get(os.MkdirTemp("", "planner-tests"))
	defer os.RemoveAll(scratch)
	return s.m.Run()
}

// serveFake is "vllm serve MODEL ...".
func serveFake() {
	os.Args = append([]string{os.Args[0], enginetest.Word}, os.Args[2:]...)
	enginetest.Main()
}

// TestScripts runs the command line as users do: each file of testdata/script is
// a session with its input files, and the output it must give.
func TestScripts(t *testing.T) {
	written := newOutputs()
	t.Cleanup(func() { written.report(t) })
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"code": exitsWith},
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			written.setUp(e)
			return nil
		},
	})
}

// exitsWith is the script command "code N PROGRAM ARG...": the program must end
// with that exit code.
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program arguments")
	}
	err := ts.Exec(args[1], args[2:]...)
	if got := programtest.ExitCode(err); strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d (%v), want %s", got, err, args[0])
	}
}

// inProcess runs the program here, and returns its exit code and what it wrote.
func inProcess(ctx context.Context, args ...string) (code int, out, told string) {
	var stdout, stderr bytes.Buffer
	code = execute(ctx, append([]string{"planner"}, args...), &stdout, &stderr, &interrupts{})
	return code, stdout.String(), stderr.String()
}

// put writes a file.
func put[T string | []byte](t testing.TB, file string, data T) {
	t.Helper()
	must.OK(os.WriteFile(file, []byte(data), 0o600))
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
	"planner/internal/evidence/programtest"
	"planner/sweep"
	"planner/sweep/measure"
)

// Two sets of knobs of an engine that behaves with 16 sequences and misbehaves
// with 13, and is told so by its further arguments.
const liveConfig = `
[demand]
rate = 40
[slo]
ttft = { p90 = "300ms" }
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "L40S"
price_per_gpu_hour = 3600.0
[engine]
kind = "vllm"
served_name = "fake"
extra_args = ["--misbehave", %q, "--when-seqs", "13", "--state", %q, "--token", "10ms"]
env = { FAKE_MARK = %q }
ready_timeout = "20s"
[knobs]
max_num_seqs = [16, 13]
max_num_batched_tokens = 512
gpu_memory_utilization = 0.9
max_model_len = 128
[workload]
arrivals = "constant"
prompt = { dist = "fixed", value = 20 }
output = { dist = "fixed", value = 8 }
timeout = "5s"
[search]
warm_up = "100ms"
trial = "400ms"
precision = 0.5
budget = "4s"
[output]
dir = "runs"
`

// unmodelled makes of that an engine by its command line, of whose model nothing
// is known: then nothing predicts what it carries.
var unmodelled = []string{`kind = "vllm"`, `kind = "command"
command = ["vllm", "serve", "fake", "--port", "{port}", "--max-num-seqs", "{max_num_seqs}", "--served-model-name", "fake", "--enable-prefix-caching"]`,
	"[model]\nname = \"llama-3.1-8b\"\n", ""}

// live is a folder with the configuration of a fake engine in it, the entry in
// the environment of whatever that starts, and the program that runs there.
type live struct {
	dir, mark string
	env       []string
}

func newLive(t *testing.T, misbehave string, edits ...string) *live {
	t.Helper()
	self := must.Get(os.Executable())
	l := &live{dir: t.TempDir()}
	bin := filepath.Join(l.dir, "bin")
	must.OK(os.Mkdir(bin, 0o755))
	must.OK(os.Symlink(self, filepath.Join(bin, "vllm")))
	mark := strings.ReplaceAll(l.dir, "/", "-")
	l.mark = "FAKE_MARK=" + mark
	l.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	text := strings.NewReplacer(edits...).Replace(fmt.Sprintf(liveConfig, misbehave, filepath.Join(l.dir, "state"), mark))
	put(t, filepath.Join(l.dir, "p.toml"), text)
	return l
}

// command is the program with its arguments.
func (l *live) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := planner(t, l.dir, args...)
	cmd.Env = l.env
	return cmd
}

// run runs the program to its end and returns exit code, standard output and
// standard error.
func (l *live) run(t *testing.T, args ...string) (code int, out, told string) {
	t.Helper()
	cmd := l.command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if code = programtest.ExitCode(err); code < 0 {
		t.Fatal(err)
	}
	return code, stdout.String(), stderr.String()
}

// nothingLeft checks that no process of an engine is left.
func (l *live) nothingLeft(t *testing.T) {
	t.Helper()
	enginetest.NothingLeft(t, l.mark, 10*time.Second)
}

// Whatever goes wrong with an engine, a sweep goes on to its end, its report
// quotes the cause under the right class, and no process is left. What else may go
// wrong is in TestSweepSurvives.
func TestSweepReportsFailures(t *testing.T) {
	t.Parallel()
	// The processes wait more than they compute, so they all run side by side.
	var all sync.WaitGroup
	defer all.Wait()
	for _, c := range []struct {
		misbehave string
		// report is in the report, told on standard error.
		report, told string
		rejected     bool
	}{
		{misbehave: "", report: "2 trials of 2 sets of knobs"},
		{misbehave: "no-kv", report: "(mem.no_kv)", rejected: true},
		{misbehave: "dies", report: "(mem.kill) in stage serving under ", told: "counts as missed: engine failed"},
		{misbehave: "dies-once", report: "2 trials of 2 sets of knobs", told: "is repeated on a new engine"},
		{misbehave: "strays", report: "2 trials of 2 sets of knobs", told: "left processes behind"},
	} {
		all.Go(func() {
			t.Run(c.misbehave, func(t *testing.T) { sweptOver(t, c.misbehave, c.report, c.told, c.rejected) })
		})
	}
}

// sweptOver sweeps over the engine that misbehaves.
func sweptOver(t *testing.T, misbehave, report, say string, rejected bool) {
	l := newLive(t, misbehave)
	code, out, told := l.run(t, "sweep", "p.toml", "--rates", "40", "-o", "run")
	text := strings.Join(strings.Fields(out), " ")
	seen, err := sweep.ReadJournal(filepath.Join(l.dir, "run", "journal.jsonl"))
	if code != sweptCode(seen) || !strings.Contains(text, report) || !strings.Contains(told, say) {
		t.Errorf("exit code %d, want %q in\n%s\nand %q in\n%s", code, report, out, say, told)
	}
	if got := strings.Contains(text, "CANNOT RUN"); got != rejected {
		t.Errorf("rejected: %t, want %t:\n%s", got, rejected, out)
	}
	if begins := strings.Index(told, "starting: "); begins < 0 || begins > strings.Index(told, "serves after") {
		t.Errorf("the command line is not told before it serves:\n%s", told)
	}
	l.nothingLeft(t)
	if err != nil || len(seen) != 2 || seen[0].Rejected.Text != "" || (seen[1].Rejected.Text != "") != rejected {
		t.Errorf("journal: %v, %d lines", err, len(seen))
	}
	l.leaves(t, 1)
	if !rejected {
		l.leaves(t, 2)
	}
	if again, out2, _ := l.run(t, "report", "run"); again != 0 || out2 != out {
		t.Errorf("the report again: exit code %d\n%s\nwas\n%s", again, out2, out)
	}
}

// sweptCode is how a sweep with these trials is to end: a machine that is too busy for
// the load generator may leave none that can be trusted.
func sweptCode(seen []measure.Measurement) int {
	if slices.ContainsFunc(seen, func(m measure.Measurement) bool { return m.Rejected.Text == "" && m.Valid }) {
		return 0
	}
	return exitUndecided
}

// leaves checks the files of a trial that was measured.
func (l *live) leaves(t *testing.T, trial int) {
	t.Helper()
	folder := sweep.Folder{Path: filepath.Join(l.dir, "run")}
	for _, name := range []string{sweep.RecordsName(trial), sweep.HistogramsName(trial), sweep.SamplesName(trial), sweep.EngineTelemetryName(trial),
		fmt.Sprintf("engine/%04d.log", trial), "report.txt", "report.html"} {
		if info, err := os.Stat(folder.File(name)); err != nil || info.Size() == 0 {
			t.Errorf("trial %d: %s: %v", trial, name, err)
		}
	}
}

// A search on a real engine shows the command before anything runs, says what it may
// take, leaves all its files, says what it cost, and its report can be printed again.
func TestLiveSearch(t *testing.T) {
	t.Parallel()
	l := newLive(t, "", unmodelled...)
	one := []string{"--set", "knobs.max_num_seqs=16"}
	code, dry, _ := l.run(t, append([]string{"search", "p.toml", "--dry-run"}, one...)...)
	if code != 0 || !strings.Contains(dry, "vllm serve") || !strings.Contains(dry, "vllm serve fake --port 8000 --max-num-seqs 16") || !strings.Contains(dry, "--token 10ms") {
		t.Errorf("dry run: exit code %d\n%s", code, dry)
	}
	code, out, told := l.run(t, append([]string{"search", "p.toml", "-o", "run"}, one...)...)
	if code != 0 && code != exitUndecided || !strings.Contains(out, "GPU hours, $") || !strings.Contains(out, "CLIENT AND SERVER") ||
		strings.Count(told, "; the starts of engines come on top") != 1 || !strings.Contains(told, "starting: ") {
		t.Errorf("exit code %d\n%s\n%s", code, out, told)
	}
	l.leaves(t, 1)
	l.leaves(t, 2)
	if again, out2, _ := l.run(t, "report", "run"); again != 0 || out2 != out {
		t.Errorf("the report again: exit code %d\n%s\nwas\n%s", again, out2, out)
	}
	// An engine second costs a dollar here, so the cost is the engine time.
	seen := must.Get(sweep.Folder{Path: filepath.Join(l.dir, "run")}.ReadEngineTelemetry())
	spent := 0.0
	for _, s := range seen {
		spent += s.EngineTime.Seconds()
	}
	if want := fmt.Sprintf("$%.2f", spent); !strings.Contains(out, want) {
		t.Errorf("the cost %s is not in\n%s", want, out)
	}
	l.nothingLeft(t)
}

// The first Ctrl-C finishes the trial that runs and reports; what remains is
// measured by resume, and the second one ends the program at once. No engine
// survives either.
func TestInterruptsOfLiveRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	for _, times := range []int{1, 2} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			t.Parallel()
			l := newLive(t, "")
			args := []string{"sweep", "p.toml", "--rates", "20", "--duration", "1s", "-o", "run"}
			cmd := l.command(t, args...)
			var stdout, stderr programtest.Transcript
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			must.OK(cmd.Start())
			waitFor(t, func() bool { return strings.Contains(stderr.String(), "serves after") })
			time.Sleep(500 * time.Millisecond) // in mid-trial
			began := time.Now()
			for range times {
				cmd.Process.Signal(os.Interrupt)
				time.Sleep(100 * time.Millisecond)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(stderr.String(), "go on with: planner resume run") {
				t.Errorf("exit code %d: %s", code, stderr.String())
			}
			l.nothingLeft(t)
			seen, _ := sweep.ReadJournal(filepath.Join(l.dir, "run", "journal.jsonl"))
			if times == 1 {
				if len(seen) != 1 || !strings.Contains(stdout.String(), "1 trial of 2") || !strings.Contains(stderr.String(), "finishing the trial") {
					t.Errorf("%d trials in the journal; %s%s", len(seen), stdout.String(), stderr.String())
				}
				l.leaves(t, 1)
			} else if took := time.Since(began); len(seen) != 0 || took > 5*time.Second {
				t.Errorf("%d trials in the journal, ended after %v", len(seen), took)
			}
			l.resumed(t, 2)
		})
	}
}

// An engine that does not end when it is asked to has some time to after one signal,
// and none after the second, whether that comes in the trial or while it is waited for.
func TestStubbornEngineIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	for _, signals := range [][]os.Signal{{os.Interrupt, os.Interrupt}, {syscall.SIGTERM, syscall.SIGTERM}} {
		t.Run(signals[0].String(), func(t *testing.T) {
			t.Parallel()
			l := newLive(t, "ignores-term", "[16, 13]", "13")
			cmd := l.command(t, "sweep", "p.toml", "--rates", "20", "--duration", "20s", "-o", "run")
			var stderr programtest.Transcript
			cmd.Stderr = &stderr
			must.OK(cmd.Start())
			waitFor(t, func() bool { return strings.Contains(stderr.String(), "serves after") })
			began := time.Now()
			for _, s := range signals {
				cmd.Process.Signal(s)
				time.Sleep(500 * time.Millisecond)
			}
			cmd.Wait()
			if took, code := time.Since(began), cmd.ProcessState.ExitCode(); took > 8*time.Second || code != exitInterrupted {
				t.Errorf("exit code %d after %v: %s", code, took, stderr.String())
			}
			l.nothingLeft(t)
		})
	}
}

// resumed goes on with a sweep to its end, and looks at the journal.
func (l *live) resumed(t *testing.T, trials int) {
	t.Helper()
	code, out, told := l.run(t, "resume", "run")
	seen, err := sweep.ReadJournal(filepath.Join(l.dir, "run", "journal.jsonl"))
	if code != sweptCode(seen) || err != nil || len(seen) != trials || !strings.Contains(out, fmt.Sprintf("%d trials of 2 sets", trials)) {
		t.Errorf("resume: exit code %d, %d trials (%v)\n%s\n%s", code, len(seen), err, out, told)
	}
	for i := range seen {
		l.leaves(t, i+1)
	}
	l.nothingLeft(t)
}

// Killed with SIGKILL in mid-trial, no engine survives, and resume measures
// what is left: nothing twice but the trial in flight.
func TestKilledLiveRunResumes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	l := newLive(t, "")
	cmd := l.command(t, "sweep", "p.toml", "--rates", "20,25", "-o", "run")
	must.OK(cmd.Start())
	journal := filepath.Join(l.dir, "run", "journal.jsonl")
	waitFor(t, func() bool { data, _ := os.ReadFile(journal); return bytes.Count(data, []byte("\n")) == 1 })
	time.Sleep(200 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	l.nothingLeft(t)
	before, _ := os.ReadFile(journal)
	l.resumed(t, 4)
	if after, _ := os.ReadFile(journal); !bytes.HasPrefix(after, before) {
		t.Error("what was measured before the kill was measured again")
	}
}

// A plan on a real engine names what it cost, what failed and what the engines
// said, and its interrupted twin can be resumed to a plan.
func TestLivePlan(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	l := newLive(t, "exits-1", unmodelled...)
	plan := func(budget string) (code int, out, told string) {
		return l.run(t, "plan", "p.toml", "-o", "run", "--set", "knobs.max_num_seqs=[13, 16]", "--set", "search.budget="+budget)
	}
	code, out, told := plan("15s")
	if code == exitUndecided { // on a machine with more to do
		os.RemoveAll(filepath.Join(l.dir, "run"))
		code, out, told = plan("60s")
	}
	seen := must.Get(sweep.ReadJournal(filepath.Join(l.dir, "run", "journal.jsonl")))
	if code == exitUndecided && slices.ContainsFunc(seen, func(m measure.Measurement) bool { return !m.Valid }) {
		t.Skipf("SKIPPED: this machine is too busy to measure on:\n%s", out)
	}
	text := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"GPU hours, $", "REJECTED", "something that nobody has seen before", "CLIENT AND SERVER", "vllm serve"} {
		if !strings.Contains(text, want) {
			t.Errorf("exit code %d, %q is not in\n%s\n%s", code, want, out, told)
		}
	}
	var made map[string]json.RawMessage
	if data, err := os.ReadFile(filepath.Join(l.dir, "run", "plan.json")); err != nil || json.Unmarshal(data, &made) != nil || made["fleet"] == nil {
		t.Errorf("exit code %d, plan.json: %v\n%s", code, err, out)
	}
	if again, out2, _ := l.run(t, "report", "run"); again != 0 || out2 != out {
		t.Errorf("the report again: exit code %d\n%s\nwas\n%s", again, out2, out)
	}
	l.nothingLeft(t)
}

// waitFor waits until something holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatal("waited for 30 s in vain")
		}
	}
}

package sweep

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"planner/internal/evidence/enginetest"
	"planner/internal/evidence/must"
	"planner/sweep/engine"
	"planner/sweep/load"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestMain makes this binary the guard, the engine and the killed planner of its
// own tests.
func TestMain(m *testing.M) {
	if code, ran := engine.Guard(os.Args); ran {
		os.Exit(code)
	}
	enginetest.Main()
	if len(os.Args) == 3 && os.Args[1] == "live-sweep" {
		os.Exit(sweepLive(os.Args[2]))
	}
	// The tests wait more than they compute, so more of them run side by side than there are processors.
	must.OK(flag.Set("test.parallel", "4"))
	os.Exit(m.Run())
}

// Knobs of the engine that misbehaves, and of the other, which does not.
const badSeqs, goodSeqs = 13, 16

func liveKnobs(seqs int) measure.Knobs {
	return measure.Knobs{MaxNumSeqs: seqs, MaxNumBatchedTokens: 512, PrefixCaching: true, TensorParallel: 1}
}

// liveTrial asks for some 40 requests of 8 tokens in a moment.
func liveTrial(seqs, number int) measure.Trial {
	return measure.Trial{
		Number: number, Knobs: liveKnobs(seqs), Rate: 100, Window: 400 * time.Millisecond, Seed: uint64(number), Whole: true,
		Workload: &workload.Workload{Class: "test", Arrivals: workload.Constant, Timeout: 10 * time.Second, Shapes: []workload.Shape{{
			Prompt: workload.Lengths{Dist: workload.Fixed, Value: 20}, Output: workload.Lengths{Dist: workload.Fixed, Value: 8},
		}}},
	}
}

// fakeLive returns a runner for engines, of which the one with badSeqs misbehaves; their processes
// have mark in their environment.
func fakeLive(dir, misbehave string) (l *Live, mark string) {
	self, _ := os.Executable()
	value := strings.ReplaceAll(dir, "/", "-")
	return &Live{
		Settings: engine.Settings{
			Kind: "vllm", Program: []string{self, enginetest.Word}, Model: "fake", ServedName: "fake", Dir: filepath.Join(dir, "engine"),
			ExtraArgs: []string{"--misbehave", misbehave, "--when-seqs", fmt.Sprint(badSeqs), "--state", filepath.Join(dir, "state")},
			Env:       map[string]string{"FAKE_MARK": value},
			Timeouts:  engine.Timeouts{Ready: 15 * time.Second, Stall: 10 * time.Second, Probe: time.Second, Grace: 2 * time.Second}, LogBytes: 4 << 20,
		},
		Client: load.Client{Stream: true},
		Hang:   700 * time.Millisecond,
	}, "FAKE_MARK=" + value
}

// given is a source of trials, which are all run.
type given struct {
	trials []measure.Trial
	next   int
	seen   []measure.Measurement
}

func (s *given) Next() []measure.Trial {
	if s.next == len(s.trials) {
		return nil
	}
	s.next++
	return s.trials[s.next-1 : s.next : s.next]
}

func (s *given) Observe(m measure.Measurement) { s.seen = append(s.seen, m) }

// Each misbehaviour of an engine ends in its class, the sweep goes on to the end, the other
// configuration is measured as if nothing had happened, and no process is left.
func TestSweepSurvives(t *testing.T) {
	t.Parallel()
	// The processes wait more than they compute, so more of them run side by side
	// than there are processors.
	slots := make(chan struct{}, 10)
	var all sync.WaitGroup
	defer all.Wait()
	for _, c := range []struct {
		misbehave string
		// rejected is in the reason of the rejection; "" means that the trial is
		// measured, with failures of the kind given, "" for none.
		rejected, failures string
		// remark is in what was told besides.
		remark string
	}{
		{misbehave: ""},
		{misbehave: "exits-0", rejected: "(exit.early)"},
		{misbehave: "exits-1", rejected: "something that nobody has seen before"},
		{misbehave: "killed", rejected: "(mem.kill)", remark: "started once more"},
		{misbehave: "no-kv", rejected: "(mem.no_kv)"},
		{misbehave: "busy", rejected: "(mem.busy)", remark: "started once more"},
		{misbehave: "port-once", remark: "(net.port)"},
		{misbehave: "wrong-model", rejected: "(args.model)"},
		{misbehave: "changes-flag", rejected: "prefix_caching is false, asked for true"},
		{misbehave: "dies-once", remark: "trial 2 is repeated on a new engine"},
		{misbehave: "dies", rejected: "(mem.kill) in stage serving under ", remark: "trial 2 is repeated on a new engine"},
		{misbehave: "dies-oom", rejected: "(mem.oom) in stage serving under ", remark: "trial 2 is repeated on a new engine"},
		{misbehave: "hangs", rejected: "(hang) in stage serving", remark: "trial 2 is repeated on a new engine"},
		{misbehave: "broken-health", rejected: "(serve.failing) in stage serving", remark: "trial 2 is repeated on a new engine"},
		{misbehave: "status-500", failures: "http_status"},
		{misbehave: "status-429", failures: "http_status"},
		{misbehave: "status-503", failures: "http_status"},
		{misbehave: "truncates", failures: "truncated"},
		{misbehave: "resets", failures: "truncated"},
		{misbehave: "error-event", failures: "stream_error"},
		{misbehave: "garbage", failures: "malformed"},
		{misbehave: "short", rejected: "ended with wrong length: 4 tokens for 8", remark: "trial 2 is repeated on a new engine"},
		{misbehave: "lies-usage", rejected: "ended with wrong length: 24 tokens for 8 by the server's count, in 8 events", remark: "trial 2 is repeated on a new engine"},
		{misbehave: "slow-death"},
		{misbehave: "strays", remark: "left processes behind"},
		{misbehave: "ignores-term"},
		{misbehave: "floods"},
		{misbehave: "no-reset"},
		{misbehave: "compiles", remark: "trial 2 is repeated: the engine compiled kernels in it"},
	} {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(c.misbehave, func(t *testing.T) {
				l, mark := fakeLive(t.TempDir(), c.misbehave)
				var remarks []string
				notes := map[int][]string{}
				l.See = func(event any) {
					switch e := event.(type) {
					case string:
						remarks = append(remarks, e)
					case EngineTelemetry:
						notes[e.Trial] = e.Notes.Texts()
					}
				}
				source := &given{trials: []measure.Trial{liveTrial(goodSeqs, 1), liveTrial(badSeqs, 2), liveTrial(goodSeqs, 3)}}
				must.OK((&Loop{Source: source, Run: l.Run}).Drive(t.Context()))
				l.Close()
				enginetest.NothingLeft(t, mark, 0)
				good(t, &source.seen[0])
				ends(t, &source.seen[1], c.rejected, c.failures)
				good(t, &source.seen[2])
				if got := strings.Join(remarks, "\n"); !strings.Contains(got, c.remark) || strings.Contains(got, "stop the engine") {
					t.Errorf("remarks %q, want %q", got, c.remark)
				}
				if got := strings.Join(notes[2], "\n"); c.misbehave == "no-reset" && !strings.Contains(got, "the prefix cache could not be emptied") {
					t.Errorf("notes %q", got)
				}
			})
		})
	}
}

// good checks a trial of an engine that behaves.
func good(t *testing.T, m *measure.Measurement) {
	t.Helper()
	if m.Rejected.Text != "" || m.Requests < 30 || m.Failed != 0 {
		t.Errorf("trial %d: rejected %q, %d of %d failed: %v", m.Trial.Number, m.Rejected.Text, m.Failed, m.Requests, m.Failures)
	}
	if s := m.Server; s.Engine != (measure.Software{Kind: "vllm", Version: "0.0.1"}) || *s.KVBlocks != 640 || *s.BlockTokens != 16 || *s.Preemptions != 0 || *s.HitRate < 0.2 {
		t.Errorf("trial %d: server %+v", m.Trial.Number, s)
	}
}

// ends checks how a trial of the engine that misbehaves ended.
func ends(t *testing.T, m *measure.Measurement, rejected, failures string) {
	t.Helper()
	switch {
	case rejected != "":
		if !strings.Contains(m.Rejected.Text, rejected) {
			t.Errorf("trial %d: rejected %q, %d failed, want rejected %q", m.Trial.Number, m.Rejected.Text, m.Failed, rejected)
		}
	case m.Rejected.Text != "":
		t.Errorf("trial %d: rejected: %s", m.Trial.Number, m.Rejected.Text)
	case failures == "" && m.Failed != 0 || failures != "" && m.Failures[failures] == 0:
		t.Errorf("trial %d: failures %v, want %q", m.Trial.Number, m.Failures, failures)
	}
}

// A failure rejects knobs that need no less without another start.
func TestCondemnedIsNotStarted(t *testing.T) {
	t.Parallel()
	l, _ := fakeLive(t.TempDir(), "no-kv")
	wider := liveTrial(badSeqs, 2)
	wider.Knobs.MaxNumBatchedTokens = 1024
	source := &given{trials: []measure.Trial{liveTrial(badSeqs, 1), wider}}
	must.OK((&Loop{Source: source, Run: l.Run}).Drive(t.Context()))
	if got := source.seen[1].Rejected.Text; !strings.HasPrefix(got, "not started") || !strings.Contains(got, "No available memory") {
		t.Errorf("rejected: %q", got)
	}
	if _, err := os.Stat(filepath.Join(l.Settings.Dir, "0002.log")); err == nil {
		t.Error("the engine was started")
	}
}

// A growing latency ends a trial early if it has an objective, and what ended it is not a breakdown
// of the engine.
func TestLiveTrialIsCutShort(t *testing.T) {
	t.Parallel()
	l, _ := fakeLive(t.TempDir(), "slow-death")
	defer l.Close()
	trial := liveTrial(badSeqs, 1)
	trial.Whole, trial.Rate, trial.Window = false, 40, 40*time.Second
	trial.Objective.Bounds = []measure.Bound{{Metric: measure.E2E, Quantile: 0.9, Limit: 200 * time.Millisecond}}
	began := time.Now()
	o := must.Get(l.Run(t.Context(), trial))
	if o.Aborted.Text == "" || time.Since(began) > 30*time.Second {
		t.Errorf("aborted %q after %v", o.Aborted.Text, time.Since(began))
	}
}

// When the context ends the trial is dropped, and Close leaves nothing.
func TestLiveIsInterrupted(t *testing.T) {
	t.Parallel()
	l, mark := fakeLive(t.TempDir(), "")
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	trial := liveTrial(goodSeqs, 1)
	trial.Window = time.Minute
	err := (&Loop{Source: &given{trials: []measure.Trial{trial}}, Run: l.Run}).Drive(ctx)
	if err == nil || !strings.Contains(err.Error(), ErrInterrupted.Error()) {
		t.Errorf("error %v", err)
	}
	l.Close()
	enginetest.NothingLeft(t, mark, 0)
}

// The client's time to first token is compared with the server's, and a gap is
// named.
func TestGapIsNamed(t *testing.T) {
	records := make([]measure.Record, 100)
	for i := range records {
		records[i] = measure.Record{Sent: 0, First: 50*time.Millisecond + time.Duration(i%3)*time.Millisecond}
	}
	for _, c := range []struct {
		server, trip, late time.Duration
		started            int
		cpu                float64
		gap, want          string
	}{
		{48 * time.Millisecond, 0, 0, 100, 0, "", ""},
		{30 * time.Millisecond, 0, 0, 100, 0, GapFrontEnd, "front end"},
		{30 * time.Millisecond, 15 * time.Millisecond, 0, 100, 0, GapNetwork, "network"},
		{30 * time.Millisecond, 0, 0, 100, 0.95, GapClient, "client, which used 95 %"},
		{30 * time.Millisecond, 0, 25 * time.Millisecond, 100, 0, GapClient, "late with sending"},
		{30 * time.Millisecond, 0, 0, 50, 0, "", "not compared"},
		{9 * time.Second, 0, 0, 100, 0, "", ""},
		{-1, 0, 0, 0, 0, "", ""},
	} {
		s := EngineTelemetry{RoundTrip: c.trip, Said: engine.Metrics{Counters: engine.Counters{TTFT: c.server, FirstTokens: c.started}}}
		s.compare(records, load.Telemetry{CPU: c.cpu, Lag99: c.late})
		if withdrawn := c.server > time.Second; withdrawn != (s.Said.TTFT < 0 && c.server > 0) {
			t.Errorf("server %v: its TTFT is told as %v", c.server, s.Said.TTFT)
		}
		if got := s.Notes.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || s.Gap != c.gap {
			t.Errorf("server %v, round trip %v: %q in %q, want %q in %q", c.server, c.trip, got, s.Gap, c.want, c.gap)
		}
	}
}

// sweepLive is a planner that sweeps four configurations, one of which cannot
// run, and can be killed and started again.
func sweepLive(dir string) int {
	l, _ := fakeLive(dir, "no-kv")
	defer l.Close()
	j, err := openJournal(filepath.Join(dir, JournalFile))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	l.Recall(j.held)
	source := &given{}
	for n, seqs := range []int{goodSeqs, goodSeqs, badSeqs, 8, 8, 24} {
		t := liveTrial(seqs, n+1)
		t.Window = 300 * time.Millisecond
		source.trials = append(source.trials, t)
	}
	run := func(ctx context.Context, t measure.Trial) (measure.Observation, error) {
		f, err := os.OpenFile(filepath.Join(dir, "begun"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return measure.Observation{}, err
		}
		fmt.Fprintln(f, t.Number)
		f.Close()
		return l.Run(ctx, t)
	}
	if err := (&Loop{Source: source, Run: run, Journal: j}).Drive(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// A sweep that is killed at any instant leaves no process within 10 s, and goes
// on where it was: each kill repeats one trial at most, and in the end every
// configuration has its result.
func TestKilledSweepResumes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes for seconds")
	}
	self := must.Get(os.Executable())
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			dir := t.TempDir()
			_, mark := fakeLive(dir, "")
			kills := 0
			for kill := range 4 {
				cmd := exec.Command(self, "live-sweep", dir)
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				// From the first instants of a run to its last: 20 in all.
				timer := time.AfterFunc(time.Duration(150+170*i+350*kill)*time.Millisecond, func() { cmd.Process.Kill() })
				if cmd.Wait() != nil {
					kills++
				}
				timer.Stop()
				enginetest.NothingLeft(t, mark, 10*time.Second)
			}
			if out, err := exec.Command(self, "live-sweep", dir).CombinedOutput(); err != nil {
				t.Errorf("resume: %v: %s", err, out)
			}
			checkResumed(t, dir, kills)
		})
	}
	all.Wait()
}

// checkResumed checks the journal of a sweep that was killed some times.
func checkResumed(t *testing.T, dir string, kills int) {
	t.Helper()
	seen, err := ReadJournal(filepath.Join(dir, JournalFile))
	if err != nil {
		t.Error(err)
		return
	}
	if len(seen) != 6 {
		t.Errorf("%d trials in the journal, want 6", len(seen))
	}
	for i, m := range seen {
		if (m.Rejected.Text != "") != (i == 2) {
			t.Errorf("trial %d: rejected %q", i+1, m.Rejected.Text)
		}
	}
	begun, err := os.ReadFile(filepath.Join(dir, "begun"))
	if n := strings.Count(string(begun), "\n"); err != nil || n > 6+kills {
		t.Errorf("%d trials were begun, %d kills may repeat as many of 6: %v", n, kills, err)
	}
}

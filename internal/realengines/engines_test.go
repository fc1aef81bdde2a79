//go:build realengines

package realengines

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"planner/search"
	"planner/sweep"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// Two sets of knobs are launched, say what they run with, serve, and are
// stopped.
func TestTwoKnobSets(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		dir := t.TempDir()
		l := s.live(dir)
		remark(t, l)
		var seen []sweep.Sighting
		l.Seen = func(_ measure.Trial, x sweep.Sighting) { seen = append(seen, x) }
		source := &list{}
		for i, k := range []measure.Knobs{s.sets[0], s.sets[0], s.sets[1]} {
			source.trials = append(source.trials, s.trial(i+1, k, s.rate, 8*time.Second))
		}
		if err := (&sweep.Loop{Source: source, Run: l.Run}).Drive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		alone(t)
		for i, m := range source.seen {
			if m.Rejected != "" || m.Failed != 0 || m.Requests == 0 {
				t.Errorf("trial %d: rejected %q, %d of %d failed: %v", i+1, m.Rejected, m.Failed, m.Requests, m.Failures)
				continue
			}
			t.Logf("trial %d: %d requests, TTFT %v, TPOT %v, E2E %v; warnings %v", i+1, m.Requests, m.TTFT.Mean, m.TPOT.Mean, m.E2E.Mean, m.Warnings)
			t.Logf("the engine said: TTFT %v (client %v), queue %v, output %.1f tokens/s, hits %.2f, peak KV %.3f, %d samples, %d missed; notes %v",
				seen[i].Said.TTFT, seen[i].ClientTTFT, seen[i].Said.Queue, seen[i].Said.Generated, seen[i].Said.HitRate, seen[i].Said.PeakKV,
				len(seen[i].Said.Samples), seen[i].Said.Missed, seen[i].Notes)
			if m.Server.Version == "" || m.Server.KVBlocks <= 0 || m.Server.BlockTokens <= 0 {
				t.Errorf("trial %d: server %+v", i+1, m.Server)
			}
			// The engine's own count of what it generated is the load's, as long as
			// it keeps up.
			if got, most := seen[i].Said.Generated, 16*s.rate; got <= 0 || got > 1.6*most {
				t.Errorf("trial %d: the engine says %.1f tokens/s, of at most about %.0f", i+1, got, most)
			}
		}
	})
}

// The maximum rate under a limit on the p90 of the whole time is found, for
// each set of knobs.
func TestSearch(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		dir := t.TempDir()
		l := s.live(dir)
		remark(t, l)
		w := s.workload()
		for i, k := range s.sets {
			m := search.NewMaxRate(search.MaxRateConfig{
				Prior: search.Prior{Knobs: k, Rate: 5 * s.rate, Spread: 1.5}, Workload: &w, Seed: uint64(i + 1), Precision: 0.25, Confidence: 0.9,
				SLO:    measure.SLO{Errors: 0.01, Bounds: []measure.Bound{{Metric: measure.E2E, Quantile: 0.9, Limit: s.limit}}},
				Warmup: 3 * time.Second, Window: 12 * time.Second, Budget: 4 * time.Minute,
			})
			loop := sweep.Loop{Source: m, Run: l.Run, Observed: func(x measure.Measurement) {
				t.Logf("%.3g/s: E2E mean %v, aborted %q, %v", x.Trial.Rate, x.E2E.Mean, x.Aborted, x.Warnings)
			}}
			if err := loop.Drive(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := m.Result()
			t.Logf("set %d: %v: %.3g/s [%.3g, %.3g], %d trials, %v; %s", i+1, r.Outcome, r.Estimate.Value, r.Estimate.Low, r.Estimate.High, r.Trials, r.EngineTime, r.Reason)
			if r.Outcome != search.Found && r.Outcome != search.OutOfBudget || r.Estimate.Value <= 0 {
				t.Errorf("set %d: %v: %s", i+1, r.Outcome, r.Reason)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		alone(t)
	})
}

// A planner that is killed while its engine starts, and in the middle of a
// trial, leaves no process, and goes on where it was.
func TestKilledPlanner(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		dir := t.TempDir()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		planner := func() *exec.Cmd {
			cmd := exec.Command(self, "live-sweep", s.settings.Kind, dir)
			cmd.Env = append(os.Environ(), "PLANNER_TEST_RUN="+dir)
			return cmd
		}
		kill := func(when string, at func(pid int) bool) {
			cmd := planner()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for start := time.Now(); !at(cmd.Process.Pid) && time.Since(start) < 3*time.Minute; {
				time.Sleep(20 * time.Millisecond)
			}
			was := family(cmd.Process.Pid)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			t.Logf("killed %s", when)
			gone(t, was, 10*time.Second)
		}
		started := time.Now()
		kill("in the start", func(pid int) bool { return len(family(pid)) > 2 && time.Since(started) > 8*time.Second })
		journal := filepath.Join(dir, sweep.JournalFile)
		lines := func() int { seen, _ := sweep.ReadJournal(journal); return len(seen) }
		var first time.Time
		kill("in the second trial", func(int) bool {
			if lines() == 1 && first.IsZero() {
				first = time.Now()
			}
			return !first.IsZero() && time.Since(first) > 2*time.Second
		})
		if n := lines(); n != 1 {
			t.Errorf("%d trials in the journal, want 1", n)
		}
		if out, err := planner().CombinedOutput(); err != nil {
			t.Errorf("resume: %v: %s", err, out)
		}
		if n := lines(); n != 3 {
			t.Errorf("%d trials in the journal, want 3", n)
		}
		alone(t)
	})
}

// rejected runs one trial that the engine cannot start for.
func rejected(t *testing.T, s subject, k measure.Knobs, class engine.Class) *sweep.Live {
	t.Helper()
	dir := t.TempDir()
	l := s.live(dir)
	remark(t, l)
	began := time.Now()
	_, err := l.Run(t.Context(), s.trial(1, k, s.rate, time.Second))
	unable, ok := sweep.IsUnable(err)
	if !ok {
		t.Fatalf("not rejected: %v", err)
	}
	t.Logf("after %.1f s: %v", time.Since(began).Seconds(), unable)
	if got := l.LastFailure(); got == nil || got.Class != class {
		t.Errorf("class %v, want %s", got, class)
	}
	alone(t)
	return l
}

//go:build realengines

package realengines

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"planner/sweep"
	"planner/sweep/measure"
)

// A sweep over two sets of knobs whose planner is killed in the middle of the
// first trial, and once more in the middle of the second, leaves no process each
// time, goes on where it was, and has every trial in the end, with what the
// engine says of itself.
func TestSweepKilledTwice(t *testing.T) {
	each(t, func(t *testing.T, s subject) {
		timeFor(t, 8*time.Minute)
		d := s.desk(t)
		const run = "run"
		rates := strconv.FormatFloat(s.rate, 'g', -1, 64) + "," + strconv.FormatFloat(2*s.rate, 'g', -1, 64)
		d.killed(0, run, "sweep", "planner.toml", "--rates", rates, "--duration", "6s", "--warm-up", "2s", "--output", run)
		d.killed(1, run, "resume", run)
		before := d.lines(run)
		// On a busy machine no trial may be fit to be trusted, which is undecided.
		d.must([]int{4}, "resume", run)
		if after := d.lines(run); !bytes.HasPrefix(after, before) || len(before) == 0 {
			t.Errorf("the journal was rewritten: %s\nbefore: %s", after, before)
		}
		trials, telemetry := d.journal(run), d.telemetry(run)
		if len(trials) != 4 || len(telemetry) != 4 {
			t.Fatalf("%d trials in the journal and telemetry of %d, want 4", len(trials), len(telemetry))
		}
		for i, m := range trials {
			s.checkTrial(t, i+1, m, telemetry[i])
		}
	})
}

// checkTrial checks that a trial was run and its engine has told what it runs
// with.
func (s subject) checkTrial(t *testing.T, number int, m measure.Measurement, seen sweep.EngineTelemetry) {
	t.Helper()
	facts := seen.Engine.Facts
	t.Logf("trial %d: %g/s, %d requests, TTFT %v, TPOT %v, E2E %v, send lag %v; started in %.1f s; version %s, %d blocks of %d tokens, %v",
		number, m.Trial.Rate, m.Requests, m.TTFT.Mean, m.TPOT.Mean, m.E2E.Mean, m.SendLag.Mean, seen.Engine.Cold.Seconds(), m.Server.Engine.Version,
		facts.KVBlocks, facts.BlockTokens, facts.Flags)
	t.Logf("the engine said: TTFT %v (client %v), queue %v, output %.1f tokens/s, hits %.2f; %v", seen.Said.TTFT, seen.ClientTTFT,
		seen.Said.Queue, seen.Said.OutputRate, seen.Said.HitRate, seen.Notes)
	if m.Trial.Number != number || m.Rejected.Text != "" || m.Requests == 0 || m.Failed == m.Requests {
		t.Errorf("trial %d: rejected %q, %d of %d failed: %v", m.Trial.Number, m.Rejected, m.Failed, m.Requests, m.Failures)
	}
	if m.Server.Engine.Version == "" || m.Server.KVBlocks == nil || m.Server.BlockTokens == nil {
		t.Errorf("trial %d: server %+v", number, m.Server)
	}
	want := strconv.Itoa(m.Trial.Knobs.MaxNumSeqs)
	got := ""
	for _, f := range facts.Flags {
		if f.Name == "max_num_seqs" {
			got = f.Value
		}
	}
	if got != want {
		t.Errorf("trial %d: the engine runs with max_num_seqs %q, want %s", number, got, want)
	}
	// The engine's own count of what it generated is at most the load's, with room
	// for chance and for what the warm-up left.
	if rate, most := seen.Said.OutputRate, float64(s.output)*m.Trial.Rate; rate <= 0 || rate > 2*most {
		t.Errorf("trial %d: the engine says %.1f tokens/s, of about %.0f", number, rate, most)
	}
}

// killed runs the program until its journal has some trials, an engine serves and
// the next trial is under way, and kills it.
func (d *desk) killed(trials int, run string, args ...string) {
	d.t.Helper()
	const limit = 4 * time.Minute
	u := d.start(args...)
	var since time.Time
	for began := time.Now(); since.IsZero() || time.Since(since) < 3*time.Second; time.Sleep(200 * time.Millisecond) {
		if _, _, runs := stat(strconv.Itoa(u.Process.Pid)); !runs || time.Since(began) > limit {
			break
		}
		serves := strings.Contains(u.stderr.String(), " serves ")
		if since.IsZero() && serves && len(d.journal(run)) >= trials {
			since = time.Now()
		}
	}
	n := len(d.journal(run))
	_ = u.Process.Kill()
	code := d.end(u)
	if since.IsZero() && code == -1 {
		tooBusy(d.t, "no trial %d after %v\n%s", trials+1, limit, u.stderr.String())
	}
	if code != -1 || n != trials {
		d.t.Fatalf("killed with %d trials in the journal, want %d; exit code %d\n%s", n, trials, code, u.stderr.String())
	}
	d.t.Logf("killed in trial %d", trials+1)
}

// lines reads the journal of a run as it stands.
func (d *desk) lines(run string) []byte {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.path(run), sweep.JournalFile))
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

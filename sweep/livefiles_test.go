package sweep

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// A live run leaves for each trial what the engine said, second by second and in sum, the client's
// latencies and a log, even if the engine broke down or never served; and no log is overwritten.
func TestLiveTrialsLeaveTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := Folder{dir}
	l, _ := fakeLive(dir, "dies-once")
	l.Folder = &folder
	failing := liveTrial(badSeqs, 4)
	failing.Knobs.MaxNumSeqs = 14
	source := &given{trials: []measure.Trial{liveTrial(goodSeqs, 1), liveTrial(goodSeqs, 2), liveTrial(badSeqs, 3), failing}}
	run := l.Run
	loop := Loop{Source: source, Run: run, See: func(event any) {
		if batch, ok := event.([]measure.Trial); ok && batch[0].Number == 4 {
			l.Settings.ExtraArgs = []string{"--misbehave", "no-kv"}
		}
	}}
	must.OK(loop.Drive(t.Context()))
	l.Close()
	seen := must.Get(folder.ReadEngineTelemetry())
	if len(seen) != 4 {
		t.Fatalf("%d telemetry, want 4", len(seen))
	}
	for i, want := range []struct {
		fresh bool
		log   string
	}{{true, "engine/0001.log"}, {false, "engine/0001.log"}, {true, "engine/0003-again.log"}} {
		s := &seen[i]
		if s.Trial != i+1 || s.Engine.Fresh != want.fresh || s.Engine.Log != want.log || s.Failure != nil || !strings.Contains(s.Engine.Command, "--max-num-seqs") {
			t.Errorf("trial %d: %+v", i+1, s)
		}
		if s.ClientTTFT <= 0 || s.Said.TTFT < 0 || s.Said.FirstTokens == 0 || s.EngineTime < 400*time.Millisecond || s.Said.Preemptions != 0 {
			t.Errorf("trial %d: %+v", i+1, s)
		}
		if s.Engine.Cold <= 0 || len(s.Engine.Stages) < 3 || s.Engine.Facts.KVBlocks != 640 {
			t.Errorf("trial %d: engine %+v", i+1, s.Engine)
		}
		samplesAndHistograms(t, folder, i+1)
	}
	if notes := seen[2].Notes.String(); !strings.Contains(notes, "repeated on a new engine: engine failed (mem.kill)") {
		t.Errorf("notes of the trial that was repeated: %q", notes)
	}
	if f := seen[3].Failure; f == nil || f.Class != "mem.no_kv" || !strings.Contains(f.Cause, "No available memory") || seen[3].EngineTime <= 0 {
		t.Errorf("the failure: %+v after %v", f, seen[3].EngineTime)
	}
	for name, want := range map[string]string{"0002.log": "Graph capturing", "0003.log": "Starting to load", "0003-again.log": "startup complete", "0004.log": "No available memory"} {
		data, err := os.ReadFile(filepath.Join(dir, "engine", name))
		if err != nil || !bytes.Contains(data, []byte(want)) {
			t.Errorf("%s: %v, want %q in it", name, err, want)
		}
	}
	if link, err := os.Readlink(filepath.Join(dir, "engine", "0002.log")); err != nil || link != "0001.log" {
		t.Errorf("the second trial's log is %q (%v), want the first one's", link, err)
	}
}

// Each process of an engine has a log of its own: one that had no port, one in its place
// that died late, one in place of that.
func TestEachStartHasItsLog(t *testing.T) {
	t.Parallel()
	l, _ := fakeLive(t.TempDir(), "port-then-dies")
	defer l.Close()
	must.Get(l.Run(t.Context(), liveTrial(badSeqs, 1)))
	for name, want := range map[string]string{"0001": "address already in use", "0001-again": "startup complete", "0001-again-again": "startup complete"} {
		if data, err := os.ReadFile(filepath.Join(l.Settings.Dir, name+".log")); err != nil || !bytes.Contains(data, []byte(want)) {
			t.Errorf("%s: %v, want %q in %q", name, err, want, data)
		}
	}
}

// An engine that dies between two trials is reported.
func TestDeathBetweenTrialsIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := fakeLive(dir, "dies-told")
	l.Folder = &Folder{dir}
	defer l.Close()
	must.Get(l.Run(t.Context(), liveTrial(badSeqs, 1)))
	must.OK(os.WriteFile(filepath.Join(dir, "state"), nil, 0o600))
	<-l.current.Done()
	o := must.Get(l.Run(t.Context(), liveTrial(badSeqs, 2)))
	if notes := o.Remarks.String(); !strings.Contains(notes, "started once more: engine failed (mem.kill)") {
		t.Errorf("notes %q", notes)
	}
}

// samplesAndHistograms checks the files that programs read.
func samplesAndHistograms(t *testing.T, folder Folder, trial int) {
	t.Helper()
	data, err := os.ReadFile(folder.File(SamplesName(trial)))
	if err != nil {
		t.Error(err)
		return
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte{'\n'})
	var last struct {
		At        float64  `json:"at_s"`
		Running   *float64 `json:"running"`
		Waiting   *float64 `json:"waiting"`
		KV        *float64 `json:"kv_usage"`
		Generated *float64 `json:"output_tokens_per_s"`
		TTFT      *float64 `json:"ttft_mean_ms"`
		Preempted *float64 `json:"preemptions"`
	}
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || len(lines) < 2 || last.Running == nil || last.Waiting == nil || last.KV == nil ||
		last.Generated == nil || last.TTFT == nil || last.Preempted == nil || last.At < 0.3 {
		t.Errorf("trial %d: %v in %d lines: %s", trial, err, len(lines), data)
	}
	f, err := os.Open(folder.File(HistogramsName(trial)))
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	log := hdrhistogram.NewHistogramLogReader(f)
	if h, err := log.NextIntervalHistogram(); err != nil || h == nil || h.TotalCount() == 0 {
		t.Errorf("trial %d: histogram log: %v", trial, err)
	}
}

// A run that is resumed starts an engine in the middle: it must not write through the second name
// of an existing log, and of one that was started by that name nothing is lost, or read again.
func TestResumedEngineKeepsLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := filepath.Join(dir, "engine")
	must.OK(os.Mkdir(logs, 0o755))
	const first = "the first process's JIT compilation during inference:\n"
	must.OK(os.WriteFile(filepath.Join(logs, "0001.log"), []byte(first), 0o644))
	must.OK(os.Symlink("0001.log", filepath.Join(logs, "0002.log")))
	l, _ := fakeLive(dir, "")
	defer l.Close()
	must.Get(l.Run(t.Context(), liveTrial(goodSeqs, 2)))
	if got, _ := os.ReadFile(filepath.Join(logs, "0001.log")); string(got) != first {
		t.Errorf("the first log is now %q", got)
	}
	if got, _ := os.ReadFile(filepath.Join(logs, "0002.log")); !bytes.Contains(got, []byte("startup complete")) {
		t.Errorf("the second log is %q", got)
	}
	must.Get(l.Run(t.Context(), liveTrial(goodSeqs+1, 1)))
	if got, _ := os.ReadFile(filepath.Join(logs, "0001.log")); !bytes.HasPrefix(got, []byte(first+"\n... planner starts the engine again ...\n")) || !bytes.Contains(got, []byte("startup complete")) {
		t.Errorf("the log that two engines have is %q", got)
	}
	if n := l.current.Compiled(); n != 0 {
		t.Errorf("the first process's lines are taken for the second's: %d compilations", n)
	}
}

// What a file keeps of telemetry is read back from it, unknown figures as unknown.
func TestSightingRoundTrip(t *testing.T) {
	s := newEngineTelemetry(&measure.Trial{Number: 7, Knobs: liveKnobs(16)})
	s.EngineTime, s.ClientTTFT, s.Gap, s.Notes = 90*time.Second, 12500*time.Microsecond, GapFrontEnd, note.Notes{note.Text("a note")}
	s.Engine = TrialEngine{Kind: "vllm", Command: "vllm serve x", Log: "engine/0003.log", Fresh: true, Cold: 30 * time.Second,
		Stages: []engine.StartStage{{Name: "weights", Took: 1500 * time.Millisecond}}, Facts: engine.ServerFacts{Version: "1", Changed: []string{"x is 1, asked for 2"}}}
	s.Failure = &engine.Failure{Class: "mem.oom", Knobs: s.Knobs, Stage: "serving", Cause: "out of memory", Log: "engine/0003.log"}
	s.Said = engine.Metrics{PeakKV: 0.5, Counters: engine.Counters{Preemptions: 3, HitRate: math.NaN(), PromptRate: math.NaN(), OutputRate: 12.5, TTFT: 11 * time.Millisecond, Queue: -1, FirstTokens: 9}}
	folder := Folder{t.TempDir()}
	must.OK(folder.WriteEngineTelemetry(s))
	back, err := folder.ReadEngineTelemetry()
	if err != nil || len(back) != 1 {
		t.Fatalf("%v, %d telemetry", err, len(back))
	}
	equal := cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(EngineTelemetry{}, engine.Failure{})}
	if diff := cmp.Diff(s, back[0], equal); diff != "" {
		t.Error(diff)
	}
	if folder.Has(HistogramsName(7)) || folder.Has(SamplesName(7)) {
		t.Error("an engine that never served has latencies")
	}
}

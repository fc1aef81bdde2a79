package sweep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// script proposes a fixed number of trials, each of which depends on what was observed before it,
// as a search's do.
type script struct {
	batches, size int
	next          float64
	objective     measure.SLO
	// traffic, if set, takes the place of the usual workload.
	traffic *workload.Workload
	seen    []measure.Measurement
}

func (s *script) Next() []measure.Trial {
	if len(s.seen) >= s.batches*s.size {
		return nil
	}
	batch := make([]measure.Trial, s.size)
	traffic := cmp.Or(s.traffic, testWorkload())
	for i := range batch {
		batch[i] = measure.Trial{
			Knobs: measure.Knobs{MaxNumSeqs: 8 + i, TensorParallel: 1}, Workload: traffic,
			Rate: 1 + s.next + float64(i), Window: 10 * time.Second, Seed: uint64(len(s.seen) + i), Objective: s.objective,
		}
	}
	return batch
}

func (s *script) Observe(m measure.Measurement) {
	s.seen = append(s.seen, m)
	s.next += m.TTFT.Mean.Seconds()
}

func testWorkload() *workload.Workload {
	shape, _ := workload.Class("chat")
	return &workload.Workload{Class: "chat", Shapes: []workload.Shape{shape}, Arrivals: workload.Poisson}
}

// answer is a runner whose latencies are a function of the trial alone.
func answer(_ context.Context, t measure.Trial) (measure.Observation, error) {
	if t.Rate > 3.5 && t.Rate < 3.6 {
		return measure.Observation{}, &measure.Rejection{Knobs: t.Knobs, Reason: note.Text("too wide").Reason()}
	}
	rng := rand.New(rand.NewPCG(t.Seed, 99))
	o := measure.Observation{End: t.Window + time.Minute}
	for _, r := range t.Schedule() {
		first := r.Due + time.Duration(rng.ExpFloat64()*float64(100*time.Millisecond))
		o.Records = append(o.Records, measure.Record{ID: r.ID, Due: r.Due, Sent: r.Due, First: first,
			Last: first + time.Second, Prompt: r.Prompt, Output: r.Output, Outcome: measure.OK})
	}
	return o, nil
}

func journal(t *testing.T, path string) *Journal {
	t.Helper()
	j := must.Get(openJournal(path))
	t.Cleanup(func() { j.Close() })
	return j
}

func runScript(t *testing.T, j *Journal, parallel int) *script {
	t.Helper()
	s := &script{batches: 4, size: 3}
	l := Loop{Source: s, Run: answer, Journal: j, Parallel: parallel}
	must.OK(l.Drive(t.Context()))
	return s
}

// A run whose journal was cut anywhere in any of its lines and that was resumed observes the same
// measurements and leaves the same journal as one that was not.
func TestResumeFromEveryCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), JournalFile)
	j := journal(t, path)
	want := runScript(t, j, 1)
	j.Close()
	whole := must.Get(os.ReadFile(path))
	cuts, begin := []int{len(whole)}, 0
	for line := range bytes.Lines(whole) {
		cuts = append(cuts, begin, begin+1, begin+len(line)/2, begin+len(line)-1)
		begin += len(line)
	}
	for _, cut := range cuts {
		path := must.File(t, JournalFile, string(whole[:cut]))
		j := journal(t, path)
		got := runScript(t, j, 2)
		j.Close()
		if !slices.EqualFunc(got.seen, want.seen, sameMeasurement) {
			t.Fatalf("cut at byte %d: other measurements than in one go", cut)
		}
		if now, _ := os.ReadFile(path); string(now) != string(whole) {
			t.Fatalf("cut at byte %d: other journal than in one go", cut)
		}
	}
}

func sameMeasurement(a, b measure.Measurement) bool {
	return a.TTFT == b.TTFT && a.Requests == b.Requests && a.Rejected.Text == b.Rejected.Text && a.Trial.Rate == b.Trial.Rate && a.Trial.Number == b.Trial.Number
}

func TestDamagedJournalIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), JournalFile)
	j := journal(t, path)
	runScript(t, j, 1)
	j.Close()
	data, _ := os.ReadFile(path)
	data[40] = 0
	must.OK(os.WriteFile(path, data, 0o644))
	if _, err := openJournal(path); err == nil {
		t.Fatal("a journal with a damaged first line was taken")
	}
}

func TestJournalOfAnotherSearchIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), JournalFile)
	j := journal(t, path)
	runScript(t, j, 1)
	j.Close()
	j = journal(t, path)
	l := Loop{Source: &script{batches: 4, size: 2}, Run: answer, Journal: j}
	l.Source.(*script).next = 0.25
	if err := l.Drive(t.Context()); err == nil {
		t.Fatal("a journal of other trials was taken")
	}
}

// Counts against other limits or under other traffic say nothing about the present ones; another
// seed of the same traffic does not matter.
func TestJournalOfAnotherTrialIsRefused(t *testing.T) {
	limit := func(d time.Duration, failed float64) script {
		return script{objective: measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.9, Limit: d}}, Errors: failed}}
	}
	none := script{objective: measure.SLO{Errors: 0.001}}
	longer, seeded := testWorkload(), testWorkload()
	longer.Shapes[0].Output.Median *= 2
	seeded.Seed = 7
	for _, c := range []struct {
		name        string
		first, then script
		refused     bool
	}{
		{"the same", limit(333333*time.Microsecond, 0.001), limit(333333*time.Microsecond, 0.001), false},
		{"another limit", limit(500*time.Millisecond, 0.001), limit(490*time.Millisecond, 0.001), true},
		{"another share of failures", limit(500*time.Millisecond, 0.001), limit(500*time.Millisecond, 0.01), true},
		{"no limit", none, none, false},
		{"no limit at first", script{}, limit(500*time.Millisecond, 0.001), true},
		{"another seed", script{}, script{traffic: seeded}, false},
		{"longer answers", script{}, script{traffic: longer}, true},
	} {
		path := filepath.Join(t.TempDir(), JournalFile)
		drive := func(s script) error {
			j := journal(t, path)
			defer j.Close()
			s.batches, s.size = 2, 2
			return (&Loop{Source: &s, Run: answer, Journal: j}).Drive(t.Context())
		}
		must.OK(drive(c.first))
		if err := drive(c.then); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestJournalIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), JournalFile)
	journal(t, path)
	if _, err := openJournal(path); err == nil {
		t.Fatal("two processes could write one journal")
	}
}

// unanswered is a study whose answer takes for ever.
type unanswered struct{ script }

func (*unanswered) Rejected() []measure.Rejection { return nil }

func (*unanswered) Answer() (Answer, error) { select {} }

// Once its context ends a run ends, in a trial as well as in its answer, and all trials that ended are in the journal.
func TestInterruptedRunEnds(t *testing.T) {
	for in, held := range map[int]int{5: 4, 12: 12} {
		folder := must.Get(CreateFolder(filepath.Join(t.TempDir(), "run"), About{Command: "plan"}, nil))
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		run := func(ctx context.Context, tr measure.Trial) (measure.Observation, error) {
			if n++; n == 5 && in == 5 {
				cancel()
			}
			return answer(ctx, tr)
		}
		s := &unanswered{script{batches: 4, size: 3}}
		see := func(any) {
			if in == 12 && len(s.seen) == 12 {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
		}
		if got, err := Drive(ctx, &folder, Ground{Run: run}, s, nil, see); !errors.Is(err, ErrInterrupted) || got.Value != nil {
			t.Errorf("interrupted in trial %d: %v, %v", in, got, err)
		}
		if got := must.Get(ReadJournal(folder.File(JournalFile))); len(got) != held {
			t.Errorf("interrupted in trial %d: %d trials in the journal, want %d", in, len(got), held)
		}
	}
}

func TestTogetherDealsMeasurementsBack(t *testing.T) {
	a, b := &script{batches: 2, size: 1}, &script{batches: 3, size: 2}
	l := Loop{Source: &Together{Sources: []Source{a, b}}, Run: answer, Parallel: 4}
	must.OK(l.Drive(t.Context()))
	if len(a.seen) != 2 || len(b.seen) != 6 {
		t.Fatalf("sources saw %d and %d measurements, want 2 and 6", len(a.seen), len(b.seen))
	}
	for _, m := range a.seen {
		if m.Trial.Knobs.MaxNumSeqs != 8 {
			t.Fatalf("first source was told of %+v", m.Trial.Knobs)
		}
	}
}

func TestFolderNamesAreNew(t *testing.T) {
	dir := t.TempDir()
	about := About{Command: "plan", Started: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	left := filepath.Join(dir, staged+"killed")
	must.OK(errors.Join(os.Mkdir(left, 0o700), os.Chtimes(left, time.Time{}, about.Started)))
	var names []string
	for range 3 {
		f := must.Get(NewFolder(dir, "Llama 3.1/70B", about, map[string][]byte{ConfigFile: []byte("seed = 1\n")}))
		names = append(names, filepath.Base(f.Path))
	}
	want := []string{"20261121T090000Z-llama-3.1-70b", "20261121T090000Z-llama-3.1-70b-2", "20261121T090000Z-llama-3.1-70b-3"}
	if !slices.Equal(names, want) {
		t.Fatalf("names %v, want %v", names, want)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 3 {
		t.Fatalf("%d entries left in the folder, want the 3 runs", len(entries))
	}
}

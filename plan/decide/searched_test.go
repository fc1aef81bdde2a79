package decide

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"planner/internal/evidence/must"
	"planner/internal/wire"
	"planner/model"
	"planner/sweep"
)

// TestRecall checks that what the searches found, written and read again, gives for another demand to the byte the plan that
// their journal gives, without a simulated run for the doubt of the constants; and nothing for other limits, nor where trials or kinds of
// instances are missing.
func TestRecall(t *testing.T) {
	prepared := func(demand, traffic string) (PlanStudy, *int) {
		cfg, g := onInstance(t, "plan", "[search]\nprecision = 0.3\n[demand]\n"+demand+"\n"+traffic)
		doubts := 0
		g.Predict.Known = func(_ model.Deployment, s model.Spread) model.Spread { doubts++; return s }
		return must.Get(NewPlan(cfg, g)), &doubts
	}
	cfg, g := onInstance(t, "plan", "[search]\nprecision = 0.3\n[demand]\nrate = 40\n"+single)
	study := must.Get(NewPlan(cfg, g))
	folder := must.Get(sweep.CreateFolder(filepath.Join(t.TempDir(), "run"), sweep.About{Command: "plan"}, nil))
	must.Get(sweep.Drive(t.Context(), &folder, g, study, nil, nil))
	must.OK(folder.WriteJSON("searches.json", study.Searched()))
	var found []SearchResults
	must.OK(folder.ReadJSON("searches.json", &found))
	trials := must.Get(sweep.ReadJournal(folder.File(sweep.JournalFile)))

	const other = "rate = 100\nmean_rate = 10\nburst_index = 5"
	replayed, _ := prepared(other, single)
	want := must.Get(wire.Print(must.Get(sweep.Replay(trials, replayed)).Value))
	again, doubts := prepared(other, single)
	if !again.Recall(found, trials) {
		t.Fatal("the searches of the same configuration are not known again")
	}
	if got := must.Get(wire.Print(must.Get(again.Answer()).Value)); !bytes.Equal(got, want) || *doubts > 0 {
		t.Errorf("%d doubts were looked for; recalled\n%s\nreplayed\n%s", *doubts, got, want)
	}
	if again, _ := prepared(other, strings.ReplaceAll(single, "1s", "2s")); again.Recall(found, trials) {
		t.Error("searches for other limits are taken for these")
	}
	if again, _ := prepared(other, single); again.Recall(found, trials[:len(trials)-1]) {
		t.Error("a trial is lost, and nobody noticed")
	}
	none, twice := found[0], found[0]
	none.Kinds, twice.Kinds = nil, append(slices.Clone(found[0].Kinds), found[0].Kinds...)
	for _, damaged := range []SearchResults{none, twice} {
		if again, _ := prepared(other, single); again.Recall([]SearchResults{damaged}, trials) {
			t.Errorf("searches of %d kinds are taken for those of one", len(damaged.Kinds))
		}
	}
	more, _ := prepared(other, single+"[engine]\ntensor_parallel = [1, 2]\n")
	one := found[0]
	one.Of = more.(*Decision).digest()
	if more.Recall([]SearchResults{one}, trials) {
		t.Error("the search of one kind is taken for those of two")
	}
}

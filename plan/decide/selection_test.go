package decide

import (
	"errors"
	"testing"

	"planner/internal/evidence/configtest"
	"planner/internal/note"
	"planner/model/calibrate"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// The engine's own settings may be chosen where each list holds them, no options among them.
func TestAllowed(t *testing.T) {
	for list, want := range map[string]bool{`["", "--block-size 32"]`: true, `["--block-size 16", "--block-size 32"]`: false} {
		cfg := configtest.Load("plan", "model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM", "demand.rate", "1",
			"slo.ttft", `{p99="1s"}`, "engine.kind", "vllm", "knobs.extra_args", list)
		if got := allowed(cfg, measure.Knobs{PrefixCaching: true}); got != want {
			t.Errorf("%s: allowed %v, want %v", list, got, want)
		}
	}
}

// Of sets that were searched the one is taken whose safe rate is the highest, where a fleet by the likely best one
// would be a quarter larger.
func TestPrefersSafe(t *testing.T) {
	likely := search.Result{Estimate: search.Estimate{Value: 5.4, Low: 0.3, High: 6, Safe: 0.3}, Trials: 9}
	found := func(value, safe float64) *search.Result {
		return &search.Result{Estimate: search.Estimate{Value: value, Safe: safe}, Trials: 9}
	}
	set := func(tokens int) measure.Knobs { return measure.Knobs{MaxNumBatchedTokens: tokens} }
	others := []search.Contestant{{Knobs: set(8192)}, {Knobs: set(512), Found: found(4.4, 1.7)}, {Knobs: set(256), Found: found(2.9, 2.4)}, {Knobs: set(2048), Found: found(0.8, 0.4)}}
	for _, c := range []struct{ safe, want float64 }{{0.3, 256}, {2, 1024}} {
		likely.Estimate.Safe = c.safe
		s := &selection{rated: rated{knobs: set(1024), found: likely, rate: likely.Estimate}, rejected: []measure.Rejection{{Knobs: set(256)}, {Knobs: set(512)}}}
		(&Decision{}).preferSafe(s, others)
		taken := c.want == 256
		if s.knobs != set(int(c.want)) || taken && (len(s.rejected) != 2 || s.rejected[1].Knobs != set(1024) || s.rejected[1].Reason.Note.Kind != note.LessSafe) {
			t.Errorf("safe rate %v: %+v, rejected %+v", c.safe, s.knobs, s.rejected)
		}
	}
}

// Where a fleet of the best set would be a quarter larger for what is not known of the constants, the sets with smaller
// steps that were only measured beside it are searched, and count as others do that were.
func TestSecure(t *testing.T) {
	cfg := configtest.Load("plan", "model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM", "demand.rate", "1", "slo.itl", `{p99="60ms"}`)
	set := func(seqs, tokens int) measure.Knobs {
		return measure.Knobs{MaxNumSeqs: seqs, MaxNumBatchedTokens: tokens}
	}
	best := search.Result{Estimate: search.Estimate{Value: 5, Low: 4.8, High: 5.2, Safe: 4.8}}
	race := search.RaceResult{Knobs: set(64, 1024), Best: best, Contestants: []search.Contestant{
		{Knobs: set(64, 2048), Status: search.Beaten}, {Knobs: set(64, 512), Status: search.Beaten}, {Knobs: set(64, 256), Status: search.Measured, Found: &best},
		{Knobs: set(32, 512), Status: search.Tied}, {Knobs: set(64, 128), Status: search.Skipped},
	}}
	for shift, want := range map[float64]int{0.1: 0, 0.5: 1} {
		d := &Decision{searches: searches{cfg: cfg, ground: sweep.Ground{Virtual: true}, instances: []*instance{{race: func() search.RaceResult { return race }}},
			doubts: []doubted{{race.Knobs, 5, calibrate.Shifts{-shift, 0, shift}}}}}
		if together := d.secure().(*sweep.Together); len(together.Sources) != want {
			t.Errorf("shifts of %v: %d sets are searched, want %d", shift, len(together.Sources), want)
		} else if want == 1 {
			trial := together.Next()[0]
			if trial.Knobs != set(64, 512) {
				t.Errorf("%+v is searched", trial.Knobs)
			}
		}
		if shift == 0.1 {
			d.failed, d.instances[0].race = errors.New("no prediction"), nil // as where the races did not begin
			if next := d.secure(); next != nil {
				t.Errorf("behind a failure %+v", next)
			}
			continue
		}
		if got := d.instances[0].race(); len(got.Contestants) != len(race.Contestants) || got.Contestants[1].Found != nil {
			t.Errorf("without a rate %+v", got.Contestants)
		}
	}
}

// The default is taken unless the best set is shown to carry more.
func TestPrefersDefault(t *testing.T) {
	at := func(v float64) search.Estimate {
		return search.Estimate{Value: v, Low: v - 1, High: v + 1, Safe: v - 1, Confidence: 0.9}
	}
	shown, none := search.Estimate{Value: 1.3, Low: 1.1, High: 1.5}, search.Estimate{Value: 1.05, Low: 0.9, High: 1.2}
	vague := search.Estimate{Value: 10, Low: 5, High: 15, Safe: 5}
	for _, tt := range []struct {
		name           string
		best, of, gain search.Estimate
		want           bool
	}{
		{"a default without a rate", at(10), search.Estimate{}, search.Estimate{}, false},
		{"a best set without a rate", search.Estimate{}, at(10), search.Estimate{}, true},
		{"a gain that is shown", at(13), at(10), shown, false},
		{"a gain that may be none", at(10.5), at(10), none, true},
		{"the default is faster", at(10), at(10.4), none, true},
		{"a default that is known much less well", at(10.5), vague, none, false},
		{"a best set that is", vague, at(10), none, true},
	} {
		if got := prefersDefault(tt.best, tt.of, tt.gain); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
)

// driftServer is a raceServer whose speed is drawn anew whenever the knobs
// change, as that of an engine that is started anew.
type driftServer struct {
	raceServer
	sd      float64
	rng     *rand.Rand
	running measure.Knobs
	factor  float64
	starts  int
	order   []measure.Knobs
}

func (s *driftServer) run(t measure.Trial) measure.Measurement {
	if s.starts == 0 || t.Knobs != s.running {
		s.running, s.starts = t.Knobs, s.starts+1
		s.factor = math.Exp(s.sd * s.rng.NormFloat64())
	}
	s.order = append(s.order, t.Knobs)
	one := raceServer{mu: map[measure.Knobs]float64{t.Knobs: s.mu[t.Knobs] * s.factor}}
	return one.run(t)
}

// drifted races two sets beside a default on an engine of the given drift.
func drifted(sd float64, seed uint64) (RaceResult, *driftServer, *Race) {
	base, priors := landscape(3, 0.05, seed)
	s := &driftServer{raceServer: *base, sd: sd, rng: rand.New(rand.NewPCG(seed, 9))}
	cfg := raceConfig(priors, seed)
	cfg.Default, cfg.OneEngine, cfg.Search.Budget = &priors[2], true, 8*time.Hour
	r := NewRace(cfg)
	for batch := r.Next(); len(batch) > 0; batch = r.Next() {
		for _, t := range batch {
			r.Observe(s.run(t))
		}
	}
	return r.Result(), s, r
}

// What starts differ by gets into the interval of the winner and into words.
func TestStartsThatDiffer(t *testing.T) {
	const seeds = 16
	width := func(sd float64) (mean float64, said, safe int) {
		for seed := range uint64(seeds) {
			r, s, _ := drifted(sd, seed)
			mean += math.Log(r.Best.Estimate.High/r.Best.Estimate.Low) / seeds
			if strings.Contains(r.Best.Warnings.String(), "start to start") {
				said++
			}
			if r.Best.Estimate.Safe <= s.carries(s.mu[r.Knobs]) {
				safe++
			}
		}
		return mean, said, safe
	}
	still, _, _ := width(0)
	broad, said, safe := width(0.06)
	t.Logf("width %.3f without drift, %.3f with 6 %%; said %d of %d times, safe %d times", still, broad, said, seeds, safe)
	if broad < 1.1*still {
		t.Errorf("the interval is %.3f wide without drift, %.3f with it", still, broad)
	}
	// Over 64 races it is said in two of three; fewer than half of 16 would be so
	// once in 25 times.
	if said < seeds/2 {
		t.Errorf("drift is spoken of in %d of %d races", said, seeds)
	}
	// A safe rate that is right 95 times in 100 is right fewer than 13 of 16 times
	// once in 100.
	if safe < 13 {
		t.Errorf("the safe rate is right in %d of %d races", safe, seeds)
	}
}

// What is said of starts is said of the default as well, which may be the one that
// is chosen.
func TestStartsAreSpokenOfForTheDefault(t *testing.T) {
	compared := 0
	for seed := range uint64(6) {
		r, _, _ := drifted(0.06, seed)
		if r.Default == nil || len(r.Best.Warnings) == 0 {
			continue
		}
		compared++
		last := r.Best.Warnings[len(r.Best.Warnings)-1]
		if last.Kind != note.StartsDiffer && last.Kind != note.FewStarts || !slices.ContainsFunc(r.Default.Warnings, last.Equal) {
			t.Errorf("seed %d: the best set is said %q, the default %q", seed, r.Best.Warnings, r.Default.Warnings)
		}
	}
	if compared == 0 {
		t.Error("no race ended with a default")
	}
}

// On one engine the final searches take turns, so that the engine starts less
// often than trials run.
func TestFinalSearchesTakeTurns(t *testing.T) {
	r, s, race := drifted(0, 1)
	for seed := uint64(2); len(race.finals) != 2 && seed < 10; seed++ {
		r, s, race = drifted(0, seed)
	}
	if len(race.finals) != 2 {
		t.Fatal("the default won every race; nothing takes turns")
	}
	finals := race.finals[0].search.Result().Trials + race.finals[1].search.Result().Trials
	order := s.order[len(s.order)-finals:]
	starts := 1
	for i := 1; i < len(order); i++ {
		if order[i] != order[i-1] {
			starts++
		}
	}
	if want := finals/turnTrials + 2; starts > want {
		t.Errorf("%d starts for %d final trials, want at most %d", starts, finals, want)
	}
	groups, final := race.startsOf(r.Knobs)
	if final < 1 || len(groups) < final {
		t.Errorf("%d starts of the winner, %d of them in the final search", len(groups), final)
	}
}

func TestBetweenStarts(t *testing.T) {
	at := func(v float64) Estimate {
		return Estimate{Value: v, Low: v * 0.99, High: v / 0.99, Confidence: 0.90, Safe: v * 0.99}
	}
	sigma := betweenStarts([]Estimate{at(10), at(10.8), at(9.3), at(10.1)})
	// The sample deviation of the four logarithms is 0.0613, that of their own
	// intervals 0.0061.
	if math.Abs(sigma-0.0610) > 0.0005 {
		t.Errorf("deviation %.4f, want 0.0610", sigma)
	}
	w := at(10).widen(0.04, 4)
	if want := 9.9 / math.Exp(1.645*0.02); math.Abs(w.Safe-want) > 1e-3 || w.Value != 10 || w.High <= 10/0.99 {
		t.Errorf("widened to %+v, want safe %.3f", w, want)
	}
	if betweenStarts([]Estimate{at(10), at(12)}) != 0 {
		t.Error("two starts give a deviation")
	}
}

package search

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"planner/internal/evidence/search/virtual"
	"planner/sweep/measure"
)

// driftServer is a raceServer whose speed is drawn anew whenever the knobs change, as that of an engine that is
// restarted.
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
	cfg.Default, cfg.OneEngine, cfg.Search.Budget = &priors[2], true, 4*time.Hour
	r := NewRace(cfg)
	virtual.Drive(r, s.run)
	return r.Result(), s, r
}

// The variation between starts widens the winner's interval, on the same landscapes with it and without.
func TestStartsThatDiffer(t *testing.T) {
	const seeds, paired = 8, 2
	still, broad, safe := 0.0, 0.0, 0
	for seed := range uint64(seeds) {
		width := func(sd float64) (ln float64, safe bool) {
			r, s, _ := drifted(sd, seed)
			e := r.Best.Estimate
			return math.Log(e.High / e.Low), e.Safe <= s.carries(s.mu[r.Knobs])
		}
		wide, held := width(0.10)
		if held {
			safe++
		}
		if seed < paired {
			narrow, _ := width(0)
			still, broad = still+narrow/paired, broad+wide/paired
		}
	}
	t.Logf("width %.3f without drift, %.3f with 10 %%; safe %d of %d times", still, broad, safe, seeds)
	if broad < 1.1*still {
		t.Errorf("the interval is %.3f wide without drift, %.3f with it", still, broad)
	}
	// A safe rate that is right 95 times in 100 is right fewer than 6 of 8 times
	// six times in 1,000.
	if safe < 6 {
		t.Errorf("the safe rate is right in %d of %d races", safe, seeds)
	}
}

// On one engine the final searches take turns, so that the engine starts less often than trials run.
func TestFinalSearchesTakeTurns(t *testing.T) {
	_, s, race := drifted(0, 1)
	for seed := uint64(2); len(race.searched) < 2 && seed < 10; seed++ {
		_, s, race = drifted(0, seed)
	}
	if len(race.searched) < 2 {
		t.Fatal("the default won every race; nothing takes turns")
	}
	finals := 0
	for _, c := range race.searched {
		finals += len(c.search.tried) - c.search.chosen
	}
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
}

// An engine that fails during the winner's final search does not invalidate what was known before it.
func TestWinnerThatFailsAtTheEnd(t *testing.T) {
	server, priors := landscape(3, 0.05, 1)
	cfg := raceConfig(priors, 1)
	cfg.Search.Budget = 8 * time.Hour
	r := NewRace(cfg)
	var before Result
	for batch := r.Next(); len(batch) > 0; batch = r.Next() {
		if r.chosen {
			before, server.mu = r.Result().Best, nil
		}
		for _, t := range batch {
			r.Observe(server.run(t))
		}
	}
	if got := r.Result().Best; before.Outcome != Found || got.Outcome != Found || got.Estimate != before.Estimate {
		t.Errorf("%v, %v at the end, %v, %v before", got.Outcome, got.Estimate, before.Outcome, before.Estimate)
	}
}

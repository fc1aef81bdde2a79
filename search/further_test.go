package search

import (
	"testing"

	"planner/sweep/measure"
)

// A race goes beyond its candidates for as long as that pays, whatever is predicted for the further sets, and ends once
// no new one is named.
func TestRaceGoesFurther(t *testing.T) {
	knobs := func(n int) measure.Knobs { return measure.Knobs{MaxNumSeqs: n, TensorParallel: 1} }
	server := &raceServer{mu: map[measure.Knobs]float64{knobs(8): 20, knobs(16): 24, knobs(32): 28, knobs(64): 33, knobs(128): 38, knobs(256): 30}}
	var priors []Prior
	for _, n := range []int{8, 16, 32} {
		priors = append(priors, Prior{Knobs: knobs(n), Rate: server.carries(server.mu[knobs(n)]), Spread: 0.1})
	}
	c := raceConfig(priors, 3)
	if r := drive(NewRace(c), server); r.Knobs != knobs(32) {
		t.Fatalf("without more sets the best is %+v", r.Knobs)
	}
	var asked []int
	c.Further = func(r RaceResult) []Prior {
		asked = append(asked, r.Knobs.MaxNumSeqs)
		next := knobs(2 * r.Knobs.MaxNumSeqs)
		return []Prior{{Knobs: next, Rate: 1, Spread: 0.01}}
	}
	r := drive(NewRace(c), server)
	if r.Knobs != knobs(128) {
		t.Errorf("the best is %+v after %v", r.Knobs, asked)
	}
	status := map[int]Status{}
	for _, c := range r.Contestants {
		status[c.Knobs.MaxNumSeqs] = c.Status
	}
	if status[64] != Measured || status[256] != Beaten {
		t.Errorf("what became of the others: %v", status)
	}
	if again := drive(NewRace(c), server); again.Best.Estimate != r.Best.Estimate {
		t.Error("the same race ends otherwise")
	}
}

// Sets that were excluded by their prediction are tried once they are named; a set that does not run ends nothing.
func TestRaceFurtherTriesWhatWasLeftOut(t *testing.T) {
	knobs := func(n int) measure.Knobs { return measure.Knobs{MaxNumSeqs: n, TensorParallel: 1} }
	server := &raceServer{mu: map[measure.Knobs]float64{knobs(1): 28, knobs(2): 34}}
	c := raceConfig([]Prior{{Knobs: knobs(1), Rate: 18.5, Spread: 0.1}, {Knobs: knobs(2), Rate: 5, Spread: 0.1}}, 1)
	if r := drive(NewRace(c), server); r.Knobs != knobs(1) || r.Contestants[0].Status != Skipped {
		t.Fatalf("a set that is predicted to be poor was tried: %+v", r.Contestants)
	}
	c.Further = func(RaceResult) []Prior { return []Prior{{Knobs: knobs(2)}, {Knobs: knobs(3)}} }
	r := drive(NewRace(c), server)
	if r.Knobs != knobs(2) {
		t.Errorf("the best is %+v", r.Knobs)
	}
	for _, c := range r.Contestants {
		if c.Knobs == knobs(3) && c.Status != Unable {
			t.Errorf("what cannot run is %v", c.Status)
		}
	}
}

package search

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
)

// The curve of M/M/1, whose share beyond a limit L is exp(-(mu-rate) L), is nearly straight on the scale of the link,
// whatever share is allowed: from 0.9 to 1.1 times the largest rate its slope changes by less than a third. In logits,
// that for a limit on the median would change twice as much.
func TestLinkStraightensQueues(t *testing.T) {
	for _, c := range []struct{ share, limit float64 }{{0.001, 0.5}, {0.01, 0.5}, {0.1, 0.3}, {0.5, 0.1}} {
		const mu = 35
		most := mu - math.Log(1/c.share)/c.limit
		at := func(x float64) float64 { return stat.CLogLog(math.Exp(-(mu - x*most) * c.limit)) }
		low, high := (at(1)-at(0.9))/0.1, (at(1.1)-at(1))/0.1
		if ratio := high / low; ratio < 0.95 || ratio > 1.33 {
			t.Errorf("share %g: slope %.1f below the limit and %.1f above", c.share, low, high)
		}
		if z := stat.CLogLog(c.share); math.Abs(unlink(z)/c.share-1) > 1e-9 {
			t.Errorf("share %g: there and back %g", c.share, unlink(z))
		}
	}
	if p := unlink(40); p != unlink(zHigh) || p >= 1 {
		t.Errorf("far above: %v", p)
	}
}

// A curve with a floor has the same value and steepness at the limit as one without, and falls to the share of lone
// requests that are late, 1-(1-p)^floor if p is allowed: their hazard is the part floor of that which is allowed.
func TestFloorKeepsTheLimit(t *testing.T) {
	for _, share := range []float64{0.001, 0.1, 0.5} {
		limit := stat.CLogLog(share)
		for _, floor := range []float64{0, 0.3, 0.6} {
			at := func(z float64) float64 { return raised(limit, floor, limit+z) - limit }
			if slope := (at(1e-4) - at(-1e-4)) / 2e-4; math.Abs(at(0)) > 1e-9 || math.Abs(slope-1) > 1e-6 {
				t.Errorf("share %g, floor %g: the limit is off by %g, the slope there is %g", share, floor, at(0), slope)
			}
			if lone := 1 - math.Pow(1-share, floor); math.Abs(unlink(limit+at(-40))-lone) > 1e-9 {
				t.Errorf("share %g, floor %g: %g of lone requests are late, want %g", share, floor, unlink(limit+at(-40)), lone)
			}
		}
	}
}

// A search whose budget ends before any rate met the objective reports no rate, and has a reason and bounds.
func TestAllMissedNamesNoRate(t *testing.T) {
	s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: raceObjective(), Prior: Prior{Rate: 30}, Budget: 400 * time.Second, Window: 100 * time.Second, Warmup: 10 * time.Second})
	for batch := s.Next(); len(batch) > 0; batch = s.Next() {
		m := counted(batch[0].Rate, 1000, 900)
		m.Trial, m.Duration = batch[0], batch[0].Window
		if m.Trial.Closed() {
			m = measure.Measurement{Trial: m.Trial, Duration: time.Second}
			m.Requests = 10
		}
		s.Observe(m)
	}
	r := s.Result()
	if r.Outcome != OutOfBudget || r.Estimate != (Estimate{}) {
		t.Errorf("%v, %+v", r.Outcome, r.Estimate)
	}
	if r.Reason.Text == "" || len(r.Bounds) == 0 {
		t.Errorf("%+v", r)
	}
}

// A trial far beyond capacity is never stationary and counts as evidence all the same; if the number in flight shrinks,
// it does not.
func TestOverloadThatIsNotStationaryCounts(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.5, Limit: 100 * time.Millisecond}}, Errors: -1}
	s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: slo, Prior: Prior{Rate: 38}})
	m := measure.Measurement{Trial: s.Next()[0], Warnings: note.Notes{note.New(note.NotStationary, 300.0, 250.0)}, Counts: []measure.Count{
		{Bound: "ttft.p50", N: 800, K: 800}, {Bound: measure.ThroughputBound, N: 800, K: 80, Value: 0.1, Low: 0.06, High: 0.14}}}
	if s.Observe(m); s.missed != 1 {
		t.Errorf("a trial whose backlog grew is none that missed: %+v", s.tried)
	}
	m.Counts = slices.Clone(m.Counts)
	m.Counts[1].Value = -0.1
	if s.Observe(m); len(s.doubted) != 1 {
		t.Error("a trial whose backlog shrank is believed")
	}
}

// A limit on times between tokens that is met while the backlog grows is met at the rate of completion, and throughput
// limits the rate to that.
func TestThroughputLimits(t *testing.T) {
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TPOT, Quantile: 0.95, Limit: 60 * time.Millisecond}}, Errors: -1}
	s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: slo, Prior: Prior{Rate: 10}})
	const capacity = 8.0
	for batch := s.Next(); len(batch) > 0; batch = s.Next() {
		m := measure.Measurement{Trial: batch[0], Valid: true, Duration: batch[0].Window}
		m.Requests = int(m.Trial.Rate * m.Duration.Seconds())
		stays := max(1-capacity/m.Trial.Rate, 0)
		m.Overloaded = stays > 0.05
		m.Counts = []measure.Count{{Bound: "tpot.p95", N: m.Requests, K: m.Requests / 100, Cluster: 1},
			{Bound: measure.ThroughputBound, N: m.Requests / 2, Value: stays, Low: stays - 0.03, High: stays + 0.03}}
		if s.Observe(m); len(s.tried) > 20 {
			t.Fatal("no end")
		}
	}
	r := s.Result()
	if r.Binding != measure.ThroughputBound || r.Estimate.Low > capacity || r.Estimate.High < capacity || r.Outcome != Found {
		t.Errorf("%+v", r)
	}
}

// Exceedances proportional to the rate, as of tokens that wait for one prompt, are answered correctly from trials on
// both sides of the limit; a prior that believes only in queues would be off by half.
func TestFlatCurve(t *testing.T) {
	a := generic("itl.p99", 0.01, false)
	var trials []measure.Measurement
	for _, rate := range []float64{3, 4, 6, 8, 12, 20} {
		const n = 20_000
		trials = append(trials, counted(rate, n, int(math.Round(n*0.01*rate/8))))
	}
	p := a.infer(evidenceOf(&a, trials...))
	e := posteriors{p}.estimate(0.9)
	if e.Low > 8 || e.High < 8 || e.Value < 7 || e.Value > 9 {
		t.Errorf("%v, steepness %.2f, want 8", e, p.kappa)
	}
	if x := rise(0.5, 3); math.Abs(x/(0.5*math.Log(3))-1) > 0.1 {
		t.Errorf("a flat curve rises by %.3f", x)
	}
	if x, y := rise(flat, 1.2), rise(flat-1e-9, 1.2); math.Abs(x-y) > 1e-6 {
		t.Errorf("steep and flat curves meet at %v and %v", x, y)
	}
}

// The reason of a search without a rate does not contradict its trials: an untrusted trial that met the objective leaves
// no upper bound, and one that decides nothing is reported as such.
func TestNoBoundAgainstTrials(t *testing.T) {
	for name, c := range map[string]struct {
		lowest measure.State
		// untrusted adds a trial below, not valid, that meets the objective.
		untrusted bool
		want      note.Kind
		seen      string
	}{
		"missed":    {measure.Missed, false, note.AllMissed, ""},
		"undecided": {measure.Unsure, false, note.AllMissed, ", which its trial does not decide"},
		"untrusted": {measure.Missed, true, note.NoneMet, ""},
	} {
		s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: raceObjective(), Prior: Prior{Rate: 30}, Budget: time.Hour})
		tell := func(rate float64, late int, state measure.State, valid bool) {
			m := counted(rate, 1000, late)
			m.Trial.Rate, m.Duration, m.Valid, m.Verdict = rate, time.Minute, valid, &measure.Verdict{State: state}
			s.Observe(m)
		}
		tell(30, 900, measure.Missed, true)
		tell(20, 800, measure.Missed, true)
		tell(10, 300, c.lowest, true)
		if c.untrusted {
			tell(5, 0, measure.Unsure, false)
		}
		why := s.noneMet(note.Because(note.BudgetSpent))
		if why.Note.Kind != c.want || why.Note.Figures["seen"] != c.seen {
			t.Errorf("%s: %s", name, why.Text)
		}
		if bound, _ := why.Note.Figures["high_per_s"].(float64); c.want == note.AllMissed && bound < 20 {
			t.Errorf("%s: %s", name, why.Text)
		}
	}
}

// Untrusted trials may take only a part of the budget, and the reason says why they are, with the range of their
// figures.
func TestUntrustedTrialsEndASearch(t *testing.T) {
	s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: raceObjective(), Prior: Prior{Rate: 30}, Budget: 10 * time.Minute})
	spent, n := time.Duration(0), 0
	for batch := s.Next(); len(batch) > 0; batch = s.Next() {
		m := counted(batch[0].Rate, 1000, 10)
		m.Trial, m.Duration = batch[0], batch[0].Window
		if n++; n%3 != 0 {
			lag := time.Duration(10+n) * time.Millisecond
			m.Valid, m.Verdict, m.Warnings = false, nil, note.Notes{note.New(note.SendLag, lag, time.Millisecond)}
			spent += m.EngineTime(s.cfg.Overhead)
		}
		s.Observe(m)
	}
	r := s.Result()
	if r.Reason.Note.Kind != note.InvalidTime || !strings.Contains(r.Reason.Text, "p99 of the send lag 11ms to") || spent > 6*time.Minute {
		t.Errorf("%v of 10m: %s", spent, r.Reason.Text)
	}
}

// If requests fail only under load, the reason says how.
func TestFailuresAreInTheReason(t *testing.T) {
	s := NewMaxRate(MaxRateConfig{Workload: raceWorkload(), SLO: raceObjective(), Prior: Prior{Rate: 30}, Budget: time.Hour})
	for _, rate := range []float64{20, 10} {
		m := counted(rate, 1000, 400)
		m.Failed, m.Requests, m.Failures, m.Duration = 400, 1000, map[string]int{"http_status": 400}, time.Minute
		m.Verdict = &measure.Verdict{State: measure.Missed, Binding: measure.ErrorsBound}
		m.Warnings = note.Notes{note.New(note.FailedWith, 400, "http status", "429: one at a time")}
		s.Observe(m)
	}
	if why := s.noneMet(note.Because(note.BudgetSpent)).Text; !strings.Contains(why, "10/s, where 400 requests ended with http status: 429: one at a time") {
		t.Error(why)
	}
}

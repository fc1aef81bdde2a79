package design

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/model"
	"planner/sweep"
	"planner/sweep/measure"
)

// TestProbeFindsUnknownConstants: engines whose constants are drawn at random, further from
// the defaults than these are known, are predicted at points that the probe did not use.
func TestProbeFindsUnknownConstants(t *testing.T) {
	cfg := configtest.Load("probe", "model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM", "workload.class", "chat", "knobs.max_num_seqs", "32")
	for _, seed := range []uint64{15} {
		rng := rand.New(rand.NewPCG(seed, 15))
		factors := map[model.Doubt]float64{}
		for _, term := range model.Terms() {
			factors[term] = math.Exp(0.25 * rng.NormFloat64())
		}
		known := &sweep.Simulated{Deployment: cfg.Deployment}
		real := &sweep.Simulated{Deployment: cfg.Deployment, Constants: func(dep model.Deployment, c model.Constants) model.Constants {
			for _, term := range model.Terms() {
				c = c.WithValue(term, dep, c.Value(term, dep)*factors[term])
			}
			return c
		}}
		p := must.Get(NewProbe(cfg, sweep.Ground{Run: real.Run, Predict: known}, ProbeSpec{Points: 7, Held: 4, Budget: 3 * time.Minute}))
		probed := runProbe(t, p, real)
		t.Logf("seed %d: factors %.2v, TPOT off by %.1f %%, TTFT by %.1f %%, %v", seed, factors, 100**probed.TPOTError, 100**probed.TTFTError, probed.EngineTime)
		if *probed.TPOTError > 0.05 || *probed.TTFTError > 0.15 || probed.EngineTime > 3*time.Minute {
			t.Errorf("seed %d: TPOT off by %.3f, TTFT by %.3f in %v: %+v", seed, *probed.TPOTError, *probed.TTFTError, probed.EngineTime, probed.Points)
		}
		narrows(t, probed, cfg, known)
	}
}

// The engine of a probe is started for the requests that it sends, not for those of a workload of shorter ones.
func TestProbeStartsForItsOwnRequests(t *testing.T) {
	short := []string{"model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM",
		"workload.prompt", `{ dist = "fixed", value = 16 }`, "workload.output", `{ dist = "fixed", value = 16 }`}
	probe := func(more ...string) (*ProbeStudy, error) {
		cfg := configtest.Load("probe", append(short, more...)...)
		return NewProbe(cfg, sweep.Ground{Predict: &sweep.Simulated{Deployment: cfg.Deployment}}, ProbeSpec{Points: 7, Held: 4, Budget: time.Minute})
	}
	first := must.Get(probe()).Next()[0]
	if first.Workload.Longest() > first.Knobs.MaxModelLen {
		t.Errorf("requests of %d tokens on an engine for %d", first.Workload.Longest(), first.Knobs.MaxModelLen)
	}
	if _, err := probe("knobs.max_model_len", "64"); err == nil || !strings.Contains(err.Error(), "knobs.max_model_len: 64, want at least 96") {
		t.Errorf("an engine for 64 tokens: %v", err)
	}
}

// runProbe drives a probe on an engine in virtual time.
func runProbe(t *testing.T, p *ProbeStudy, on *sweep.Simulated) *Probed {
	t.Helper()
	for number := 1; ; number++ {
		next := p.Next()
		if len(next) == 0 {
			break
		}
		next[0].Number = number
		p.Observe(measure.Reduce(next[0], must.Get(on.Observe(next[0]))))
	}
	a, err := p.Answer()
	if err != nil || a.State != sweep.Done {
		t.Fatalf("%v %v: %+v", a.State, err, a.Value)
	}
	return a.Value.(*Probed)
}

// narrows: what was fitted is known better than before, unless predictions prove wrong.
func narrows(t *testing.T, p *Probed, cfg *config.Config, sim *sweep.Simulated) {
	t.Helper()
	k := p.Seen[0].Trial.Knobs
	dep, before := cfg.Deployment(k), sim.Spread(k)
	after := p.Calibration.Spread(dep, before)
	if !(after[model.DoubtFrontend] < before[model.DoubtFrontend]/2 && after[model.DoubtWeights] < before[model.DoubtWeights]) {
		t.Errorf("front end and weights known to %.3f and %.3f, before to %.3f and %.3f", after[model.DoubtFrontend], after[model.DoubtWeights], before[model.DoubtFrontend], before[model.DoubtWeights])
	}
	wrong := *p.Calibration
	for i := range wrong.Scores {
		wrong.Scores[i].Predicted *= 1.5
	}
	if worse := wrong.Spread(dep, before); !(worse[model.DoubtWeights] > 3*after[model.DoubtWeights] && worse[model.DoubtCommunication] > before[model.DoubtCommunication]) {
		t.Errorf("predictions that are off by half leave %+v, right ones %+v", worse, after)
	}
	if file, _ := p.Files()[CalibrationFile].([]byte); len(file) == 0 {
		t.Error("no file of the calibration")
	}
}

// TestProbeOfAnother: tokens that come sooner than the weights can be read are of another server
// than the one that is named, and one that fails is not asked for further points.
func TestProbeOfAnother(t *testing.T) {
	cfg := configtest.Load("probe", "model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM", "workload.class", "chat")
	known := &sweep.Simulated{Deployment: cfg.Deployment}
	p := must.Get(NewProbe(cfg, sweep.Ground{Run: known.Run, Predict: known}, ProbeSpec{Points: 7, Held: 4, Budget: 3 * time.Minute}))
	// 16 GB of weights take 4.8 ms at 3,350 GB/s.
	for tpot, noted := range map[time.Duration]bool{time.Millisecond: true, 6 * time.Millisecond: false} {
		p.seen = nil
		m := measure.Measurement{Trial: p.Next()[0], Tally: measure.Tally{Requests: 4}, Valid: true}
		m.TPOT.Mean, m.TTFT.Mean = tpot, 20*time.Millisecond
		p.Observe(m)
		if got := must.Get(p.Answer()).Value.(*Probed).Notes.Has(note.FasterThanRead); got != noted {
			t.Errorf("TPOT of %v, least %v: noted %t", tpot, p.least, got)
		}
	}
	p.Observe(measure.Measurement{Trial: p.Next()[0], Rejected: note.Because(note.EngineFailed, "hang", ": gone")})
	if next := p.Next(); len(next) > 0 {
		t.Errorf("a server that failed is asked for %+v", next)
	}
}

// A fit that no point was left to score, as the engine hung behind two, decides nothing.
func TestProbeWithoutAScoreIsUndecided(t *testing.T) {
	cfg := configtest.Load("probe", "model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM", "workload.class", "chat")
	known := &sweep.Simulated{Deployment: cfg.Deployment}
	p := must.Get(NewProbe(cfg, sweep.Ground{Run: known.Run, Predict: known}, ProbeSpec{Points: 7, Held: 4, Budget: 3 * time.Minute}))
	for range 2 {
		trial := p.Next()[0]
		p.Observe(measure.Reduce(trial, must.Get(known.Observe(trial))))
	}
	p.Observe(measure.Measurement{Trial: p.Next()[0], Rejected: note.Because(note.EngineFailed, "hang", ": gone")})
	if a := must.Get(p.Answer()); a.State != sweep.Undecided || a.Value.(*Probed).Calibration == nil {
		t.Errorf("%v: %+v", a.State, a.Value)
	}
}

// TestProbeKeepsToItsBudget: no trial takes longer than what is left, engines that were held without a load included, and
// one that had to be ended is not fitted to.
func TestProbeKeepsToItsBudget(t *testing.T) {
	cfg := configtest.Load("probe", "model.name", "llama-3.1-8b", "hardware.gpu", "H100 SXM", "workload.class", "chat")
	known := &sweep.Simulated{Deployment: cfg.Deployment}
	p := must.Get(NewProbe(cfg, sweep.Ground{Run: known.Run, Predict: known}, ProbeSpec{Points: 7, Held: 4, Budget: 10 * time.Minute}))
	m := measure.Measurement{Trial: p.Next()[0], Duration: time.Minute, Took: 3 * time.Minute, Tally: measure.Tally{Requests: 4}, Valid: true}
	m.TPOT.Mean, m.TTFT.Mean = 6*time.Millisecond, 20*time.Millisecond
	m.Aborted = note.Because(note.TrialLimit, time.Minute)
	p.Observe(m)
	if next := p.Next()[0]; next.Limit != 7*time.Minute {
		t.Errorf("with 3 of 10 minutes spent, a trial may take %v", next.Limit)
	}
	if said := must.Get(p.Answer()).Value.(*Probed).Warnings.Texts; len(p.used) > 0 || !strings.Contains(strings.Join(said, " "), "trial 1 cannot be trusted: not over after 1m0s") {
		t.Errorf("used %v, said %q", p.used, said)
	}
}

package decide

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"planner/internal/config"
	"planner/internal/evidence/configtest"
	"planner/internal/evidence/must"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// aDay writes a trace of a day with a quiet night and a peak in the early afternoon
// that is some four times as busy as the mean.
func aDay(t *testing.T, requests int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("arrival_s,input_tokens,output_tokens\n")
	load := func(hour float64) float64 { return 0.1 + 5*math.Exp(-math.Pow((hour-14)/3, 2)) }
	total, sum := 0.0, 0.0
	for minute := range 24 * 60 {
		total += load(float64(minute) / 60)
	}
	for minute := range 24 * 60 {
		for sum += float64(requests) * load(float64(minute)/60) / total; sum >= 1; sum-- {
			fmt.Fprintf(&b, "%.3f,%d,%d\n", 60*float64(minute)+math.Mod(17.3*sum, 60), 100+rng.IntN(900), 20+rng.IntN(300))
		}
	}
	return must.File(t, "day.csv", b.String())
}

// onDay loads a configuration on a trace for a command, with the ground to run it on.
func onDay(command, trace string, of workload.RateOf) (*config.Config, sweep.Ground) {
	cfg := configtest.Load(command,
		"model.name", "llama-3.1-8b", "hardware.gpu", "L40S", "workload.trace", trace, "demand.rate", "50", "demand.rate_of", string(of),
		"slo.ttft.p99", "1s", "slo.tpot.p99", "50ms", "knobs.max_num_seqs", "256", "knobs.max_num_batched_tokens", "2048",
		"knobs.gpu_memory_utilization", "0.92")
	return cfg, sweep.SimulatedGround(&sweep.Simulated{Deployment: cfg.Deployment, Version: cfg.Engine.Version}, 2)
}

// A plan on a trace of a day says what a search on it says, in the same unit, and the
// fleet is the demand over that. Its probes and its curve see the whole day: none that
// began with the night would show a limit at all.
func TestPlanOnADay(t *testing.T) {
	trace := aDay(t, 1200)
	d := must.Get(New(onDay("estimate", trace, workload.RateOfBusiestHour)))
	p := must.Get(sweep.Drive(t.Context(), nil, d.ground, d, nil, nil)).Value.(*Planned)
	s := must.Get(NewRateSearch(onDay("search", trace, workload.RateOfBusiestHour)))
	found := must.Get(sweep.Drive(t.Context(), nil, s.ground, s, nil, nil)).Value.(*FoundRate)
	t.Logf("plan %v, search %v, %+v", p.Offer.Rate, found.Estimate, *found.TraceRates)
	if a, b := p.Offer.Rate, found.Rate; !overlap(a, found.Estimate) || math.Abs(a.Value/b.Value-1) > 0.1 || math.Abs(a.Safe/b.Safe-1) > 0.1 || math.Abs(a.High/b.High-1) > 0.1 {
		t.Errorf("plan %v, search %v, by the requests alone %v", a, b, found.Estimate)
	}
	if len(d.chosen.selected.doubt) == 0 {
		t.Error("no doubt of the constants")
	}
	for _, shift := range d.chosen.selected.doubt {
		if math.Abs(shift) > 0.9 {
			t.Errorf("the constants move the maximum rate by a factor of %.2f: the probe saw no limit", math.Exp(shift))
		}
	}
	if want := int(math.Ceil(50 / p.Offer.Rate.Safe)); p.Fleet.Needed != want {
		t.Errorf("%d instances needed for 50 requests/s at %g each, want %d", p.Fleet.Needed, p.Offer.Rate.Safe, want)
	}
	if *found.TraceRates != *p.Demand.TraceRates || p.Demand.TraceRates.Of != workload.RateOfBusiestHour || !(p.Demand.TraceRates.Peak() > 3) {
		t.Errorf("rates %+v of the search, %+v of the plan", found.TraceRates, p.Demand.TraceRates)
	}
	curves := 0
	for _, m := range d.Seen {
		if strings.HasPrefix(m.Trial.Why, "curve") {
			curves++
			if m.Offered() != m.Trial.Rate {
				t.Errorf("%s offered %g of %g requests/s", m.Trial.Why, m.Offered(), m.Trial.Rate)
			}
		}
	}
	if curves != len(curveShares) {
		t.Errorf("%d trials of the curve", curves)
	}
	cfg, _ := onDay("search", trace, workload.RateOfMean)
	s = must.Get(NewRateSearch(cfg, undoubted(cfg)))
	mean := must.Get(sweep.Drive(t.Context(), nil, s.ground, s, nil, nil)).Value.(*FoundRate)
	if ratio := p.Offer.Rate.Value / mean.Rate.Value / p.Demand.TraceRates.Peak(); math.Abs(ratio-1) > 0.1 {
		t.Errorf("%v in the busiest hour and %v in the mean of a trace with peak %g", p.Offer.Rate, mean.Rate, p.Demand.TraceRates.Peak())
	}
}

func overlap(a, b search.Estimate) bool { return a.Low <= b.High && b.Low <= a.High }

// Results on a trace are told in the rate that the demand is of, whatever they were
// measured by.
func TestFitTellsRatesAsTheDemand(t *testing.T) {
	rates := &workload.Rates{Of: workload.RateOfMean, Mean: 2, BusiestHour: 6, BusiestMinute: 8}
	trials := []measure.Measurement{
		{Trial: measure.Trial{Rate: 5, Workload: &workload.Workload{Arrivals: workload.Trace, Rates: rates}}},
		{Trial: measure.Trial{Rate: 5, Workload: &workload.Workload{Arrivals: workload.Poisson}}},
	}
	told, of := asMeant(trials, workload.RateOfBusiestHour)
	if told[0].Trial.Rate != 15 || told[1].Trial.Rate != 5 || of.Of != workload.RateOfBusiestHour {
		t.Errorf("%g and %g by %+v", told[0].Trial.Rate, told[1].Trial.Rate, of)
	}
	if again, _ := asMeant(told, workload.RateOfBusiestMinute); math.Abs(again[0].Trial.Rate-20) > 1e-12 {
		t.Errorf("%g in the busiest minute", again[0].Trial.Rate)
	}
	if trials[0].Trial.Rate != 5 || rates.Of != workload.RateOfMean {
		t.Error("the results themselves were changed")
	}
}

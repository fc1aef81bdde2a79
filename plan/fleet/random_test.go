package fleet

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"planner/internal/wire"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// anyPlant is a fleet of random traffic, policy and luck.
func anyPlant(r *rand.Rand) (*Plant, Policy) {
	pick := func(most int) time.Duration { return time.Duration(1+r.IntN(most)) * time.Second }
	w, drain := chat(1+r.IntN(2)), r.IntN(3) == 0
	var profile workload.Profile
	for range 1 + r.IntN(3) {
		profile = append(profile, workload.RateStep{Rate: 60 * r.Float64(), Length: 20*time.Second + pick(60), Drain: drain})
	}
	profile[0].Rate += 5
	kind := []AutoscalerKind{None, ByHPA, ByKEDA, Saturation, Forecast}[r.IntN(5)]
	names := MetricNames()
	m := Metric{Name: names[r.IntN(5)], Target: 1 + 30*r.Float64()}
	if kind == Forecast {
		m = Metric{Target: 1 + 20*r.Float64()}
	}
	least := 1 + r.IntN(3)
	routers := []Router{LeastInFlight, LeastTokens, LeastPrefill, PrefixAffinity}
	policy := Policy{Min: least, Max: least + r.IntN(5), Router: routers[r.IntN(len(routers))], LoadCap: 1 + r.Float64(), Sticky: r.IntN(2) > 0,
		StartUp: StartUp{Init: pick(40), Compile: pick(20), Cached: r.IntN(2) > 0}, Drain: pick(30),
		Autoscaler: Autoscaler{Kind: kind, Metrics: []Metric{m}, HPA: UsualHPA(), KEDA: KEDA{Polling: pick(30), Cooldown: pick(60)},
			Analyser: Analyser{Interval: pick(60), Up: 0.6, Down: 0.3, Cap: 2, Smoothing: 0.6}, Outlook: Outlook{Lead: pick(60)},
			Monitor: Monitor{Scrape: pick(15), Window: pick(60), Delay: pick(10), Predicted: r.IntN(2) > 0, Quantile: 0.9 * float64(r.IntN(2))}}}
	if kind == None {
		policy.Replicas = policy.Max
	}
	limits := oneClass(measure.Limits{TTFT: time.Second, TPOT: 40 * time.Millisecond})
	limits[0].Asked[measure.Goodput] = 0.9
	p := &Plant{GPUs: 1 + r.IntN(4), USDPerGPUHour: 1 + 3*r.Float64(), Scenario: Scenario{Engine: engineOf(8 + r.IntN(40)), Limits: limits,
		Timeout: pick(90), Retries: r.IntN(3), Nodes: Nodes{Slots: 1 + r.IntN(2)}},
		Traffic: func(seed uint64) []Stage { return Staged(w, profile, 1, seed) }}
	if r.IntN(3) == 0 {
		p.Nodes = Nodes{Slots: 2, Max: 2 + r.IntN(4), MTBF: pick(200), Repair: pick(60), SpotMTBF: pick(300), Notice: pick(20)}
	}
	return p, policy
}

// TestRandomFleets wants of random fleets that every request ends once, that what they
// cost is the time that replicas held GPUs, and the same answer again, to the byte.
func TestRandomFleets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 18))
	for i := range 14 {
		p, policy := anyPlant(r)
		a := p.Answer(policy, Seeds(uint64(i), 2))
		s := p.scenario(policy, p.Traffic(uint64(i)), uint64(i))
		e := Run(s)
		ends := map[measure.Outcome]int{}
		for id := range e.Records {
			q := &e.Records[id]
			if ends[q.Outcome]++; q.ID != id || q.Outcome == measure.OK && (q.First < q.Due || q.Last < q.First) || q.Prompt < 0 || q.Output < 0 {
				t.Fatalf("fleet %d: %+v", i, q)
			}
		}
		total := 0
		for _, st := range s.Stages {
			total += len(st.Requests)
		}
		if total != len(e.Records) || total != a.Requests || ends[measure.InFlight] > 0 {
			t.Fatalf("fleet %d: %d requests, %d records, ends %v", i, total, len(e.Records), ends)
		}
		held := 0.0
		for k, l := range e.Levels {
			end := e.End
			if k+1 < len(e.Levels) {
				end = min(end, e.Levels[k+1].At)
			}
			held += float64(l.Starting+l.Ready+l.Draining) * max(end-l.At, 0)
			if l.Pending < 0 || l.Starting < 0 || l.Ready < 0 || l.Draining < 0 || policy.Replicas == 0 && (l.Asked > policy.Max || l.Asked < policy.Min) {
				t.Fatalf("fleet %d: %+v of %d to %d", i, l, policy.Min, policy.Max)
			}
		}
		if got, want := a.Seeds[0].GPUHours, held/3600*float64(p.GPUs); math.Abs(got-want) > 1e-9*want+1e-12 {
			t.Errorf("fleet %d: %v GPU hours, held were %v", i, got, want)
		}
		if got, want := a.Cost.Total.Value, a.Replicas.GPUHours.Value*p.USDPerGPUHour; math.Abs(got-want) > 1e-9*want {
			t.Errorf("fleet %d: $%v for %v GPU hours at $%v", i, got, a.Replicas.GPUHours.Value, p.USDPerGPUHour)
		}
		first, errFirst := wire.Marshal(a)
		again, errAgain := wire.Marshal(p.Answer(policy, Seeds(uint64(i), 2)))
		if errFirst != nil || errAgain != nil || !bytes.Equal(first, again) {
			t.Errorf("fleet %d: two answers differ: %v %v", i, errFirst, errAgain)
		}
	}
}

// TestMoreReplicas wants more requests within their limits of larger static fleets, but
// for chance.
func TestMoreReplicas(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 18))
	for i := range 8 {
		p, policy := anyPlant(r)
		p.Nodes, p.Retries, policy.Router = nodes(), 0, LeastInFlight
		before := 0.0
		for n := 1; n <= 8; n *= 2 {
			policy.Replicas = n
			within := p.Answer(policy, Seeds(1, 1)).Attainment.Value
			if within < before-0.02 {
				t.Errorf("fleet %d: %v within the limits on %d replicas, %v on half as many", i, within, n, before)
			}
			before = within
		}
	}
}

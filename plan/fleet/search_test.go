package fleet

import (
	"reflect"
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestSearch looks for the cheapest policy of a few minutes, twice.
func TestSearch(t *testing.T) {
	w := chat(1)
	profile := workload.Profile{{Rate: 3, Length: 3 * time.Minute}, {Rate: 30, Length: 90 * time.Second}, {Rate: 3, Length: 3 * time.Minute}}
	limits := oneClass(measure.Limits{TTFT: time.Second})
	limits[0].Asked[measure.TTFT] = 0.95
	p := &Plant{GPUs: 1, USDPerGPUHour: 2, Scenario: Scenario{Engine: engineOf(32), Limits: limits, Timeout: time.Minute, Nodes: nodes()},
		Traffic: func(seed uint64) []Stage {
			return []Stage{{Requests: w.Follow(profile, seed), Length: profile.Length()}}
		}}
	base := Policy{Min: 1, Max: 4, Router: LeastInFlight, StartUp: StartUp{Init: 30 * time.Second}, Drain: 30 * time.Second,
		Autoscaler: Autoscaler{Kind: ByHPA, Metrics: []Metric{{Name: "in_flight", Target: 16}}, HPA: UsualHPA(), Monitor: Monitor{Scrape: 15 * time.Second}}}
	answer, found := p.Find(base, Seeds(1, 2), Seeds(100, 2), p.Traffic)
	if answer == nil || found.Chosen == "" {
		t.Fatalf("nothing found: %+v", found)
	}
	if again, sameFound := p.Find(base, Seeds(1, 2), Seeds(100, 2), p.Traffic); !reflect.DeepEqual(answer.Seeds, again.Seeds) || found.Chosen != sameFound.Chosen || found.Days != sameFound.Days {
		t.Error("two searches differ")
	}
	static := p.Static(base, 8, Seeds(1, 2))
	if static == nil || answer.Replicas.GPUHours.Value > static.GPUHours*1.02 {
		t.Errorf("%s takes %v GPU hours, the static fleet %+v", found.Chosen, answer.Replicas.GPUHours.Value, static)
	}
	if answer.Verdict != measure.Met || found.Policies < 30 || found.Dropped == 0 || found.Days <= 0 {
		t.Errorf("verdict %s, %+v", answer.Verdict, found)
	}
	for i := 1; i < len(found.Frontier); i++ {
		if a, b := found.Frontier[i-1], found.Frontier[i]; b.GPUHours < a.GPUHours || b.Attainment <= a.Attainment {
			t.Errorf("on the frontier: %+v behind %+v", b, a)
		}
	}
}

// TestMayMiss counts the requests that may miss a limit.
func TestMayMiss(t *testing.T) {
	p := &Plant{Scenario: Scenario{Limits: make([]ClassLimits, 2)}}
	stages := []Stage{{Requests: make([]workload.Request, 600)}, {Requests: make([]workload.Request, 400)}}
	if got := p.mayMiss(stages); got != 0 {
		t.Errorf("%d where nothing is asked, want no bound", got)
	}
	p.Limits[0].Asked[measure.TTFT], p.Limits[0].Asked[measure.TPOT], p.Limits[1].Asked[measure.E2E] = 0.95, 0.9, 0.99
	if got := p.mayMiss(stages); got != 301 {
		t.Errorf("%d, want one more than twice 15 %% of 1000", got)
	}
}

// TestAroundKeepsTheCeiling tries no policy beyond the ceiling that is given, however many
// replicas there were with those that drained.
func TestAroundKeepsTheCeiling(t *testing.T) {
	best := Tried{policy: Policy{Min: 1, Max: 4, Autoscaler: Autoscaler{Kind: ByHPA, Metrics: []Metric{{Name: "in_flight", Target: 16}}, HPA: UsualHPA()}}}
	best.summary.Peak = 7
	lower := 0
	for _, tried := range around(&best) {
		if tried.policy.Max > 4 {
			t.Errorf("%s", tried.Name)
		}
		if tried.policy.Max < 4 {
			lower++
		}
	}
	if lower != 2 {
		t.Errorf("%d lower ceilings, want 2", lower)
	}
}

// TestPendingReplicasCostNothing replays replicas of which half find no node: those do not count
// against the hours at which a policy is given up.
func TestPendingReplicasCostNothing(t *testing.T) {
	profile := workload.Profile{{Rate: 1, Length: 10 * time.Minute}}
	room := nodes()
	room.Slots, room.Max = 1, 2
	s := &Scenario{Engine: engineOf(64), Stages: []Stage{{Requests: chat(1).Follow(profile, 4), Length: profile.Length()}}, Limits: oneClass(measure.Limits{}),
		Policy: Policy{Replicas: 4, Router: LeastInFlight}, Nodes: room, MostHours: 0.5}
	if sum := summarize(s, Run(s)); sum.Dropped || sum.ReplicaHours > 0.4 {
		t.Errorf("given up %v, %.2f replica hours", sum.Dropped, sum.ReplicaHours)
	}
}

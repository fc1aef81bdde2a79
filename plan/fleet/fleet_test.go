package fleet

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// engineOf is Llama-3.1-8B on one H100, with a batch of at most seqs.
func engineOf(seqs int) func() *sim.Engine {
	catalog := must.Get(model.NewCatalog())
	arch := must.Get(catalog.Model("llama-3.1-8b"))
	gpu := must.Get(catalog.GPU("H100 SXM"))
	dep := model.Deployment{Arch: arch, Hardware: gpu, Precision: model.Precision{}, TP: 1}
	args := model.EngineArgs{MaxNumSeqs: seqs, MaxModelLen: 8192}
	return func() *sim.Engine {
		return must.Get(sim.Build(dep, model.ConstantsFor(gpu, args), args, true))
	}
}

func chat(turns int) *workload.Workload {
	lengths := func(median float64) workload.Lengths {
		return workload.Lengths{Dist: workload.Lognormal, Median: median, Sigma: 0.6, Min: 5, Max: 900}
	}
	return &workload.Workload{Class: "chat", Arrivals: workload.Poisson, Turns: turns, Think: 2 * time.Second, Seed: 1, MaxLen: 8192,
		Shapes: []workload.Shape{{Prompt: lengths(400), Output: lengths(120), Prefix: workload.Prefix{Groups: 6, Tokens: 64}}}}
}

func static(n int, r Router) Policy { return Policy{Replicas: n, Router: r, LoadCap: 1.25} }

func oneClass(l measure.Limits) []ClassLimits { return []ClassLimits{{Name: "chat", Limits: l}} }

func nodes() Nodes { return Nodes{Slots: 1} }

// TestOneReplicaIsTheEngine wants the engine's own records of a fleet of one.
func TestOneReplicaIsTheEngine(t *testing.T) {
	build := engineOf(48)
	for name, c := range map[string]struct {
		turns   int
		timeout time.Duration
	}{"requests": {1, 0}, "clients that give up": {1, 3 * time.Second}, "conversations": {4, 0}} {
		t.Run(name, func(t *testing.T) {
			requests := chat(c.turns).Schedule(25, 60*time.Second, 7)
			want := build().Run(sim.Load{Requests: requests, Timeout: c.timeout})
			got := Run(&Scenario{Engine: build, Stages: []Stage{{Requests: requests, Length: time.Minute}}, Timeout: c.timeout, Limits: oneClass(measure.Limits{}), Policy: static(1, LeastInFlight), Nodes: nodes()})
			for i := range want.Records {
				if got.Records[i] != want.Records[i] {
					t.Fatalf("request %d of %d: %+v, want %+v", i, len(want.Records), got.Records[i], want.Records[i])
				}
			}
			if seconds(got.End) < want.End {
				t.Errorf("ended at %v, want %v", got.End, want.End)
			}
		})
	}
}

// TestRandomRoutingIsSingleEngines wants of each replica under random routing what an
// engine makes of the requests that it got.
func TestRandomRoutingIsSingleEngines(t *testing.T) {
	build := engineOf(48)
	requests := chat(1).Schedule(60, 40*time.Second, 5)
	s := &Scenario{Engine: build, Stages: []Stage{{Requests: requests, Length: time.Minute}}, Policy: static(3, Random), Nodes: nodes(), Seed: 11}
	got := Run(s)
	choice := newRouter(&s.Policy, s.Seed)
	var targets []*replica
	for i := range 3 {
		targets = append(targets, &replica{number: i, state: ready})
	}
	parts := make([][]workload.Request, 3)
	ids := make([][]int, 3)
	for i := range requests {
		k := choice.pick(targets, &requests[i]).number
		parts[k] = append(parts[k], requests[i])
		ids[k] = append(ids[k], i)
	}
	for k, part := range parts {
		if len(part) < 100 {
			t.Fatalf("replica %d got %d requests", k, len(part))
		}
		for i, want := range build().Run(sim.Load{Requests: part}).Records {
			if want.ID = ids[k][i]; got.Records[want.ID] != want {
				t.Fatalf("replica %d: %+v, want %+v", k, got.Records[want.ID], want)
			}
		}
	}
}

// TestConserved replays fleets in which everything goes wrong that can, twice, and wants
// every request to end once, the same each time.
func TestConserved(t *testing.T) {
	build := engineOf(16)
	for _, router := range Routers() {
		w := chat(3)
		stages := []Stage{{Requests: w.Schedule(20, time.Minute, 1), Length: time.Minute, Drain: true},
			{Requests: w.Schedule(60, 2*time.Minute, 2), Length: 2 * time.Minute}, {Requests: w.Schedule(5, time.Minute, 3), Length: time.Minute}}
		hpa := UsualHPA()
		hpa.Down.Stabilization = 0
		s := &Scenario{Engine: build, Stages: stages, Timeout: 20 * time.Second, Retries: 2, Seed: 3,
			Limits: oneClass(measure.Limits{TTFT: time.Second, TPOT: 50 * time.Millisecond}),
			Policy: Policy{Min: 1, Max: 6, Router: router, LoadCap: 1.25, Sticky: router == RoundRobin, Drain: 5 * time.Second,
				StartUp: StartUp{Init: 10 * time.Second, Compile: 20 * time.Second, Cached: true},
				Autoscaler: Autoscaler{Kind: ByHPA, Metrics: []Metric{{Name: "in_flight", Target: 12}}, HPA: hpa,
					Monitor: Monitor{Scrape: 5 * time.Second}}},
			Nodes: Nodes{Slots: 2, Max: 3, MTBF: 3 * time.Minute, Repair: 30 * time.Second, SpotMTBF: 4 * time.Minute, Notice: 10 * time.Second}}
		e := Run(s)
		again := Run(s)
		if !reflect.DeepEqual(e, again) {
			t.Errorf("%s: two runs differ", router)
		}
		ends := map[measure.Outcome]int{}
		for i := range e.Records {
			r := &e.Records[i]
			if r.ID != i || r.Outcome == measure.OK && (r.Last < r.First || r.First < r.Due) {
				t.Fatalf("%s: request %d: %+v", router, i, r)
			}
			ends[r.Outcome]++
		}
		total := 0
		for i := range stages {
			total += len(stages[i].Requests)
		}
		if len(e.Records) != total || ends[measure.OK] == 0 || ends[measure.InFlight] > 0 || e.Failures == 0 || e.Starts == 0 || e.Retries == 0 {
			t.Errorf("%s: %d requests, ends %v, %d failures, %d starts, %d retries", router, total, ends, e.Failures, e.Starts, e.Retries)
		}
		for _, l := range e.Levels {
			if l.Asked > 6 || l.Starting+l.Ready+l.Draining > 6 || l.Ready < 0 {
				t.Errorf("%s: %+v", router, l)
			}
		}
		drained := 0.0
		for i := range stages[0].Requests {
			drained = max(drained, e.Records[i].Last.Seconds())
		}
		if e.Stages[1] < drained-1e-9 || e.Stages[1] < 60 {
			t.Errorf("%s: the second stage began at %v, and the first drained at %v", router, e.Stages[1], drained)
		}
		if math.Abs(e.Stages[2]-e.Stages[1]-120) > 1e-9 {
			t.Errorf("%s: the last stage began %v s behind the second", router, e.Stages[2]-e.Stages[1])
		}
	}
}

// TestInstantScaling wants of an autoscaler without any lag the replicas that the rate
// takes at every time.
func TestInstantScaling(t *testing.T) {
	w := workload.Workload{Class: "steady", Arrivals: workload.Constant, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Fixed, Value: 20}, Output: workload.Lengths{Dist: workload.Fixed, Value: 2}}}}
	profile := workload.Profile{{Rate: 5, Length: time.Minute}, {Rate: 21, Length: time.Minute}, {Rate: 40, Length: time.Minute}, {Rate: 9, Length: time.Minute}, {Rate: 33, Length: time.Minute}}
	const capacity = 10.0
	hpa := HPA{Sync: time.Second, Up: Behavior{Select: "max", Policies: []ScalingPolicy{{true, 10000, time.Second}}},
		Down: Behavior{Select: "max", Policies: []ScalingPolicy{{true, 100, time.Second}}}}
	s := &Scenario{Engine: engineOf(64), Stages: []Stage{{Requests: w.Follow(profile, 1), Length: profile.Length()}}, Limits: oneClass(measure.Limits{}),
		Policy: Policy{Min: 1, Max: 100, Router: RoundRobin, Autoscaler: Autoscaler{Kind: ByKEDA, Metrics: []Metric{{Name: "requests_per_s", Target: capacity}},
			KEDA: KEDA{Polling: time.Second}, HPA: hpa, Monitor: Monitor{Scrape: time.Second, Window: 2 * time.Second}}}, Nodes: nodes()}
	e := Run(s)
	level := func(t float64) int {
		i := len(e.Levels) - 1
		for e.Levels[i].At > t {
			i--
		}
		return e.Levels[i].Ready
	}
	at := 0.0
	for _, step := range profile {
		want := int(math.Ceil(step.Rate / capacity))
		for s := 4.0; s < 59; s++ {
			if got := level(at + s); got != want {
				t.Fatalf("%d replicas at %v s for %v requests/s, want %d", got, at+s, step.Rate, want)
			}
		}
		at += step.Length.Seconds()
	}
	if !slices.IsSortedFunc(e.Levels, func(a, b Level) int { return int(1e6 * (a.At - b.At)) }) {
		t.Error("levels are not in order of time")
	}
}

// TestLateRequests replays a stage whose last requests are due when it is over.
// What nobody asks for at the end of the traffic is a part of it: replicas are held then, too.
func TestIdleEnd(t *testing.T) {
	requests := chat(1).Schedule(20, 10*time.Second, 1)
	for _, stages := range [][]Stage{
		{{Requests: requests, Length: time.Hour}},
		{{Requests: requests, Length: 10 * time.Second, Drain: true}, {Length: time.Hour - 10*time.Second}},
	} {
		e := Run(&Scenario{Engine: engineOf(64), Stages: stages, Limits: oneClass(measure.Limits{}), Policy: static(1, Random), Nodes: nodes()})
		if e.End < 3600 || e.End > 3660 || e.Records[len(requests)-1].Outcome != measure.OK {
			t.Errorf("%d stages end after %g s; the last request: %+v", len(stages), e.End, e.Records[len(requests)-1])
		}
	}
}

func TestLateRequests(t *testing.T) {
	requests := chat(1).Schedule(20, 10*time.Second, 1)
	s := &Scenario{Engine: engineOf(64), Stages: []Stage{{Requests: requests, Length: 5 * time.Second}}, Limits: oneClass(measure.Limits{}),
		Policy: Policy{Min: 1, Max: 2, Router: LeastInFlight, Autoscaler: Autoscaler{Kind: ByHPA, HPA: UsualHPA(),
			Metrics: []Metric{{Name: "in_flight", Target: 40}}, Monitor: Monitor{Scrape: 15 * time.Second}}}, Nodes: nodes()}
	if e := Run(s); e.Records[len(requests)-1].Outcome != measure.OK {
		t.Errorf("the last request: %+v", e.Records[len(requests)-1])
	}
}

// A request that was cut off had its node lost or, if none was, its replica scaled in.
func TestCausesOfCutRequests(t *testing.T) {
	cut := &measure.Record{Outcome: measure.Reset}
	for failures, want := range []Cause{Drain, Failure} {
		var e Episode
		e.Failures = failures
		if got := e.causeOf(&Policy{}, cut, &Level{}); got != want {
			t.Errorf("%d lost nodes: %s, want %s", failures, got, want)
		}
	}
}

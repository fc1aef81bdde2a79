package fleet

import (
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// pods are n that are ready with a value each, missing without one, and unready.
func pods(n int, value float64, missing, unready int) []podMetric {
	out := slices.Repeat([]podMetric{{value: value, known: true}}, n)
	out = append(out, slices.Repeat([]podMetric{{}}, missing)...)
	return append(out, slices.Repeat([]podMetric{{unready: true}}, unready)...)
}

// TestPodReplicas takes the rules from the documentation of the HorizontalPodAutoscaler:
// desired = ceil(current x metric / target), the tolerance, and pods of which nothing is
// known.
func TestPodReplicas(t *testing.T) {
	for _, c := range []struct {
		name             string
		pods             []podMetric
		target           float64
		current, desired int
	}{
		{"the value is twice the target", pods(3, 200, 0, 0), 100, 3, 6},
		{"the value is half the target", pods(6, 50, 0, 0), 100, 6, 3},
		{"within the tolerance above", pods(10, 110, 0, 0), 100, 10, 10},
		{"within the tolerance below", pods(10, 90, 0, 0), 100, 10, 10},
		{"just beyond the tolerance", pods(10, 111, 0, 0), 100, 10, 12},
		{"a fraction is rounded up", pods(3, 134, 0, 0), 100, 3, 5},
		{"pods not ready count as idle", pods(3, 200, 0, 1), 100, 4, 6},
		{"pods not ready undo the growth", pods(3, 120, 0, 1), 100, 4, 4},
		{"pods not ready do not hold up shrinking", pods(4, 50, 0, 2), 100, 6, 2},
		{"missing metrics count as on target when it shrinks", pods(4, 50, 2, 0), 100, 6, 4},
		{"missing metrics count as idle when it grows", pods(4, 200, 2, 0), 100, 6, 8},
		{"missing metrics turn the direction", pods(4, 130, 2, 0), 100, 6, 6},
	} {
		if got, ok := podReplicas(c.pods, c.current, c.target, 0.1); !ok || got != c.desired {
			t.Errorf("%s: %d, want %d", c.name, got, c.desired)
		}
	}
	if _, ok := podReplicas(pods(0, 0, 3, 1), 4, 100, 0.1); ok {
		t.Error("a decision without any metric")
	}
	if got := valueReplicas(300, 100, 2, 2, 0.1); got != 6 {
		t.Errorf("a value three times the target: %d replicas, want 6", got)
	}
	if got := averageReplicas(101, 10, 10, 0.1); got != 10 {
		t.Errorf("an average within the tolerance: %d replicas, want 10", got)
	}
	if got := averageReplicas(131, 10, 10, 0.1); got != 14 {
		t.Errorf("an average beyond the tolerance: %d replicas, want 14", got)
	}
}

// follows wants the numbers of replicas that an HPA has at its decisions, one a step.
func follows(t *testing.T, name string, spec HPA, least, most, current int, step time.Duration, desired func(i int) int, want ...int) {
	t.Helper()
	h := newHPA(spec, least, most, current)
	for i, w := range want {
		now := 1000 + float64(i)*step.Seconds()
		if current = h.normalize(now, current, desired(i)); current != w {
			t.Errorf("%s: %d replicas at decision %d, want %d", name, current, i, w)
			return
		}
	}
}

func always(n int) func(int) int { return func(int) int { return n } }

// TestScalingPolicies follows the examples of the documentation.
func TestScalingPolicies(t *testing.T) {
	minute := time.Minute
	down := HPA{Down: Behavior{Select: "max", Policies: []ScalingPolicy{{false, 4, minute}, {true, 10, minute}}}, Up: UsualHPA().Up}
	// 10 % of 80 are 8, of 72 are 7.2, rounded up to 8, and from 40 on it is 4 at a time.
	follows(t, "pods or percent", down, 1, 100, 80, minute, always(10), 72, 64, 57, 51, 45, 40, 36, 32, 28, 24, 20, 16, 12, 10, 10)
	down.Down.Select = "min"
	follows(t, "the policy of least change", down, 1, 100, 80, minute, always(10), 76, 72, 68, 64, 60, 56, 52, 48, 44, 40, 36, 32)
	down.Down.Select = "disabled"
	follows(t, "no shrinking", down, 1, 100, 80, minute, always(10), 80, 80)
	usual := UsualHPA()
	follows(t, "twice as many, or 4, at each decision", usual, 1, 100, 1, 15*time.Second, always(70), 4, 8, 16, 32, 64, 70)
	growing := usual
	growing.Down.Stabilization = time.Minute
	follows(t, "4 pods or twice as many every 15 s", growing, 1, 100, 1, 15*time.Second, always(70), 5, 10, 20, 40, 70, 70)
	follows(t, "no more than the most", growing, 1, 30, 1, 15*time.Second, always(70), 5, 10, 20, 30, 30)
	follows(t, "two decisions in one period", growing, 1, 100, 4, 7500*time.Millisecond, always(70), 8, 8, 16, 16, 32)
	follows(t, "at least the least", usual, 2, 30, 30, 10*minute, always(0), 2, 2)
	// What was recommended five minutes ago holds until then.
	follows(t, "stabilised", usual, 1, 30, 10, 2*minute, func(i int) int { return []int{10, 4, 3, 3, 3}[i] }, 10, 10, 10, 4, 3)
	slow := usual
	slow.Up.Stabilization = 3 * minute
	follows(t, "stabilised upwards", slow, 1, 30, 2, minute, func(i int) int { return []int{2, 8, 6, 8, 9, 9}[i] }, 2, 2, 2, 6, 6, 8)
	follows(t, "switched off", usual, 1, 30, 0, minute, always(5), 0, 0)
}

// TestSaturationAnalyser takes the examples of the analyser that it follows.
func TestSaturationAnalyser(t *testing.T) {
	for _, c := range []struct {
		level, up, down       float64
		existing, ready, want int
	}{
		{0.95, 0.85, 0.5, 4, 4, 5}, {0.95, 0.85, 0.5, 40, 40, 45}, {0.30, 0.85, 0.5, 40, 40, 24}, {0.60, 0.85, 0.5, 40, 40, 40},
		{0.95, 0.85, 0.5, 8, 4, 8}, // those that start are counted on
	} {
		s := Autoscaler{Kind: Saturation, Analyser: Analyser{Up: c.up, Down: c.down, Cap: 2, Smoothing: 1}}
		control := s.start(c.existing, &Policy{Min: 1, Max: 100}).(*saturationControl)
		if got := control.analyse(c.level, c.existing, c.ready); got != c.want {
			t.Errorf("%+v: %d replicas", c, got)
		}
	}
	s := Autoscaler{Kind: Saturation, Analyser: Analyser{Up: 1, Down: 0.1, Cap: 2, Smoothing: 0.6}}
	control := s.start(10, &Policy{Min: 1, Max: 100}).(*saturationControl)
	for _, look := range []struct{ raw, level float64 }{{0.5, 0.3}, {9, 0.6*2 + 0.4*0.3}, {0, 0.4 * 1.32}} {
		if control.analyse(look.raw, 10, 10); !close(control.level, look.level) {
			t.Errorf("a look of %v gives a level of %v, want %v", look.raw, control.level, look.level)
		}
	}
}

// TestPublishedDecisions takes the decisions of llm-d's analyser in the time series that was
// published with its measured case, minute by minute: the saturation that it saw, the
// replicas that there were, and those that it wanted, of three to eight.
func TestPublishedDecisions(t *testing.T) {
	a := Autoscaler{Kind: Saturation, Analyser: Analyser{Up: 0.55, Down: 0.40, Cap: 2, Smoothing: 0.6}}
	control := a.start(8, &Policy{Min: 3, Max: 8}).(*saturationControl)
	for i, look := range []struct {
		saturation   float64
		existing, to int
	}{
		{0.3461, 7, 4}, {0.235, 6, 4}, {0.1914, 6, 4}, {0.22, 5, 3}, {0.2895, 5, 4}, {0.2743, 4, 3},
		{0.3785, 4, 4}, {0.3796, 4, 4}, {0.38, 4, 4}, {0.38, 4, 4}, {0.38, 4, 4}, {0.38, 4, 4},
		{0.372, 4, 4}, {0.3842, 4, 4}, {0.4582, 4, 4}, {0.4236, 4, 4}, {1.237, 4, 7}, {2.543, 7, 8},
		{1.979, 8, 8}, {0.505, 8, 8}, {0.5197, 8, 8}, {0.3804, 8, 8}, {0.3803, 8, 8}, {0.38, 8, 8},
		{0.38, 8, 8}, {0.3849, 8, 8}, {0.3814, 8, 8}, {0.3829, 8, 8}, {0.3807, 8, 8}, {0.3807, 8, 8},
		{0.381, 8, 8}, {0.3811, 8, 8}, {0.3665, 8, 8}, {0.3682, 8, 8}, {0.3694, 8, 8}, {0.3752, 8, 8},
		{0.3642, 8, 8}, {0.3682, 8, 8}, {0.3457, 8, 8}, {0.34, 8, 7}, {0.3923, 8, 8}, {0.3891, 8, 8},
		{0.25, 8, 7}, {0, 8, 3},
	} {
		if got := min(max(control.analyse(look.saturation, look.existing, look.existing), 3), 8); got != look.to {
			t.Errorf("look %d at %v of %d replicas: wants %d, wanted were %d", i, look.saturation, look.existing, got, look.to)
		}
	}
}

func close(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }

// TestToZeroAndBack lets KEDA give up the last replica after its cooldown and start the
// first when somebody knocks: by the second of its triggers, the first is never active.
func TestToZeroAndBack(t *testing.T) {
	w := chat(1)
	profile := workload.Profile{{Rate: 2, Length: time.Minute}, {Rate: 0, Length: 10 * time.Minute}, {Rate: 2, Length: time.Minute}}
	s := &Scenario{Engine: engineOf(64), Stages: []Stage{{Requests: w.Follow(profile, 4), Length: profile.Length()}}, Limits: oneClass(measure.Limits{}),
		Policy: Policy{Min: 0, Max: 3, Initial: 1, Router: LeastInFlight, StartUp: StartUp{Init: 45 * time.Second},
			Autoscaler: Autoscaler{Kind: ByKEDA, Metrics: []Metric{{Name: "in_flight", Target: 50, Activation: 1000}, {Name: "requests_per_s", Target: 30}},
				HPA: UsualHPA(), Monitor: Monitor{Scrape: 15 * time.Second},
				KEDA: KEDA{Polling: 30 * time.Second, Cooldown: 5 * time.Minute}}}, Nodes: nodes()}
	e := Run(s)
	zero, back := -1.0, -1.0
	for _, l := range e.Levels {
		if l.Asked == 0 && zero < 0 {
			zero = l.At
		}
		if zero >= 0 && l.Ready > 0 && back < 0 {
			back = l.At
		}
	}
	if zero < 60+300-30 || zero > 60+300+60 {
		t.Errorf("given up at %v s, want five minutes behind the last request", zero)
	}
	first := e.Records[slices.IndexFunc(e.Records, func(r measure.Record) bool { return r.Due > 10*time.Minute })].Due.Seconds()
	if back < first+45 || back > first+45+30 {
		t.Errorf("back at %v s, want a start-up and at most a poll behind the first request at %v s", back, first)
	}
	for i := range e.Records {
		if e.Records[i].Outcome != measure.OK {
			t.Fatalf("%+v", e.Records[i])
		}
	}
}

// A request without a replica is one arrival and waits once, however often its client gave up; that a replica takes it later is none.
func TestQueuedRequestsAreSeenOnce(t *testing.T) {
	s := &Scenario{Engine: engineOf(64), Stages: []Stage{{Requests: make([]workload.Request, 2), Length: time.Minute}}, Timeout: 10 * time.Second, Retries: 1,
		Limits: oneClass(measure.Limits{}), Policy: static(1, LeastInFlight), Nodes: nodes()}
	for i := range s.Stages[0].Requests {
		s.Stages[0].Requests[i] = workload.Request{Prompt: 100, Output: 10}
	}
	f := &fleetRun{s: s, router: newRouter(&s.Policy, 1), judges: tallies(s.Limits), monitor: monitor{on: true, spec: &Monitor{Scrape: time.Second}}}
	f.load()
	f.enter(0)
	for _, c := range []struct{ now, arrivals, waiting int }{{0, 2, 2}, {10, 4, 2}} {
		f.now = float64(c.now)
		f.happen()
		if waiting := (&view{now: f.now, f: f}).total("waiting"); len(f.monitor.arrivals) != c.arrivals || int(waiting) != c.waiting {
			t.Errorf("after %d s: %d arrivals, %v waiting", c.now, len(f.monitor.arrivals), waiting)
		}
	}
	f.begin(1)
	if len(f.monitor.arrivals) != 4 || f.replicas[0].flight.requests != 2 {
		t.Errorf("%d arrivals once a replica has %d requests", len(f.monitor.arrivals), f.replicas[0].flight.requests)
	}
}

// TestSchedule follows the clock: time 0 is midnight on a Monday.
func TestSchedule(t *testing.T) {
	a := Autoscaler{Kind: Schedule, Entries: []Entry{{Cron: "0 8 * * 1-5", Replicas: 6}, {Cron: "30 18 * * *", Replicas: 2}}}
	for i := range a.Entries {
		must.OK(a.Entries[i].Parse())
	}
	control := a.start(4, &Policy{Min: 1, Max: 9})
	const hour, day = 3600.0, 24 * 3600.0
	for _, c := range []struct {
		at   float64
		want int
	}{{0, 2}, {7.99 * hour, 2}, {8 * hour, 6}, {18.4 * hour, 6}, {18.5 * hour, 2}, {4*day + 9*hour, 6}, {5*day + 9*hour, 2}, {7*day + 9*hour, 6}} {
		if got, _ := control.decide(&view{now: c.at, asked: 4}); got != c.want {
			t.Errorf("%v h: %d replicas, want %d", c.at/hour, got, c.want)
		}
	}
	// The first Monday begins with what Friday evening left, and so does a whole weekend.
	a.Entries[1] = Entry{Cron: "30 18 * * 1-5", Replicas: 2}
	must.OK(a.Entries[1].Parse())
	for _, at := range []float64{0, 6.9 * day} {
		if got, _ := control.decide(&view{now: at, asked: 4}); got != 2 {
			t.Errorf("%v h: %d replicas, want 2", at/hour, got)
		}
	}
}

// TestRateOfTheFirstMinute sees the rate of the requests before there are as many seconds of
// them as are looked at, and none before the first scrape.
func TestRateOfTheFirstMinute(t *testing.T) {
	f := &fleetRun{monitor: monitor{spec: &Monitor{Scrape: 15 * time.Second, Window: time.Minute, Delay: 5 * time.Second}}}
	for i := range 2000 {
		f.monitor.arrivals = append(f.monitor.arrivals, observed{float64(i+1) / 10, 1})
	}
	for now, want := range map[float64]float64{3: 0, 19: 0, 20: 10, 34: 10, 40: 10, 90: 10, 150: 10} {
		if got := (&view{now: now, f: f}).total("requests_per_s"); got < want-0.05 || got > want+0.05 {
			t.Errorf("after %v s: %v requests/s, want %v", now, got, want)
		}
	}
}

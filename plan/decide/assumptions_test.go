package decide

import (
	"slices"
	"strings"
	"testing"

	"planner/model"
	"planner/plan"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// What one instance finds in its prefix cache is found by each of several only
// if the load balancer sends it there.
func TestRouted(t *testing.T) {
	turns := workload.Workload{Turns: 6}
	trace := workload.Workload{Arrivals: workload.Trace, Replay: []workload.TraceRow{{Prompt: 9}, {Prompt: 9, Shared: make([]workload.Segment, 1)}}}
	for _, c := range []struct {
		name      string
		traffic   *workload.Workload
		caching   bool
		instances int
		want      string
	}{
		{"conversations", &turns, true, 2, "the turns of a conversation reach the same instance"},
		{"a trace with prefixes", &trace, true, 2, "requests of the trace with a common prefix reach"},
		{"one instance", &turns, true, 1, ""},
		{"no cache", &turns, false, 2, ""},
		{"single requests", &workload.Workload{Turns: 1}, true, 2, ""},
	} {
		p := &plan.Plan{Offer: plan.Offer{Knobs: measure.Knobs{PrefixCaching: c.caching}}, Fleet: plan.Fleet{Instances: c.instances}}
		got := strings.Join(routed(c.traffic, p), "\n")
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A replay that is not at the trace's own pace says how long its hours are.
func TestClockOfATrace(t *testing.T) {
	of := &workload.Rates{Of: workload.RateOfBusiestHour, Mean: 0.1, BusiestHour: 0.4, BusiestMinute: 1}
	for _, c := range []struct {
		rate float64
		want string
	}{
		{8, "at 20 times its own pace: an hour of it takes 3m0s, in which a queue grows less"},
		{0.1, "at 0.25 times its own pace: an hour of it takes 4h0m0s, in which a queue grows more"},
		{0.4, ""},
	} {
		if got := strings.Join(clocked(of, c.rate), ""); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("at %g: %q, want %q", c.rate, got, c.want)
		}
	}
	if clocked(nil, 8) != nil {
		t.Error("a clock without a trace")
	}
}

func TestModelledPrefixCaching(t *testing.T) {
	arch := model.Arch{State: model.RecurrentState{Layers: 1}}
	for version, want := range map[string]plan.Modelling{"0.11.0": plan.Approximated, "0.12.0": plan.Modelled} {
		features := ofKnobs(measure.Knobs{PrefixCaching: true}, arch, model.EngineArgs{EngineVersion: version})
		if !slices.ContainsFunc(features, func(f plan.Feature) bool { return f.Name == "knobs.prefix_caching = true" && f.State == want }) {
			t.Errorf("vLLM %s: %+v", version, features)
		}
	}
}

package manifest

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	autoscaling "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"planner/internal/evidence/must"
	"planner/plan"
	"planner/plan/fleet"
)

// anyPolicy is an autoscaled policy of random figures.
func anyPolicy(r *rand.Rand) fleet.Policy {
	behavior := func() fleet.Behavior {
		b := fleet.Behavior{Stabilization: time.Duration(r.IntN(600)) * time.Second, Select: []string{"max", "min", "disabled"}[r.IntN(3)]}
		for range r.IntN(3) {
			b.Policies = append(b.Policies, fleet.ScalingPolicy{Percent: r.IntN(2) > 0, Value: 1 + r.IntN(100),
				Period: time.Duration(1+r.IntN(300)) * time.Second})
		}
		return b
	}
	least := 1 + r.IntN(4)
	p := fleet.Policy{Min: least, Max: least + r.IntN(9), Router: fleet.LeastInFlight, Autoscaler: fleet.Autoscaler{
		Kind: []fleet.AutoscalerKind{fleet.ByHPA, fleet.ByKEDA}[r.IntN(2)], HPA: fleet.HPA{Sync: 15 * time.Second, Tolerance: []float64{0.1, 0.05, 0}[r.IntN(3)], Up: behavior(), Down: behavior()},
		KEDA: fleet.KEDA{Polling: 30 * time.Second, Cooldown: time.Minute}}}
	names := fleet.MetricNames()[:8] // all but the saturation
	for range 1 + r.IntN(3) {
		p.Autoscaler.Metrics = append(p.Autoscaler.Metrics, fleet.Metric{Name: names[r.IntN(len(names))], Target: math.Round(1000*r.ExpFloat64()+1) / 100,
			Activation: float64(r.IntN(3))})
	}
	return p
}

// adapterQuery finds the queries for the Prometheus adapter.
var adapterQuery = regexp.MustCompile(`metricsQuery: '(.*)'`)

// TestAutoscalers writes random policies, and reads them back as Kubernetes and
// Prometheus do.
func TestAutoscalers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		a := &fleet.Answer{Policy: anyPolicy(r), Seeds: make([]fleet.SeedRow, 3), Attainment: fleet.Estimate{Value: 0.98, Low: math.NaN()}}
		want := a.Policy.Autoscaler
		out := must.Get(Autoscaler(a, &plan.Served{Name: "Qwen/Qwen3-32B", Checkpoint: "Qwen/Qwen3-32B"}, Options{Namespace: "llm"}))
		var queries []string
		for _, rule := range adapterQuery.FindAllSubmatch(out, -1) {
			queries = append(queries, strings.NewReplacer("<<.GroupBy>>", "pod", "<<.LabelMatchers>>", `namespace="llm"`).Replace(string(rule[1])))
		}
		if want.Kind == fleet.ByHPA && len(queries) != len(want.Metrics) {
			t.Fatalf("%d rules of the adapter for %d metrics\n%s", len(queries), len(want.Metrics), out)
		}
		if want.Kind == fleet.ByHPA {
			var hpa autoscaling.HorizontalPodAutoscaler
			if err := yaml.UnmarshalStrict(out, &hpa); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			s := hpa.Spec
			if int(*s.MinReplicas) != a.Policy.Min || int(s.MaxReplicas) != a.Policy.Max || len(s.Metrics) != len(want.Metrics) ||
				want.HPA.Bare() != (s.Behavior == nil) || s.Behavior != nil && (len(s.Behavior.ScaleUp.Policies) != len(want.HPA.Up.Policies) || int(*s.Behavior.ScaleDown.StabilizationWindowSeconds) != int(want.HPA.Down.Stabilization.Seconds())) {
				t.Fatalf("%+v\n%s", a.Policy, out)
			}
			for _, rules := range []*autoscaling.HPAScalingRules{s.Behavior.ScaleUp, s.Behavior.ScaleDown} {
				if given := rules.Tolerance != nil; given != (want.HPA.Tolerance != 0.1) || given && rules.Tolerance.AsApproximateFloat64() != want.HPA.Tolerance {
					t.Fatalf("tolerance %v\n%s", want.HPA.Tolerance, out)
				}
			}
			for i, m := range s.Metrics {
				got := m.Pods
				if m.External != nil {
					if q := m.External.Target.Value.AsApproximateFloat64(); math.Abs(q-want.Metrics[i].Target) > 1e-3 {
						t.Fatalf("target %v, want %v", q, want.Metrics[i].Target)
					}
				} else if q := got.Target.AverageValue.AsApproximateFloat64(); math.Abs(q-want.Metrics[i].Target) > 1e-3 {
					t.Fatalf("target %v, want %v", q, want.Metrics[i].Target)
				}
			}
		} else {
			var scaled struct {
				Spec struct {
					MinReplicaCount int `json:"minReplicaCount"`
					Triggers        []struct {
						Metadata map[string]string `json:"metadata"`
					} `json:"triggers"`
				} `json:"spec"`
			}
			if err := yaml.Unmarshal(out, &scaled); err != nil || scaled.Spec.MinReplicaCount != a.Policy.Min ||
				len(scaled.Spec.Triggers) != len(want.Metrics) {
				t.Fatalf("%v\n%s", err, out)
			}
			for i, trigger := range scaled.Spec.Triggers {
				if at := trigger.Metadata["activationThreshold"]; at != exact(want.Metrics[i].Activation) {
					t.Fatalf("trigger %d is active above %s, want %v\n%s", i, at, want.Metrics[i].Activation, out)
				}
				queries = append(queries, trigger.Metadata["query"])
			}
		}
		for _, q := range queries {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(q); err != nil {
				t.Errorf("%s: %v", q, err)
			}
		}
	}
}

// TestScheduledAutoscaler writes a schedule as a trigger that ends; what its own file says of
// metrics, which a schedule does not look at, makes none.
func TestScheduledAutoscaler(t *testing.T) {
	a := &fleet.Answer{Attainment: fleet.Estimate{Value: 1, Low: math.NaN()}, Policy: fleet.Policy{Min: 2, Max: 8, Autoscaler: fleet.Autoscaler{Kind: fleet.Schedule,
		Metrics: []fleet.Metric{{Name: "in_flight", Target: 9}}, Entries: []fleet.Entry{{Cron: "0 8 * * 1-5", Replicas: 6}, {Cron: "0 18 * * *", Replicas: 2}}}}}
	out, err := Autoscaler(a, &plan.Served{Name: "m"}, Options{})
	if err != nil || strings.Count(string(out), "- type:") != 1 || !strings.Contains(string(out), `end: "0 18 * * 1-5"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNoAutoscaler refuses what no object of Kubernetes does.
func TestNoAutoscaler(t *testing.T) {
	for want, p := range map[string]fleet.Policy{
		"spec.replicas: 4": {Replicas: 4},
		"earlier version":  {},
		"forecast":         {Autoscaler: fleet.Autoscaler{Kind: fleet.Forecast}},
		"no series":        {Autoscaler: fleet.Autoscaler{Kind: fleet.ByHPA, Metrics: []fleet.Metric{{Name: "saturation", Target: 1}}}},
	} {
		if _, err := Autoscaler(&fleet.Answer{Policy: p}, &plan.Served{Name: "m"}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

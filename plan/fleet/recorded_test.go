package fleet

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
)

// recordedSeries are decisions of the HorizontalPodAutoscaler of a real
// kube-controller-manager; docs/clusters.md says how they are recorded.
type recordedSeries struct {
	Name     string
	Min, Max int
	Up, Down *recordedBehavior
	Metrics  []struct {
		Kind   string
		Target float64
	}
	Steps []struct {
		At      float64 `json:"at_s"`
		Asked   int
		Values  []float64
		Missing int
		Unready int
		Ready   int
		Value   *float64
		Want    int
	}
}

type recordedBehavior struct {
	Stabilization int `json:"stabilization_s"`
	Select        string
	Policies      []struct {
		Type   string
		Value  int
		Period int `json:"period_s"`
	}
}

func (b *recordedBehavior) behavior() Behavior {
	of := Behavior{Stabilization: time.Duration(b.Stabilization) * time.Second, Select: map[string]string{"Max": "max", "Min": "min", "Disabled": "disabled"}[b.Select]}
	for _, p := range b.Policies {
		of.Policies = append(of.Policies, ScalingPolicy{p.Type == "Percent", p.Value, time.Duration(p.Period) * time.Second})
	}
	return of
}

// TestRecordedDecisions has the simulated HPA see what the real one saw, and wants the
// same decisions.
func TestRecordedDecisions(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/hpa.json"))
	var recorded struct {
		Kubernetes string
		Series     []recordedSeries
	}
	must.OK(json.Unmarshal(data, &recorded))
	decided, changed := 0, 0
	for _, s := range recorded.Series {
		spec := UsualHPA()
		if s.Up != nil {
			spec.Up, spec.Down = s.Up.behavior(), s.Down.behavior()
		}
		h := &hpaControl{hpa: newHPA(spec, s.Min, s.Max, s.Steps[0].Asked)}
		for _, m := range s.Metrics {
			h.metrics = append(h.metrics, Metric{Name: map[string]string{"pods": "in_flight", "value": "saturation"}[m.Kind], Target: m.Target})
		}
		for i, step := range s.Steps {
			f := &fleetRun{monitor: monitor{spec: &Monitor{Window: time.Nanosecond}}}
			for _, v := range step.Values {
				f.replicas = append(f.replicas, &replica{state: ready, samples: []scrape{{at: step.At, inFlight: v}}})
			}
			f.replicas = append(f.replicas, slices.Repeat([]*replica{{state: starting}}, step.Missing)...)
			f.replicas = append(f.replicas, slices.Repeat([]*replica{{state: pending}}, step.Unready)...)
			if step.Value != nil {
				f.monitor.limits = [][2]limited{{{limit: 1, seen: []observed{{step.At, *step.Value}}}}}
			}
			v := &view{now: step.At, asked: step.Asked, ready: step.Ready, f: f}
			var want int
			if s.Metrics[0].Kind == "average" {
				want = h.normalize(v.now, v.asked, averageReplicas(*step.Value, h.metrics[0].Target, v.asked, spec.Tolerance))
			} else {
				want, _ = h.decide(v)
			}
			if want != step.Want {
				t.Errorf("%s: decision %d after %v s: %d replicas, %s decided on %d of %+v", s.Name, i, step.At, want, recorded.Kubernetes, step.Want, step)
				break
			}
			decided++
			if want != step.Asked {
				changed++
			}
		}
	}
	t.Logf("%d decisions of %s in %d series, of which %d changed the number of replicas", decided, recorded.Kubernetes, len(recorded.Series), changed)
}

package plan

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/internal/wire"
	"planner/model"
	"planner/model/curve"
	"planner/search"
	"planner/sweep/measure"
)

// full is a plan with every part filled in.
func full() *Plan {
	a, b, none := offer(21, 8, 2.5), offer(5, 1, 4), offer(0, 4, 3)
	b.Warnings = note.Notes{note.Text("of the offer")}
	a.Knobs = measure.Knobs{MaxNumSeqs: 256, TensorParallel: 8}
	slo := measure.SLO{Bounds: []measure.Bound{{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}}, Errors: 0.001}
	p := must.Get(Solve(Demand{Rate: 100, Headroom: 0.2, Spare: 1, MeanRate: 30}, slo, []Offer{a, b, none}, []measure.Rejection{{Knobs: measure.Knobs{MaxNumSeqs: 1}, Reason: note.Text("does not fit").Reason()}}))
	var points []curve.Point
	for i, ms := range []float64{95, 110, 180, 280, 450, 800} {
		points = append(points, curve.Point{Rate: float64(5*i + 1), Values: []curve.Value{{Quantile: 0.99, Latency: time.Duration(ms * 1e6)}}})
	}
	p.Evidence.Curve = must.Get(curve.Fit(measure.TTFT, points, 1))
	p.Evidence.Roofline = &DataSheet{Bounds: model.Bounds{WeightSeconds: 0.005, StreamTokensPerS: 190, PromptsPerS: 60, OutputTokensPerS: 9000, Concurrency: 80, ConcurrencyLimit: 80}}
	p.Comparison = &Comparison{
		Default: Setting{measure.Knobs{MaxNumSeqs: 128}, &search.Estimate{Value: 17, Low: 16, High: 18, Confidence: 0.9, Safe: 16.2}},
		Tuned:   Setting{p.Offer.Knobs, &p.Offer.Rate}, Gain: &search.Estimate{Value: 0.2, Low: 0.1, High: 0.3, Confidence: 0.9, Safe: 0.1},
	}
	p.Run = map[string]any{"path": "runs/x"}
	return p
}

func TestJSON(t *testing.T) {
	p := full()
	data := must.Get(wire.Marshal(p))
	again := must.Get(wire.Marshal(full()))
	if !bytes.Equal(data, again) {
		t.Error("the same plan gives other bytes")
	}
	var keys map[string]json.RawMessage
	must.OK(json.Unmarshal(data, &keys))
	for _, k := range []string{"max_rate_per_s", "binding", "knobs", "default_knobs", "roofline", "curve", "knee_per_s", "saturation_per_s",
		"fleet", "cost", "alternatives", "rejected", "assumptions", "warnings", "run"} {
		if _, ok := keys[k]; !ok {
			t.Errorf("no key %q in %s", k, data)
		}
	}
	var cost map[string]json.RawMessage
	must.OK(json.Unmarshal(keys["cost"], &cost))
	for _, k := range []string{"usd_per_hour", "usd_per_million_output_tokens", "usd_per_million_tokens", "usd_per_thousand_requests", "at_capacity", "at_mean"} {
		if _, ok := cost[k]; !ok {
			t.Errorf("no key %q in cost", k)
		}
	}

	var back Plan
	must.OK(json.Unmarshal(data, &back))
	if !reflect.DeepEqual(back.Fleet, p.Fleet) || !reflect.DeepEqual(back.Cost, p.Cost) ||
		!reflect.DeepEqual(back.Demand, p.Demand) || !reflect.DeepEqual(back.Objective, p.Objective) || !reflect.DeepEqual(back.Comparison, p.Comparison) ||
		!reflect.DeepEqual(back.Alternatives, p.Alternatives) || !reflect.DeepEqual(back.Warnings, p.Warnings) {
		t.Errorf("read back\n%+v\nwant\n%+v", back, *p)
	}
	if raw, ok := back.Run.(json.RawMessage); !ok || string(raw) != `{"path":"runs/x"}` {
		t.Errorf("run is %v", back.Run)
	}
	p.Run = nil
	data, err := wire.Marshal(p)
	if err != nil || bytes.Contains(data, []byte(`"run"`)) {
		t.Errorf("a run that is not there: %v %s", err, data)
	}
}

// Whatever the bytes are, a plan that is read can be written.
func FuzzPlan(f *testing.F) {
	p := must.Get(Solve(Demand{Rate: 3, Headroom: 0.2}, measure.SLO{Errors: -1}, []Offer{offer(2, 4, 2.5), offer(0, 1, 1)}, nil))
	f.Add(string(must.Get(wire.Marshal(p))))
	f.Fuzz(func(t *testing.T, text string) {
		var p Plan
		if json.Unmarshal([]byte(text), &p) != nil {
			return
		}
		if _, err := wire.Marshal(&p); err != nil {
			t.Error(err)
		}
	})
}

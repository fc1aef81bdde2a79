package plan_test

import (
	"math"
	"os"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/model/curve"
	"planner/plan"
	"planner/sweep/ingest"
	"planner/sweep/measure"
)

// From the measured table of Llama-70B on 8 x H100 to its plan: the p99 TTFT of
// 500 ms is crossed near 21 requests/s, so 100 requests/s need 5 instances, 40
// GPUs, and 6 instances, 48 GPUs, with a headroom of 20 %.
func TestTableToPlan(t *testing.T) {
	data := must.Get(os.ReadFile("../testdata/llama-70b-8xh100.csv"))
	results := must.Get(ingest.Read("table.csv", data))
	c := must.Get(curve.Fit(measure.TTFT, curve.FromMeasurements(results.Measurements, measure.TTFT), 1))
	bound := measure.Bound{Metric: measure.TTFT, Quantile: 0.99, Limit: 500 * time.Millisecond}
	x := must.Get(c.Crossing(bound))
	offer := plan.Offer{GPU: "H100 SXM", GPUs: 8, Pricing: plan.Pricing{PricePerGPUHour: 2.99}, Rate: plan.FromCrossing(&x), Binding: bound.String()}
	p := must.Get(plan.Solve(plan.Demand{Rate: 100, Headroom: 0.2}, measure.SLO{Bounds: []measure.Bound{bound}, Errors: -1}, []plan.Offer{offer}, nil))
	f := p.Fleet
	if f.Needed != 5 || f.Needed*f.GPUsPerInstance != 40 || f.Instances != 6 || f.GPUs != 48 {
		t.Errorf("needed %d, instances %d, GPUs %d", f.Needed, f.Instances, f.GPUs)
	}
	if r := p.Offer.Rate; r.Safe != r.Low || r.Safe >= r.Value || math.Abs(r.Value-21.05) > 0.65 {
		t.Errorf("rate %+v", p.Offer.Rate)
	}
	if !p.Warnings.Has(note.NoSamplingError) {
		t.Errorf("warnings %q", p.Warnings)
	}
	if math.Abs(*p.Cost.PerHour-48*2.99) > 1e-9 {
		t.Errorf("cost %v", *p.Cost.PerHour)
	}
}

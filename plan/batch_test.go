package plan

import (
	"math"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/search"
	"planner/sweep/measure"
)

// TestJobByHand: 900,000 requests in 24 hours are 10.4167 a second, 12.5 with headroom, so
// five instances of 2.5 a second. They take 900,000 / 12.5 s = 20 h, which is 400 hours of
// 20 GPUs and $1,200. Of the small ones 18 carry 12.6 a second and take 900,000 / 12.6 s =
// 19.841 h, 357.1 GPU hours and $785.71.
func TestJobByHand(t *testing.T) {
	of := func(gpu string, gpus int, safe, price float64) Offer {
		return Offer{GPU: gpu, GPUs: gpus, Pricing: Pricing{PricePerGPUHour: price}, PromptTokens: 300, OutputTokens: 100,
			Knobs: measure.Knobs{GPU: gpu}, Binding: "throughput", Rate: search.Estimate{Value: safe, Low: safe, High: safe, Safe: safe, Confidence: 0.9}}
	}
	near := wanting(t, 1e-4)
	d := Demand{Headroom: 0.2, Zones: 1}.JobDemand(Job{Requests: 900_000, Deadline: 24 * time.Hour})
	p := must.Get(Solve(d, measure.SLO{Throughput: true}, []Offer{of("large", 4, 2.5, 3), of("small", 1, 0.7, 2.2)}, nil))
	other := p.Alternatives[0]
	if p.Offer.GPU != "small" || other.Fleet.Instances != 5 || other.Fleet.GPUs != 20 || p.Fleet.GPUs != 18 {
		t.Fatalf("%s with %d GPUs, the other %+v", p.Offer.GPU, p.Fleet.GPUs, other.Fleet)
	}
	near("hours of the large ones", other.Cost.Job.Duration.Hours(), 20)
	near("GPU hours of the large ones", other.Cost.Job.GPUHours, 400)
	near("cost of the large ones", *other.Cost.Job.USD, 1200)
	near("GPU hours", p.Cost.Job.GPUHours, 900_000/12.6*18/3600)
	near("cost", *p.Cost.Job.USD, 785.714)
	near("cost of a thousand requests", *p.Cost.PerThousandRequests, 785.714/900)
	near("cost of a million tokens", *p.Cost.PerMillionTokens, 785.714/360)
	if p.Cost.PerMonth != nil || p.Cost.Job.Duration > 24*time.Hour {
		t.Errorf("a month costs %v, done after %v", p.Cost.PerMonth, p.Cost.Job.Duration)
	}
	// A job costs as its requests and the price do: 22 instances carry the 15 a second of a fifth more.
	changed := map[string]float64{"traffic +20 %": 942.857, "traffic -20 %": 628.571, "price +15 %": 903.571, "price -15 %": 667.857,
		"sized by the median rate, not by the safe one": 785.714}
	for _, c := range p.Sensitivity {
		near("cost with "+c.What, *c.ForJob, changed[c.What])
		if c.What == "traffic +20 %" && (c.GPUs != 22 || math.Abs(c.Share(p.Fleet.GPUs, &p.Cost.Cost)-0.2) > 1e-9) {
			t.Errorf("%+v", c)
		}
	}
	if len(p.Sensitivity) != len(changed) {
		t.Errorf("%d changes, want %d", len(p.Sensitivity), len(changed))
	}
	if want := "costs 52.7 % more for the job"; other.Reason.Text != want {
		t.Errorf("reason %q, want %q", other.Reason.Text, want)
	}
	// Without a price the 400 GPU hours cost as much at 785.714 / 400 an hour.
	p = must.Get(Solve(d, measure.SLO{Throughput: true}, []Offer{of("large", 4, 2.5, 0), of("small", 1, 0.7, 2.2)}, nil))
	for _, c := range p.Sensitivity {
		if c.What == "traffic +20 %" && math.Abs(c.JobGPUHours/p.Cost.Job.GPUHours-1.2) > 1e-9 {
			t.Errorf("%s: %g GPU hours, of %g", c.What, c.JobGPUHours, p.Cost.Job.GPUHours)
		}
	}
	near("break-even price", p.Alternatives[0].Reason.Note.Figures["break_even_usd_per_gpu_hour"].(float64), 785.714/400)

	// If the last requests take 4 hours, 900,000 in 20 are 12.5 a second, 15 with headroom: 22 small instances, which are
	// full for 900,000 / 15.4 s = 16.234 h and done after 20.234. A deadline that one request exceeds is kept by none.
	slow := of("small", 1, 0.7, 2.2)
	slow.Tail = 4 * time.Hour
	p = must.Get(Solve(d, measure.SLO{Throughput: true}, []Offer{slow}, nil))
	near("hours with a tail", p.Cost.Job.Duration.Hours(), 900_000/15.4/3600+4)
	near("GPU hours with a tail", p.Cost.Job.GPUHours, 22*(900_000/15.4/3600+4))
	slow.Tail = 25 * time.Hour
	if _, err := Solve(d, measure.SLO{Throughput: true}, []Offer{slow}, nil); err == nil || !strings.Contains(err.Error(), "one request takes 25h0m0s") {
		t.Errorf("a request longer than the deadline: %v", err)
	}

	// By each way to pay it is the same job; what is reserved is paid for until the deadline, 18 GPUs for 24 hours.
	reserved := of("small", 1, 0.7, 1.1)
	reserved.Terms = []Term{{Name: Reserved, PerGPUHour: 1.1}, {Name: OnDemand, PerGPUHour: 2.2}}
	p = must.Get(Solve(d, measure.SLO{Throughput: true}, []Offer{reserved}, nil))
	for i, usd := range []float64{18 * 24 * 1.1, 785.714} {
		way := p.Cost.Ways[i]
		near("job by "+way.Name, *way.Job.USD, usd)
		near("tokens by "+way.Name, *way.PerMillionTokens, usd/360)
		if way.PerMonth != nil {
			t.Errorf("a month by %s costs %g, of which the job runs a part", way.Name, *way.PerMonth)
		}
	}
	if last := p.Assumptions[3]; len(p.Cost.Ways) != 2 || !strings.Contains(last, "reserved or bought are paid for whether they work or not") {
		t.Errorf("%d ways, assumption %q", len(p.Cost.Ways), last)
	}

	// What an undecided kind would cost at its best is that of the job at that rate: 3 USD, for the 120 of the chosen one.
	loose := of("loose", 1, 0.1, 1)
	loose.Rate.High, loose.Loose = 15, note.Text("the budget is spent").Reason()
	small := Demand{Headroom: 0.2, Zones: 1}.JobDemand(Job{Requests: 3600 * 45, Deadline: 24 * time.Hour})
	if p = must.Get(Solve(small, measure.SLO{Throughput: true}, []Offer{of("dear", 1, 0.9, 2.4), loose}, nil)); !p.Warnings.Has(note.MayBeCheaper) {
		t.Errorf("no word of what may cost a fortieth: %q", p.Warnings)
	}

	// Growth is more work, not more haste.
	d = Demand{Growth: 0.5, Headroom: 0.2, Zones: 1}.JobDemand(Job{Requests: 900_000, Deadline: 24 * time.Hour})
	p = must.Get(Solve(d, measure.SLO{Throughput: true}, []Offer{of("small", 1, 0.7, 2.2)}, nil))
	near("cost with growth", *p.Cost.Job.USD, 1.5*785.714)
	if p.Fleet.Instances != 27 {
		t.Errorf("%d instances with growth, want 1.5 x 18", p.Fleet.Instances)
	}
}

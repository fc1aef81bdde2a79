package plan

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/search"
	"planner/sweep/measure"
)

func offer(safe float64, gpus int, price float64) Offer {
	return Offer{
		GPU: "H100 SXM", GPUs: gpus, Pricing: Pricing{PricePerGPUHour: price}, Binding: "ttft.p99", PromptTokens: 600, OutputTokens: 250,
		Rate: search.Estimate{Value: 1.05 * safe, Low: safe, High: 1.1 * safe, Confidence: 0.9, Safe: safe},
	}
}

// wanting checks that figures are those that are wanted but for a share of these.
func wanting(t *testing.T, share float64) func(what string, got, want float64) {
	return func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got/want-1) <= share) {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
}

func solve(t *testing.T, d Demand, offers ...Offer) *Plan {
	t.Helper()
	return must.Get(Solve(d, measure.SLO{}, offers, nil))
}

// A price of 0 that somebody gave is a price: what is paid for already is the cheapest, costs nothing, and what is to be
// looked at is told by GPUs.
func TestFree(t *testing.T) {
	owned, rented := offer(10, 2, 0), offer(30, 1, 2)
	owned.PricedBy = "the configuration"
	for _, job := range []*Job{nil, {Requests: 3600 * 60, Deadline: time.Hour}} {
		d := Demand{Rate: 60, Headroom: 0.2, MaxUSDPerHour: 3}
		if job != nil {
			d = d.JobDemand(*job)
			d.MaxUSDPerHour = 0
		}
		p := solve(t, d, rented, owned)
		if m := p.Cost.Money(); p.Offer.GPUs != 2 || m == nil || *m != 0 {
			t.Errorf("%d GPUs an instance for %v USD, warnings %v", p.Offer.GPUs, m, p.Warnings)
		}
		if why := p.Alternatives[0].Reason; job != nil && why.Note.Kind != note.BesideFree {
			t.Errorf("the other one: %s", why.Text)
		}
		for i := range p.Sensitivity {
			if share := p.Sensitivity[i].Share(p.Fleet.GPUs, &p.Cost.Cost); math.IsNaN(share) || math.IsInf(share, 0) {
				t.Errorf("%s: %g", p.Sensitivity[i].What, share)
			}
		}
		for _, x := range p.Drivers {
			if !(x.Share > 0 && x.Share < 1) {
				t.Errorf("%s carries %g", x.What, x.Share)
			}
		}
	}
}

// Fleets worked out by hand.
func TestFleet(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		demand                   Demand
		safe                     float64
		gpus                     int
		needed, instances, inAll int
		by                       string
	}{
		{"the 70B table: 100/21.03 = 4.8, 120/21.03 = 5.7", Demand{Rate: 100, Headroom: 0.2}, 21.03, 8, 5, 6, 48, "load"},
		{"N+1", Demand{Rate: 100, Headroom: 0.2, Spare: 1}, 21.03, 8, 5, 7, 56, "spare"},
		{"exact quotient", Demand{Rate: 100}, 1, 1, 100, 100, 100, "load"},
		{"noise of a sum", Demand{Rate: 100.00000001}, 1, 1, 100, 100, 100, "load"},
		{"more than noise", Demand{Rate: 100.001}, 1, 1, 101, 101, 101, "load"},
		{"0.1+0.2 in units of 0.1", Demand{Rate: 0.1 + 0.2}, 0.1, 1, 3, 3, 3, "load"},
		{"growth", Demand{Rate: 100, Growth: 0.5}, 10, 2, 15, 15, 30, "load"},
		// 2.33*sqrt(3*100/10) = 12.76
		{"bursts", Demand{Rate: 100, BurstIndex: 4}, 10, 1, 12, 12, 12, "load"},
		{"less bunched than Poisson", Demand{Rate: 100, BurstIndex: 0.5}, 10, 1, 10, 10, 10, "load"},
		{"three zones: 3*ceil(6/2)", Demand{Rate: 60, Zones: 3}, 10, 1, 6, 9, 9, "zones"},
		{"two zones double", Demand{Rate: 60, Zones: 2, Spare: 1}, 10, 1, 6, 12, 12, "zones"},
		{"one zone", Demand{Rate: 60, Zones: 1}, 10, 1, 6, 6, 6, "load"},
		{"availability: 8 of 10", Demand{Rate: 80, Availability: 0.99, TargetAvailability: 0.999}, 10, 1, 8, 10, 10, "availability"},
		{"spares beat availability", Demand{Rate: 80, Availability: 0.99, TargetAvailability: 0.999, Spare: 3}, 10, 1, 8, 11, 11, "spare"},
		{"one request a day", Demand{Rate: 1.0 / 86400, Headroom: 0.2, Spare: 1}, 5, 4, 1, 2, 8, "spare"},
		{"a million per second", Demand{Rate: 1e6, Headroom: 0.2, Spare: 1}, 5, 4, 200000, 240001, 960004, "spare"},
	} {
		f := solve(t, tc.demand, offer(tc.safe, tc.gpus, 2)).Fleet
		if f.Needed != tc.needed || f.Instances != tc.instances || f.GPUs != tc.inAll || f.DecidedBy != tc.by {
			t.Errorf("%s: needed %d, instances %d, GPUs %d by %s; want %d, %d, %d by %s",
				tc.name, f.Needed, f.Instances, f.GPUs, f.DecidedBy, tc.needed, tc.instances, tc.inAll, tc.by)
		}
	}
}

// The instances that availability asks for, as worked out from the binomial
// distribution elsewhere: 99 % of one, 99.9 % of the fleet.
func TestInstancesFor(t *testing.T) {
	for need, want := range map[int]int{1: 2, 2: 3, 4: 5, 8: 10, 16: 18, 32: 35, 64: 68} {
		if got := instancesFor(need, 0.99, 0.999); got != want {
			t.Errorf("for %d: %d, want %d", need, got, want)
		}
	}
	// The sum of the probabilities themselves, term by term.
	for need := 1; need < 60; need += 3 {
		for _, up := range []float64{0.5, 0.9, 0.99} {
			got := instancesFor(need, up, 0.999)
			if binomialTail(need, got, up) < 0.999 || binomialTail(need, got-1, up) >= 0.999 {
				t.Errorf("for %d of %.2f: %d gives %.6f and one less %.6f", need, up, got, binomialTail(need, got, up), binomialTail(need, got-1, up))
			}
		}
	}
}

func binomialTail(k, n int, p float64) float64 {
	sum := 0.0
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

// The planned rate falls by no input that asks for more, and neither does the
// fleet, while a larger safe rate never enlarges it.
func TestMonotone(t *testing.T) {
	base := Demand{Rate: 40, Growth: 0.1, BurstIndex: 2, Headroom: 0.2, Spare: 1, Availability: 0.95, TargetAvailability: 0.99, Zones: 3}
	more := map[string]func(*Demand, float64){
		"rate":       func(d *Demand, x float64) { d.Rate *= x },
		"growth":     func(d *Demand, x float64) { d.Growth *= x },
		"bursts":     func(d *Demand, x float64) { d.BurstIndex *= x },
		"headroom":   func(d *Demand, x float64) { d.Headroom *= x },
		"spare":      func(d *Demand, x float64) { d.Spare = int(math.Ceil(float64(d.Spare) * x)) },
		"target":     func(d *Demand, x float64) { d.TargetAvailability = 1 - (1-d.TargetAvailability)/x },
		"unreliable": func(d *Demand, x float64) { d.Availability /= x },
	}
	for name, change := range more {
		last := 0
		for x := 1.0; x < 30; x *= 1.07 {
			d := base
			change(&d, x)
			n := solve(t, d, offer(3, 2, 1)).Fleet.Instances
			if n < last {
				t.Errorf("%s x %.2f: %d instances after %d", name, x, n, last)
			}
			last = n
		}
	}
	last := math.MaxInt
	for safe := 0.1; safe < 100; safe *= 1.05 {
		n := solve(t, base, offer(safe, 2, 1)).Fleet.Instances
		if n > last {
			t.Errorf("safe rate %.3f: %d instances after %d", safe, n, last)
		}
		last = n
	}
}

func TestCost(t *testing.T) {
	d := Demand{Rate: 100, Headroom: 0.2, Spare: 1, MeanRate: 40}
	o := offer(21.03, 8, 2.5)
	o.Watts, o.ServerWatts, o.PUE, o.PowerPrice = 700, 300, 1.2, 0.1
	p := solve(t, d, o)
	near := wanting(t, 1e-12)
	hourly := 56 * 2.5
	near("per hour", *p.Cost.PerHour, hourly)
	near("per thousand requests", *p.Cost.PerThousandRequests, hourly/(3600*100)*1000)
	near("per million output tokens", *p.Cost.PerMillionOutputTokens, hourly/(3600*100*250)*1e6)
	near("per million tokens", *p.Cost.PerMillionTokens, hourly/(3600*100*850)*1e6)
	near("energy", *p.Cost.EnergyPerHour, 56*1*1.2*0.1)
	// Planned over capacity cost is N c over the planned rate; the mean's over
	// the planned the ratio of the rates. What all tokens of an hour cost is the bill.
	near("capacity", *p.Cost.AtCapacity.PerMillionTokens, *p.Cost.PerMillionTokens*100/(7*21.03))
	near("mean", *p.Cost.AtMean.PerMillionTokens, *p.Cost.PerMillionTokens*100/40)
	near("the bill", *p.Cost.PerMillionTokens*850*100*3600/1e6, hourly)
	if *p.Cost.AtCapacity.PerThousandRequests > *p.Cost.PerThousandRequests {
		t.Error("a fleet is dearer at capacity than at the planned rate")
	}
	o.PricePerGPUHour, o.OutputTokens = 0, 0
	if c := solve(t, d, o).Cost; c.PerHour != nil || c.PerThousandRequests != nil || c.PerMillionTokens != nil {
		t.Errorf("costs without a price: %+v", c)
	}
}

func TestRanking(t *testing.T) {
	cheap, dear, unpriced, none := offer(5, 1, 2), offer(5, 1, 3), offer(50, 8, 0), offer(0, 1, 1)
	cheap.GPU, dear.GPU, unpriced.GPU, none.GPU = "cheap", "dear", "unpriced", "none"
	fewer := offer(10, 2, 1)
	fewer.GPU = "same cost, more GPUs"
	p := solve(t, Demand{Rate: 20}, none, unpriced, dear, fewer, cheap)
	order := []string{p.Offer.GPU}
	for _, a := range p.Alternatives {
		order = append(order, a.Offer.GPU)
		if a.Reason.Text == "" || a.Feasible != (a.Offer.GPU != "none") {
			t.Errorf("%s: feasible %v, reason %q", a.Offer.GPU, a.Feasible, a.Reason.Text)
		}
	}
	// Two of 2 GPUs at 1 USD are chosen; one of 8 without a price costs as much at 0.5.
	if got := p.Alternatives[2].Reason; got.Note.Kind != note.Unpriced || !strings.Contains(got.Text, "at 0.5 USD per GPU and hour it costs what the chosen one does") {
		t.Errorf("%+v", got)
	}
	if got := strings.Join(order, ", "); got != "same cost, more GPUs, cheap, dear, unpriced, none" {
		t.Errorf("order %s", got)
	}
}

func TestLimits(t *testing.T) {
	small, large := offer(5, 1, 10), offer(30, 8, 1)
	small.GPU, large.GPU = "small", "large"
	// 100 requests/s: 20 GPUs at 200 USD, or 4 x 8 GPUs at 32 USD.
	if p := solve(t, Demand{Rate: 100}, small, large); p.Offer.GPU != "large" {
		t.Errorf("chose %s", p.Offer.GPU)
	}
	if p := solve(t, Demand{Rate: 100, MaxGPUs: 20}, small, large); p.Offer.GPU != "small" || p.Alternatives[0].Reason.Text != "32 GPUs are more than max_gpus = 20" {
		t.Errorf("chose %s, %q", p.Offer.GPU, p.Alternatives[0].Reason.Text)
	}
	_, err := Solve(Demand{Rate: 100, MaxGPUs: 20, MaxUSDPerHour: 100}, measure.SLO{}, []Offer{small, large}, nil)
	var e *Unsolved
	if !errors.As(err, &e) || e.Cheapest == nil || e.Cheapest.Offer.GPU != "large" {
		t.Fatalf("error %v", err)
	}
	if want := "no plan within the limits: the cheapest is 32 x large (4 instances of 8 GPUs) at 32.00 USD per hour: 32 GPUs are more than max_gpus = 20"; err.Error() != want {
		t.Errorf("error %q", err)
	}
	// Knob sets that another of the same GPU was chosen before are no reason.
	_, err = Solve(Demand{Rate: 100, MaxGPUs: 10}, measure.SLO{}, []Offer{small, large}, []measure.Rejection{{Reason: note.Text("as good as the best set").Reason()}})
	want := []string{"32 GPUs are more than max_gpus = 10", "20 GPUs are more than max_gpus = 10"}
	if !errors.As(err, &e) || !slices.Equal(e.Reasons(), want) || len(e.Rejected) != 1 {
		t.Errorf("reasons %q, want %q", e.Reasons(), want)
	}
	unpriced := offer(30, 8, 0)
	if _, err := Solve(Demand{Rate: 100, MaxUSDPerHour: 1e9}, measure.SLO{}, []Offer{unpriced}, nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "no price") {
		t.Errorf("a cost that nobody knows keeps a limit: %v", err)
	}
}

func TestInfeasible(t *testing.T) {
	slow := offer(0, 1, 1)
	slow.Obstacle = note.Text("the idle p99 TTFT is 95 ms, above the limit of 50 ms; the smallest feasible limit is 96 ms").Reason()
	_, err := Solve(Demand{Rate: 1}, measure.SLO{}, []Offer{slow, slow}, []measure.Rejection{{Reason: note.Text("does not fit").Reason()}})
	var e *Unsolved
	if !errors.As(err, &e) || e.Cheapest != nil || e.Undecided {
		t.Fatalf("error %v", err)
	}
	if got := e.Reasons(); len(got) != 2 || got[0] != slow.Obstacle.Text || got[1] != "does not fit" {
		t.Errorf("reasons %q", got)
	}
	near := slow
	slow.Idle, near.Idle = &IdleLatency{Latency: 95, Limit: 50}, &IdleLatency{Latency: 60, Limit: 50}
	if _, err := Solve(Demand{Rate: 1}, measure.SLO{}, []Offer{slow, near}, nil); !errors.As(err, &e) || e.Alternatives[0].Offer.Idle != near.Idle {
		t.Errorf("what comes nearest to its limit does not stand first: %+v", e.Alternatives)
	}
	for _, rate := range []float64{math.NaN(), math.Inf(1), -1} {
		if _, err := Solve(Demand{Rate: rate}, measure.SLO{}, []Offer{offer(1, 1, 1)}, nil); err == nil || errors.As(err, &e) {
			t.Errorf("a demand of %g: %v", rate, err)
		}
	}
	if _, err := Solve(Demand{Rate: 1e6}, measure.SLO{}, []Offer{offer(1e-12, 1, 1)}, nil); !errors.As(err, &e) {
		t.Errorf("a fleet beyond counting: %v", err)
	}
}

// A rate that is not known is no proof that there is none: without another offer the
// demand is undecided, whatever else is infeasible.
func TestUndecided(t *testing.T) {
	never := offer(0, 1, 1)
	never.Obstacle = note.Text("does not fit").Reason()
	var undecided *Unsolved
	for _, rate := range []float64{0, math.NaN(), math.Inf(1), -1} {
		open := offer(rate, 1, 1)
		open.Unknown = "the budget is spent"
		_, err := Solve(Demand{Rate: 1}, measure.SLO{}, []Offer{never, open}, []measure.Rejection{{Reason: note.Text("beaten by the best set").Reason()}})
		if !errors.As(err, &undecided) || !undecided.Undecided {
			t.Fatalf("a safe rate of %g: %v", rate, err)
		}
		if d := undecided.Doubts(); len(d) != 1 || !strings.Contains(d[0], "the budget is spent") || len(undecided.Reasons()) != 2 || undecided.Reasons()[0] != d[0] {
			t.Errorf("doubts %q, reasons %q", d, undecided.Reasons())
		}
	}
	// A safe rate that a search left far below what may be is none to refuse by.
	wide := offer(1, 1, 1)
	wide.Rate.High, wide.Unknown = 50, "the budget is spent"
	_, err := Solve(Demand{Rate: 100, MaxGPUs: 10}, measure.SLO{}, []Offer{wide}, nil)
	if !errors.As(err, &undecided) || !undecided.Undecided || !strings.Contains(undecided.Doubts()[0], "the budget is spent") {
		t.Errorf("a safe rate of 1/s that may be 50/s: %v", err)
	}
	wide.Rate, wide.Loose = search.Estimate{Value: 0.29, Low: 0.053, High: 1.52, Safe: 0.08}, note.Because(note.RateLoose, 0.29, 0.053, 1.52, wide.Unknown)
	if _, err := Solve(Demand{Rate: 1}, measure.SLO{}, []Offer{wide}, nil); !errors.As(err, &undecided) || !undecided.Undecided {
		t.Errorf("a fleet of 13 where 4 are likely: %v", err)
	}
	// What even its high end breaks a limit by is infeasible: 1 GPU at 1.52/s is dearer than allowed.
	if _, err := Solve(Demand{Rate: 1, MaxUSDPerHour: 0.5}, measure.SLO{}, []Offer{wide}, nil); !errors.As(err, &undecided) || undecided.Undecided || !strings.Contains(err.Error(), "even by 1.52 requests/s") {
		t.Errorf("1 USD per hour where .50 are allowed: %v", err)
	}
	// So is it where no rate is safe yet; and what is certain, with its fleet, is the cheapest that is named.
	never = wide
	never.Rate.Safe, never.Loose = 0, note.Reason{}
	if _, err := Solve(Demand{Rate: 1, MaxUSDPerHour: 0.5}, measure.SLO{}, []Offer{never, offer(1, 1, 7)}, nil); !errors.As(err, &undecided) || undecided.Undecided || undecided.Cheapest == nil || undecided.Cheapest.Offer.PricePerGPUHour != 7 {
		t.Errorf("without a safe rate: %v", err)
	}
	// Nor is one worth a warning that at its best takes more than the chosen one.
	if p := solve(t, Demand{Rate: 6}, wide, offer(8, 1, 1)); len(p.Alternatives) != 1 || !p.Alternatives[0].Undecided || p.Warnings.Has(note.MayBeCheaper) {
		t.Errorf("4 GPUs at least for the chosen %d: %q", p.Fleet.GPUs, p.Warnings)
	}
	if p := solve(t, Demand{Rate: 6}, wide, offer(1, 1, 1)); p.Fleet.GPUs != 6 || !p.Warnings.Has(note.MayBeCheaper) {
		t.Errorf("4 GPUs at least for the chosen %d: %q", p.Fleet.GPUs, p.Warnings)
	}
	wide = offer(1, 1, 1)
	wide.Unknown = "the budget is spent"
	if _, err := Solve(Demand{Rate: 100, MaxGPUs: 10}, measure.SLO{}, []Offer{wide}, nil); !errors.As(err, &undecided) || undecided.Undecided {
		t.Errorf("a rate of 1/s at most, for 100/s on 10 GPUs: %v", err)
	}
	open, dear := offer(0, 1, 1), offer(1, 1, 1)
	if _, err := Solve(Demand{Rate: 100, MaxGPUs: 10}, measure.SLO{}, []Offer{dear, open}, nil); !errors.As(err, &undecided) || !undecided.Undecided {
		t.Errorf("one offer beyond the limit of GPUs and one undecided: %v", err)
	}
	p := solve(t, Demand{Rate: 1}, open, dear)
	if len(p.Alternatives) != 1 || !p.Alternatives[0].Undecided {
		t.Errorf("alternatives %+v", p.Alternatives)
	}
	if !strings.Contains(p.Warnings.String(), "undecided") {
		t.Errorf("no warning of an offer that may have been better: %q", p.Warnings)
	}
}

// The fleet at another rate is that of a plan whose instances carry it.
func TestFleetAt(t *testing.T) {
	d := Demand{Rate: 100, Headroom: 0.2, Spare: 1}
	p := solve(t, d, offer(5, 2, 1))
	f, err := p.FleetAt(10)
	if want := solve(t, d, offer(10, 2, 1)).Fleet; err != nil || f.GPUs != want.GPUs || f.Instances != 13 {
		t.Errorf("%+v, want %+v (%v)", f, want, err)
	}
	if _, err := p.FleetAt(math.NaN()); err == nil {
		t.Error("a fleet of instances whose rate is no number")
	}
}

package plan

import (
	"math"
	"testing"
)

// Worked by hand: 35,040 USD over 4 years of 8,760 hours is 1.00 an hour; 1.26 kW (700 W of
// GPU and 0.8 times that of server) at PUE 1.5 and 0.10 is 0.189, and 146 a kW and month of
// 730 hours is 0.252.
func TestPurchase(t *testing.T) {
	tariff := Tariff{OnDemand: 3, Spot: 1.2, Purchase: 35040, Years: 4, PowerPrice: 0.1, Hosting: 146, PUE: 1.5, Basis: Purchase}
	o := offer(10, 2, 0)
	o.Pricing = tariff.Pricing(700)
	p := solve(t, Demand{Rate: 100}, o) // 10 instances, 20 GPUs
	near := wanting(t, 1e-9)
	bought := p.Offer.Terms[0]
	near("capital", bought.Capital, 1)
	near("power", bought.Power, 0.189)
	near("hosting", bought.Hosting, 0.252)
	near("a GPU and hour", p.Offer.PricePerGPUHour, 1.441)
	near("parts", bought.Capital+bought.Power+bought.Hosting, bought.PerGPUHour)
	near("fleet", *p.Cost.PerHour, 28.82)
	near("month", *p.Cost.PerMonth, 28.82*730)
	near("year", *p.Cost.PerYear, 28.82*8760)
	near("energy", *p.Cost.EnergyPerHour, 20*0.189)
	want := []struct {
		name string
		hour float64
	}{{Purchase, 28.82}, {OnDemand, 60}, {Spot, 24}}
	if len(p.Cost.Ways) != len(want) {
		t.Fatalf("ways to pay: %+v", p.Cost.Ways)
	}
	for i, w := range p.Cost.Ways {
		if w.Name != want[i].name {
			t.Errorf("way %d is %s, want %s", i, w.Name, want[i].name)
		}
		near(w.Name, *w.PerHour, want[i].hour)
	}
	// The same money three times: to the tokens that come in, that go out, and to both.
	c := p.Cost.Cost
	near("allocations", 1 / *c.PerMillionInputTokens + 1 / *c.PerMillionOutputTokens, 1 / *c.PerMillionTokens)
	near("input tokens", *c.PerMillionInputTokens*600*100*3600/1e6, *c.PerHour)
}

func TestPowerOfAServer(t *testing.T) {
	for _, tc := range []struct {
		tariff Tariff
		design float64
		kw     float64
	}{
		{Tariff{}, 700, 0.7 * 1.8 * 1.3},
		{Tariff{PUE: 1.1}, 1000, 1.98},
		{Tariff{Watts: 1275, PUE: 1}, 700, 1.275},
		{Tariff{Watts: 500, PUE: 1}, 700, 0.5},
		{Tariff{Watts: 500, PUE: 2}, 0, 1},
		{Tariff{}, 0, 0},
	} {
		p := tc.tariff.Pricing(tc.design)
		if got := p.KW(); math.Abs(got-tc.kw) > 1e-9 {
			t.Errorf("%+v of %g W: %g kW, want %g", tc.tariff, tc.design, got, tc.kw)
		}
	}
}

package plan

import "testing"

// Energy beside rented GPUs is that of the modelled power; bought ones have it in their price.
func TestEnergyIsOfTheModelledPowerWhereGPUsAreRented(t *testing.T) {
	for _, bought := range []bool{false, true} {
		p := &Plan{}
		p.Offer.PowerPrice, p.Offer.PUE, p.Offer.ServerWatts = 0.1, 1.2, 300
		p.Fleet.GPUs, p.Fleet.GPUsPerInstance = 10, 2
		p.Cost.EnergyPerHour = new(1.2)
		p.Cost.Ways = []WayCost{{OnDemand, Cost{EnergyPerHour: new(1.2)}}, {Purchase, Cost{EnergyPerHour: new(1.2)}}}
		want := 10 * 0.5 * 1.2 * 0.1
		if bought {
			p.Offer.Terms, want = []Term{{Name: Purchase}}, 1.2
		}
		p.SetPower(NewPower(&p.Offer, &p.Fleet, 1, 200, 0.25))
		if got := *p.Cost.EnergyPerHour; got < want-1e-9 || got > want+1e-9 || (len(p.Assumptions) == 0) != bought {
			t.Errorf("bought %v: %v USD per hour, want %v, %q", bought, got, want, p.Assumptions)
		}
		if rented, owned := *p.Cost.Ways[0].EnergyPerHour, *p.Cost.Ways[1].EnergyPerHour; rented > 0.6+1e-9 || owned != 1.2 {
			t.Errorf("bought %v: energy beside rented GPUs is %v USD per hour among the ways to pay, of bought ones %v", bought, rented, owned)
		}
	}
}

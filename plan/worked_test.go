package plan

import (
	"math"
	"strings"
	"testing"
)

// Plans worked out by hand, all with 600 tokens of prompt and 250 of answer: whole counts,
// money to the cent, availability as sums of the binomial distribution.
func TestWorkedPlans(t *testing.T) {
	at := func(safe float64, gpus int, price float64) []Offer { return []Offer{offer(safe, gpus, price)} }
	priced := func(safe float64, gpus int, tariff Tariff) []Offer {
		o := offer(safe, gpus, 0)
		o.Pricing = tariff.Pricing(700)
		return []Offer{o}
	}
	for _, tc := range []struct {
		name            string
		demand          Demand
		offers          []Offer
		instances, gpus int
		hour, year      float64
		// output is USD per million output tokens, 1e6 x hour / (3600 x planned rate x 250).
		output float64
		// planned and loaded are the availability reached; lost and zone are the load of what
		// is left of a lost instance and a lost zone, 0 for none.
		planned, loaded, lost, zone float64
	}{
		{"120/21.03 = 5.7: 6 and a spare, of which 5 do",
			Demand{Rate: 100, Headroom: 0.2, Spare: 1}, at(21.03, 8, 2.5), 7, 56, 140, 1226400, 1.5556, 0.999966037, 0.997968958, 100 / (6 * 21.03), 0},
		{"120/10.362 = 11.6: 12 and a spare, of which 10 do",
			Demand{Rate: 100, Headroom: 0.2, Spare: 1}, at(10.362, 4, 3.9), 13, 52, 202.80, 1776528, 2.2533, 0.999993, 0.992751, 100 / (12 * 10.362), 0},
		{"three zones of 3, of which two carry 60",
			Demand{Rate: 60, Zones: 3}, at(10, 1, 3), 9, 9, 27, 236520, 0.5, 0.999999, 0.999999, 60.0 / 80, 1},
		{"two zones of 6",
			Demand{Rate: 60, Zones: 2, Spare: 1}, at(10, 1, 3), 12, 12, 36, 315360, 0.6667, 1, 1, 60.0 / 110, 1},
		{"three zones of 6, of which two carry 120",
			Demand{Rate: 100, Headroom: 0.2, Zones: 3}, at(10, 1, 3), 18, 18, 54, 473040, 0.6, 1, 1, 100.0 / 170, 100.0 / 120},
		{"spares are enough for four zones of 2",
			Demand{Rate: 50, Zones: 4, Spare: 3}, at(10, 1, 3), 8, 8, 24, 210240, 0.5333, 0.999999, 0.999999, 50.0 / 70, 50.0 / 60},
		{"8 of 10 are up with 0.99989, 8 of 9 with 0.9966",
			Demand{Rate: 80, Availability: 0.99, TargetAvailability: 0.999}, at(10, 1, 2), 10, 10, 20, 175200, 0.2778, 0.999886151, 0.999886151, 80.0 / 90, 0},
		{"3 of 4 that are up 95 %",
			Demand{Rate: 30, Availability: 0.95, TargetAvailability: 0.98}, at(10, 2, 1.25), 4, 8, 10, 87600, 0.3704, 0.98598125, 0.98598125, 1, 0},
		{"growth of 25 % and bursts of 2.33 x sqrt(3 x 100/10) = 12.76",
			Demand{Rate: 100, Growth: 0.25, BurstIndex: 4}, at(10, 2, 1.1), 14, 28, 30.80, 269808, 0.2484, 0.868746, 0.868746, 137.762 / 130, 0},
		{"bought: 28,000 over 4 years, and 0.7 x 1.8 x 1.3 kW at 0.10",
			Demand{Rate: 40, Headroom: 0.2, Spare: 1}, priced(20, 1, Tariff{Purchase: 28000, Years: 4, PUE: 1.3, PowerPrice: 0.1}),
			4, 4, 3.85, 33739.55, 0.1070, 0.999996, 0.999408, 40.0 / 60, 0},
		{"reserved, though a spot price is there",
			Demand{Rate: 40, Spare: 1}, priced(20, 1, Tariff{OnDemand: 3, Reserved: 2.1, Spot: 1.4, Basis: Reserved}), 3, 3, 6.30, 55188, 0.175, 0.999702, 0.999702, 1, 0},
		{"17 x 4 at 1.40 are cheaper than 5 x 8 at 2.50",
			Demand{Rate: 100}, []Offer{offer(20, 8, 2.5), offer(6, 4, 1.4)}, 17, 68, 95.20, 833952, 1.0578, 0.842943, 0.842943, 100.0 / 96, 0},
		{"one request a day: one and a spare",
			Demand{Rate: 1.0 / 86400, Headroom: 0.2, Spare: 1}, at(5, 4, 2.99), 2, 8, 23.92, 209539.20, 2296320, 0.9999, 0.9999, 1.0 / 86400 / 5, 0},
	} {
		p := solve(t, tc.demand, tc.offers...)
		if p.Fleet.Instances != tc.instances || p.Fleet.GPUs != tc.gpus {
			t.Errorf("%s: %d instances of %d GPUs, want %d of %d", tc.name, p.Fleet.Instances, p.Fleet.GPUs, tc.instances, tc.gpus)
		}
		near := func(what string, got, want, tolerance float64) {
			t.Helper()
			if !(math.Abs(got-want) <= tolerance) {
				t.Errorf("%s: %s %.6f, want %.6f", tc.name, what, got, want)
			}
		}
		load := func(u *float64) float64 {
			if u == nil {
				return 0
			}
			return *u
		}
		near("an hour", *p.Cost.PerHour, tc.hour, 0.005)
		near("a year", *p.Cost.PerYear, tc.year, 0.005)
		near("a million output tokens", *p.Cost.PerMillionOutputTokens, tc.output, 0.00005+1e-7*tc.output)
		near("availability", p.Fleet.Availability.Planned, tc.planned, 1e-6)
		near("availability with headroom", p.Fleet.Availability.Loaded, tc.loaded, 1e-6)
		near("an instance lost", load(p.Fleet.AfterLoss), tc.lost, 1e-5)
		near("a zone lost", load(p.Fleet.AfterZoneLoss), tc.zone, 1e-9)
	}
}

// 100 requests/s and 20 % headroom over 10 take 12 instances, a spare 13. Without the
// headroom they are 11, without the spare 12, and by the likely rate of 10.5 also 13: 11.4
// is 12 and a spare. The lowest list is 2 of 2.50.
func TestDrivers(t *testing.T) {
	o := offer(10, 1, 2.5)
	o.Listed = &ListPrices{Low: 2, High: 3}
	p := solve(t, Demand{Rate: 100, Headroom: 0.2, Spare: 1}, o)
	want := []Driver{{Share: 0.2, GPUs: 0}, {Share: 2.0 / 13, GPUs: 2}, {Share: 1.0 / 13, GPUs: 1}}
	if len(p.Drivers) != len(want) {
		t.Fatalf("%+v", p.Drivers)
	}
	for i, d := range p.Drivers {
		if math.Abs(d.Share-want[i].Share) > 1e-9 || d.GPUs != want[i].GPUs || math.Abs(*d.PerHour-32.5*want[i].Share) > 1e-9 {
			t.Errorf("%+v, want %+v", d, want[i])
		}
	}
	if p = solve(t, Demand{Rate: 100}, offer(5.11199, 1, 2.5)); !strings.Contains(p.Drivers[0].What, "5.111 requests/s") {
		t.Errorf("the safe rate is rounded up: %s", p.Drivers[0].What)
	}
}

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"planner/internal/list"
)

// Tariff is what one GPU costs for each way to pay; a price of 0 is unknown.
type Tariff struct {
	// OnDemand, Reserved and Spot are in US dollars per hour for a rented GPU, including its share of the
	// server and its power.
	OnDemand, Reserved, Spot float64
	// Purchase is the price of one GPU with its share of the server and the network, written off in equal parts
	// over Years.
	Purchase, Years float64
	// PowerPrice is in US dollars per kWh, Hosting in US dollars per month and kW that the servers draw.
	// Renting includes both.
	PowerPrice, Hosting float64
	// PUE is the facility's power over that of its servers, and Watts is what a GPU draws with its share of the
	// server.
	PUE, Watts float64
	// Basis is the way to pay that the plan uses, "" for the first with a price, and Source says where the
	// prices come from, with a date.
	Basis, Source string
}

// The ways to pay for GPUs, as named in files.
const (
	OnDemand = "on_demand"
	Reserved = "reserved_1y"
	Spot     = "spot"
	Purchase = "purchase"
)

// Ways lists the ways to pay in a plan's order of preference.
func Ways() []string { return []string{OnDemand, Reserved, Purchase, Spot} }

// Hours per year and month, for converting prices.
const (
	HoursPerYear  = 8760.0
	hoursPerMonth = HoursPerYear / 12
)

// Defaults: years over which a purchase is written off, and the facility's power over that of its servers.
const (
	usualYears = 4
	usualPUE   = 1.3
)

// serverShare is what a server draws besides its GPUs, over their thermal design power: servers of eight are
// rated at 10.2 kW (H100, 5.6 kW of GPUs), 14.3 kW (B200, 8 kW) and 6.5 kW (A100, 3.2 kW).
const serverShare = 0.8

// Term is one way to pay for a GPU.
type Term struct {
	Name       string  `json:"name"`             // on_demand, reserved_1y, spot or purchase
	PerGPUHour float64 `json:"usd_per_gpu_hour"` // in all
	// Capital, Power and Hosting are the parts of the cost of a bought GPU.
	Capital float64 `json:"usd_capital_per_gpu_hour,omitempty"`
	Power   float64 `json:"usd_power_per_gpu_hour,omitempty"`
	Hosting float64 `json:"usd_hosting_per_gpu_hour,omitempty"`
	// By says where the price comes from.
	By string `json:"priced_by,omitempty"`
}

// ListPrices are a catalog's prices of one GPU for an hour, in US dollars; 0 if unknown.
type ListPrices struct {
	Low  float64 `json:"usd_on_demand_low,omitempty"`  // the lowest list price on demand, per GPU and hour
	High float64 `json:"usd_on_demand_high,omitempty"` // the highest
	By   string  `json:"on_demand_by,omitempty"`       // whose prices these are, with dates
	// Rented is for three years; OwnedLow and OwnedHigh are estimates of owners' costs, for large fleets and
	// for small ones.
	Rented    float64 `json:"usd_rented_3y,omitempty"`
	OwnedLow  float64 `json:"usd_owned_low,omitempty"`
	OwnedHigh float64 `json:"usd_owned_high,omitempty"`
	TermsBy   string  `json:"terms_by,omitempty"` // the source of rents and estimates
}

// Pricing is what one GPU costs and draws.
type Pricing struct {
	// PricePerGPUHour is the price that a plan uses, in US dollars; 0 is unknown unless PricedBy is given.
	PricePerGPUHour float64 `json:"usd_per_gpu_hour,omitempty"`
	// PricedBy says where it comes from, with its date; PricedOn is that date alone, as 2026-03-31, if the
	// catalog has one.
	PricedBy string `json:"priced_by,omitempty"`
	PricedOn string `json:"priced_on,omitempty"`
	// Terms are all known ways to pay, the plan's own first.
	Terms  []Term      `json:"terms,omitempty"`
	Listed *ListPrices `json:"list_prices,omitempty"`
	// Watts is the power of one GPU under load and ServerWatts its share of the server's other power, 0 if
	// unknown; PUE is the facility's power over both.
	Watts       float64 `json:"watts_per_gpu,omitempty"`
	ServerWatts float64 `json:"server_watts_per_gpu,omitempty"`
	PUE         float64 `json:"pue,omitempty"`
	// PowerPrice is in US dollars per kWh, 0 if unknown.
	PowerPrice float64 `json:"usd_per_kwh,omitempty"`
}

// Pricing returns what a GPU with some thermal design power costs by the tariff.
func (t Tariff) Pricing(designWatts float64) Pricing {
	p := Pricing{Watts: designWatts, ServerWatts: serverShare * designWatts, PUE: cmp.Or(t.PUE, usualPUE), PowerPrice: t.PowerPrice}
	if t.Watts > 0 {
		p.Watts, p.ServerWatts = min(designWatts, t.Watts), max(t.Watts-designWatts, 0)
		if designWatts == 0 {
			p.Watts, p.ServerWatts = t.Watts, 0
		}
	}
	ways := list.Map(Ways(), func(name string) Term { return t.term(name, &p) })
	p.Terms = list.Filter(ways, func(term Term) bool { return term.PerGPUHour > 0 })
	if i := slices.IndexFunc(p.Terms, func(term Term) bool { return term.Name == t.Basis }); i > 0 {
		p.Terms = slices.Insert(slices.Delete(slices.Clone(p.Terms), i, i+1), 0, p.Terms[i])
	}
	if len(p.Terms) > 0 {
		p.PricePerGPUHour, p.PricedBy = p.Terms[0].PerGPUHour, p.Terms[0].By
	}
	return p
}

// term returns the price of a GPU for one way to pay; 0 if unknown.
func (t *Tariff) term(name string, p *Pricing) Term {
	rented := map[string]float64{OnDemand: t.OnDemand, Reserved: t.Reserved, Spot: t.Spot}[name]
	if name != Purchase || t.Purchase == 0 {
		return Term{Name: name, PerGPUHour: rented, By: t.Source}
	}
	years := cmp.Or(t.Years, usualYears)
	term := Term{Name: name, Capital: t.Purchase / (years * HoursPerYear), Power: p.KW() * t.PowerPrice,
		Hosting: (p.Watts + p.ServerWatts) / 1000 * t.Hosting / hoursPerMonth}
	term.PerGPUHour = term.Capital + term.Power + term.Hosting
	term.By = fmt.Sprintf("%.6g USD written off over %g years, %.3g kW at PUE %.3g and %.4g USD per kWh, hosting %.4g USD per kW and month; %s",
		t.Purchase, years, (p.Watts+p.ServerWatts)/1000, p.PUE, t.PowerPrice, t.Hosting, t.Source)
	return term
}

// Priced reports whether a price is known; a price of 0 is if its source is given, as for hardware that is paid
// for.
func (p *Pricing) Priced() bool { return p.PricePerGPUHour > 0 || p.PricedBy != "" }

// KW is the facility's power for one GPU; 0 if unknown.
func (p *Pricing) KW() float64 { return (p.Watts + p.ServerWatts) / 1000 * p.PUE }

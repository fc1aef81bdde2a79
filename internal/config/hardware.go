package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"planner/model"
	"planner/plan"
)

// GPU is a type of GPU with its price.
type GPU struct {
	Hardware model.Hardware
	plan.Pricing
}

// byConfiguration is the source of prices given by the user.
const byConfiguration = "the configuration"

// eachGPU is one value for all GPUs, or one per GPU.
type eachGPU[T any] struct {
	all   T
	given bool
	each  map[string]T
}

// of returns the value for a GPU by its catalog name.
func (e *eachGPU[T]) of(name string) (T, bool) {
	if e.given {
		return e.all, true
	}
	x, ok := e.each[name]
	return x, ok
}

// perGPU is one value for all GPUs if single says so, otherwise a table with one per GPU.
func perGPU[T any](k codec[T], single func(any) bool) codec[eachGPU[T]] {
	each := tableOf(k)
	return codec[eachGPU[T]]{func(n input) (p eachGPU[T]) {
		if p.given = single(n.value); p.given {
			p.all = k.read(n.only())
		} else {
			p.each = each.read(n)
		}
		return p
	}, func(p eachGPU[T]) string {
		switch {
		case p.given:
			return k.print(p.all)
		case len(p.each) > 0:
			return each.print(p.each)
		}
		return ""
	}, true, nil}
}

// hourlyPrices are prices per GPU hour; tariffs are all ways to pay for a GPU.
func hourlyPrices() codec[eachGPU[float64]] {
	return perGPU(numberIn(atLeast(0)), func(v any) bool { return !isTable(v) })
}

func tariffs() codec[eachGPU[plan.Tariff]] {
	return perGPU(tableWith(tariffRows), func(v any) bool {
		table, _ := v.(map[string]any)
		return !slices.ContainsFunc(slices.Collect(maps.Values(table)), isTable)
	})
}

func isTable(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func tariffRows(t *plan.Tariff) []tomlKey {
	price := orNothing(numberIn(above(0)))
	return []tomlKey{
		{plan.OnDemand, "", price.in(&t.OnDemand)},
		{plan.Reserved, "", price.in(&t.Reserved)},
		{plan.Spot, "", price.in(&t.Spot)},
		{plan.Purchase, "", price.in(&t.Purchase)},
		{"amortise_years", "", price.in(&t.Years)},
		{"power_usd_per_kwh", "", orNothing(numberIn(atLeast(0))).in(&t.PowerPrice)},
		{"hosting_usd_per_kw_month", "", orNothing(numberIn(atLeast(0))).in(&t.Hosting)},
		{"pue", "", orNothing(numberIn(atLeast(1).atMost(10))).in(&t.PUE)},
		{"watts_per_gpu", "", price.in(&t.Watts)},
		{"basis", "", orNothing(words(plan.Ways()...)).in(&t.Basis)},
		{"source", "", orNothing(anyWord()).in(&t.Source)},
	}
}

func (r *reader) resolveHardware(c *Config) {
	d := &c.draft
	if !r.clean("hardware") {
		return
	}
	r.checkPrices(c)
	if len(d.gpus) == 0 {
		if c.Simulated() {
			r.absent("hardware.gpu", `is missing, want a catalog name such as "H100 SXM" (planner catalog gpus lists them), or a list to compare`)
		} else if d.need.Limit && d.need.Engine {
			why := "there is no roofline and no prior"
			if r.given("hardware.price") || r.given("hardware.price_per_gpu_hour") {
				why += ", and the price that is given has no effect"
			}
			r.warn("hardware: no gpu is given, so %s", why)
		}
		return
	}
	var written []string
	for _, name := range d.gpus {
		hw, err := r.catalog.GPU(name)
		if err != nil {
			r.element("hardware.gpu", name).refuse("%v; want a name from planner catalog gpus", err)
			continue
		}
		if !slices.Contains(written, hw.Name) {
			g := GPU{hw, c.PricingOf(hw)}
			r.warnIf(!g.Priced(), "no price is known for %s: costs are null; give hardware.price or hardware.price_per_gpu_hour", hw.Name)
			written, c.GPUs = append(written, hw.Name), append(c.GPUs, g)
		}
	}
	d.gpus = written
	priced := slices.ContainsFunc(c.GPUs, func(g GPU) bool { return g.Priced() })
	r.at("demand.max_usd_per_hour").refuseIf(d.need.Demand && d.need.Engine && len(c.GPUs) > 0 && c.Demand.MaxUSDPerHour > 0 && !priced,
		"cannot be held, as no price is known for %s; give hardware.price or hardware.price_per_gpu_hour", strings.Join(written, ", "))
}

func (r *reader) checkPrices(c *Config) {
	const twice = "prices %s a second time, want one price a GPU"
	nameGPUs(r, "hardware.price_per_gpu_hour", c.draft.price.each, twice)
	nameGPUs(r, "hardware.price", c.draft.tariff.each, twice)
	if !r.given("hardware.price") {
		return
	}
	for key, now := range map[string]string{"price_per_gpu_hour": plan.OnDemand, "power_price_per_kwh": "power_usd_per_kwh"} {
		key = "hardware." + key
		r.at(key).refuseIf(r.given(key), "is given together with hardware.price, want one of the two: there it is %s", now)
	}
	for name, t := range c.draft.tariff.each {
		r.checkBasis(join("hardware.price", name), &t)
	}
	if c.draft.tariff.given {
		r.checkBasis("hardware.price", &c.draft.tariff.all)
	}
}

func (r *reader) checkBasis(path string, t *plan.Tariff) {
	prices := map[string]float64{plan.OnDemand: t.OnDemand, plan.Reserved: t.Reserved, plan.Spot: t.Spot, plan.Purchase: t.Purchase}
	r.at(join(path, "basis")).refuseIf(t.Basis != "" && prices[t.Basis] == 0, "is %q, of which no price is given; want %s beside it, or another basis", t.Basis, t.Basis)
}

// nameGPUs replaces GPU names in a table by the catalog's. It refuses two names of one GPU with the message
// twice.
func nameGPUs[T any](r *reader, key string, each map[string]T, twice string) {
	written := maps.Clone(each)
	clear(each)
	for _, name := range slices.Sorted(maps.Keys(written)) {
		n := r.at(join(key, name))
		hw, err := r.catalog.GPU(name)
		if err != nil {
			n.refuse("%v; want a name from planner catalog gpus", err)
			continue
		}
		_, named := each[hw.Name]
		n.refuseIf(named, twice, hw.Name)
		each[hw.Name] = written[name]
	}
}

// PricingOf returns what a GPU costs and draws: as configured, or else at the catalog's list price.
func (c *Config) PricingOf(hw model.Hardware) plan.Pricing {
	t, _ := c.draft.tariff.of(hw.Name)
	t.Source = cmp.Or(t.Source, byConfiguration)
	t.PowerPrice = cmp.Or(t.PowerPrice, c.PowerPrice)
	if c.Fleet.Nodes.SpotMTBF > 0 && t.Spot > 0 { // reclaimable nodes are paid at the spot price
		t.Basis = cmp.Or(t.Basis, plan.Spot)
	}
	flat, given := c.draft.price.of(hw.Name)
	switch none := t.OnDemand+t.Reserved+t.Spot+t.Purchase == 0; {
	case given:
		t.OnDemand = flat
	case none:
		t.OnDemand, t.Source = hw.Price.USDPerHour, hw.Price.String()
	}
	p := t.Pricing(hw.TDP)
	switch {
	case given:
		p.PricedBy = byConfiguration // even if the price is 0
	case p.PricedBy == hw.Price.String():
		p.PricedOn = hw.Price.Date
	}
	p.Listed = listPrices(hw.Price)
	return p
}

// listPrices returns the catalog's prices; nil if it has none. The range of list prices is omitted if the list
// price, such as a user's own, lies outside it.
func listPrices(l model.Price) *plan.ListPrices {
	all := plan.ListPrices{Rented: l.Rented, OwnedLow: l.OwnedLow, OwnedHigh: l.OwnedHigh, TermsBy: l.TermsBasis}
	if l.Low <= l.USDPerHour && l.USDPerHour <= l.High {
		all.Low, all.High, all.By = l.Low, l.High, l.String()
	}
	if all.High+all.Rented+all.OwnedHigh == 0 {
		return nil
	}
	return &all
}

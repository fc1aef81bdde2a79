package config

import (
	"fmt"
	"maps"
	"slices"

	"planner/model"
)

// GPU is a kind of GPU to run on, with its price.
type GPU struct {
	Hardware model.Hardware
	// USDPerHour is the price of one GPU for an hour. It means something only if
	// Priced: nobody's price is not a price of 0.
	USDPerHour float64
	Priced     bool
	// PricedBy says where the price comes from, with its date.
	PricedBy string
}

// byConfiguration is where a price comes from that the user gave.
const byConfiguration = "the configuration"

// hardwareText is [hardware] as it was written.
type hardwareText struct {
	gpus  []string
	price prices
	power float64
}

// prices is one price for every GPU, or one a GPU.
type prices struct {
	all   float64
	given bool
	each  map[string]float64
}

// hardwareKeys are the keys of [hardware].
func hardwareKeys() []key {
	return []key{
		{"hardware.gpu", "a catalog name, or a list to compare", func(d *draft) value { return names(&d.hardware.gpus) }},
		{"hardware.price_per_gpu_hour", `US dollars, or one a GPU: { "H100 SXM" = 2.99 }; by default the catalog's dated list price`, func(d *draft) value {
			return priceValue{&d.hardware.price}
		}},
		{"hardware.power_price_per_kwh", "US dollars", func(d *draft) value { return float{&d.hardware.power, nonNegative} }},
	}
}

// priceValue reads prices.
type priceValue struct{ p *prices }

func (v priceValue) take(n node) {
	table, ok := n.value.(map[string]any)
	if !ok {
		if x, ok := readFloat(n.only(), nonNegative); ok {
			v.p.all, v.p.given = x, true
		}
		return
	}
	v.p.each = map[string]float64{}
	for _, name := range n.r.children(n.path, table) {
		c, _ := n.child(name)
		if x, ok := readFloat(c, nonNegative); ok {
			v.p.each[name] = x
		}
	}
}

func (v priceValue) text() string {
	switch {
	case v.p.given:
		return number(v.p.all)
	case len(v.p.each) > 0:
		return braces(slices.Sorted(maps.Keys(v.p.each)), func(name string) string { return number(v.p.each[name]) })
	}
	return ""
}

// resolveHardware finds the GPUs and their prices.
func (r *reader) resolveHardware(d *draft, need Need) []GPU {
	if !r.clean("hardware") {
		return nil
	}
	if len(d.hardware.gpus) == 0 {
		if need.simulates(d) {
			r.absent("hardware.gpu", `is missing, want a catalog name such as "H100 SXM" (planner catalog gpus lists them), or a list to compare`)
		} else if need.Limit && need.Engine != NoEngine {
			r.warn("hardware: no gpu is given, so there is no roofline and no prior")
		}
		return nil
	}
	r.namePrices(d)
	var gpus []GPU
	var written []string
	for _, name := range d.hardware.gpus {
		hw, err := r.catalog.GPU(name)
		if err != nil {
			r.element("hardware.gpu", name).refuse("%v; want a name from planner catalog gpus", err)
			continue
		}
		if !slices.Contains(written, hw.Name) {
			written = append(written, hw.Name)
			gpus = append(gpus, r.priced(d, hw))
		}
	}
	d.hardware.gpus = written
	return gpus
}

// namePrices replaces the names in the price table by the catalog's.
func (r *reader) namePrices(d *draft) {
	each := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(d.hardware.price.each)) {
		n := r.at(join("hardware.price_per_gpu_hour", name))
		hw, err := r.catalog.GPU(name)
		switch _, twice := each[hw.Name]; {
		case err != nil:
			n.refuse("%v; want a name from planner catalog gpus", err)
		case twice:
			n.refuse("prices %s a second time, want one price a GPU", hw.Name)
		default:
			each[hw.Name] = d.hardware.price.each[name]
		}
	}
	if d.hardware.price.each != nil {
		d.hardware.price.each = each
	}
}

// priced gives a GPU its price: the configuration's, or the catalog's list price.
func (r *reader) priced(d *draft, hw model.Hardware) GPU {
	g := GPU{Hardware: hw}
	each, ok := d.hardware.price.each[hw.Name]
	switch {
	case d.hardware.price.given:
		g.USDPerHour, g.Priced, g.PricedBy = d.hardware.price.all, true, byConfiguration
	case ok:
		g.USDPerHour, g.Priced, g.PricedBy = each, true, byConfiguration
	case hw.Price.USDPerHour > 0:
		g.USDPerHour, g.Priced, g.PricedBy = hw.Price.USDPerHour, true, listPrice(hw.Price)
	default:
		r.warn("no price is known for %s: costs are null; give hardware.price_per_gpu_hour", hw.Name)
	}
	return g
}

// listPrice says whose list a price is from, and when that was.
func listPrice(p model.Price) string {
	if p.Date == "" {
		return p.Basis
	}
	return fmt.Sprintf("%s (%s)", p.Basis, p.Date)
}

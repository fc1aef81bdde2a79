package config

import (
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

// prices is one price for every GPU, or one a GPU.
type prices struct {
	all   float64
	given bool
	each  map[string]float64
}

func perGPU() codec[prices] {
	price := numberIn(atLeast(0))
	each := tableOf(price)
	return codec[prices]{func(n input) (p prices, ok bool) {
		if _, isTable := n.value.(map[string]any); isTable {
			p.each, ok = each.read(n)
			return p, ok
		}
		p.given = true
		p.all, ok = price.read(n.only())
		return p, ok
	}, func(p prices) string {
		switch {
		case p.given:
			return price.print(p.all)
		case len(p.each) > 0:
			return each.print(p.each)
		}
		return ""
	}, true}
}

func (r *reader) resolveHardware(c *Config) {
	d, need := &c.draft, c.need
	if !r.clean("hardware") {
		return
	}
	if len(d.gpus) == 0 {
		if c.Simulated() {
			r.absent("hardware.gpu", `is missing, want a catalog name such as "H100 SXM" (planner catalog gpus lists them), or a list to compare`)
		} else if need.Limit && need.Engine != NoEngine {
			r.warn("hardware: no gpu is given, so there is no roofline and no prior")
		}
		return
	}
	r.namePrices(d)
	var written []string
	for _, name := range d.gpus {
		hw, err := r.catalog.GPU(name)
		if err != nil {
			r.element("hardware.gpu", name).refuse("%v; want a name from planner catalog gpus", err)
			continue
		}
		if !slices.Contains(written, hw.Name) {
			written = append(written, hw.Name)
			c.GPUs = append(c.GPUs, r.priced(d, hw))
		}
	}
	d.gpus = written
}

// namePrices replaces the names in the price table by the catalog's.
func (r *reader) namePrices(d *draft) {
	each := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(d.price.each)) {
		n := r.at(join("hardware.price_per_gpu_hour", name))
		hw, err := r.catalog.GPU(name)
		switch _, twice := each[hw.Name]; {
		case err != nil:
			n.refuse("%v; want a name from planner catalog gpus", err)
		case twice:
			n.refuse("prices %s a second time, want one price a GPU", hw.Name)
		default:
			each[hw.Name] = d.price.each[name]
		}
	}
	if d.price.each != nil {
		d.price.each = each
	}
}

// priced gives a GPU its price: the configuration's, or the catalog's list price.
func (r *reader) priced(d *draft, hw model.Hardware) GPU {
	g := GPU{Hardware: hw}
	each, ok := d.price.each[hw.Name]
	switch {
	case d.price.given:
		g.USDPerHour, g.Priced, g.PricedBy = d.price.all, true, byConfiguration
	case ok:
		g.USDPerHour, g.Priced, g.PricedBy = each, true, byConfiguration
	case hw.Price.USDPerHour > 0:
		g.USDPerHour, g.Priced, g.PricedBy = hw.Price.USDPerHour, true, hw.Price.String()
	default:
		r.warn("no price is known for %s: costs are null; give hardware.price_per_gpu_hour", hw.Name)
	}
	return g
}

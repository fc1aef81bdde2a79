package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/plan"
	"planner/sweep/measure"
)

// uneconomical is the multiple of the cheapest cost above which an offer is only named.
const uneconomical = 10

// addFinance tabulates what a buyer compares: one row per GPU with its best set, in order of cost.
func addFinance(d *Document, title string, all []plan.Alternative) {
	tab := table(wrapped("GPU"), right("GPUs"), extra(right("inst.", "kW")), right("$ an hour", "a month", "a year", "the job"),
		extra(right("$/M in")), right("$/M out", "$/M all", "times"))
	var others, dear []string
	rows := eachGPU(all)
	for i := range rows {
		a := &rows[i]
		times := timesOf(a, &all[0])
		switch {
		case !a.Feasible:
			others = append(others, infeasibleFact(a))
			if a.Fleet.GPUs == 0 {
				continue
			}
		case times > uneconomical:
			dear = append(dear, fmt.Sprintf("%s%s (%s, %s times)", placed(&a.Offer), mark(&a.Offer), plural(a.Fleet.GPUs, "GPU"), number(times, 2)))
			continue
		case a.Reason.Note.Kind == note.Unpriced:
			others = append(others, placed(&a.Offer)+": "+a.Reason.Text)
		}
		tone, c := either(a.Reason.Note.Kind == note.Chosen, Strong, Plain), &a.Cost
		job := either(c.Job != nil, amount(c.Money()), unknown)
		tab.row(Cell{placed(&a.Offer) + mark(&a.Offer), tone}, a.Fleet.GPUs, a.Fleet.Instances, kilowatts(a.Fleet.KW), Cell{amount(c.PerHour), tone},
			shortAmount(c.PerMonth), shortAmount(c.PerYear), job, amount(c.PerMillionInputTokens), Cell{amount(c.PerMillionOutputTokens), tone},
			amount(c.PerMillionTokens), fixed(times, 2))
	}
	tab = tab.known()
	others = append(others, behind(fmt.Sprintf("not economical, at more than %d times the cheapest: ", uneconomical), strings.Join(dear, "; ")))
	d.section(title, tab, Bullets{Items: others})
	addMarked(d, rows)
	has := func(name string) bool {
		return slices.ContainsFunc(tab.Columns, func(c Column) bool { return c.Name == name })
	}
	if !has("$ an hour") {
		return
	}
	when := either(all[0].Cost.Job != nil, "for the job", "at the planned load day and night")
	d.add(Paragraph{Text: where(has("$/M all"), "$/M in, out and all are the same money, divided by a million tokens of the prompts alone, of the answers alone, and of both, "+when+
		": never add them. ") + "A month has 730 hours." + where(has("kW"), " kW is what the building is built for: GPUs at their rated power, servers and cooling."), Tone: Quiet})
}

// mark marks an offer whose rate has no calibration from a served run of the like.
func mark(o *plan.Offer) string { return where(o.Warnings.Has(note.Uncalibrated), " *") }

// addMarked explains the mark if any offer in a table has it.
func addMarked(d *Document, all []plan.Alternative) {
	marked := slices.ContainsFunc(all, func(a plan.Alternative) bool { return a.Fleet.GPUs > 0 && mark(&a.Offer) != "" })
	d.add(Paragraph{where(marked, "* no served run of the like is among those that the constants were calibrated on: times may be further off than without the mark"), Quiet})
}

// eachGPU returns the first offer of each GPU, in the order of all.
func eachGPU(all []plan.Alternative) []plan.Alternative {
	byGPU := list.Groups(all, func(a plan.Alternative) string { return gpuName(&a.Offer) })
	return list.Map(byGPU, func(of []plan.Alternative) plan.Alternative { return of[0] })
}

func gpuName(o *plan.Offer) string { return cmp.Or(o.GPU, o.Knobs.GPU, "GPU") }

// placed returns the GPU and the parallelism of an instance: "H100 SXM, TP 4".
func placed(o *plan.Offer) string {
	name := gpuName(o)
	for _, n := range measure.KnobTable {
		if text := knobText(n, o.Knobs); n.Placement && n.Name != "gpu" && text != "" && text != "1" && text != "false" && text != "no" {
			name += ", " + n.Short + " " + text
		}
	}
	return name
}

// timesOf returns an offer's cost relative to the cheapest; NaN if either is unknown or the cheapest is free.
func timesOf(a, cheapest *plan.Alternative) float64 {
	if a.Cost.Money() == nil || costless(&cheapest.Cost) {
		return math.NaN()
	}
	return *a.Cost.Money() / *cheapest.Cost.Money()
}

// infeasibleFact says why a GPU is not feasible, and which limit it could meet.
func infeasibleFact(a *plan.Alternative) string {
	what, why := "not feasible", a.Reason.Text
	switch {
	case a.Undecided:
		what = "undecided"
	case a.Fleet.GPUs > 0:
		what = "beyond a limit of the demand"
	}
	if i := a.Offer.Idle; i != nil && i.Latency > 0 {
		why = fmt.Sprintf("an idle instance takes %s at %s of the %s of %s; the smallest feasible limit is %s", inUnits(i.Latency), i.Stat,
			limit(milliseconds(i.Limit)), boundName(i.Bound), latencyAbove(milliseconds(i.Feasible)))
	}
	return placed(&a.Offer) + ": " + what + ": " + why
}

func kilowatts(kw float64) string {
	if kw == 0 {
		return unknown
	}
	return fixed(kw, max(0, min(1, 2-int(math.Log10(kw)))))
}

// amount prints dollars without the sign, for columns that name the unit.
func amount(v *float64) string { return strings.TrimPrefix(dollars(v), "$") }

// shortAmount prints whole dollars, and three digits from a million on: 1.78M.
func shortAmount(v *float64) string {
	switch {
	case v == nil || *v < 1e3:
		return amount(v)
	case stat.Rounded(*v, 3) >= 1e9:
		return number(*v/1e9, 3) + "B"
	case stat.Rounded(*v, 3) >= 1e6:
		return number(*v/1e6, 3) + "M"
	}
	return fixed(*v, 0)
}

// wayNames are the ways to pay, for readers.
var wayNames = map[string]string{plan.OnDemand: "on demand", plan.Reserved: "reserved for a year", plan.Spot: "spot", plan.Purchase: "bought"}

func addWays(d *Document, p *plan.Plan) {
	tab := table(left("paid"), right("a GPU-hour", "per hour"), extra(right("per month")), right("per year", "the job", "$/M output", "change"))
	for i, w := range p.Cost.Ways {
		tone := either(i == 0, Strong, Plain)
		own, other := *p.Cost.Money(), *w.Money()
		change := where(own > 0 && own != other, signedShare(other/own-1))
		job := either(w.Job != nil, dollars(w.Money()), unknown)
		tab.row(Cell{wayNames[w.Name], tone}, money(p.Offer.Terms[i].PerGPUHour), Cell{dollars(w.PerHour), tone}, dollars(w.PerMonth),
			dollars(w.PerYear), job, dollars(w.PerMillionOutputTokens), change)
	}
	d.section("Ways to pay for the same instances", tab.known())
	addPriced(d, &p.Offer)
}

// addPriced says whose price an offer has.
func addPriced(d *Document, o *plan.Offer) {
	d.add(Paragraph{behind(fmt.Sprintf("%s per %s and hour: ", money(o.PricePerGPUHour), gpuName(o)), o.PricedBy), Quiet})
}

func addPrices(d *Document, p *plan.Plan) {
	o := &p.Offer
	var items []string
	add := func(format string, args ...any) { items = append(items, fmt.Sprintf(format, args...)) }
	for _, t := range o.Terms {
		switch t.Name {
		case plan.Purchase:
			items = append(items, boughtFact(&t))
		case plan.Spot:
			add("spot capacity may be withdrawn at any time; the instances are not sized for that")
		}
	}
	fleet := func(usd float64) string { return money(usd * float64(p.Fleet.GPUs)) }
	if l := o.Listed; l != nil {
		if l.High > l.Low && l.Low > 0 {
			add("list prices on demand go from %s to %s a GPU-hour, these instances from %s to %s an hour: %s",
				money(l.Low), money(l.High), fleet(l.Low), fleet(l.High), l.By)
		}
		if l.Rented > 0 && l.OwnedHigh > 0 {
			add("estimates of others: rented for three years %s a GPU-hour, owned in a large fleet %s, in a small one %s; these instances %s, %s and %s an hour: %s",
				money(l.Rented), money(l.OwnedLow), money(l.OwnedHigh), fleet(l.Rented), fleet(l.OwnedLow), fleet(l.OwnedHigh), l.TermsBy)
		}
	}
	if e := p.Cost.EnergyPerHour; e != nil {
		of := either(p.Evidence.Power != nil && !o.Bought(), "the modelled power "+p.Loaded(), "rated power")
		add("energy: %s per hour at %s per kWh and %s", money(*e), money(o.PowerPrice), of)
	}
	if w := p.Evidence.Power; w != nil && p.Fleet.KW > 0 {
		add("%s these instances draw about %s kW (within %s), as modelled, of %s rated",
			p.Loaded(), kilowatts(w.FleetKW), percent(w.RelativeError), kilowatts(p.Fleet.KW))
	}
	d.section("Prices and power", Bullets{Items: items})
}

// boughtFact breaks down the price of a bought GPU and names what is not included.
func boughtFact(t *plan.Term) string {
	parts := said(money(t.Capital)+" of capital", where(t.Power > 0, money(t.Power)+" of power"), where(t.Hosting > 0, money(t.Hosting)+" of hosting"))
	missing := said(where(!(t.Power > 0), "power (hardware.price.power_usd_per_kwh)"), where(!(t.Hosting > 0), "hosting (hardware.price.hosting_usd_per_kw_month)"))
	return "bought, a GPU-hour is " + strings.Join(parts, " and ") + behind(", without ", strings.Join(missing, " and ")) + ": " + t.By
}

// costless reports whether there is no cost of which to take shares.
func costless(c *plan.Cost) bool { return c.Money() == nil || *c.Money() == 0 }

func driverTitle(p *plan.Plan) string {
	return fmt.Sprintf("Assumptions that carry more than %s of the %s", percent(plan.LargeShare), either(costless(&p.Cost.Cost), "GPUs", "cost"))
}

func driverItems(p *plan.Plan) (items []string) {
	for _, x := range p.Drivers {
		if x.Share < plan.LargeShare {
			continue
		}
		adds := said(where(x.GPUs > 0, plural(x.GPUs, "GPU")), told(x.PerHour, func(usd float64) string { return money(usd) + " per hour" }))
		items = append(items, fmt.Sprintf("%s (%s): %s", percent(x.Share), strings.Join(adds, ", "), x.What))
	}
	return items
}

// survival says how loaded a fleet is, what it survives, and its availability.
func survival(p *plan.Plan) Facts {
	f := &p.Fleet
	left := func(share *float64, lost string) string {
		return told(share, func(v float64) string {
			return fmt.Sprintf(", %s with %s lost", percent(v), lost) + where(v > 1, ", which is more than the others carry")
		})
	}
	over := func(share *float64) bool { return share != nil && *share > 1 }
	load := percent(f.Utilization) + " of the safe rate" + left(f.AfterLoss, "one instance") + left(f.AfterZoneLoss, fmt.Sprintf("one of %d zones", p.Demand.Zones))
	a, tone := f.Availability, either(over(f.AfterLoss) || over(f.AfterZoneLoss), Doubt, Plain)
	return Facts{{"fleet load", load, tone}, {Label: "availability", Text: fmt.Sprintf("%s for the planned load, %s for that and its headroom, if each instance is up %s of the time%s, and fails by itself",
		availability(a.Planned), availability(a.Loaded), percent(a.OfInstance), where(a.Assumed, ", as is assumed"))}}
}

// availability prints a probability near 1 with all its nines and one more digit, rounded down.
func availability(p float64) string {
	const most = 7
	switch {
	case p >= 1-1e-9:
		return "over 99.9999999 %"
	case p < 0.01:
		return "less than 1 %"
	}
	digits := min(max(int(-math.Log10(1-p))-1, 0), most)
	return down(100*p, digits) + " %"
}

// addSensitivity tabulates a fleet's cost if assumptions turn out otherwise, as a tornado: the largest change
// first, with a bar.
func addSensitivity(d *Document, changes []plan.Change, gpus int, cost *plan.Cost) {
	paid := either(cost.Job != nil, "the job", "per hour")
	tab := table(wrapped("if"), right("GPUs", paid, "change"), left(""))
	of := "cost"
	if costless(cost) {
		of = either(cost.Job != nil, "GPU hours", "number of GPUs")
	}
	bars := &Bars{Name: "sensitivity", Title: "If it turns out otherwise: change of the " + of}
	var cannot, same []string
	approximate := false
	for _, c := range changes {
		if c.GPUs == 0 {
			cannot = append(cannot, c.What+": "+c.Reason.Text)
			continue
		}
		moved := c.Share(gpus, cost)
		what := c.What
		if c.Approximate {
			what, approximate = what+" *", true
		}
		if math.Abs(moved) < 1e-9 {
			same = append(same, what)
			continue
		}
		tab.row(what, c.GPUs, dollars(c.Money()), signedShare(moved), Cell{bar(moved), Quiet})
		bars.Changes, tab.Bars = append(bars.Changes, moved), bars
	}
	cannot = append(cannot, behind("no change: ", strings.Join(same, "; ")))
	d.section("If it turns out otherwise", tab.known(), Bullets{Items: cannot})
	d.add(Paragraph{where(approximate, "* about: the chosen instance with its settings, its safe rate moved by what short simulated runs say of the likely one, with the same doubt; "+
		"a plan for it searches anew."), Quiet})
}

// bar draws the size of a relative change, cut at a doubling.
func bar(moved float64) string {
	return strings.Repeat("#", int(math.Round(min(math.Abs(moved), 1)*20-1e-9)))
}

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/plan"
	"planner/plan/decide"
)

// pooled reports whether a plan recommends a pool per class.
func pooled(p *plan.Plan) bool {
	return p.Handover.Pools != nil && p.Handover.Pools.Recommended == plan.PoolEach
}

// fleetChoices are the fleets to choose from: those of one pool, preceded by the pools per class if
// recommended.
func fleetChoices(p *plan.Plan) []plan.Alternative {
	all := p.All()
	if pooled(p) {
		all[0].Reason = note.Text("the best of one pool for all classes").Reason()
		all = append([]plan.Alternative{p.Handover.Pools.Alternative()}, all...)
	}
	return all
}

// addPools compares a pool per class with one pool for all, whose facts become details if the former is
// recommended.
func addPools(d *Document, p *plan.Plan, b *decide.Background) {
	pools, facts := p.Handover.Pools, headlines(p, b)
	if pooled(p) {
		d.Title = poolsTitle(pools, p.Demand) + "; one pool for all: " + poolOf(p)
		addFinance(d, costTitle(p)+" in pools and in one pool", fleetChoices(p))
		for _, of := range list.Groups(pools.Each, func(pool plan.Pool) string { return gpuName(&pool.Plan.Offer) }) {
			addPriced(d, &of[0].Plan.Offer)
		}
		addPoolWays(d, pools)
		poolSections(d, pools, p)
		addPoolDrivers(d, pools)
		addTrust(d, b.Trust)
		d.detailed = true
		for _, pool := range pools.Each {
			d.section("Why "+plural(pool.Plan.Fleet.Instances, "instance")+" for "+pool.Class, Bullets{Items: fleetSteps(pool.Plan)})
		}
		d.section("One pool for all classes", Paragraph{Text: "What follows is of it. Each class has in plan.json, under pools, a plan of its own.", Tone: Quiet}, facts)
		return
	}
	d.add(facts)
	if pools != nil {
		poolSections(d, pools, p)
	}
}

func poolsTitle(pools *plan.Pools, d plan.Demand) string {
	parts := list.Map(pools.Each, func(pool plan.Pool) string { return pool.Class + " " + poolOf(pool.Plan) })
	return fmt.Sprintf("A pool for each class, %s, for %s%s: %s", plural(pools.GPUs, "GPU"), rateMeant(d.Rate, d.TraceRates),
		costing(pools.PerHour, " per hour"), strings.Join(parts, "; "))
}

// poolOf prints "8 x H100 SXM (2 instances of 4 GPUs) at $31.20".
func poolOf(p *plan.Plan) string {
	return sized(&p.All()[0])
}

func poolSections(d *Document, pools *plan.Pools, one *plan.Plan) {
	tab := table(left("pool"), extra(right("req/s")), left("instance"), extra(right("safe req/s of one")), right("instances", "GPUs", "per hour", "per year"),
		extra(right("$/M tokens", "load", "with one lost", "with a zone lost", "available")), extra(wrapped("limited by")))
	var reached *plan.Reached
	row := func(name string, p *plan.Plan, tone Tone) {
		f := &p.Fleet
		reached = &f.Availability
		tab.row(Cell{name, tone}, number(p.Demand.Rate, 4), gpus(p.Offer.GPUs, &p.Offer), safeRate(&p.Offer), f.Instances, Cell{count(f.GPUs), tone},
			Cell{dollars(p.Cost.PerHour), tone}, dollars(p.Cost.PerYear), dollars(p.Cost.PerMillionTokens), percent(f.Utilization), cmp.Or(told(f.AfterLoss, percent), unknown), cmp.Or(told(f.AfterZoneLoss, percent), unknown), availability(f.Availability.Planned), boundName(p.Offer.Binding))
	}
	recommended := pools.Recommended == plan.PoolEach
	each, all := either(recommended, Strong, Plain), either(recommended, Plain, Strong)
	if one != nil {
		row("one for all", one, all)
	}
	for _, pool := range pools.Each {
		if pool.Plan != nil {
			row(pool.Class, pool.Plan, each)
		}
	}
	if pools.GPUs > 0 {
		year := told(pools.PerHour, func(usd float64) string { return money(usd * plan.HoursPerYear) })
		tab.row(Cell{"all of these", each}, "", "", "", pools.Instances, Cell{count(pools.GPUs), each}, Cell{dollars(pools.PerHour), each}, cmp.Or(year, unknown), "", "", "", "", "", "")
	}
	d.section("One pool or one for each class", tab.known())
	if reached != nil {
		d.add(Paragraph{Text: fmt.Sprintf("Available: how often enough instances are up for the planned load, if each is up %s of the time%s, and fails by itself.",
			percent(reached.OfInstance), where(reached.Assumed, ", as is assumed")), Tone: Quiet})
	}
	d.add(Bullets{Items: []string{behind("A pool for each: ", pools.Reason.Text)}, Tone: Doubt})
	for _, pool := range pools.Each {
		if pool.Plan != nil && pool.Plan.Handover.Engine != nil {
			addStart(d, "Server flags of an instance for "+pool.Class, startOfPlan(pool.Plan, nil))
		}
	}
	if recommended {
		addSensitivity(d, pools.Sensitivity, pools.GPUs, &plan.Cost{PerHour: pools.PerHour})
	}
}

// addPoolWays is what all pools cost by each way to pay that all of them have.
func addPoolWays(d *Document, pools *plan.Pools) {
	tab := table(left("paid"), right("per hour"), extra(right("per month")), right("per year", "change"))
	for _, way := range pools.Each[0].Plan.Cost.Ways {
		hour, own := 0.0, *cmp.Or(pools.PerHour, new(0.0)) // not a number if a pool cannot be paid so
		for _, pool := range pools.Each {
			w, _ := list.Find(pool.Plan.Cost.Ways, func(w plan.WayCost) bool { return w.Name == way.Name })
			hour += *cmp.Or(w.PerHour, new(math.NaN()))
		}
		if year := hour * plan.HoursPerYear; year >= 0 {
			change := where(own > 0 && math.Abs(hour/own-1) > 1e-9, signedShare(hour/own-1))
			tab.row(wayNames[way.Name], money(hour), money(year/12), money(year), change)
		}
	}
	d.section("Ways to pay for all pools", tab)
}

// addPoolDrivers is what carries the cost of each pool.
func addPoolDrivers(d *Document, pools *plan.Pools) {
	items := list.Map(pools.Each, func(pool plan.Pool) []string {
		return list.Map(driverItems(pool.Plan), func(item string) string { return pool.Class + ": " + item })
	})
	d.section(driverTitle(pools.Each[0].Plan)+" of a pool", Bullets{Items: slices.Concat(items...)})
}

func poolsDocument(p *decide.PoolsPlanned, e Engines) Document {
	one := noPlanDocument(p.OnePool, e)
	d := Document{Title: poolsTitle(p.Pools, p.OnePool.Demand) + "; there is no plan for one pool", Data: one.Data}
	poolSections(&d, p.Pools, nil)
	d.section("One pool for all classes", Paragraph{Text: one.Title})
	d.Blocks = append(d.Blocks, one.Blocks...)
	return d
}

package report

import (
	"fmt"
	"strings"

	"planner/plan"
	"planner/plan/decide"
	"planner/sweep/engine"
)

// addPools sets a pool of instances for each class beside one pool for all, whose title
// gives way where the pools are the cheaper ones.
func addPools(d *Document, p *plan.Plan) {
	pools := p.Handover.Pools
	if pools == nil {
		return
	}
	if pools.Recommended == plan.PoolEach {
		d.Title = poolsTitle(pools, p.Demand) + "; one pool for all: " + poolOf(p)
	}
	poolSections(d, pools, p)
	if pools.Recommended == plan.PoolEach {
		d.add(Paragraph{Text: "What follows is of one pool for all classes.", Tone: Quiet})
	}
}

// poolsTitle sums the pools up in one line.
func poolsTitle(pools *plan.Pools, d plan.Demand) string {
	var parts []string
	for _, pool := range pools.Each {
		parts = append(parts, pool.Class+" "+poolOf(pool.Plan))
	}
	s := fmt.Sprintf("A pool for each class, %s, for %s", plural(pools.GPUs, "GPU"), rateMeant(d.Rate, d.TraceRates))
	if pools.PerHour != nil {
		s += ", " + money(*pools.PerHour) + " per hour"
	}
	return s + ": " + strings.Join(parts, "; ")
}

// poolOf is "8 x H100 SXM (2 instances of 4 GPUs) at $31.20".
func poolOf(p *plan.Plan) string {
	a := plan.Alternative{Offer: p.Offer, Fleet: p.Fleet, Cost: p.Cost.Cost}
	return sized(&a)
}

// poolSections are the table of the pools, and how the instances of each are started.
func poolSections(d *Document, pools *plan.Pools, one *plan.Plan) {
	tab := Table{Columns: []Column{{Name: "pool"}, {Name: "req/s", Right: true}, {Name: "instance", Wrap: true}, {Name: "safe req/s of one", Right: true},
		{Name: "instances", Right: true}, {Name: "GPUs", Right: true}, {Name: "per hour", Right: true}, {Name: "limited by", Wrap: true}}}
	row := func(name string, p *plan.Plan, tone Tone) {
		tab.Rows = append(tab.Rows, []Cell{{name, tone}, {Text: number(p.Demand.Rate, 4)}, {Text: gpus(p.Offer.GPUs, &p.Offer)}, {Text: estimate(p.Offer.Rate).safe},
			{Text: count(p.Fleet.Instances)}, {count(p.Fleet.GPUs), tone}, {dollars(p.Cost.PerHour), tone}, {Text: boundName(p.Offer.Binding)}})
	}
	each, all := Plain, Strong
	if pools.Recommended == plan.PoolEach {
		each, all = Strong, Plain
	}
	if one != nil {
		row("one for all", one, all)
	}
	for _, pool := range pools.Each {
		if pool.Plan != nil {
			row(pool.Class+" alone", pool.Plan, each)
		}
	}
	if pools.GPUs > 0 {
		tab.Rows = append(tab.Rows, []Cell{{"all of these", each}, {}, {}, {}, {Text: count(pools.Instances)}, {count(pools.GPUs), each}, {dollars(pools.PerHour), each}, {}})
	}
	d.section("One pool or one for each class", tab)
	var why []string
	if pools.Reason.Text != "" {
		why = append(why, "A pool for each: "+pools.Reason.Text)
	}
	d.add(Bullets{Items: why, Tone: Doubt})
	for _, pool := range pools.Each {
		if pool.Plan == nil || pool.Plan.Handover.Engine == nil {
			continue
		}
		d.section("Server flags of an instance for "+pool.Class, Code{engine.Command{Args: pool.Plan.Handover.Engine.Argv}.String()})
	}
}

// poolsDocument is the report of pools where one for all has no plan.
func poolsDocument(p *decide.PoolsPlanned, e Engines) Document {
	one := noPlanDocument(p.OnePool, e)
	d := Document{Title: poolsTitle(p.Pools, p.OnePool.Demand) + "; there is no plan for one pool", Data: one.Data}
	poolSections(&d, p.Pools, nil)
	d.section("One pool for all classes", Paragraph{Text: one.Title})
	d.Blocks = append(d.Blocks, one.Blocks...)
	return d
}

package plan

import (
	"fmt"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
)

// Pools are a pool of instances for each class of a mix, as an alternative to one pool for all.
type Pools struct {
	// Recommended says which is cheaper, [OnePool] or [PoolEach].
	Recommended string `json:"recommended"`
	Each        []Pool `json:"each"` // the pools, one per class
	// Instances, GPUs and PerHour are those of all pools together; 0 and nil if a class has no plan, for the
	// Reason. Otherwise Reason says which limit they break, if any.
	Instances int         `json:"instances"`
	GPUs      int         `json:"gpus"`
	PerHour   *float64    `json:"usd_per_hour"`
	Reason    note.Reason `json:",embed"`
	// Sensitivity is the cost of all pools if the same thing turns out otherwise for each.
	Sensitivity []Change `json:"sensitivity"`
}

// Pool is the pool of one class.
type Pool struct {
	Class string `json:"class"` // the name of the class in the mix
	// Share is the class's share of all requests.
	Share float64 `json:"share"`
	// Plan is nil if there is none, for the reason Why.
	Plan *Plan  `json:"plan"`
	Why  string `json:"why,omitempty"`
}

// The values of [Pools].Recommended.
const (
	OnePool  = "one_pool"
	PoolEach = "pool_each"
)

// NewPools adds up the pools of all classes and compares them with one pool for all; nil is one without a plan.
func NewPools(d Demand, each []Pool, one *Plan) *Pools {
	p := &Pools{Each: each, Recommended: OnePool}
	var missing []string
	priced := 0.0
	for _, pool := range each {
		switch {
		case pool.Plan == nil:
			missing = append(missing, fmt.Sprintf("%s: %s", pool.Class, pool.Why))
			continue
		case pool.Plan.Cost.PerHour == nil:
			priced = -1
		case priced >= 0:
			priced += *pool.Plan.Cost.PerHour
		}
		p.Instances, p.GPUs = p.Instances+pool.Plan.Fleet.Instances, p.GPUs+pool.Plan.Fleet.GPUs
	}
	if len(missing) > 0 {
		p.Instances, p.GPUs, p.Reason = 0, 0, note.Because(note.PoolMissing, strings.Join(missing, "; "))
		return p
	}
	if priced >= 0 {
		p.PerHour = &priced
	}
	p.Sensitivity = byMoved(p.changes(), p.GPUs, &Cost{PerHour: p.PerHour})
	all := p.Alternative()
	if p.Reason = d.broken(&all); p.Reason.Text == "" && p.cheaper(one) {
		p.Recommended = PoolEach
	}
	return p
}

// Alternative returns all pools together as an alternative to one pool. Each class must have a plan.
func (p *Pools) Alternative() Alternative {
	a := Alternative{Offer: Offer{GPU: "a pool for each class"}, Fleet: Fleet{Instances: p.Instances, GPUs: p.GPUs}, Feasible: true, Reason: note.Because(note.Chosen)}
	o, f := &a.Offer, &a.Fleet
	for _, pool := range p.Each {
		own := pool.Plan
		o.PromptTokens, o.OutputTokens = o.PromptTokens+pool.Share*own.Offer.PromptTokens, o.OutputTokens+pool.Share*own.Offer.OutputTokens
		f.PlannedRate, f.KW = f.PlannedRate+own.Fleet.PlannedRate, f.KW+own.Fleet.KW
	}
	if p.PerHour != nil {
		o.PricePerGPUHour, o.PricedBy = *p.PerHour/float64(p.GPUs), "the mean of the pools"
	}
	a.Cost = o.price(f, f.PlannedRate)
	return a
}

// cheaper reports whether the pools cost less than one for all: in money, or in GPUs if a price is missing or
// the costs are equal.
func (p *Pools) cheaper(one *Plan) bool {
	switch {
	case one == nil:
		return true
	case p.PerHour != nil && one.Cost.PerHour != nil && *p.PerHour != *one.Cost.PerHour:
		return *p.PerHour < *one.Cost.PerHour
	}
	return p.GPUs < one.Fleet.GPUs
}

// changes adds up the changes of the pools, all of which have a plan, where every pool has them.
func (p *Pools) changes() []Change {
	var all []Change
	for _, first := range p.Each[0].Plan.Sensitivity {
		sum := Change{What: first.What}
		usd, known := 0.0, true
		for _, pool := range p.Each {
			c, ok := list.Find(pool.Plan.Sensitivity, func(c Change) bool { return c.What == first.What })
			if !ok {
				known = false
				break
			}
			sum.Instances, sum.GPUs, sum.Approximate = sum.Instances+c.Instances, sum.GPUs+c.GPUs, sum.Approximate || c.Approximate
			if c.PerHour != nil {
				usd += *c.PerHour
			}
			if c.GPUs == 0 && sum.Reason.Text == "" {
				sum.Reason = note.Text(pool.Class + ": " + c.Reason.Text).Reason()
			}
		}
		if sum.Reason.Text != "" {
			sum.Instances, sum.GPUs = 0, 0
		} else if p.PerHour != nil {
			sum.PerHour = &usd
		}
		if known {
			all = append(all, sum)
		}
	}
	return all
}

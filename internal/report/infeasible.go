package report

import (
	"fmt"
	"strings"

	"planner/plan"
	"planner/sweep/measure"
)

// Infeasible builds the report of a demand that no plan meets: what was asked,
// why it cannot be, and what would help.
func Infeasible(e *plan.Infeasible, demand plan.Demand, slo measure.SLO, b Background) Document {
	asked := rate(demand.Rate)
	if o := objective(slo); o != "" {
		asked += " at " + o
	}
	d := Document{Title: "No feasible plan for " + asked, Data: data(b.Trials)}
	var facts Pairs
	if b.Subject != "" {
		facts = append(facts, Pair{Label: "serving", Text: b.Subject})
	}
	if e.Cheapest != nil {
		facts = append(facts, Pair{Label: "why", Text: e.Limit, Tone: Bad}, Pair{Label: "cheapest fleet", Text: sized(e.Cheapest)})
	} else if b.Search != nil && b.Search.Floor != nil {
		facts = append(facts, Pair{Label: "why", Text: floorFact(b.Search.Floor), Tone: Bad})
	} else {
		facts = append(facts, Pair{Label: "why", Text: e.Error(), Tone: Bad})
	}
	d.add(facts)
	if help := remedies(e, b); len(help) > 0 {
		d.section("What would help", List{Items: help})
	}
	if len(b.Trials) > 0 {
		d.section("Trials", trialsOf(b.Trials, slo))
	}
	if len(e.Alternatives) > 0 {
		addOffers(&d, "Configurations", e.Alternatives)
	}
	addRejected(&d, e.Rejected)
	addEngines(&d, b.Engines, b.Trials, nil)
	if b.Search != nil {
		addWarnings(&d, b.Search.Warnings)
	}
	return d
}

// trialsOf lists the trials of a single set of knobs one by one, of several in
// one row a set.
func trialsOf(trials []measure.Measurement, slo measure.SLO) Table {
	if len(sets(trials)) > 1 {
		return summaryTable(trials, measure.Knobs{})
	}
	return trialTable(trials, slo)
}

// sized sums a fleet up.
func sized(a *plan.Alternative) string {
	s := fmt.Sprintf("%s (%s of %s)", gpus(a.Fleet.GPUs, &a.Offer), plural(a.Fleet.Instances, "instance"), plural(a.Offer.GPUs, "GPU"))
	if a.Cost.PerHour != nil {
		s += ", " + money(*a.Cost.PerHour) + " per hour"
	}
	return s
}

// remedies are what could be changed, as far as the reason tells.
func remedies(e *plan.Infeasible, b Background) []string {
	var help []string
	if c := e.Cheapest; c != nil {
		help = append(help, fmt.Sprintf("allow %s", sized(c)), "ask for less headroom, fewer spares, or a looser objective")
		return append(help, "compare other GPUs, or formats with fewer bytes per weight")
	}
	if b.Search == nil || b.Search.Floor == nil {
		return nil
	}
	f := b.Search.Floor
	if f.Value > 0 {
		help = append(help, fmt.Sprintf("a limit on %s well above %s", boundName(f.Bound), latencyAbove(f.Value)))
	}
	switch {
	case strings.HasPrefix(f.Bound, "ttft"):
		help = append(help, "more GPUs to an instance or faster ones: an idle engine's TTFT is the computing of one prompt", "shorter prompts, or shared prefixes that the cache holds")
	case strings.HasPrefix(f.Bound, "tpot"), strings.HasPrefix(f.Bound, "itl"):
		help = append(help, "more GPUs to an instance, or more memory bandwidth: an idle engine's time per token is the streaming of the weights", "formats with fewer bytes per weight")
	case strings.HasPrefix(f.Bound, "e2e"):
		help = append(help, "more GPUs to an instance or faster ones, or shorter outputs")
	}
	return help
}

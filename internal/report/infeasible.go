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
	d := Document{Title: "No feasible plan for " + asked(demand, slo), Data: data(b.Trials)}
	facts := b.served()
	if e.Cheapest != nil {
		facts = append(facts, Fact{Label: "why", Text: e.Limit, Tone: Bad}, Fact{Label: "cheapest fleet", Text: sized(e.Cheapest)})
	} else if b.Search != nil && b.Search.Floor != nil {
		facts = append(facts, Fact{Label: "why", Text: floorFact(b.Search.Floor, b.Trials), Tone: Bad})
	} else {
		facts = append(facts, Fact{Label: "why", Text: e.Error(), Tone: Bad})
	}
	d.add(facts)
	if help := remedies(e, b); len(help) > 0 {
		d.section("What would help", Bullets{Items: help})
	}
	b.tried(&d, slo)
	if len(e.Alternatives) > 0 {
		addOffers(&d, "Configurations", e.Alternatives)
	}
	b.rest(&d, e.Rejected)
	return d
}

// UndecidedPlan builds the report of a demand for which no plan was found though there
// may be one: what was seen, why it does not tell, and what to do.
func UndecidedPlan(e *plan.Undecided, demand plan.Demand, slo measure.SLO, b Background) Document {
	d := Document{Title: "Undecided: no rate is known yet that would give a plan for " + asked(demand, slo), Data: data(b.Trials)}
	facts := b.served()
	for _, why := range e.Doubts() {
		facts = append(facts, Fact{Label: "why", Text: why, Tone: Doubt})
	}
	seen := measure.OverviewOf(b.Trials)
	d.add(append(facts, Fact{Label: "seen", Text: seenText(seen)}))
	d.section("What to do", Bullets{Items: advice(seen)})
	b.tried(&d, slo)
	if len(e.Alternatives) > 1 {
		addOffers(&d, "Configurations", e.Alternatives)
	}
	b.rest(&d, e.Rejected)
	return d
}

// Unmeasured builds the report of a demand for which a server that planner did not start
// could not be measured, or not to the end. why says what went wrong.
func Unmeasured(why string, demand plan.Demand, slo measure.SLO, b Background) Document {
	d := Document{Title: "Not measured for " + asked(demand, slo) + ": " + why, Data: data(b.Trials)}
	d.add(append(b.served(), Fact{Label: "seen", Text: seenText(measure.OverviewOf(b.Trials))}))
	d.section("What to do", Bullets{Items: []string{
		"look at the server's own log: whether it is still there, and why it is not",
		"start it again and measure anew; `planner doctor` checks whether it can be reached",
	}})
	b.tried(&d, slo)
	b.rest(&d, nil)
	return d
}

// asked is the demand in a title.
func asked(demand plan.Demand, slo measure.SLO) string {
	s := rate(demand.Rate)
	if o := objective(slo); o != "" {
		s += " at " + o
	}
	return s
}

// served is the first fact of a report: what was to be served, where it is known.
func (b *Background) served() Facts {
	if b.Subject == "" {
		return nil
	}
	return Facts{{Label: "serving", Text: b.Subject}}
}

// tried adds the trials to a report without a plan.
func (b *Background) tried(d *Document, slo measure.SLO) {
	if len(b.Trials) > 0 {
		d.section("Trials", trialsOf(b.Trials, slo))
	}
}

// rest adds what ends a report without a plan: what cannot run, what engines
// said, and what the search warns of.
func (b *Background) rest(d *Document, rejected []measure.Rejection) {
	addRejected(d, rejected)
	addEngines(d, b.Engines, b.Trials, nil)
	if b.Search != nil {
		addWarnings(d, b.Search.Warnings)
	}
}

// seenText counts the trials, with the commonest doubt.
func seenText(s measure.Overview) string {
	if s.Trials == 0 {
		return "no trial was run"
	}
	text := plural(s.Trials, "trial")
	if s.Unsure > 0 {
		text += fmt.Sprintf(", %s unsure", count(s.Unsure))
	}
	if s.Invalid == 0 {
		return text
	}
	text += fmt.Sprintf(", %s not valid", count(s.Invalid))
	if len(s.Doubts) > 0 {
		text += ", mostly as " + s.Doubts[0].String()
	}
	return text
}

// advice is what to do about a run that decided nothing.
func advice(s measure.Overview) []string {
	if s.Invalid > 0 && 2*s.Invalid >= s.Trials {
		return []string{
			"remove what makes trials invalid, and start again: `planner doctor` checks the machine, and `planner bench` runs one load point to try it on",
			"a load generator on a host of its own, where the engine takes the processors that requests are sent with",
		}
	}
	return []string{
		"a larger search.budget, or none on the simulated engine",
		"fewer knob sets (pin knobs with one value), or a looser search.precision",
		"a shorter search.trial where one is set, so that the budget holds several",
	}
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
	case f.Bound == measure.ErrorsBound:
		help = append(help, "a workload.timeout longer than whole answers take, where requests fail by it", "the errors that the server or its log gives, where they fail otherwise")
	case strings.HasPrefix(f.Bound, "ttft"):
		help = append(help, "more GPUs to an instance or faster ones: an idle engine's TTFT is the computing of one prompt", "shorter prompts, or shared prefixes that the cache holds")
	case strings.HasPrefix(f.Bound, "tpot"), strings.HasPrefix(f.Bound, "itl"):
		help = append(help, "more GPUs to an instance, or more memory bandwidth: an idle engine's time per token is the streaming of the weights", "formats with fewer bytes per weight")
	case strings.HasPrefix(f.Bound, "e2e"):
		help = append(help, "more GPUs to an instance or faster ones, or shorter outputs")
	}
	return help
}

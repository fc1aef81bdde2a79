package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/note"
	"planner/plan"
	"planner/plan/decide"
	"planner/search"
	"planner/sweep/measure"
)

// planDocument is the report of a plan: the decision, its basis, and the alternatives. Sections without
// background data are omitted.
func planDocument(p *plan.Plan, b decide.Background, e Engines) Document {
	d := Document{Title: decision(p), Data: data(b.Trials), Sheets: sheets(p)}
	d.add(doubted(b.Trust))
	addPools(&d, p, &b)
	offers := "Alternatives, by cost"
	if pooled(p) {
		offers = "Alternatives in one pool, by cost"
	} else {
		addFinance(&d, costTitle(p), fleetChoices(p))
	}
	addWays(&d, p)
	addInTime(&d, p)
	if !pooled(p) {
		addSensitivity(&d, p.Sensitivity, p.Fleet.GPUs, &p.Cost.Cost)
	}
	d.section(driverTitle(p), Bullets{Items: driverItems(p)})
	addStart(&d, "Server flags of one instance", startOfPlan(p, &e))
	d.section("Why "+plural(p.Fleet.Instances, "instance"), Bullets{Items: fleetSteps(p)})
	if !pooled(p) {
		addTrust(&d, b.Trust)
	}
	d.detailed = true
	addCosts(&d, p)
	addPrices(&d, p)
	addDiagnosis(&d, b.Diagnosis)
	addDefault(&d, p)
	addEffects(&d, p, b.Trials)
	addPareto(&d, p, b.Trials)
	addCertificate(&d, p.Certificate)
	chosen := of(b.Trials, p.Offer.Knobs)
	addTrials(&d, p, &b, chosen)
	addCurves(&d, p, &b, chosen)
	addRoofline(&d, p, chosen)
	_ = addTimeline(&d, &e, nearest(b.Trials, p.Offer.Knobs, p.Offer.Rate.Value)) // without it if it cannot be read
	addOffers(&d, offers, p.All(), p.Rejected)
	addEngines(&d, &e, b.Trials, &p.Offer.Knobs)
	addModelled(&d, p.Handover.Modelled)
	d.section("Assumptions", Bullets{Items: p.Assumptions})
	addWarnings(&d, p.Warnings)
	return d
}

func costTitle(p *plan.Plan) string {
	return either(p.Cost.PerHour == nil, "What it takes", "What it costs")
}

// decision returns the answer in one line, numbers first.
func decision(p *plan.Plan) string {
	if p.Cost.Job != nil {
		return jobDecision(p)
	}
	s := fleetOf(&p.Fleet, &p.Offer) + " for " + rateMeant(p.Demand.Rate, p.Demand.TraceRates) + behind(" at ", objective(p.Objective))
	if p.Cost.PerHour == nil {
		return s + ": cost not known"
	}
	return s + ": " + money(*p.Cost.PerHour) + " per hour" + costing(p.Cost.PerMillionOutputTokens, " per million output tokens")
}

// fleetOf prints "28 x H100 SXM (7 instances of 4 GPUs)".
func fleetOf(f *plan.Fleet, o *plan.Offer) string {
	return fmt.Sprintf("%s (%s of %s)", gpus(f.GPUs, o), plural(f.Instances, "instance"), plural(o.GPUs, "GPU"))
}

// gpus prints "28 x H100 SXM", or "28 GPUs" if imported results do not name theirs.
func gpus(n int, o *plan.Offer) string {
	if name := cmp.Or(o.GPU, o.Knobs.GPU); name != "" {
		return count(n) + " x " + name
	}
	return plural(n, "GPU")
}

// headlines are the facts below the decision: with the title, the first of them are the summary in five lines
// of 80 columns; others that a reader must know follow.
func headlines(p *plan.Plan, b *decide.Background) Facts {
	one, limited := rateFact(p.Offer.Rate), boundName(p.Offer.Binding)
	switch {
	case p.Offer.Unreached:
		value, _, safe := estimate(p.Offer.Rate)
		one = value + " requests/s at least: the highest rate measured, and within the limits" + where(p.Offer.Rate.Safe < p.Offer.Rate.Value, "; safe: "+safe)
		limited = "nothing that was measured"
	case b.Search != nil:
		limited = limitedBy(b.Search, p.Offer.Binding, b.Trials)
	}
	loaded := survival(p)
	if j := p.Cost.Job; j != nil {
		deadline := p.Demand.Job.Deadline
		loaded = Facts{{"deadline", fmt.Sprintf("%s, kept with %s to spare", hours(deadline), hours(deadline-j.Duration)), Plain}}
	}
	return slices.Concat(Facts{{"one instance", one, Strong}, {"limited by", limited, Plain}}, loaded, traced(p.Demand.TraceRates), Facts{
		{"serving", b.Subject, Plain}, {"doubt", doubtCosts(p), Doubt}, {"idle", idleHardware(p), Doubt},
		{"warnings", where(len(p.Warnings) > 0, count(len(p.Warnings))+", at the end"), Doubt},
	})
}

// mostlyIdle is the share of the roofline's rate below which the rate of a fleet's instances is remarked on:
// such a plan may be correct and still not worth buying.
const mostlyIdle = 0.05

// idleHardware says that the limits leave most of an instance's hardware unused.
func idleHardware(p *plan.Plan) string {
	sheet := p.Evidence.Roofline
	if sheet == nil {
		return ""
	}
	ceiling, by := sheet.Ceiling(&p.Offer)
	share := p.Demand.TraceRates.MeanAt(p.Offer.Rate.Value) / ceiling
	if !(share < mostlyIdle) {
		return ""
	}
	change := either(p.Demand.Job != nil, "other knobs", "looser limits")
	if p.Warnings.Has(note.FewSlots) {
		change = "a larger engine.lora.slots"
	}
	return fmt.Sprintf("an instance carries %s of the %s requests/s that its hardware could serve without limits (%s); %s, or instances of another size or GPU, may cost a fraction",
		percent(share), number(ceiling, 3), by, change)
}

// costlyDoubt is the ratio to the fleet for the likely rate from which on the difference is remarked on.
const costlyDoubt = 1.5

// doubtCosts says what the fleet for the likely rate would be, if it is far smaller.
func doubtCosts(p *plan.Plan) string {
	f, err := p.FleetAt(p.Offer.Rate.Value)
	if err != nil || float64(p.Fleet.GPUs) < costlyDoubt*float64(f.GPUs) {
		return ""
	}
	return fmt.Sprintf("sized by the safe rate; the likely %s requests/s would take %s: measure an instance before you buy",
		number(p.Offer.Rate.Value, 3), plural(f.GPUs, "GPU"))
}

func rateFact(r search.Estimate) string {
	value, interval, safe := estimate(r)
	s := value + " requests/s at most" + where(interval != "", " ("+interval+where(r.Confidence == 0, " by the form of the curve")+")")
	switch {
	case r.Confidence > 0:
		return s + "; safe: " + safe
	case r.Safe < r.Value:
		return s + "; no sampling error is known; the fleet is sized by " + safe
	}
	return s + "; no sampling error is known, so the fleet is sized by this rate"
}

func fleetSteps(p *plan.Plan) []string {
	f, d, safe := &p.Fleet, &p.Demand, p.Offer.Rate.Safe
	how := either(p.Offer.Rate.Confidence == 0, "whose sampling error is not known", "met with 95 % confidence")
	loaded := f.PlannedRate * (1 + f.Headroom) / safe
	base := max(1, int(math.Ceil(loaded*(1-1e-9))))
	instances, enough := plural(f.Instances, "instance"), ""
	switch f.DecidedBy {
	case "availability":
		enough = fmt.Sprintf("with each instance up %s of the time, %s keep enough of them up with probability %s",
			percent(d.Availability), instances, exact(d.TargetAvailability))
	case "zones":
		enough = fmt.Sprintf("over %d zones, %s leave enough when a zone is lost", d.Zones, instances)
	}
	return []string{
		where(f.PlannedRate != d.Rate, rate(d.Rate)+where(d.Growth > 0, " and "+percent(d.Growth)+" growth")+
			where(d.BurstIndex > 1, " and the bursts of dispersion index "+exact(d.BurstIndex))+": planned for "+rate(f.PlannedRate)),
		fmt.Sprintf("%s / %s per instance, %s = %s: %s needed", rate(f.PlannedRate), safeRate(&p.Offer), how,
			quotient(f.PlannedRate/safe), plural(f.Needed, "instance")),
		where(f.Headroom > 0, fmt.Sprintf("with %s headroom, for drift of the workload: %s, so %s", percent(f.Headroom), quotient(loaded), plural(base, "instance"))),
		where(f.Spare > 0, fmt.Sprintf("with %s: %s", plural(f.Spare, "spare instance"), plural(base+f.Spare, "instance"))),
		enough,
		fmt.Sprintf("%s x %s = %s", instances, plural(f.GPUsPerInstance, "GPU"), plural(f.GPUs, "GPU")),
	}
}

// addCosts prices the fleet at the loads of interest.
func addCosts(d *Document, p *plan.Plan) {
	if p.Cost.PerHour == nil || p.Cost.Job != nil { // a job's cost is that of its running time
		return
	}
	tab := table(left("at"), right("load", "per hour", "per million output tokens", "per million tokens", "per thousand requests"))
	row := func(name string, load float64, c *plan.Cost, tone Tone) {
		tab.row(Cell{name, tone}, rate(few(load)), dollars(c.PerHour), Cell{dollars(c.PerMillionOutputTokens), tone},
			dollars(c.PerMillionTokens), dollars(c.PerThousandRequests))
	}
	row("planned load", p.Fleet.PlannedRate, &p.Cost.Cost, Strong)
	row("capacity", float64(p.Fleet.Instances)*p.Offer.Rate.Safe, &p.Cost.AtCapacity, Plain)
	if p.Cost.AtMean != nil {
		row("mean load", p.Demand.GrownMean(), p.Cost.AtMean, Plain)
	}
	d.section("Cost by load", tab.known())
}

// addDefault compares the engine's default settings with the best others, and explains the choice.
func addDefault(d *Document, p *plan.Plan) {
	c := p.Comparison
	if c == nil {
		return
	}
	const title = "Default settings or tuned ones"
	if c.Default.Knobs == c.Tuned.Knobs {
		d.section(title, Paragraph{Text: "The engine's default settings are the chosen ones: nothing that was tried is better."})
		return
	}
	which := differing([]measure.Knobs{c.Default.Knobs, c.Tuned.Knobs})
	row := func(label string, s plan.Setting) Fact {
		text := "no rate was found that meets the objective"
		if s.Rate != nil && s.Rate.Value > 0 {
			text = rateFact(*s.Rate)
		}
		chosen := s.Knobs == p.Offer.Knobs
		return Fact{label, describe(s.Knobs, which) + ": " + text + where(chosen, "; chosen"), either(chosen, Strong, Plain)}
	}
	d.section(title, Facts{row("default", c.Default), row("tuned", c.Tuned), {"gain", told(c.Gain, gain), Plain}, {"choice", choice(p), Plain}})
}

func choice(p *plan.Plan) string {
	c := p.Comparison
	byDefault := p.Offer.Knobs == c.Default.Knobs
	switch g := c.Gain; {
	case byDefault && g == nil:
		return "the default: no rate is known of the tuned settings"
	case byDefault && c.Tuned.Rate != nil && c.Default.Rate.Safe >= c.Tuned.Rate.Safe:
		return "the default is as good: its safe rate is no lower"
	case byDefault:
		return "the default is as good, as far as was measured: no gain is shown"
	case g == nil:
		return "the tuned settings: no rate is known of the default"
	case g.Low > 0:
		return "the tuned settings: their gain is shown"
	case c.Default.Rate == nil || c.Tuned.Rate == nil:
		return "the tuned settings: the default has no rate"
	case c.Default.Rate.Safe >= c.Tuned.Rate.Safe:
		return "the tuned settings, though the safe rate of the default is no lower: its values are not among those to choose from"
	case (1+decide.Dearer)*c.Default.Rate.Safe >= c.Tuned.Rate.Safe:
		return "the tuned settings, though no gain is shown: the default's values are not among those to choose from"
	}
	return fmt.Sprintf("the tuned settings: no gain is shown, but the safe rate of the default is %s lower", percent(1-c.Default.Rate.Safe/c.Tuned.Rate.Safe))
}

// gain prints how much more the tuned settings carry, with the digits that the interval supports.
func gain(g search.Estimate) string {
	signed := func(share float64) string { return plus(fixed(100*share, min(decimals(50*(g.High-g.Low)), 1))) }
	return fmt.Sprintf("%s %% (%s to %s at %s)", signed(g.Value), signed(g.Low), signed(g.High), percent(g.Confidence))
}

func addTrials(d *Document, p *plan.Plan, b *decide.Background, chosen []measure.Measurement) {
	d.section("Trials"+where(len(chosen) < len(b.Trials), " of the chosen settings"), trialTable(chosen, p.Objective))
	if len(measure.KnobSets(b.Trials)) > 1 {
		d.section("All settings that were tried", summaryTable(b.Trials, p.Offer.Knobs))
	}
}

func addCurves(d *Document, p *plan.Plan, b *decide.Background, chosen []measure.Measurement) {
	curves := p.Evidence.AllCurves()
	if len(curves) > 0 {
		d.add(Heading{"Latency against load", d.detailed})
	}
	for _, c := range curves {
		chart := latencyChart(c, p.Objective, p.Offer.Rate, chosen)
		chart.Title += " of " + gpus(p.Offer.GPUs, &p.Offer)
		chart.XLabel = meantBy(chart.XLabel, p.Demand.TraceRates)
		d.add(chart, curveFacts(c, p.Objective, p.Offer.Rate.Confidence == 0), Bullets{Items: c.Warnings.Summary(), Tone: Doubt})
	}
	if b.Search != nil {
		addExceedances(d, b.Search, chosen)
	}
}

func addWarnings(d *Document, warnings note.Notes) {
	d.section("Warnings", Bullets{Items: warnings.Summary(), Tone: Doubt})
}

func jobDecision(p *plan.Plan) string {
	j := p.Cost.Job
	s := fmt.Sprintf("%s for %s: %s, %s GPU hours", fleetOf(&p.Fleet, &p.Offer), jobAsked(p.Demand.Job), hours(j.Duration), number(j.GPUHours, 3))
	cost := costing(j.USD, where(p.Demand.Job.Daily, " a day")) + costing(p.Cost.PerMillionTokens, " per million tokens")
	return s + either(j.USD == nil, ", cost not known", cost)
}

// jobAsked describes a job: "1,000,000 requests in 24 h".
func jobAsked(j *plan.Job) string {
	return number(j.Requests, 4) + " requests " + either(j.Daily, "a day", "in "+hours(j.Deadline))
}

// hours prints the duration of a job to the minute: "19 h 42 min".
func hours(d time.Duration) string {
	if d < 10*time.Minute {
		return latency(d)
	}
	d = d.Round(time.Minute)
	h, m := int(d.Hours()), int(d.Minutes())%60
	return strings.Join(said(where(h > 0, fmt.Sprintf("%d h", h)), where(m > 0 || h == 0, fmt.Sprintf("%d min", m))), " ")
}

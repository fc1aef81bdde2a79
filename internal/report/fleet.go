package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"planner/plan"
	"planner/plan/fleet"
	"planner/sweep/measure"
)

func fleetDocument(a *fleet.Answer) Document {
	title := fmt.Sprintf("%s of %s requests within their limits; %s replicas in the mean", shareOver(a.Attainment), count(a.Requests), figureOver(a.Replicas.Mean, 2)) +
		where(finite(a.Cost.Total.Value), ", "+money(a.Cost.PerHour)+" an hour")
	d := Document{Title: title, Data: sheet(a.Timeline, "at_s rate_per_s asked starting ready in_flight ttft_p50_ms ttft_p99_ms missed", nil)}
	d.add(fleetFacts(a))
	d.section("Limits", limitTable(a))
	d.section("When limits were missed", missTable(a))
	if s := a.Search; s != nil {
		d.section("The search", searchFacts(s), frontierTable(s), fasterTable(s))
	}
	d.section("Time line", fleetCharts(a)...)
	d.section("Seeds", seedTable(a))
	d.section("Decisions", decisionTable(a))
	d.section("Warnings", Bullets{Items: a.Warnings, Tone: Doubt})
	return d
}

// shareOver prints a share with its interval, "95.8 % (94.9-96.4)"; a share below one never as 100 %.
func shareOver(e fleet.Estimate) string {
	decimals := 1
	if left := 100 * (1 - e.Value); left > 1e-9 && left < 0.05 {
		decimals = -exponent(left, 1)
	}
	return figureOver(fleet.Estimate{Value: 100 * e.Value, Low: 100 * e.Low, High: 100 * e.High}, decimals, " %")
}

// figureOver prints a figure with its interval, if known.
func figureOver(e fleet.Estimate, decimals int, unit ...string) string {
	return fixed(e.Value, decimals) + strings.Join(unit, "") +
		where(finite(e.Low) && finite(e.High), fmt.Sprintf(" (%s-%s)", fixed(e.Low, decimals), fixed(e.High, decimals)))
}

func fleetFacts(a *fleet.Answer) Facts {
	v, c, n := verdicts[a.Verdict], &a.Cost, &a.Counts
	return Facts{
		{"objective", v.Text, v.Tone},
		{"policy", fleet.Name(&a.Policy), Plain},
		{"start-up", startText(a), Plain},
		{"replicas", fmt.Sprintf("%s in the mean, starting or serving; at most %d at once", figureOver(a.Replicas.Mean, 2), a.Replicas.Peak), Plain},
		{"GPU hours", fmt.Sprintf("%s, of %s a replica, in %s", figureOver(a.Replicas.GPUHours, 1), plural(a.GPUs, "GPU"), clockTime(a.Duration.Seconds())), Plain},
		{"cost", where(finite(c.Total.Value), fmt.Sprintf("%s; %s an hour, %s a month, %s a thousand requests",
			money(c.Total.Value), money(c.PerHour), money(c.PerMonth), money(c.PerThousandRequest))), Plain},
		{"static fleet", staticText(a), Plain},
		{"failed", where(n.Failed > 0, fixed(n.Failed, 1)+" requests"), Bad},
		{"faults", where(n.Failures > 0 || n.Retries > 0, fmt.Sprintf("%s nodes lost, %s requests sent again", fixed(n.Failures, 1), fixed(n.Retries, 1))), Plain},
	}
}

func startText(a *fleet.Answer) string {
	s := &a.Policy.StartUp
	return limit(s.Total(false)) + where(s.Cached && s.Compile > 0, ", "+limit(s.Total(true))+" on a node that has compiled before") +
		"; " + fixed(a.Counts.StartUps, 1) + " start-ups"
}

func staticText(a *fleet.Answer) string {
	s := a.Static
	if s == nil {
		return ""
	}
	return plural(s.Replicas, "replica") + " keep" + where(s.Replicas == 1, "s") + " the objective with " + shareOver(s.Attainment) +
		where(a.Policy.Replicas == 0 && s.GPUHours > 0, "; the autoscaled fleet takes "+lessHours(a, s.GPUHours))
}

func lessHours(a *fleet.Answer, static float64) string {
	less := 1 - a.Replicas.GPUHours.Value/static
	return percent(math.Abs(less)) + either(less < 0, " more", " fewer") + " GPU hours"
}

func limitTable(a *fleet.Answer) Table {
	tab := table(left("class"), right("requests"), left("limit"), right("within", "asked"), left(""))
	for _, c := range a.Classes {
		for _, l := range c.Limits {
			name := either(l.Metric == measure.Goodput.String(), "all of them", strings.ToUpper(l.Metric)+" "+limit(l.Limit))
			tab.row(c.Class, c.Requests, name, shareOver(l.Share), where(l.Asked > 0, percent(l.Asked)), either(l.Asked > 0, verdicts[l.Verdict], Cell{}))
		}
	}
	return tab
}

func missTable(a *fleet.Answer) Table {
	tab := table(right("from", "for", "requests"), left("cause"))
	seed := fmt.Sprintf("seed %d", a.Seeds[0].Seed)
	tab.Caption = either(len(a.Misses) == 0, "No request of "+seed+" missed a limit.", "Of "+seed+"; a minute without a miss ends an episode.")
	for _, m := range a.Misses {
		tab.row(clockTime(m.Start), latency(seconds(m.Length)), m.Requests, m.Cause)
	}
	tab.first("episodes", "JSON")
	return tab
}

func searchFacts(s *fleet.Searched) Facts {
	return Facts{
		{"chosen", s.Chosen, Strong}, {"chosen", where(s.Chosen == "", "none keeps what is asked"), Bad},
		{"held out", told(s.HeldOut, func(e fleet.Estimate) string {
			return shareOver(e) + " within the limits on traffic that it was not chosen on"
		}), Plain},
		{"effort", fmt.Sprintf("%s of policies, %d of them dropped early; %s simulated days", plural(s.Policies, "replay"), s.Dropped, fixed(s.Days, 1)), Plain},
	}
}

func frontierTable(s *fleet.Searched) Table {
	tab := table(wrapped("policy"), right("within", "GPU hours", "$/hour"), left(""))
	tab.Caption = "Policies of which none is both cheaper and better, on the first seed; the chosen one is the cheapest that keeps what is asked on all."
	for _, t := range s.Frontier {
		kept := Cell{"misses", Bad}
		switch {
		case t.Name == s.Chosen:
			kept = Cell{"chosen", Strong}
		case t.Kept:
			kept = Cell{"keeps on this seed", Plain}
		}
		tab.row(t.Name, percent(t.Attainment), fixed(t.GPUHours, 1), money(t.USDPerHour), kept)
	}
	return tab
}

func fasterTable(s *fleet.Searched) Table {
	tab := table(right("start-up"), wrapped("policy"), right("$/month", "a minute saves"))
	tab.Caption = "What the cheapest policy that keeps what is asked costs were replicas to start faster."
	for _, x := range s.Faster {
		start := either(x.StartUp > 0, limit(x.StartUp), "none")
		tab.row(start, x.Policy, money(x.USDPerMonth), where(finite(x.Worth), money(x.Worth)+" a month"))
	}
	return either(len(tab.Rows) < 2, Table{}, tab)
}

func clockTime(s float64) string {
	n := int(math.Round(s))
	return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
}

func seedTable(a *fleet.Answer) Table {
	tab := table(right("seed", "within limits", "replicas", "GPU hours"))
	for _, s := range a.Seeds {
		tab.row(s.Seed, percent(s.Attainment), fixed(s.Replicas, 2), fixed(s.GPUHours, 1))
	}
	return tab
}

func decisionTable(a *fleet.Answer) Table {
	tab := table(right("at", "from", "to"), wrapped("why"))
	for _, x := range a.Decisions {
		tab.row(clockTime(x.At), x.From, x.To, x.Why)
	}
	tab.first("decisions", "JSON")
	return tab
}

func fleetCharts(a *fleet.Answer) []Element {
	unit, length := "hours", 3600.0
	if a.Duration < 3*time.Hour {
		unit, length = "minutes", 60
	}
	line := func(name string, of func(*fleet.MinuteRow) float64) Line {
		return course(name, a.Timeline, func(m *fleet.MinuteRow) float64 { return m.At / length }, of)
	}
	chart := func(title, name, y string, linear bool, lines ...Line) *Chart {
		return &Chart{Title: title, Name: name, XLabel: unit, YLabel: y, LinearY: linear, Low: true, Series: lines}
	}
	latencies := chart("Time to first token, by minute", "fleet-ttft", "ms", false,
		line("p50", func(m *fleet.MinuteRow) float64 { return millis(m.P50) }), line("p99", func(m *fleet.MinuteRow) float64 { return millis(m.P99) }))
	if l := a.Limits[0].TTFT; l > 0 {
		latencies.Limits = []Reference{{millis(l), "limit " + limit(l)}}
	}
	return []Element{
		chart("Replicas", "fleet-replicas", "replicas", true,
			line("asked for", func(m *fleet.MinuteRow) float64 { return float64(m.Asked) }), line("ready", func(m *fleet.MinuteRow) float64 { return float64(m.Ready) })),
		chart("Requests", "fleet-requests", "requests", true,
			line("arrivals per second", func(m *fleet.MinuteRow) float64 { return m.Rate }),
			line("in flight", func(m *fleet.MinuteRow) float64 { return float64(m.InFlight) }),
			line("missed, per minute", func(m *fleet.MinuteRow) float64 { return float64(m.Missed) })),
		latencies,
	}
}

// addInTime compares the plan's fleet with an autoscaled one under traffic over time.
func addInTime(d *Document, p *plan.Plan) {
	const title = "Static or autoscaled"
	t := p.InTime
	switch {
	case t == nil:
		return
	case t.Note != "":
		d.section(title, Paragraph{Text: t.Note, Tone: Doubt})
		return
	}
	tab := table(wrapped("fleet"), right("replicas", "within", "", "GPU hours", "$/month"))
	for _, a := range []*fleet.Answer{t.Static, t.Autoscaled} {
		tab.row(fleet.Name(&a.Policy), fixed(a.Replicas.Mean.Value, 2), shareOver(a.Attainment), verdicts[a.Verdict],
			fixed(a.Replicas.GPUHours.Value, 1), money(a.Cost.PerMonth))
	}
	s, a := t.Static, t.Autoscaled
	d.section(title, tab, Paragraph{Text: fmt.Sprintf("Replayed on the simulated engine over %s of the traffic in time, %s; a replica starts in %s. The autoscaled fleet takes %s",
		clockTime(s.Duration.Seconds()), plural(len(s.Seeds), "draw"), limit(a.Policy.StartUp.Total(false)), lessHours(a, s.Replicas.GPUHours.Value)) +
		where(finite(a.Cost.PerMonth), fmt.Sprintf(", %s a month instead of %s", money(a.Cost.PerMonth), money(s.Cost.PerMonth))) +
		"; planner fleet --search looks for the cheapest policy."})
	d.add(Paragraph{t.Warning, Doubt})
}

package report

import (
	"fmt"

	"planner/plan"
	"planner/plan/fleet"
)

// addInTime sets the plan's fleet beside an autoscaled one, under traffic in time.
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
		tab.row(policyText(&a.Policy), fixed(a.Replicas.Mean.Value, 2), shareOver(a.Attainment), fleetVerdicts[a.Verdict],
			fixed(a.Replicas.GPUHours.Value, 1), money(a.Cost.PerMonth))
	}
	s, a := t.Static, t.Autoscaled
	text := fmt.Sprintf("Replayed on the simulated engine over %s of the traffic in time, %s; a replica starts in %s. The autoscaled fleet takes ",
		clockTime(s.Duration.Seconds()), plural(len(s.Seeds), "draw"), limit(a.Policy.StartUp.Total(false)))
	if less := 1 - a.Replicas.GPUHours.Value/s.Replicas.GPUHours.Value; less < 0 {
		text += percent(-less) + " more GPU hours"
	} else {
		text += percent(less) + " fewer GPU hours"
	}
	if finite(a.Cost.PerMonth) {
		text += fmt.Sprintf(", %s a month instead of %s", money(a.Cost.PerMonth), money(s.Cost.PerMonth))
	}
	d.section(title, tab, Paragraph{Text: text + "; planner fleet --search looks for the cheapest policy."})
}

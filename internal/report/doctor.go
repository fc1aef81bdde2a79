package report

import (
	"fmt"

	"planner/internal/doctor"
	"planner/internal/list"
)

// Doctor builds the report of checks, one per line.
func Doctor(checks []doctor.Check) Document {
	tones := map[doctor.CheckState]Tone{doctor.Passed: Good, doctor.Warning: Doubt, doctor.Problem: Bad}
	d := Document{Title: diagnosis(checks), Data: sheet(checks, "check=name state found remedy", nil)}
	d.add(Facts(list.Map(checks, func(c doctor.Check) Fact {
		return Fact{c.Name, string(c.State) + ": " + c.Found + behind(" -> ", c.Remedy), tones[c.State]}
	})))
	return d
}

func diagnosis(checks []doctor.Check) string {
	n := map[doctor.CheckState]int{}
	for _, c := range checks {
		n[c.State]++
	}
	problems, warnings, all := n[doctor.Problem], plural(n[doctor.Warning], "warning"), plural(len(checks), "check")
	switch {
	case problems > 0:
		return fmt.Sprintf("%s and %s in %s", plural(problems, "problem"), warnings, all)
	case n[doctor.Warning] > 0:
		return fmt.Sprintf("No problem, %s in %s", warnings, all)
	}
	return "All " + all + " passed"
}

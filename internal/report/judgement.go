package report

import (
	"fmt"
	"slices"
	"strings"

	"planner/internal/list"
	"planner/plan/diagnose"
	"planner/plan/trust"
)

// doubted is the first paragraph of a report whose data fails items of the checklist.
func doubted(items []trust.Item) Paragraph {
	failed := trust.Failed(items)
	return Paragraph{where(len(failed) > 0, fmt.Sprintf("The data behind this fails %d of %d checks (%s): it is no more to be trusted than they are, see below.",
		len(failed), len(items), strings.Join(failed, ", "))), Bad}
}

// trustTones are the tones of the states of a checklist item.
var trustTones = map[trust.ItemState]Tone{trust.Pass: Good, trust.Fail: Bad, trust.Unknown: Doubt}

// addTrust lists the items of the checklist: those that pass by name, the others with their evidence.
func addTrust(d *Document, items []trust.Item) {
	var facts Facts
	var passed []string
	for _, i := range items {
		if i.State == trust.Pass {
			passed = append(passed, i.Name)
			continue
		}
		facts = append(facts, Fact{string(i.State), i.Name + ": " + i.Why, trustTones[i.State]})
	}
	d.section("Can the data be trusted", append(facts, Fact{string(trust.Pass), strings.Join(passed, ", "), Good}))
}

func addDiagnosis(d *Document, findings []diagnose.Finding) {
	blocks := list.Map(findings, func(f diagnose.Finding) Element {
		return slices.Concat(Facts{{"found", f.Symptom, Strong}}, each("seen", f.Evidence, Plain), Facts{{"next", f.Next, Plain}})
	})
	if findings != nil && len(blocks) == 0 {
		blocks = append(blocks, Paragraph{Text: "The trials show nothing that is not as it should be: first tokens, the pace of tokens, queues, the prefix cache and the throughput were looked at."})
	}
	d.section("Diagnosis", blocks...)
}

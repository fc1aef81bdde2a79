package report

import (
	"fmt"
	"strings"

	"planner/plan/decide"
	"planner/plan/trust"
)

// doubted is what stands first in a report whose data fails items of the checklist.
func doubted(items []trust.Item) Paragraph {
	failed := trust.Failed(items)
	if len(failed) == 0 {
		return Paragraph{}
	}
	return Paragraph{Text: fmt.Sprintf("The data behind this fails %d of %d checks (%s): it is no more to be trusted than they are, see below.",
		len(failed), len(items), strings.Join(failed, ", ")), Tone: Bad}
}

// trustTones say how an item of the checklist stands.
var trustTones = map[trust.State]Tone{trust.Pass: Good, trust.Fail: Bad, trust.Unknown: Doubt}

// addTrust holds the data against the checklist.
func addTrust(d *Document, items []trust.Item) {
	if len(items) == 0 {
		return
	}
	tab := Table{Columns: []Column{{Name: "check"}, {Name: "state"}, {Name: "what the data shows", Wrap: true}}}
	for _, i := range items {
		tab.Rows = append(tab.Rows, []Cell{{Text: i.Name}, {string(i.State), trustTones[i.State]}, {Text: i.Why}})
	}
	d.section(fmt.Sprintf("Can the data be trusted: %d pass, %d fail, %d unknown",
		trust.Count(items, trust.Pass), trust.Count(items, trust.Fail), trust.Count(items, trust.Unknown)), tab)
}

// addJudgement says what of the server is not as it should be and what comes next, and how
// far the trials behind that can be trusted.
func addJudgement(d *Document, j decide.Judgement) {
	addTrust(d, j.Trust)
	addDiagnosis(d, j)
}

func addDiagnosis(d *Document, j decide.Judgement) {
	if j.Diagnosis == nil {
		return
	}
	blocks := []Element{}
	for _, f := range j.Diagnosis {
		facts := Facts{{"found", f.Symptom, Strong}}
		for _, e := range f.Evidence {
			facts = append(facts, Fact{Label: "seen", Text: e})
		}
		blocks = append(blocks, append(facts, Fact{Label: "next", Text: f.Next}))
	}
	if len(blocks) == 0 {
		blocks = append(blocks, Paragraph{Text: "The trials show nothing that is not as it should be: first tokens, the pace of tokens, queues, the prefix cache and the throughput were looked at."})
	}
	d.section("Diagnosis", blocks...)
}

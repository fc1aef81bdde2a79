package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"planner/internal/note"
	"planner/plan"
	"planner/sweep/measure"
)

// mostRows is how many rows a table has at most that grows with the search.
const mostRows = 20

// addAlternatives ranks what else would do, and says why the rest would not.
func addAlternatives(d *Document, p *plan.Plan) {
	if len(p.Alternatives) == 0 {
		return
	}
	chosen := plan.Alternative{Offer: p.Offer, Fleet: p.Fleet, Cost: p.Cost.Cost, Feasible: true, Reason: note.Because(note.Chosen)}
	addOffers(d, "Alternatives, by cost", append([]plan.Alternative{chosen}, p.Alternatives...))
}

// addOffers tabulates offers that were sized and lists the others by reason.
func addOffers(d *Document, title string, all []plan.Alternative) {
	var ks []measure.Knobs
	for _, a := range all {
		ks = append(ks, named(&a.Offer))
	}
	which := differing(ks)
	tab := Table{Columns: []Column{{Name: "instance", Wrap: true}, {Name: "GPUs", Right: true}, {Name: "instances", Right: true},
		{Name: "per hour", Right: true}, {Name: "per million output tokens", Right: true}, {Name: "req/s per instance", Right: true},
		{Name: "limited by", Extra: true}, {Name: "note", Wrap: true, Extra: true}}}
	var cannot []measure.Rejection
	more := 0
	for i, a := range all {
		switch {
		case a.Fleet.GPUs == 0:
			cannot = append(cannot, measure.Rejection{Knobs: ks[i], Reason: a.Reason})
			continue
		case len(tab.Rows) == mostRows:
			more++
			continue
		}
		tone := Plain
		if a.Reason.Note.Kind == note.Chosen {
			tone = Strong
		}
		name := gpus(a.Offer.GPUs, &a.Offer)
		if s := describe(ks[i], withoutGPU(which)); s != "the same" {
			name += ", " + s
		}
		tab.Rows = append(tab.Rows, []Cell{{name, tone}, {Text: count(a.Fleet.GPUs)}, {Text: count(a.Fleet.Instances)}, {dollars(a.Cost.PerHour), tone},
			{Text: dollars(a.Cost.PerMillionOutputTokens)}, {Text: estimate(a.Offer.Rate).value}, {Text: boundName(a.Offer.Binding)}, {a.Reason.Text, Quiet}})
	}
	d.section(title)
	d.add(tab.known())
	if more > 0 {
		d.add(Paragraph{Text: fmt.Sprintf("%s more stand in the JSON.", count(more)), Tone: Quiet})
	}
	if len(cannot) > 0 {
		d.add(Paragraph{Text: "Not possible:"}, Bullets{Items: grouped(cannot, ks)})
	}
}

// named are the knobs of an offer with its GPU filled in.
func named(o *plan.Offer) measure.Knobs {
	k := o.Knobs
	if k.GPU == "" {
		k.GPU = o.GPU
	}
	return k
}

// withoutGPU is a choice of knobs less the GPU, which is the first.
func withoutGPU(which []bool) []bool {
	which = slices.Clone(which)
	if len(which) > 0 {
		which[0] = false
	}
	return which
}

// addRejected lists what cannot run, grouped by reason.
func addRejected(d *Document, rejected []measure.Rejection) {
	d.section("Rejected", Bullets{Items: grouped(rejected, knobsOf(rejected))})
}

// knobsOf are the sets of knobs that are rejected.
func knobsOf(rejected []measure.Rejection) []measure.Knobs {
	var all []measure.Knobs
	for _, r := range rejected {
		all = append(all, r.Knobs)
	}
	return all
}

// grouped writes one line a kind of reason: the sets of knobs it holds for, told
// apart from all sets, and the reason, that of the first set where the figures
// in it differ.
func grouped(rejected []measure.Rejection, all []measure.Knobs) []string {
	which := differing(all)
	var lines []string
	for _, group := range note.GroupsOf(rejected, func(r measure.Rejection) note.Note { return r.Reason.Read() }) {
		reason := group[0].Reason.Text
		same := !slices.ContainsFunc(group, func(r measure.Rejection) bool { return r.Reason.Text != reason })
		line := ""
		switch {
		case len(group) == 1 && len(all) == 1:
			line = describe(group[0].Knobs, given(group[0].Knobs))
		case len(group) == 1:
			line = describe(group[0].Knobs, which)
		default:
			line = plural(len(group), "set")
			if v := values(knobsOf(group), which); v != "" {
				line += " (" + v + ")"
			}
		}
		line += ": " + reason
		if !same {
			line += " (the figures are those of " + describe(group[0].Knobs, which) + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// values lists the values that each differing knob takes within a group of sets.
func values(group []measure.Knobs, which []bool) string {
	seen := make([][]string, len(which))
	for _, k := range group {
		for i, n := range measure.KnobTable {
			v := cmp.Or(knobText(n, k), "default")
			if i < len(which) && which[i] && !slices.Contains(seen[i], v) {
				seen[i] = append(seen[i], v)
			}
		}
	}
	var parts []string
	for i, n := range measure.KnobTable {
		switch {
		case i >= len(seen) || len(seen[i]) == 0:
		case n.Name == "gpu":
			parts = append(parts, strings.Join(seen[i], " or "))
		default:
			slices.SortStableFunc(seen[i], byValue)
			parts = append(parts, n.Short+" "+strings.Join(seen[i], " "))
		}
	}
	return strings.Join(parts, ", ")
}

// byValue orders the values of a knob: numbers by size, words before them.
func byValue(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64) // 0 for a word
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

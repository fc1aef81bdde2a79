package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/plan"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// addOffers tabulates the sized offers, and lists the other offers and the rejected knob sets by reason.
func addOffers(d *Document, title string, all []plan.Alternative, rejected []measure.Rejection) {
	ks := list.Map(all, func(a plan.Alternative) measure.Knobs {
		a.Offer.Knobs.GPU = cmp.Or(a.Offer.Knobs.GPU, a.Offer.GPU)
		return a.Offer.Knobs
	})
	which := differing(ks)
	which[0] = false // the GPU, which is always named
	tab := table(wrapped("instance"), right("GPUs", "instances", "per hour", "per million output tokens", "safe req/s of one"),
		extra(left("limited by")), extra(wrapped("note")))
	var unknown []measure.Rejection
	var shown []plan.Alternative
	rejected = slices.Clip(rejected)
	best := eachGPU(all)
	for i, a := range all {
		first := slices.ContainsFunc(best, func(b plan.Alternative) bool { return b.Offer.GPU == a.Offer.GPU && b.Offer.Knobs == a.Offer.Knobs })
		switch {
		case first && len(best) > 1 && a.Fleet.GPUs == 0:
			continue // it is in the finance table's list
		case a.Undecided:
			unknown = append(unknown, measure.Rejection{Knobs: ks[i], Reason: a.Reason})
			continue
		case a.Fleet.GPUs == 0:
			rejected = append(rejected, measure.Rejection{Knobs: ks[i], Reason: a.Reason})
			continue
		}
		tone := either(a.Reason.Note.Kind == note.Chosen, Strong, Plain)
		name := gpus(a.Offer.GPUs, &a.Offer) + behind(", ", values(ks[i:i+1], which)) + mark(&a.Offer)
		shown = append(shown, a)
		tab.row(Cell{name, tone}, a.Fleet.GPUs, a.Fleet.Instances, Cell{dollars(a.Cost.PerHour), tone}, dollars(a.Cost.PerMillionOutputTokens),
			safeRate(&a.Offer), boundName(a.Offer.Binding), Cell{a.Reason.Text, Quiet})
	}
	if chosen := len(all) == 1 && all[0].Feasible; !chosen {
		tab.first("instances", "JSON")
		d.section(title, tab.known())
		addMarked(d, shown)
	}
	d.section("Not decided", Bullets{Items: grouped(unknown, ks)})
	d.section("Rejected", Bullets{Items: grouped(rejected, append(ks, knobsOf(rejected)...))})
}

// safeRate prints the rate that sizes an offer's fleets, with enough digits to recompute their sizes.
func safeRate(o *plan.Offer) string { return exact(stat.RoundedDown(o.Rate.Safe, 5)) }

func knobsOf(rejected []measure.Rejection) []measure.Knobs {
	return list.Map(rejected, func(r measure.Rejection) measure.Knobs { return r.Knobs })
}

// grouped returns one line per kind of reason: the knobs in which its sets differ from all others, and the
// reason; if its figures differ between sets, those of the set with most memory.
func grouped(rejected []measure.Rejection, all []measure.Knobs) []string {
	which := apart(all)
	var lines []string
	for _, group := range list.Groups(rejected, func(r measure.Rejection) string { return r.Reason.Read().Likeness() }) {
		told := measure.MostMemory(group)
		sets := describe(group[0].Knobs, which)
		if len(group) > 1 {
			v := values(knobsOf(group), which)
			sets = plural(len(group), "set") + where(v != "", " ("+v+")")
		}
		differ := slices.ContainsFunc(group, func(r measure.Rejection) bool { return r.Reason.Text != told.Reason.Text })
		lines = append(lines, sets+": "+told.Reason.Text+where(differ, " (the figures are those of "+describe(told.Knobs, which)+")"))
	}
	return lines
}

// values lists the values of each chosen knob within a group of sets: "TP 4, seqs 256 512". A knob left to the
// engine reads "default".
func values(group []measure.Knobs, which []bool) string {
	var parts []string
	for i, n := range measure.KnobTable {
		if !which[i] {
			continue
		}
		seen := list.Distinct(list.Map(group, func(k measure.Knobs) string { return orDefault(knobText(n, k)) }))
		if n.Name == "gpu" {
			if seen[0] != "default" {
				parts = append(parts, strings.Join(seen, " or "))
			}
			continue
		}
		slices.SortStableFunc(seen, byValue)
		parts = append(parts, n.Short+" "+strings.Join(list.Map(seen, engine.Quote), " "))
	}
	return strings.Join(parts, ", ")
}

// Settings lists the values of knobs within a group of sets: of placement knobs or of the others.
func Settings(group []measure.Knobs, placement bool) string {
	which, differs := given(group[0]), differing(group)
	for i, n := range measure.KnobTable {
		which[i] = (which[i] || differs[i]) && n.Placement == placement
	}
	return values(group, which)
}

// byValue orders the values of a knob: words first, then numbers by size.
func byValue(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64) // 0 for a word
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

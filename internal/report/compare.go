package report

import (
	"fmt"
	"strings"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/design"
)

// contrasted are the columns of a comparison.
const contrasted = "figure a b difference difference_low difference_high relative relative_low relative_high p p_adjusted pairs judgement"

func comparisonDocument(c *design.Compared, e Engines) Document {
	d := Document{Title: compared(c), Data: sheet(c.Contrasts, contrasted, nil)}
	facts := Facts{{Label: "A", Text: c.A}, {Label: "B", Text: c.B}, {Label: "pairs", Text: c.Design}, {Label: "test", Text: c.Test},
		{Label: "the same", Text: "a whole interval within " + percent(c.Indifference) + " of no difference; what is neither that nor clearly different is undecided"}}
	if c.FailIfWorse > 0 {
		facts = append(facts, worseFact(c))
	}
	d.add(facts, contrastTable(c))
	addEngines(&d, &e, c.Trials, nil)
	addWarnings(&d, c.Warnings.Notes)
	return d
}

func worseFact(c *design.Compared) Fact {
	label := "worse by " + percent(c.FailIfWorse)
	failed := list.Map(c.Failed(), func(x design.Contrast) string { return x.Label + " " + signedShare(x.Relative.Value) })
	switch {
	case len(failed) > 0:
		return Fact{label, join(failed), Bad}
	case !c.Tested():
		return Fact{label, "not known: one pair tells nothing of chance; measure several loads, as 'planner sweep --rates' does", Doubt}
	}
	return Fact{label, "none is shown to be", Good}
}

func compared(c *design.Compared) string {
	by := map[design.Judgement][]string{}
	for _, x := range c.Contrasts {
		by[x.Judgement] = append(by[x.Judgement], x.Label)
	}
	n := len(c.Contrasts) - len(by[design.NotJudged])
	down := c.Warnings.Notes.Of(note.SideDown)
	switch {
	case len(down) > 0:
		return "Not compared: " + down[0].String()
	case n == 0:
		return "Nothing of A and B can be compared"
	case len(by[design.Same]) == n:
		return fmt.Sprintf("No difference: A and B are within %s of each other in all %d figures", percent(c.Indifference), n)
	case len(by[design.Undecided]) == n:
		return "Undecided: no figure shows a difference, and none shows that there is none"
	}
	parts := list.Map([]design.Judgement{design.Better, design.Worse, design.Same, design.Undecided}, func(j design.Judgement) string {
		return behind(judgements[j].Text+" in ", either(len(by[j]) > 3, fmt.Sprintf("%d figures", len(by[j])), join(by[j])))
	})
	return "B against A: " + strings.Join(said(parts...), "; ")
}

func contrastTable(c *design.Compared) Table {
	tab := table(left("figure"), right("A", "B"), extra(right("difference")), right("relative", "interval"), extra(right("p", "pairs")), left("B is"))
	tab.Caption = "Relative differences with their " + percent(c.Confidence) + " intervals, each by itself; p is adjusted for all figures together (Holm, or by the signs of the pairs)."
	for _, x := range c.Contrasts {
		interval := either(finite(x.Relative.Low) && finite(x.Relative.High), signedShare(x.Relative.Low)+" to "+signedShare(x.Relative.High), unknown)
		difference := plus(fixed(x.Difference.Value, 3-exponent(max(x.A, x.B), 4))) // to the last digit of both
		tab.row(x.Label, number(x.A, 4), number(x.B, 4), difference, signedShare(x.Relative.Value),
			interval, probability(x.Adjusted), x.Pairs, judgements[x.Judgement])
	}
	return tab
}

// judgements describe B relative to A.
var judgements = map[design.Judgement]Cell{
	design.Better: {"better", Good}, design.Worse: {"worse", Bad}, design.Same: {"the same", Plain}, design.Undecided: {"undecided", Doubt},
	design.NotJudged: {"", Plain},
}

func probability(p float64) string { return either(p < 0.001, "< 0.001", number(p, 2)) }

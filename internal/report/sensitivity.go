package report

import (
	"math"
	"strings"

	"planner/plan"
)

// addSensitivity tabulates what the chosen instances would cost if things turn out other
// than planned, as a tornado: the largest change first, with a bar.
func addSensitivity(d *Document, p *plan.Plan) {
	tab := table(wrapped("if"), right("GPUs", "per hour", "change"), left(""))
	var cannot, same []string
	approximate := false
	for _, c := range p.Sensitivity {
		if c.GPUs == 0 {
			cannot = append(cannot, c.What+": "+c.Reason.Text)
			continue
		}
		moved := float64(c.GPUs)/float64(p.Fleet.GPUs) - 1
		if c.PerHour != nil && p.Cost.PerHour != nil {
			moved = *c.PerHour / *p.Cost.PerHour - 1
		}
		what := c.What
		if c.Approximate {
			what, approximate = what+" *", true
		}
		if math.Abs(moved) < 1e-9 {
			same = append(same, what)
			continue
		}
		tab.row(what, c.GPUs, dollars(c.PerHour), signedShare(moved), Cell{bar(moved), Quiet})
	}
	if len(same) > 0 {
		cannot = append(cannot, "no change: "+strings.Join(same, "; "))
	}
	d.section("If it turns out otherwise", tab.known(), Bullets{Items: cannot})
	if approximate {
		d.add(Paragraph{Text: "* about: the chosen instance with its settings, its rate moved by what short simulated runs say; a plan for it searches anew.", Tone: Quiet})
	}
}

// bar draws the size of a relative change; beyond a doubling it is cut.
func bar(moved float64) string {
	return strings.Repeat("#", int(math.Round(min(math.Abs(moved), 1)*20-1e-9)))
}

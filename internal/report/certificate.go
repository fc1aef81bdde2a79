package report

import (
	"math"

	"planner/search"
	"planner/sweep/measure"
)

// addCertificate tells of the test of one rate without any curve, if there was
// one.
func addCertificate(d *Document, c *search.Certified) {
	if c == nil {
		return
	}
	facts := Facts{}
	if c.State == measure.Met {
		facts = append(facts, Fact{Label: "certified", Text: number(c.Rate, 3) + " requests/s, whatever the curve", Tone: Good})
	} else {
		facts = append(facts, Fact{Label: "not certified", Text: rateCell(c.Rate) + " requests/s: " + c.Reason, Tone: Doubt})
	}
	if c.Requests > 0 {
		facts = append(facts, Fact{Label: "seen", Text: count(int(math.Round(c.Beyond))) + " of " + count(int(math.Round(c.Requests))) + " requests beyond " + boundName(c.Binding) + " in " +
			plural(c.Looks, "look") + ", " + latency(c.EngineTime) + " of engine time"},
			Fact{Label: "as few", Text: "would come with a probability of " + percent(round(c.Probability, 4)) +
				" if just the allowed share were beyond; at most 3 % is asked of each look"})
	}
	d.section("Certificate", facts)
}

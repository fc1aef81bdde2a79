package decide

import (
	"fmt"

	"planner/internal/note"
	"planner/plan"
)

// addDrafting states what was assumed about speculative decoding, and from which load on it does harm.
func (d *Decision) addDrafting(p *plan.Plan, load float64) error {
	sim, k := d.ground.Predict, p.Offer.Knobs
	s := sim.Args(k).Speculation
	if !s.On() {
		return nil
	}
	roofline, memory, err := sim.Model(k)
	if err != nil {
		return err
	}
	pays, err := roofline.Drafting(d.cachedRequest(k), memory)
	if err != nil {
		return err
	}
	source := "as configured"
	if from := d.cfg.Model.Arch.Published; d.cfg.SpeculationPublished() {
		source = "published: " + from.Source
	}
	text := fmt.Sprintf("speculative decoding is modelled, not measured: %d tokens proposed in a step by %s, of which %.3g are accepted in the mean (%s); ",
		s.Tokens, s.Method, s.PerStep()-1, source)
	switch {
	case pays.Always:
		text += "it makes answers faster at every load"
	case pays.Rate == 0:
		text += "it makes answers slower even on an idle instance"
	default:
		text += fmt.Sprintf("it makes answers faster up to about %.2g requests/s on an instance (%.0f at once), and slower above", pays.Rate, pays.Batch)
	}
	p.Assumptions = append(p.Assumptions, text)
	p.Warnings = append(p.Warnings, note.If(!pays.Always && load > pays.Rate, note.DraftHurts, load, pays.Rate)...)
	return nil
}

package plan

import (
	"encoding/json"
	"fmt"

	"planner/internal/wire"
)

// Written is the plan's JSON form, with what follows from its evidence. Everything but the key "run" is a
// function of the inputs of the plan, to the byte.
func (p *Plan) Written() any {
	w := plainPlan(*p)
	e := &w.Evidence
	if e.Roofline != nil {
		e.Roofline = e.Roofline.of(&p.Offer, &p.Demand)
	}
	if c := e.Curve; c != nil {
		e.Saturation = c.Saturation
		if c.Knee > 0 {
			e.Knee = &c.Knee
		}
	}
	return planFile{w, w.Warnings.Texts()}
}

// planFile is the JSON form of a plan.
type planFile struct {
	plainPlan
	Warnings []string `json:"warnings"` // the notes in words
}

type plainPlan Plan

// UnmarshalJSON reads what was written except curves and roofline, which readers of a plan do not need. Run
// becomes a json.RawMessage.
func (p *Plan) UnmarshalJSON(data []byte) error {
	var run json.RawMessage
	w := struct {
		plainPlan
		Roofline json.RawMessage `json:"roofline"`
		Curve    json.RawMessage `json:"curve"`
		Curves   json.RawMessage `json:"curves"`
	}{plainPlan: plainPlan{Run: &run}}
	if err := wire.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read a plan: %w", err)
	}
	if w.Run = nil; run != nil {
		w.Run = run
	}
	*p = Plan(w.plainPlan)
	return nil
}

// Written is the alternative's JSON form in plans; an offer that could not be sized has neither fleet nor cost.
func (a Alternative) Written() any {
	w := alternativeFile{plainAlternative: plainAlternative(a), Warnings: a.Offer.Warnings.Texts(), Obstacle: a.Offer.Obstacle.Text}
	if a.Fleet.GPUs > 0 {
		w.Fleet, w.Cost = &a.Fleet, &a.Cost
	}
	return w
}

// alternativeFile is the JSON form of an alternative.
type alternativeFile struct {
	plainAlternative
	Fleet *Fleet `json:"fleet"`
	Cost  *Cost  `json:"cost"`

	Warnings []string `json:"warnings,omitempty"` // the notes in words
	Obstacle string   `json:"obstacle,omitempty"` // why it carries no rate that meets the objective
}

type plainAlternative Alternative

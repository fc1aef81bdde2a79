package plan

import (
	"encoding/json"
	"fmt"

	"planner/internal/wire"
)

// Written is the plan in a file, with what follows from its evidence. Everything but the
// key "run" is a function of what the plan was solved from, to the byte.
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

// planFile is a plan in a file.
type planFile struct {
	plainPlan
	Warnings []string `json:"warnings"` // the notes in words
}

type plainPlan Plan

// UnmarshalJSON reads what was written, but for the curves and the roofline: who is
// handed a plan over has no use for them. Run becomes a json.RawMessage.
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

// Written is the alternative as plans list it; an offer that could not
// be sized has no fleet and no cost.
func (a Alternative) Written() any {
	w := alternativeFile{plainAlternative: plainAlternative(a), Warnings: a.Offer.Warnings.Texts(), Obstacle: a.Offer.Obstacle.Text}
	if a.Fleet.GPUs > 0 {
		w.Fleet, w.Cost = &a.Fleet, &a.Cost
	}
	return w
}

// alternativeFile is an alternative in a file.
type alternativeFile struct {
	plainAlternative
	Fleet *Fleet `json:"fleet"`
	Cost  *Cost  `json:"cost"`

	Warnings []string `json:"warnings,omitempty"` // the notes in words
	Obstacle string   `json:"obstacle,omitempty"` // why it serves no rate under the objective
}

type plainAlternative Alternative

package plan

import (
	"encoding/json"
	"errors"
	"fmt"

	"planner/internal/note"
	"planner/internal/wire"
)

// MarshalJSON writes the plan with what follows from its evidence. Everything but the
// key "run" is a function of what the plan was solved from, to the byte.
func (p *Plan) MarshalJSON() ([]byte, error) {
	type plain Plan
	w := plain(*p)
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
	w.Alternatives, w.Rejected = list(w.Alternatives), list(w.Rejected)
	w.Assumptions, w.Sensitivity, w.Handover.Modelled = list(w.Assumptions), list(w.Sensitivity), list(w.Handover.Modelled)
	e.Diagnosis, e.Trust, e.Effects = list(e.Diagnosis), list(e.Trust), list(e.Effects)
	return wire.Marshal(struct {
		plain
		Warnings []string `json:"warnings"`
	}{w, w.Warnings.Texts()})
}

// list is never nil, which would be null in a file.
func list[T any](all []T) []T { return append([]T{}, all...) }

// UnmarshalJSON reads what MarshalJSON wrote. Run becomes a json.RawMessage.
func (p *Plan) UnmarshalJSON(data []byte) error {
	type plain Plan
	var run json.RawMessage
	w := plain{Run: &run}
	var told note.Warnings
	if err := errors.Join(wire.Unmarshal(data, &w), wire.Unmarshal(data, &told)); err != nil {
		return fmt.Errorf("read a plan: %w", err)
	}
	w.Warnings = told.Read()
	// A plan of an earlier version chose the best set whatever it gained.
	if c := w.Comparison; c != nil && c.Tuned == (Setting{}) {
		c.Tuned = Setting{w.Offer.Knobs, &w.Offer.Rate}
	}
	if w.Run = nil; run != nil {
		w.Run = run
	}
	*p = Plan(w)
	return nil
}

// MarshalJSON writes the alternative as plans list it; an offer that could not
// be sized has no fleet and no cost.
func (a Alternative) MarshalJSON() ([]byte, error) {
	type plain Alternative
	w := struct {
		plain
		Fleet *Fleet `json:"fleet"`
		Cost  *Cost  `json:"cost"`

		Warnings []string `json:"warnings,omitempty"`
		Obstacle string   `json:"obstacle,omitempty"`
	}{plain: plain(a), Warnings: a.Offer.Warnings.Texts(), Obstacle: a.Offer.Obstacle.Text}
	if a.Fleet.GPUs > 0 {
		w.Fleet, w.Cost = &a.Fleet, &a.Cost
	}
	return wire.Marshal(w)
}

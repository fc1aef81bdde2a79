package decide

import (
	"planner/internal/list"
	"planner/model"
	"planner/plan"
	"planner/plan/diagnose"
	"planner/plan/effects"
	"planner/plan/trust"
	"planner/sweep/measure"
)

// Settings returns the knob sets that were tried on a plan's kind of instance, with their approximate rates.
func Settings(p *plan.Plan, trials []measure.Measurement) []effects.Setting {
	return effects.Rates(trials, effects.Setting{Knobs: p.Offer.Knobs, Rate: p.Offer.Rate.Value}, p.Evidence.AllCurves(), p.Evidence.Crossed)
}

// judge diagnoses the server with some knobs from its trials, and checks these against a benchmark checklist
// for a rate that they should show.
func (s *searches) judge(k measure.Knobs, gpu string, rate float64) ([]diagnose.Finding, []trust.Item) {
	mine := list.Filter(s.Seen, func(m measure.Measurement) bool { return m.Trial.Knobs == k })
	of := trust.Subject{GPU: gpu, Rate: rate, Objective: s.cfg.Objective}
	if s.cfg.Model.Known {
		of.Weights = s.cfg.Precision(k).Weights.String()
	}
	bounds, err := s.bounds(k)
	if err != nil {
		bounds = nil // knobs that the model rejects but that ran all the same
	}
	return diagnose.Of(mine, bounds, s.cfg.Objective), trust.Check(mine, of)
}

// bounds returns what the data sheets allow an instance with some knobs; nil if model and hardware are unknown.
func (s *searches) bounds(k measure.Knobs) (*model.Bounds, error) {
	if s.ground.Predict == nil {
		return nil, nil
	}
	roofline, memory, err := s.ground.Predict.Model(k)
	if err != nil {
		return nil, err
	}
	bounds := roofline.Bounds(s.cachedRequest(k), memory)
	return &bounds, nil
}

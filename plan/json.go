package plan

import (
	"encoding/json"
	"fmt"

	"planner/model/curve"
	"planner/search"
	"planner/sweep/measure"
)

// planJSON is a plan in a file: plan.json and what --json prints. The offer's
// own warnings are among the plan's.
type planJSON struct {
	Offer
	Default *defaultJSON `json:"default_knobs"`
	evidenceJSON
	Fleet       Fleet               `json:"fleet"`
	Cost        planCostJSON        `json:"cost"`
	Alternative []alternativeJSON   `json:"alternatives"`
	Rejected    []measure.Rejection `json:"rejected"`
	Assumptions []string            `json:"assumptions"`
	Warnings    []string            `json:"warnings"`
	Demand      Demand              `json:"demand"`
	Objective   measure.SLO         `json:"slo"`
	Certificate *search.Certified   `json:"certificate,omitempty"`
	Run         any                 `json:"run,omitempty"`
}

// evidenceJSON is what is known of one instance of the chosen offer, in a file.
type evidenceJSON struct {
	Roofline   *rooflineJSON     `json:"roofline"`
	Curve      *curve.Curve      `json:"curve"`
	Curves     []*curve.Curve    `json:"curves,omitempty"`
	Knee       *float64          `json:"knee_per_s"`
	Saturation *curve.Saturation `json:"saturation_per_s"`
}

func (p *Plan) evidence() evidenceJSON {
	c := p.Evidence.Curve
	w := evidenceJSON{Roofline: rooflineOf(p.Evidence.Roofline, &p.Offer), Curve: c, Curves: p.Evidence.Curves}
	if c != nil {
		w.Saturation = c.Saturation
		if c.Knee > 0 {
			w.Knee = &c.Knee
		}
	}
	return w
}

// defaultJSON is the comparison in a file: the engine's own settings, the best
// that the search found, and what these gain.
type defaultJSON struct {
	Setting
	Tuned *Setting `json:"tuned"`
	Gain  *Gain    `json:"gain"`
}

type planCostJSON struct {
	Cost
	AtCapacity Cost  `json:"at_capacity"`
	AtMean     *Cost `json:"at_mean"`
}

type alternativeJSON struct {
	Offer
	Feasible  bool   `json:"feasible"`
	Undecided bool   `json:"undecided,omitempty"`
	Reason    string `json:"reason"`
	Fleet     *Fleet `json:"fleet"`
	Cost      *Cost  `json:"cost"`
}

// MarshalJSON writes the plan. Everything but the key "run" is a function of
// what the plan was solved from, to the byte.
func (p *Plan) MarshalJSON() ([]byte, error) {
	w := planJSON{
		Offer: p.Offer, evidenceJSON: p.evidence(), Fleet: p.Fleet, Cost: planCostJSON{p.Cost, p.AtCapacity, p.AtMean},
		Alternative: make([]alternativeJSON, len(p.Alternatives)), Rejected: append([]measure.Rejection{}, p.Rejected...),
		Assumptions: append([]string{}, p.Assumptions...), Warnings: append([]string{}, p.Warnings...),
		Demand: p.Demand, Objective: p.Objective, Certificate: p.Evidence.Certificate, Run: p.Run,
	}
	if c := p.Comparison; c != nil {
		w.Default = &defaultJSON{c.Default, &c.Tuned, c.Gain}
	}
	for i := range p.Alternatives {
		w.Alternative[i] = p.Alternatives[i].wire()
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. Run becomes a json.RawMessage.
func (p *Plan) UnmarshalJSON(data []byte) error {
	var run json.RawMessage
	w := planJSON{Run: &run}
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read a plan: %w", err)
	}
	out := Plan{
		Demand: w.Demand, Objective: w.Objective, Offer: w.Offer, Fleet: w.Fleet,
		Cost: w.Cost.Cost, AtCapacity: w.Cost.AtCapacity, AtMean: w.Cost.AtMean,
		Evidence: Evidence{Roofline: w.Roofline.bounds(), Curve: w.Curve, Curves: w.Curves, Certificate: w.Certificate},
		Rejected: w.Rejected, Assumptions: w.Assumptions, Warnings: w.Warnings,
	}
	if d := w.Default; d != nil {
		// A plan of an earlier version chose the best set whatever it gained.
		out.Comparison = &Comparison{Default: d.Setting, Tuned: Setting{w.Offer.Knobs, &w.Offer.Rate}, Gain: d.Gain}
		if d.Tuned != nil {
			out.Comparison.Tuned = *d.Tuned
		}
	}
	for _, a := range w.Alternative {
		out.Alternatives = append(out.Alternatives, a.alternative())
	}
	if run != nil {
		out.Run = run
	}
	*p = out
	return nil
}

// MarshalJSON writes the alternative as plans list it; an offer that could not
// be sized has no fleet and no cost.
func (a *Alternative) MarshalJSON() ([]byte, error) { return json.Marshal(a.wire()) }

func (a *Alternative) wire() alternativeJSON {
	w := alternativeJSON{Offer: a.Offer, Feasible: a.Feasible, Undecided: a.Undecided, Reason: a.Reason}
	if a.Fleet.GPUs > 0 {
		w.Fleet, w.Cost = &a.Fleet, &a.Cost
	}
	return w
}

func (w *alternativeJSON) alternative() Alternative {
	a := Alternative{Offer: w.Offer, Feasible: w.Feasible, Undecided: w.Undecided, Reason: w.Reason}
	if w.Fleet != nil {
		a.Fleet = *w.Fleet
	}
	if w.Cost != nil {
		a.Cost = *w.Cost
	}
	return a
}

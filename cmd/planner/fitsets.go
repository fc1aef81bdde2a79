package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"planner/internal/config"
	"planner/model/curve"
	"planner/plan"
	"planner/search"
	"planner/sweep/measure"
)

// fitted is one knob set of the results: its curves, that of the binding metric
// first, none where no trial resolves it, and what one instance gives.
type fitted struct {
	curves []*curve.Curve
	offer  plan.Offer
}

// fitSets fits the trials of each knob set on their own. A set that cannot be
// fitted is rejected with the reason, unless it is the only one.
func fitSets(cfg *config.Config, trials []measure.Measurement) ([]fitted, []measure.Rejection, error) {
	sets, err := setsOf(trials)
	if err != nil {
		return nil, nil, err
	}
	var fits []fitted
	var rejected []measure.Rejection
	var first error
	for _, set := range sets {
		f, err := fitSet(cfg, set)
		if err != nil {
			if first == nil {
				first = err
			}
			rejected = append(rejected, measure.Rejection{Knobs: set[0].Trial.Knobs, Reason: err.Error()})
			continue
		}
		fits = append(fits, f)
	}
	if len(fits) == 0 {
		return nil, nil, first
	}
	return fits, rejected, nil
}

// setsOf splits results by knobs, in the order in which they come. Different
// traffic has no common curve.
func setsOf(trials []measure.Measurement) ([][]measure.Measurement, error) {
	var sets [][]measure.Measurement
	traffic := ""
	for i := range trials {
		m := &trials[i]
		text, err := json.Marshal(m.Trial.Workload)
		if err != nil {
			return nil, err
		}
		if traffic == "" {
			traffic = string(text)
		}
		if string(text) != traffic {
			return nil, usagef("fit: the results are of different workloads; fit those of one workload at a time")
		}
		j := slices.IndexFunc(sets, func(s []measure.Measurement) bool { return s[0].Trial.Knobs == m.Trial.Knobs })
		if j < 0 {
			j, sets = len(sets), append(sets, nil)
		}
		sets[j] = append(sets[j], *m)
	}
	return sets, nil
}

func fitSet(cfg *config.Config, trials []measure.Measurement) (fitted, error) {
	f := fitted{offer: plan.Offer{Knobs: trials[0].Trial.Knobs}}
	rate, counted := countedRate(cfg, trials)
	if counted {
		f.offer.Rate, f.offer.Binding, f.offer.Warnings = rate.Estimate, rate.Binding, rate.Warnings
	}
	curves, crossing, err := fitCurves(cfg, trials)
	if err != nil {
		if counted {
			// The counts say what quantiles that no trial resolves cannot.
			f.offer.Warnings = append(f.offer.Warnings, "no curve is drawn: "+err.Error())
			return f, nil
		}
		return f, err
	}
	f.curves = curves
	if !counted {
		f.offer.Rate, f.offer.Binding = plan.FromCrossing(&crossing), crossing.Bound.String()
		switch crossing.Outcome {
		case curve.Below, curve.Undetermined:
			f.offer.Obstacle = crossing.Note
		case curve.NotReached:
			f.offer.Unreached = true
			f.offer.Warnings = append(f.offer.Warnings, "no rate measured is beyond the limits: the maximum rate of one instance is not known, "+
				"the fleet is sized by the highest rate measured and may be larger than needed; trials at higher rates would tell")
		}
	}
	return f, nil
}

// leastCounted is how many trials with counts an interval may rest on.
const leastCounted = 3

// countedRate is the posterior of the maximum rate from trials that counted
// requests beyond the very limits in question; false where too few did, or none
// met the limits, or none missed them. It is what a search of the same trials
// would have reported.
func countedRate(cfg *config.Config, trials []measure.Measurement) (search.Result, bool) {
	var counted []*measure.Measurement
	met, missed, middle := false, false, 0.0
	for i := range trials {
		m := &trials[i]
		if !m.Valid || m.Rejected != "" || m.Trial.Closed() || m.Trial.Rate <= 0 || m.Trial.Workload == nil || !countsOf(m, cfg.Objective) {
			continue
		}
		counted = append(counted, m)
		middle += math.Log(m.Trial.Rate)
		within := withinLimits(m)
		met, missed = met || within, missed || !within
	}
	if len(counted) < leastCounted || !met || !missed {
		return search.Result{}, false
	}
	s := search.NewMaxRate(search.MaxRateConfig{
		// Where to look, and next to nothing about where it lies.
		Prior:    search.Prior{Knobs: counted[0].Trial.Knobs, Rate: math.Exp(middle / float64(len(counted))), Spread: 1},
		Workload: counted[0].Trial.Workload, SLO: cfg.Objective, Seed: cfg.Workload.Seed,
		Precision: cfg.Search.Precision, Confidence: cfg.Search.Confidence,
		// No trial can be added to results.
		Budget: 1,
	})
	for _, m := range counted {
		s.Observe(*m)
	}
	s.Next()
	r := s.Result()
	return r, r.Estimate.Safe > 0
}

// withinLimits reports whether no bound was beyond its limit by the raw counts.
func withinLimits(m *measure.Measurement) bool {
	for _, b := range m.Trial.Objective.Bounds {
		c, _ := m.Count(b.String())
		if b.Quantile == 0 && c.Value > 1 || b.Quantile > 0 && float64(c.K) > b.Allowed()*float64(c.N) {
			return false
		}
	}
	return !m.Overloaded
}

// countsOf reports whether a measurement counted what each bound of an objective
// asks for.
func countsOf(m *measure.Measurement, slo measure.SLO) bool {
	for _, b := range slo.Bounds {
		if !slices.Contains(m.Trial.Objective.Bounds, b) {
			return false
		}
		if _, ok := m.Count(b.String()); !ok {
			return false
		}
	}
	return true
}

// instanceGPUs is the number of GPUs behind a knob set: what the user says, else
// what the knobs do.
func (f *fitted) instanceGPUs(said int, given bool) int {
	if given {
		return said
	}
	return f.offer.Knobs.GPUs()
}

// offersOf lists the offers of all knob sets. The GPU is what the user says, else
// what the knobs do.
func offersOf(fits []fitted, gpu string, gpus int, given bool) []plan.Offer {
	offers := make([]plan.Offer, len(fits))
	for i := range fits {
		f := &fits[i]
		f.offer.GPU, f.offer.GPUs = cmp.Or(gpu, f.offer.Knobs.GPU), f.instanceGPUs(gpus, given)
		offers[i] = f.offer
	}
	return offers
}

// chosenFit finds the fit of the knobs that a plan chose.
func chosenFit(fits []fitted, k measure.Knobs) (*fitted, error) {
	for i := range fits {
		if fits[i].offer.Knobs == k {
			return &fits[i], nil
		}
	}
	return nil, fmt.Errorf("no fit of the chosen knobs %v", k)
}

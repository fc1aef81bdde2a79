package decide

import (
	"fmt"
	"math"

	"planner/internal/note"
	"planner/plan"
	"planner/search"
	"planner/sweep/measure"
)

// wideFactor is by how much an interval must be wider than asked for until a plan
// warns of it.
const wideFactor = 1.5

// impreciseWarning tells that the maximum rate is known much less well than the
// configuration asks for, why, what that costs and what helps.
func (d *Decision) impreciseWarning(p *plan.Plan) note.Notes {
	e, asked := p.Offer.Rate, d.cfg.Search.Precision
	half := (e.High - e.Low) / 2 / e.Value
	if !(e.Value > 0) || !(half > wideFactor*asked) {
		return nil
	}
	wide := func(why string) note.Notes {
		return note.Notes{note.New(note.Imprecise, 100*(e.Low/e.Value-1), 100*(e.High/e.Value-1), 100*asked, why)}
	}
	found := d.chosen.selected.found
	low, high := d.chosen.selected.doubt.ends()
	switch alone := found.Estimate; {
	case (math.Exp(high)-math.Exp(low))/2 > (alone.High-alone.Low)/2/alone.Value:
		return wide("; most of that is what is not known of the engine's constants on this GPU and model, which more trials do not tell" + atCentralRate(p) +
			"; a measurement narrows it: a short bench of two loads on such a GPU, `planner calibrate`, and engine.calibration")
	case found.Outcome != search.Found:
		return wide(": " + found.Reason + atCentralRate(p) + "; a larger search.budget narrows it")
	}
	return wide(": one curve does not describe all trials" + atCentralRate(p))
}

// atCentralRate says what the width of the interval costs: the fleet is that of its
// lower end.
func atCentralRate(p *plan.Plan) string {
	f, err := p.FleetAt(p.Offer.Rate.Value)
	if err != nil || f.GPUs >= p.Fleet.GPUs {
		return ""
	}
	return fmt.Sprintf("; the fleet is sized by the safe rate and takes %d GPUs, where the central %.3g requests/s would take %d",
		p.Fleet.GPUs, p.Offer.Rate.Value, f.GPUs)
}

// explainScaling says why an instance of more GPUs carries less than one of
// fewer GPUs of the same kind, where it does beyond the intervals.
func explainScaling(offers []plan.Offer, trials []measure.Measurement) {
	for i := range offers {
		big := &offers[i]
		for _, small := range offers {
			slower := small.GPU == big.GPU && small.GPUs < big.GPUs && big.Rate.Value > 0 && big.Rate.Value < small.Rate.Low
			if !slower {
				continue
			}
			big.Warnings = append(big.Warnings, slowerBecause(&small, big, trials))
			break
		}
	}
}

func slowerBecause(small, big *plan.Offer, trials []measure.Measurement) note.Note {
	carried := []any{big.GPUs, small.GPUs, big.Rate.Value, small.Rate.Value}
	a, b := sharesNear(trials, small), sharesNear(trials, big)
	if a == nil || b == nil {
		return note.New(note.MoreGPUsSlower, carried...)
	}
	return note.New(note.MoreGPUsTalk, append(carried, 100*b.Communication, 100*a.Communication)...)
}

// sharesNear is how the engine spent its time in the offer's trial nearest to
// its maximum rate; nil if no trial tells.
func sharesNear(trials []measure.Measurement, o *plan.Offer) *measure.TimeShares {
	var best *measure.TimeShares
	nearest := math.Inf(1)
	for i := range trials {
		m := &trials[i]
		if m.Trial.Knobs != o.Knobs || m.Server.Time == nil || m.Trial.Rate <= 0 {
			continue
		}
		if d := math.Abs(math.Log(m.Trial.Rate / o.Rate.Value)); d < nearest {
			nearest, best = d, m.Server.Time
		}
	}
	return best
}

// untrusted warns of trials of the knobs that could not be trusted, such as
// those whose load generator had too little of the machine: an answer stands on
// the others.
func untrusted(trials []measure.Measurement, k measure.Knobs) note.Notes {
	all, doubtful, why := 0, 0, ""
	for i := range trials {
		m := &trials[i]
		if m.Trial.Knobs != k || m.Rejected != "" {
			continue
		}
		all++
		if !m.Valid && m.Aborted == "" {
			doubtful++
			if why == "" && len(m.Warnings) > 0 {
				why = ", first " + m.Warnings[0].String()
			}
		}
	}
	switch {
	case doubtful == 0:
		return nil
	case all == 1:
		return note.Notes{note.New(note.OnlyUntrusted, why)}
	case doubtful == all:
		return note.Notes{note.New(note.AllUntrusted, all, why)}
	}
	return note.Notes{note.New(note.SomeUntrusted, doubtful, all, why)}
}

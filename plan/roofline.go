package plan

import (
	"planner/internal/wire"
	"planner/model"
)

// DataSheet is what the data sheets allow an instance. A file has its times in
// milliseconds, with what of it the chosen offer reaches: nil where the tokens of a request are unknown.
type DataSheet struct {
	model.Bounds
	Highest *float64 `json:"ceiling_per_s"`      // the rate at which decoding or prefill alone takes all of the hardware
	BoundBy string   `json:"bound_by,omitempty"` // which of the two
	Reached *float64 `json:"reached"`            // the share of the ceiling that the maximum rate is
}

type plainDataSheet DataSheet

// Ceiling is the highest rate in requests per second that the roofline allows an
// instance of the offer: the lower of what prefill and what decoding would take
// alone, with the name of the lower one. It is 0 where the tokens of a request
// are unknown.
func (r *DataSheet) Ceiling(o *Offer) (rate float64, by string) {
	if r.PromptsPerS > 0 {
		rate, by = r.PromptsPerS, "prefill"
	}
	if o.OutputTokens > 0 && r.OutputTokensPerS > 0 {
		if decode := r.OutputTokensPerS / o.OutputTokens; by == "" || decode < rate {
			rate, by = decode, "decode"
		}
	}
	return rate, by
}

// of is the roofline with what of it an offer reaches under a demand: of a trace the
// mean, as the hardware may still be at work on a peak when that is over.
func (r DataSheet) of(o *Offer, d *Demand) *DataSheet {
	if rate, by := r.Ceiling(o); rate > 0 {
		r.Highest, r.BoundBy, r.Reached = &rate, by, new(d.TraceRates.MeanAt(o.Rate.Value)/rate)
	}
	return &r
}

// Written is the roofline in a file, with times in milliseconds.
func (r *DataSheet) Written() any {
	w := plainDataSheet(*r)
	for _, x := range []*float64{&w.WeightSeconds, &w.AllWeightSeconds, &w.KVSeconds, &w.PrefillSeconds, &w.IdleTTFT, &w.IdleTPOT} {
		*x = wire.Milliseconds(*x)
	}
	return w
}

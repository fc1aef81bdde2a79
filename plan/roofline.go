package plan

import (
	"planner/internal/wire"
	"planner/model"
)

// DataSheet is what the data sheets allow an instance. Its JSON form has times in milliseconds and how much of
// it the chosen offer reaches: nil if the tokens of a request are unknown.
type DataSheet struct {
	model.Bounds
	Highest *float64 `json:"ceiling_per_s"`      // the rate at which prefill or decoding alone takes all of the hardware, whichever is lower
	BoundBy string   `json:"bound_by,omitempty"` // which of the two
	Reached *float64 `json:"reached"`            // the maximum rate as a share of the ceiling
}

type plainDataSheet DataSheet

// Ceiling returns the highest rate in requests per second that the roofline allows an instance of the offer:
// the lower of the limits by prefill and by decoding alone, and which it is. It is 0 if both are unknown.
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

// of returns the roofline with how much of it an offer reaches under a demand; for a trace by the mean rate, as
// the hardware may work off a peak after it is over.
func (r DataSheet) of(o *Offer, d *Demand) *DataSheet {
	if rate, by := r.Ceiling(o); rate > 0 {
		r.Highest, r.BoundBy, r.Reached = &rate, by, new(d.TraceRates.MeanAt(o.Rate.Value)/rate)
	}
	return &r
}

// Written is the roofline's JSON form, with times in milliseconds.
func (r *DataSheet) Written() any {
	w := plainDataSheet(*r)
	for _, x := range []*float64{&w.WeightSeconds, &w.AllWeightSeconds, &w.KVSeconds, &w.PrefillSeconds, &w.IdleTTFT, &w.IdleTPOT} {
		*x = wire.Milliseconds(*x)
	}
	return w
}

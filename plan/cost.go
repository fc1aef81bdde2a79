package plan

// Cost is in US dollars; a figure that is not known is nil.
type Cost struct {
	PerHour                *float64 `json:"usd_per_hour"`
	PerMillionOutputTokens *float64 `json:"usd_per_million_output_tokens"`
	PerMillionTokens       *float64 `json:"usd_per_million_tokens"`
	PerThousandRequests    *float64 `json:"usd_per_thousand_requests"`
	// EnergyPerHour is that of the GPUs under load at the power price, and not a
	// part of the other figures: rented GPUs come with their power.
	EnergyPerHour *float64 `json:"usd_energy_per_hour,omitempty"`
}

const secondsPerHour = 3600

// price is the cost of a fleet that serves rate requests per second in all.
func (o *Offer) price(f *Fleet, rate float64) Cost {
	var c Cost
	gpus := float64(f.GPUs)
	if o.Watts > 0 && o.PowerPrice > 0 {
		c.EnergyPerHour = new(gpus * o.Watts / 1000 * o.PowerPrice)
	}
	if o.PricePerGPUHour <= 0 {
		return c
	}
	hourly := gpus * o.PricePerGPUHour
	c.PerHour = &hourly
	if rate <= 0 {
		return c
	}
	perRequest := hourly / (secondsPerHour * rate)
	c.PerThousandRequests = new(perRequest * 1e3)
	if o.OutputTokens > 0 {
		c.PerMillionOutputTokens = new(perRequest / o.OutputTokens * 1e6)
		if o.PromptTokens > 0 {
			c.PerMillionTokens = new(perRequest / (o.PromptTokens + o.OutputTokens) * 1e6)
		}
	}
	return c
}

// Bill is the cost of all instances: at the planned rate, at what they carry safely,
// and at the mean rate (nil when that is not known).
type Bill struct {
	Cost
	AtCapacity Cost  `json:"at_capacity"`
	AtMean     *Cost `json:"at_mean"`
}

package plan

// Cost is in US dollars; a figure that is not known is nil. Those per million tokens are
// three allocations of the same money: to the input alone, to the output alone, to both.
type Cost struct {
	PerHour                *float64 `json:"usd_per_hour"`                  // of all GPUs of the fleet
	PerMonth               *float64 `json:"usd_per_month"`                 // 730 hours
	PerYear                *float64 `json:"usd_per_year"`                  // 8,760 hours
	PerMillionInputTokens  *float64 `json:"usd_per_million_input_tokens"`  // all of the money over the prompt tokens
	PerMillionOutputTokens *float64 `json:"usd_per_million_output_tokens"` // all of the money over the output tokens
	PerMillionTokens       *float64 `json:"usd_per_million_tokens"`        // all of the money over both
	PerThousandRequests    *float64 `json:"usd_per_thousand_requests"`     // at the load that the cost is stated at
	// EnergyPerHour is that of GPUs, servers and cooling at the power price. It is a part of
	// the other figures, at rated power, where GPUs are bought. Rented ones come with their
	// power; that of a plan at its planned rate is then the modelled one, where there is one.
	EnergyPerHour *float64 `json:"usd_energy_per_hour,omitempty"`
	// Job is what a job takes; nil where the demand is none.
	Job *Batch `json:"job,omitempty"`
}

const secondsPerHour = 3600

// price is the cost of a fleet that serves rate requests per second in all.
func (o *Offer) price(f *Fleet, rate float64) Cost {
	var c Cost
	gpus := float64(f.GPUs)
	if kw := o.KW(); kw > 0 && o.PowerPrice > 0 {
		c.EnergyPerHour = new(gpus * kw * o.PowerPrice)
	}
	if !o.Priced() {
		return c
	}
	hourly := gpus * o.PricePerGPUHour
	c.PerHour, c.PerMonth, c.PerYear = &hourly, new(hourly*hoursPerMonth), new(hourly*HoursPerYear)
	if rate <= 0 {
		return c
	}
	perRequest := hourly / (secondsPerHour * rate)
	c.PerThousandRequests = new(perRequest * 1e3)
	perMillion := func(tokens float64) *float64 { return new(perRequest / tokens * 1e6) }
	if o.PromptTokens > 0 {
		c.PerMillionInputTokens = perMillion(o.PromptTokens)
	}
	if o.OutputTokens > 0 {
		c.PerMillionOutputTokens = perMillion(o.OutputTokens)
		if o.PromptTokens > 0 {
			c.PerMillionTokens = perMillion(o.PromptTokens + o.OutputTokens)
		}
	}
	return c
}

// Bill is the cost of all instances: at the planned rate, at what they carry safely,
// and at the mean rate (nil when that is not known).
type Bill struct {
	Cost
	AtCapacity Cost  `json:"at_capacity"` // as if every instance ran at its safe rate
	AtMean     *Cost `json:"at_mean"`     // at the mean rate; null where none is known
	// Ways are the same instances paid for in every way that is known, for the same load or job,
	// where there are several; the first is the plan's own.
	Ways []WayCost `json:"ways_to_pay,omitempty"`
}

// WayCost is the fleet paid for in one way.
type WayCost struct {
	Name string `json:"name"` // on_demand, reserved_1y, spot or purchase
	Cost
}

// cost is that of a fleet for a demand: at its planned rate, or of its job.
func (o *Offer) cost(f *Fleet, d *Demand) Cost {
	if d.Job != nil {
		return o.running(f, d)
	}
	return o.price(f, f.PlannedRate)
}

func (o *Offer) bill(f *Fleet, d *Demand) Bill {
	b := Bill{Cost: o.cost(f, d), AtCapacity: o.price(f, float64(f.Instances)*o.Rate.Safe)}
	if d.Job != nil {
		b.AtCapacity.PerMonth, b.AtCapacity.PerYear = nil, nil
	}
	if d.MeanRate > 0 {
		b.AtMean = new(o.price(f, d.GrownMean()))
	}
	if len(o.Terms) < 2 {
		return b
	}
	for i, t := range o.Terms {
		other := *o
		other.PricePerGPUHour, other.Terms = t.PerGPUHour, o.Terms[i:]
		b.Ways = append(b.Ways, WayCost{t.Name, other.cost(f, d)})
	}
	return b
}

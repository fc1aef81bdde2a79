package plan

// Cost is in US dollars; unknown figures are nil. The costs per million tokens are three allocations of the
// same money: to the input alone, to the output alone, to both.
type Cost struct {
	PerHour                *float64 `json:"usd_per_hour"`                  // of all GPUs in the fleet
	PerMonth               *float64 `json:"usd_per_month"`                 // 730 hours
	PerYear                *float64 `json:"usd_per_year"`                  // 8,760 hours
	PerMillionInputTokens  *float64 `json:"usd_per_million_input_tokens"`  // all money over the prompt tokens
	PerMillionOutputTokens *float64 `json:"usd_per_million_output_tokens"` // all money over the output tokens
	PerMillionTokens       *float64 `json:"usd_per_million_tokens"`        // all money over both
	PerThousandRequests    *float64 `json:"usd_per_thousand_requests"`     // at the load of the cost
	// EnergyPerHour is the energy of GPUs, servers and cooling at the power price. If GPUs are bought it is a
	// part of the other figures, at rated power. The price of rented GPUs includes their power; at a plan's
	// planned rate it is then the modelled energy, if there is a model.
	EnergyPerHour *float64 `json:"usd_energy_per_hour,omitempty"`
	// Job is the cost of a job; nil if the demand is none.
	Job *Batch `json:"job,omitempty"`
}

const secondsPerHour = 3600

// price returns the cost of a fleet that serves rate requests per second in all.
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

// Bill is the cost of all instances: at the planned rate, at the rate that they carry safely, and at the mean
// rate (nil if unknown).
type Bill struct {
	Cost
	AtCapacity Cost  `json:"at_capacity"` // if every instance ran at its safe rate
	AtMean     *Cost `json:"at_mean"`     // at the mean rate; null if unknown
	// Ways are the costs of the same instances and load or job for every known way to pay, if there are
	// several; the first is the plan's own.
	Ways []WayCost `json:"ways_to_pay,omitempty"`
}

// WayCost is the fleet's cost for one way to pay.
type WayCost struct {
	Name string `json:"name"` // on_demand, reserved_1y, spot or purchase
	Cost
}

// cost returns a fleet's cost for a demand: at its planned rate, or of its job.
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

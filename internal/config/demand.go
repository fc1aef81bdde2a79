package config

// demandKeys are the keys of [demand].
func demandKeys() []key {
	return []key{
		{"demand.rate", "requests/s at peak, the whole fleet", func(d *draft) value {
			return optional{float{&d.demand.Rate, positive}, &d.rateGiven}
		}},
		{"demand.growth", "expected growth until the fleet is in place", func(d *draft) value {
			return float{&d.demand.Growth, nonNegative}
		}},
		{"demand.burst_index", "index of dispersion of arrivals in 10 s windows; 1 = Poisson", func(d *draft) value {
			return float{&d.demand.BurstIndex, positive}
		}},
		{"demand.mean_rate", "requests/s over the day; given, costs are stated at it too; 0 = not known", func(d *draft) value {
			return float{&d.demand.MeanRate, nonNegative}
		}},
		{"demand.max_gpus", "refuse plans above it; 0 = no limit", func(d *draft) value {
			return whole{&d.demand.MaxGPUs, 0}
		}},
		{"demand.max_usd_per_hour", "refuse plans above it; 0 = no limit", func(d *draft) value {
			return float{&d.demand.MaxUSDPerHour, nonNegative}
		}},
		{"demand.headroom", "the fleet is sized for (1 + headroom) x the planned rate", func(d *draft) value {
			return float{&d.demand.Headroom, nonNegative}
		}},
		{"demand.spare_instances", "on top of what the load needs; 1 = N+1", func(d *draft) value {
			return whole{&d.demand.Spare, 0}
		}},
		{"demand.availability", "of one instance; with target_availability; not applied unless both are given", func(d *draft) value {
			return share01{&d.demand.Availability}
		}},
		{"demand.target_availability", "of the fleet", func(d *draft) value {
			return share01{&d.demand.TargetAvailability}
		}},
		{"demand.zones", "failure domains; with more than one the fleet survives the loss of any", func(d *draft) value {
			return whole{&d.demand.Zones, 1}
		}},
	}
}

// share01 is a number between 0 and 1, without the ends; 0 in the Config means
// that none is given.
type share01 struct{ p *float64 }

func (v share01) take(n node) { float{v.p, share}.take(n) }

func (v share01) text() string {
	if *v.p == 0 {
		return ""
	}
	return number(*v.p)
}

// checkDemand looks at what concerns several keys of [demand].
func (r *reader) checkDemand(d *draft, need Need) {
	if need.Demand && !r.given("demand.rate") {
		r.absent("demand.rate", "is missing, want the peak load of the whole fleet in requests/s, such as 100")
	}
	one, fleet := d.demand.Availability > 0, d.demand.TargetAvailability > 0
	if one != fleet {
		r.warn("demand: availability and target_availability are applied only when both are given")
	}
	if d.demand.MeanRate > d.demand.Rate && d.rateGiven {
		r.warn("demand: mean_rate %s is above the peak rate %s", number(d.demand.MeanRate), number(d.demand.Rate))
	}
}

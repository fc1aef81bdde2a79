package plan

// Reached is how often enough instances of a fleet are up, each by itself: a zone, a fault
// of a release or of a router that takes several at once is not in it.
type Reached struct {
	// OfInstance is the availability of one instance; Assumed says that nobody gave it.
	OfInstance float64 `json:"of_instance"`
	Assumed    bool    `json:"assumed"`
	// Planned is the probability that the planned rate is carried, Loaded that it is with
	// the headroom on top.
	Planned float64 `json:"planned_rate"`
	Loaded  float64 `json:"with_headroom"`
}

// usualAvailability of an instance is assumed where nobody gives one: a quarter of an hour
// down in a day.
const usualAvailability = 0.99

// reached is what the fleet's instances give, of which base carry the load with headroom.
func (d *Demand) reached(f *Fleet, base int) Reached {
	r := Reached{OfInstance: d.Availability, Assumed: d.Availability == 0}
	if r.Assumed {
		r.OfInstance = usualAvailability
	}
	r.Planned, r.Loaded = atLeast(f.Needed, f.Instances, r.OfInstance), atLeast(base, f.Instances, r.OfInstance)
	return r
}

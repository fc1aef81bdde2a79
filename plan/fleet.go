package plan

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Fleet is a number of instances and how it comes about.
type Fleet struct {
	Instances       int `json:"instances"`         // identical servers
	GPUsPerInstance int `json:"gpus_per_instance"` // of one instance
	GPUs            int `json:"gpus"`              // of all instances
	// Needed is the planned rate over the safe rate, rounded up, without headroom and spares.
	Needed   int     `json:"instances_needed"`
	Headroom float64 `json:"headroom"` // share added to the planned rate
	Spare    int     `json:"spare"`    // additional instances beyond the load's
	// PlannedRate is the demand with growth and burst, in requests per second.
	PlannedRate float64 `json:"planned_rate_per_s"`
	// Utilization is the planned rate over what all instances carry safely.
	Utilization float64 `json:"utilization"`
	// AfterLoss is the utilization of the other instances when one is lost; nil if there is no other.
	AfterLoss *float64 `json:"utilization_after_loss"`
	// AfterZoneLoss is the utilization of the others when the zone with most instances is lost; nil if all are
	// in one.
	AfterZoneLoss *float64 `json:"utilization_after_zone_loss"`
	Availability  Reached  `json:"availability"` // how often enough instances are up
	// KW is the facility's power for all GPUs; 0 if unknown.
	KW float64 `json:"kw,omitempty"`
	// DecidedBy names the rule that set the number: load, spare, availability or zones.
	DecidedBy string `json:"decided_by"`
}

// mostInstances bounds a fleet: more means that some unit is wrong.
const mostInstances = 1_000_000_000

// size returns the fleet of instances with a given safe rate.
func (d *Demand) size(safe float64, gpusPerInstance int) (Fleet, error) {
	planned := d.PlannedRate()
	f := Fleet{GPUsPerInstance: gpusPerInstance, Headroom: d.Headroom, Spare: d.Spare, PlannedRate: planned}
	loaded := planned * (1 + d.Headroom) / safe
	if !(loaded <= mostInstances) {
		return f, fmt.Errorf("%.3g instances of %.3g requests/s each would be needed for %.3g requests/s", loaded, safe, planned)
	}
	f.Needed = roundUp(planned / safe)
	base := roundUp(loaded)
	f.Instances, f.DecidedBy = base+d.Spare, "spare"
	if d.Spare == 0 {
		f.DecidedBy = "load"
	}
	if d.Availability > 0 && d.TargetAvailability > 0 {
		if n := instancesFor(base, d.Availability, d.TargetAvailability); n > f.Instances {
			f.Instances, f.DecidedBy = n, "availability"
		}
	}
	if d.Zones > 1 {
		if n := d.Zones * divideUp(base, d.Zones-1); n > f.Instances {
			f.Instances, f.DecidedBy = n, "zones"
		}
	}
	f.GPUs = f.Instances * gpusPerInstance
	f.Utilization = planned / (safe * float64(f.Instances))
	if f.Instances > 1 {
		f.AfterLoss = new(planned / (safe * float64(f.Instances-1)))
	}
	if left := f.Instances - divideUp(f.Instances, max(d.Zones, 1)); left > 0 {
		f.AfterZoneLoss = new(planned / (safe * float64(left)))
	}
	f.Availability = d.reached(&f, base)
	return f, nil
}

// rounding is the relative error of a quotient that does not justify one more instance.
const rounding = 1e-9

// roundUp rounds up, to at least 1, but ignores an excess below rounding: 100.00000001 is 100.
func roundUp(x float64) int { return max(1, int(math.Ceil(x*(1-rounding)))) }

func divideUp(a, b int) int { return (a + b - 1) / b }

// instancesFor returns the smallest number of instances, each up with probability up, of which at least need
// are up with probability target.
func instancesFor(need int, up, target float64) int {
	return need + sort.Search(mostInstances, func(more int) bool { return atLeast(need, need+more, up) >= target })
}

// atLeast is P(Bin(n, p) >= k) = I_p(k, n-k+1), the regularised incomplete beta
// function.
func atLeast(k, n int, p float64) float64 {
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// Reached is how often enough instances of a fleet are up if they fail independently: failures of a zone, a
// release or a router that take down several at once are not included.
type Reached struct {
	// OfInstance is the availability of one instance; Assumed says that it was not given.
	OfInstance float64 `json:"of_instance"`
	Assumed    bool    `json:"assumed"`
	// Planned is the probability that the planned rate is carried, Loaded the probability that it is with the
	// headroom on top.
	Planned float64 `json:"planned_rate"`
	Loaded  float64 `json:"with_headroom"`
}

// usualAvailability is the availability of an instance if not given: a quarter of an hour down per day.
const usualAvailability = 0.99

// reached returns the availability of a fleet, of which base instances carry the load with headroom.
func (d *Demand) reached(f *Fleet, base int) Reached {
	r := Reached{OfInstance: d.Availability, Assumed: d.Availability == 0}
	if r.Assumed {
		r.OfInstance = usualAvailability
	}
	r.Planned, r.Loaded = atLeast(f.Needed, f.Instances, r.OfInstance), atLeast(base, f.Instances, r.OfInstance)
	return r
}

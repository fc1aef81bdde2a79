package plan

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Fleet is a number of instances, and where the number comes from.
type Fleet struct {
	Instances       int `json:"instances"`         // servers that are started alike
	GPUsPerInstance int `json:"gpus_per_instance"` // of one server
	GPUs            int `json:"gpus"`              // of all instances
	// Needed is the planned rate over the safe rate, rounded up, without
	// headroom and spares.
	Needed   int     `json:"instances_needed"`
	Headroom float64 `json:"headroom"` // the share of the planned rate that is kept free
	Spare    int     `json:"spare"`    // instances on top of what the load needs
	// PlannedRate is the demand with growth and burst, in requests per second.
	PlannedRate float64 `json:"planned_rate_per_s"`
	// Utilization is the planned rate over what all instances carry safely.
	Utilization float64 `json:"utilization"`
	// AfterLoss is the utilization of the others when one instance is lost; nil
	// when there is no other.
	AfterLoss *float64 `json:"utilization_after_loss"`
	// AfterZoneLoss is that of the others when a zone is lost, the one with most instances;
	// nil where all are in one.
	AfterZoneLoss *float64 `json:"utilization_after_zone_loss"`
	Availability  Reached  `json:"availability"` // how often enough instances are up
	// KW is what the facility draws for all GPUs; 0 if unknown.
	KW float64 `json:"kw,omitempty"`
	// DecidedBy names the rule that set the number: load, spare, availability or
	// zones.
	DecidedBy string `json:"decided_by"`
}

// mostInstances bounds a fleet: what needs more has a unit wrong somewhere.
const mostInstances = 1_000_000_000

// size gives the fleet of instances with a safe rate each.
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

// rounding is the relative error of a quotient that is no reason for one more
// instance.
const rounding = 1e-9

// roundUp is the smallest whole number, at least 1, that is not below x by more
// than rounding: 100.00000001 is 100.
func roundUp(x float64) int { return max(1, int(math.Ceil(x*(1-rounding)))) }

func divideUp(a, b int) int { return (a + b - 1) / b }

// instancesFor is the smallest number of instances of which, each up with
// probability up, at least need are up with probability target.
func instancesFor(need int, up, target float64) int {
	return need + sort.Search(mostInstances, func(more int) bool { return atLeast(need, need+more, up) >= target })
}

// atLeast is P(Bin(n, p) >= k) = I_p(k, n-k+1), the regularised incomplete beta
// function.
func atLeast(k, n int, p float64) float64 {
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

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

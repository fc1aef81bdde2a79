// Package plan sizes and prices a fleet that meets the demand.
package plan

import (
	"fmt"
	"math"

	"planner/sweep/workload"
)

// Demand is the load that the fleet must carry, and the reserves to plan for it.
type Demand struct {
	// Rate is the peak load of the whole fleet in requests per second.
	Rate float64 `json:"rate_per_s"`
	// TraceRates say which rate of a trace Rate and the rate of an instance are; nil if requests do not come
	// from one.
	TraceRates *workload.Rates `json:"trace_rates,omitempty"`
	// Growth is the expected relative growth until the fleet is in place.
	Growth float64 `json:"growth"`
	// BurstIndex is the index of dispersion of arrivals in windows of 10 s; 1 is Poisson, with which instances
	// are measured. 0 stands for 1.
	BurstIndex float64 `json:"burst_index"`
	// MeanRate is the mean load over the day in requests per second, before growth; 0 means unknown.
	MeanRate float64 `json:"mean_rate_per_s"`
	// MaxGPUs and MaxUSDPerHour rule out larger plans; 0 means no limit.
	MaxGPUs       int     `json:"max_gpus"`
	MaxUSDPerHour float64 `json:"max_usd_per_hour"`
	// Headroom is the share by which the fleet is sized above the planned rate.
	Headroom float64 `json:"headroom"`
	// Spare is the number of additional instances (N+1 is 1).
	Spare int `json:"spare_instances"`
	// Availability of one instance, and TargetAvailability of the fleet, apply if both are above 0.
	Availability       float64 `json:"availability"`
	TargetAvailability float64 `json:"target_availability"`
	// Zones is the number of failure domains; with more than one the fleet survives the loss of any of them.
	Zones int `json:"zones"`
	// Job is the work that Rate stands for if no latency has a limit; nil for traffic.
	Job *Job `json:"job,omitempty"`
}

// The burst term covers the 99th percentile of a normally distributed load over windows of ten seconds.
const (
	burstZ       = 2.33
	burstSeconds = 10.0
)

// PlannedRate is the rate that the fleet is sized for, in requests per second: the peak with its growth, and a
// burst term for arrivals that are burstier than the Poisson stream with which instances are measured,
//
//	rate*(1+growth) + z*sqrt(max(0, index-1)*rate/window).
//
// The burst term is that of the observed peak, as is the index; growth does not enlarge it.
func (d *Demand) PlannedRate() float64 {
	return d.Rate*(1+d.Growth) + burstZ*math.Sqrt(max(0, d.BurstIndex-1)*d.Rate/burstSeconds)
}

// GrownMean is the mean load over the day with the peak's growth, in requests per second.
func (d *Demand) GrownMean() float64 { return d.MeanRate * (1 + d.Growth) }

// check refuses a demand that no fleet can be sized for.
func (d *Demand) check() error {
	for _, f := range []struct {
		name  string
		value float64
		above bool
	}{
		{"rate", d.Rate, true}, {"growth", d.Growth, false}, {"burst index", d.BurstIndex, false},
		{"mean rate", d.MeanRate, false}, {"headroom", d.Headroom, false}, {"largest cost", d.MaxUSDPerHour, false},
		{"spare instances", float64(d.Spare), false}, {"zones", float64(d.Zones), false}, {"largest number of GPUs", float64(d.MaxGPUs), false},
	} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) || f.value < 0 || (f.above && f.value == 0) {
			return fmt.Errorf("size a fleet: %s is %g", f.name, f.value)
		}
	}
	for _, a := range []float64{d.Availability, d.TargetAvailability} {
		if !(a >= 0 && a < 1) {
			return fmt.Errorf("size a fleet: availability %g is not in 0..1", a)
		}
	}
	return nil
}

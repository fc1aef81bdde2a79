// Package plan sizes and prices a fleet that meets the demand.
package plan

// Demand is what the fleet must carry, and with how much to spare.
type Demand struct {
	// Rate is the peak load of the whole fleet in requests per second.
	Rate float64
	// Growth is the expected relative growth until the fleet is in place.
	Growth float64
	// BurstIndex is the index of dispersion of arrivals in windows of 10 s; 1 is
	// Poisson, under which instances are measured.
	BurstIndex float64
	// MeanRate is the load over the day in requests per second; 0 means unknown.
	MeanRate float64
	// MaxGPUs and MaxUSDPerHour refuse larger plans; 0 means no limit.
	MaxGPUs       int
	MaxUSDPerHour float64
	// Headroom is the share by which the fleet is sized above the planned rate.
	Headroom float64
	// Spare is the number of instances on top (N+1 is 1).
	Spare int
	// Availability of one instance, and TargetAvailability of the fleet, apply
	// when both are above 0.
	Availability, TargetAvailability float64
	// Zones is the number of failure domains; with more than one the fleet
	// survives the loss of any of them.
	Zones int
}

package search

import "planner/sweep/workload"

// trialSeed is the seed of trial index of a configuration. It is the same for
// every configuration, so that configurations meet the same requests (common
// random numbers), and independent between the trials of one of them, so that
// the clumps of arrivals, which are nearly all of the variance, show up as
// spread instead of as bias.
func trialSeed(base uint64, index int) uint64 {
	// 53 bits survive a JSON number in every reader.
	return workload.Draw64(base, uint64(index)) >> 11
}

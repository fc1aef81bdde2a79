package search

// trialSeed is the seed of trial index of a configuration. It is the same for
// every configuration, so that configurations meet the same requests (common
// random numbers), and independent between the trials of one of them, so that
// the clumps of arrivals, which are nearly all of the variance, show up as
// spread instead of as bias. SplitMix64 (Steele, Lea, Flood 2014).
func trialSeed(base uint64, index int) uint64 {
	x := base + uint64(index+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	// 53 bits survive a JSON number in every reader.
	return (x ^ x>>31) >> 11
}

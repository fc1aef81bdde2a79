package stat

// Bisect brackets the point in [low, high] where a condition that is false at low turns true, by
// halving the interval, at most so many times and until no number lies between its ends.
func Bisect(low, high float64, times int, over func(float64) bool) (below, above float64) {
	for range times {
		middle := (low + high) / 2
		if middle <= low || middle >= high {
			break
		}
		if over(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return low, high
}

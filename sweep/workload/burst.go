package workload

// Burst is the variance of the number of arrivals over that of Poisson arrivals at
// the same rate, over times that are long against the gaps: 1 for Poisson arrivals, 0
// for constant gaps, and the squared coefficient of variation of the gaps, 1/shape,
// for gamma ones. Of a trace it is the largest of its values over equal parts of it,
// from tenths to thousandths.
func (w *Workload) Burst() float64 {
	switch w.Arrivals {
	case Constant:
		return 0
	case Gamma:
		if w.Burstiness > 0 {
			return 1 / w.Burstiness
		}
	case Trace:
		worst := 0.0
		for _, parts := range []int{1000, 300, 100, 30, 10} {
			worst = max(worst, w.scatter(parts))
		}
		return worst
	}
	return 1
}

// scatter is the variance over the mean of the numbers of rows in equal parts of a
// trace.
func (w *Workload) scatter(parts int) float64 {
	if len(w.Replay) == 0 {
		return 0
	}
	counts := make([]float64, parts)
	start, period := w.Replay[0].Arrival, w.tracePeriod()
	for _, row := range w.Replay {
		counts[min(int(float64(row.Arrival-start)/float64(period)*float64(parts)), parts-1)]++
	}
	mean, sum := float64(len(w.Replay))/float64(parts), 0.0
	for _, c := range counts {
		sum += (c - mean) * (c - mean)
	}
	return sum / float64(parts-1) / mean
}

package search

import "planner/internal/stat"

// contradictions are the trials that clearly miss the bound at a rate below others which
// together meet it, with the dispersions of before the first trial and of the trials by
// themselves. That of the posterior would not do: a server that is another one from trial to
// trial looks like one whose requests clump. low is the least rate at which one of them would
// meet the bound by the steepness that was believed before, and high the highest of those that
// they contradict; both are 0 where there are none.
func (a *assumed) contradictions(seen []likelihood) (low, high float64) {
	for i := range seen {
		bad := &seen[i]
		if a.kind != onShare || bad.n == 0 || a.dispersion(a.phi).CountAbove(bad.k, bad.n, a.share) >= disturbed {
			continue
		}
		var good likelihood
		for _, e := range seen {
			if e.rate > bad.rate && e.k <= e.n*a.share {
				good = likelihood{rate: max(good.rate, e.rate), n: good.n + e.n, k: good.k + e.k, phi: max(good.phi, e.phi)}
			}
		}
		if good.n > 0 && a.dispersion(good.phi).CountBelow(good.k, good.n, a.share) < safeQuantile {
			excess := min(link((bad.k+0.5)/(bad.n+1))-a.offset, far)
			alone := bad.rate / (1 + excess/a.kappa)
			if low == 0 || alone < low {
				low = alone
			}
			high = max(high, good.rate)
		}
	}
	return low, high
}

// collapse is the most that the server completed when it was pressed, so that a backlog clearly
// grew, where that is clearly less than it carried in a trial that measured and met the objective;
// else pressed is 0. What was completed is known behind the time that the server takes to fill.
func (s *MaxRate) collapse() (pressed, carried float64) {
	for _, t := range s.valid() {
		if t.met && t.measured {
			carried = max(carried, t.rate)
		}
	}
	for _, t := range s.valid() {
		f := t.shows[len(s.bounds)-1]
		if t.met || f.spread <= 0 || t.Trial.Warmup+t.Duration < settled*s.latency {
			continue
		}
		margin := stat.StudentT(1-disturbed, flowFreedom) * f.spread
		most := f.rate * (1 - f.value + margin)
		if f.value > margin && most < (1-wide)*carried && (pressed == 0 || most < pressed) {
			pressed = most
		}
	}
	return pressed, carried
}

package main

import "math"

// score sums up the answers to one case.
type score struct {
	rmse, bias float64
	// covered, safe and above are shares: the interval holds the truth, the safe
	// rate is at most the truth, the report is above it.
	covered, safe, above float64
	// missedLow and missedHigh are the shares of intervals wholly above and
	// wholly below the truth.
	missedLow, missedHigh float64
	seconds, trials       float64
	// told is the share that warns of a server that is not the same in all trials.
	told float64
}

func scoreOf(c *testCase, all []answer) score {
	var s score
	n := float64(len(all))
	for _, a := range all {
		s.rmse += a.log * a.log / n
		s.bias += a.log / n
		s.seconds += a.cost.Seconds() / n
		s.trials += float64(a.trials) / n
		if a.low <= c.truth && c.truth <= a.high {
			s.covered += 1 / n
		}
		if a.low > c.truth {
			s.missedLow += 1 / n
		}
		if a.high < c.truth {
			s.missedHigh += 1 / n
		}
		if a.safe <= c.truth {
			s.safe += 1 / n
		}
		if a.told {
			s.told += 1 / n
		}
		if a.log > 0 {
			s.above += 1 / n
		}
	}
	s.rmse = math.Sqrt(s.rmse)
	return s
}

// pool is the mean of scores; of the root mean squares, too, as a mean over
// servers.
func pool(all []score) score {
	var p score
	n := float64(len(all))
	for _, s := range all {
		p.rmse += s.rmse / n
		p.bias += s.bias / n
		p.covered += s.covered / n
		p.safe += s.safe / n
		p.above += s.above / n
		p.missedLow += s.missedLow / n
		p.missedHigh += s.missedHigh / n
		p.seconds += s.seconds / n
		p.trials += s.trials / n
		p.told += s.told / n
	}
	return p
}

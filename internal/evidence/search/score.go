package main

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"planner/internal/evidence/search/virtual"
)

// score sums up the answers to one case: engine seconds, trials, root mean square and mean of
// the error, and the shares of intervals that hold the truth, of safe rates that are, of
// intervals wholly above and wholly below the truth, and of answers that warn of a server that
// is not the same in all trials.
type score [9]float64

const scoreHead = "| search | server | engine s | trials | RMSE | bias | covers | safe <= truth | low > truth | high < truth | told |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"

func (s *study) row(search, server string, r score) {
	s.printf("| %s | %s | %.0f | %.1f | %.4f | %+.4f | %.3f | %.3f | %.3f | %.3f | %.3f |\n",
		search, server, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8])
}

func scoreOf(all []answer) score {
	one := map[bool]float64{true: 1}
	var s score
	for _, a := range all {
		e := a.Estimate
		of := score{a.EngineTime.Seconds(), float64(a.Trials), a.log() * a.log(), a.log(),
			one[a.covered()], one[e.Safe <= a.truth], one[e.Low > a.truth], one[e.High < a.truth], one[virtual.Told(a.Warnings)]}
		floats.AddScaled(s[:], 1/float64(len(all)), of[:])
	}
	s[2] = math.Sqrt(s[2])
	return s
}

// pool is the mean of scores; of the root mean squares, too, as a mean over
// servers.
func pool(all []score) score {
	var p score
	for _, s := range all {
		floats.AddScaled(p[:], 1/float64(len(all)), s[:])
	}
	return p
}

package search

import (
	"math"
	"time"
)

// The numbers of this package that could have been others.

// What servers and traffic are believed to be like. The dispersion, [stat.Generic], is that
// of an M/M/1 queue at utilisation 0.73, in the middle of five queues and batching engines
// (25 to 83); the steepness and the growth of the dispersion, [stat.Growth], likewise.
const (
	// genericKappa is the steepness at a limit that one request in a hundred may exceed. flat is that of a mean latency,
	// rho/(1-rho) of an M/M/1 queue at utilisation 0.8, and the steepness below which curves bend.
	genericKappa, flat = 15.0, 4.0
	// phiSpread, kappaSpread and rateSpread are standard deviations of the logarithm of a dispersion and a
	// steepness, and of a predicted rate.
	phiSpread, kappaSpread, rateSpread = 1.0, 0.6, 0.3
	// floorless is the probability that lone requests are no part of what is allowed beyond a limit, or of a limit on a
	// mean. Else they are lonePart of it, twice or three times as much, with equal probabilities.
	floorless, lonePart = 0.97, 0.2
	// disturbed is how likely it is that what a trial saw beyond the limit came from without
	// and tells nothing of its rate: the server stood still once, or another one on the machine
	// took its turn, though not for the whole of the trial. No single trial rules a rate out any further.
	disturbed = 0.01
	// Between trials on an engine that is measured ln of its speed differs by a standard deviation of
	// usualScatter, known as well as a dispersion is, or with the probability steady not at all.
	usualScatter, steady = 0.04, 0.4
	// misfit is how wrong a curve is, as a share of the distance from the limit on its scale.
	misfit = 0.25
	// misshapen is what a curve of two parameters is wrong by, as a standard deviation of ln rate, however many trials
	// it is fitted to: answers for queues and batching engines, under limits at shares from a thousandth to a half,
	// come out between 0.6 % low and 0.9 % high in the mean of many searches.
	misshapen = 0.008
	// far is how far above the limit, on the scale of the curve, a share counts as "at least that": there a queue is
	// filling and not yet as long as it will be, so that a share taken at its face would bend the curve, and with it
	// the answer, downwards. As far below it counts as "at most that": requests that are slow whatever the load, such
	// as long prompts, leave a floor there. It is where the flattest curve of a queue is at twice its largest rate, and
	// at none. A mean, in its log, is as far at the rate where others are.
	far, farMean = flat, far * flat / genericKappa
	// plateau is the part of what is not allowed beyond a limit at which a share counts as "at least that", too, if that
	// is less: where some requests never wait, as those of adapters that are in place, it is below one at any rate.
	plateau = 0.7
)

// How long trials are.
const (
	// enoughBeyond are the requests beyond a quantile that resolve it, and
	// coarseRequests those of a trial that looks for the right order of magnitude. As many of the one as there
	// are of the other make a trial long enough for many clumps of exceedances, whatever the quantile.
	enoughBeyond, coarseRequests = 12, 100
	// Trials are longTimes as long as it takes to measure, once a rate was met and another
	// missed, or the half-width of the interval is below wide: what an empty start hides, and the
	// clumps at the ends of the window, matter more than another draw of the arrivals.
	wide, longTimes = 0.25, 4
	// leastWarmup is the shortest warm-up, half that of unknown servers, and the shortest window on a real engine.
	leastWarmup = 15 * time.Second
	// A server has settled after so many times what its slowest requests take, or its queue takes to relax. It relaxes
	// leastRelaxations times while it is measured, as a warm-up does not take away all of what an empty start hides. As
	// many conversations come one after another: an engine whose cache just holds the histories of those under way fails
	// when their number happens to rise, which it does within some tens of them.
	settled, leastRelaxations = 3, 10
	// trialShare is the part of the budget, as a divisor, that the window of one trial, twice its warm-up, the settling
	// of its conversations, one lap of a trace, or a second look at an idle engine may take; partShare that of trials
	// which cannot be trusted, or of what is left, of a set in a race. The last window is cut no shorter.
	trialShare, partShare = 8, 4
)

// When the search looks where, and ends.
const (
	// minTrials is the least number of trials that measure near the answer which it may rest on, few that where the
	// budget ends, or where engine time costs nothing, as a simulated engine is the same in all trials. As few trials in
	// a row that cannot be trusted end a search, and sets without any rate a race; as few that all miss the objective
	// ask for an idle engine.
	minTrials, few = 5, 3
	// A search whose engine time costs nothing ends when freeSpend requests were simulated, trialShare times as many
	// while every rate is on one side of the limit.
	freeSpend = 150_000
	// safeQuantile is that of the maximum rate which is called safe. What is less likely is not believed: that a
	// bound limits the rate, or that a set is better than the best so far.
	safeQuantile = 0.05
)

// Of races and certificates.
const (
	// delta is the gain below which two sets count as equal.
	delta = 0.03
	// field is how many challengers are tried side by side, whatever the machine.
	field = 4
	// When finalShare of the budget is left, a divisor, that is for the last searches.
	finalShare = 2
	// turnTrials is how many trials a final search runs before the other has its turn, which begins with a start of the
	// engine: that takes about as long as a trial, of minutes, and is another draw of what starts differ by.
	turnTrials = 2
	// certifyLooks share an error of safeQuantile; each is as many times as long as it takes where none is late.
	certifyLooks = 2
)

// Of arithmetic: they change how exact it is, and what it costs.
const (
	// The grid of the posterior is ln max by ln kappa by ln phi.
	gridRates, gridKappas = 161, 21
	// rateChoices is how many rates are weighed for the next trial, from the safeQuantile of the posterior to the one
	// that leaves as much above it. Bounds that limit the rate with a smaller probability are left out.
	rateChoices = 12
	// Dispersions have phiNodes, see phiOffsets; likelihoods are tabulated at zNodes of the curve,
	// which ends where a share, and what is left of it, is negligible.
	phiNodes, zNodes   = 5, 226
	zLow, zHigh, zStep = negligible, 4 * math.Ln2, (zHigh - zLow) / (zNodes - 1)
	// priorReach is how far beyond the prior's rate and the rates that were tried the grid begins, a factor of 16:
	// under a flat prior a posterior median then grows, or shrinks, by a factor of 4 a trial until a limit is found.
	// Steepness reaches as far below its prior's median as kappaBelow, a factor of 64: two requests that meet by chance
	// in an idle engine are a share which grows with a rate's root. It reaches kappaAbove above it, a factor of 8: what
	// is steeper would be taken for a server that is the same in all trials, as the scatter of curves ends.
	priorReach, kappaBelow, kappaAbove = 4 * math.Ln2, 6 * math.Ln2, 3 * math.Ln2
	// negligible is the log density, against the largest, of what grids leave out, and half of it that of their ends' mass.
	negligible = -16.0
)

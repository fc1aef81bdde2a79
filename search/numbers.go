package search

import (
	"math"
	"time"
)

// The tunable constants of this package.

// What servers and traffic are assumed to be like before any trial. The dispersion, [stat.Generic], is that of an M/M/1
// queue at utilisation 0.73, the middle of the range over five queues and batching engines (25 to 83); the steepness and
// the growth of the dispersion, [stat.Growth], likewise.
const (
	// genericKappa is the prior median steepness at a limit that 1 % of requests may exceed, flat that of a mean
	// latency: rho/(1-rho) of an M/M/1 queue at utilisation 0.8. Curves less steep than flat are powers of the rate.
	genericKappa, flat = 15.0, 4.0
	// phiSpread, kappaSpread and rateSpread are the prior scales, see studentT2, of ln dispersion, of ln steepness and
	// of the logarithm of a predicted rate.
	phiSpread, kappaSpread, rateSpread = 1.0, 0.6, 0.3
	// floorless is the prior probability that requests alone in the server take up none of what is allowed beyond a
	// limit, or of a limit on a mean. Else they take up lonePart of it, twice or three times that, each equally likely.
	floorless, lonePart = 0.97, 0.2
	// disturbed is the probability that what a trial saw beyond the limit had an external cause, such as a stall of the
	// server or another process on its machine, and says nothing about the rate. The share within the limit scales it,
	// as no disturbance lasts the whole trial. No trial counts further against a rate.
	disturbed = 0.01
	// usualScatter is the prior median of the standard deviation of ln speed between trials on a real engine, lognormal
	// with scale phiSpread. With probability steady the speed does not differ at all.
	usualScatter, steady = 0.04, 0.4
	// misfit is the standard error of a curve, on its scale, as a share of the distance from the limit.
	misfit = 0.25
	// misshapen is the standard error of ln rate that remains, however many trials there are, because a curve has only
	// two parameters: the mean answer of many searches is between 0.6 % low and 0.9 % high for queues and batching
	// engines, under limits at shares from a thousandth to a half.
	misshapen = 0.008
	// far is the distance above the limit, on the scale of the curve, from which a share counts only as "at least that":
	// the queue is still filling there, and the share taken at face value would bend the curve, and the answer,
	// downwards. At the same distance below, it counts only as "at most that": requests that are slow at any load, such
	// as long prompts, leave a floor there. The flattest curve of a queue is that far at twice its largest rate, and at
	// rate zero. farMean is the distance of ln mean at the rate where a share is far from its limit.
	far, farMean = flat, far * flat / genericKappa
	// plateau lowers that threshold where it would be higher, to this part of the way from the allowed share to 1: where
	// some requests never wait, as when their adapter is loaded, the share stays below 1 at any rate.
	plateau = 0.7
)

// How long trials are.
const (
	// enoughBeyond is how many requests beyond a quantile resolve it, coarseRequests how many a trial has that looks for
	// the right order of magnitude. Their product is enough for many clumps of exceedances, whatever the quantile.
	enoughBeyond, coarseRequests = 12, 100
	// Trials are longTimes as long as measuring takes once one rate was met and another missed, or the relative
	// half-width of the interval is below wide: what an empty start hides, and clumps cut at the ends of the window,
	// then matter more than another draw of the arrivals.
	wide, longTimes = 0.25, 4
	// leastWarmup is the shortest warm-up, half that of unknown servers, and the shortest window on a real engine.
	leastWarmup = 15 * time.Second
	// settled is how many times the latency of its slowest requests, or the relaxation time of its queue, a server takes
	// to settle. A window spans leastRelaxations relaxation times, as a warm-up does not remove all that an empty start
	// hides, and as many successive conversations: an engine whose cache just holds the histories of those in progress
	// fails when their number happens to rise, which it does within some tens of conversations.
	settled, leastRelaxations = 3, 10
	// 1/trialShare of the budget is the most for one window, twice its warm-up, settling conversations, one lap of a
	// trace or a second look at an idle engine; 1/partShare for all untrusted trials, or of what is left for one set in
	// a race. The last window is cut no shorter than 1/partShare of the planned one.
	trialShare, partShare = 8, 4
)

// When the search ends, and what its answer rests on.
const (
	// minTrials is the least number of measuring trials near the answer that it may rest on, few that where the budget
	// ends or engine time is free, as a simulated engine is the same in all trials. As many untrusted trials in a row
	// end a search, as many sets without a rate a race, and as many misses without one prompt an idle probe.
	minTrials, few = 5, 3
	// freeSpend is the number of simulated requests that ends a search whose engine time is free; while every rate is on
	// one side of the limit it is trialShare times as many.
	freeSpend = 150_000
	// safeQuantile is the quantile of the maximum rate that is called safe. Less likely than that, a bound is not
	// believed to limit the rate, nor a set to be better than the best so far.
	safeQuantile = 0.05
)

// Of races and certificates.
const (
	// delta is the relative gain in rate below which two sets count as equal.
	delta = 0.03
	// field is how many challengers are tried side by side, whatever the machine.
	field = 4
	// The last 1/finalShare of the budget is kept for the final searches.
	finalShare = 2
	// turnTrials is how many trials a final search runs before the other has its turn, which begins by starting the
	// engine: a start takes minutes, about as long as a trial, and is another draw of what differs between starts.
	turnTrials = 2
	// certifyLooks is how many looks share an error of safeQuantile, each by default at least as many times leastWindow.
	certifyLooks = 2
)

// Of arithmetic: these trade accuracy for computing time.
const (
	// The grid of the posterior is ln max by ln kappa by ln phi.
	gridRates, gridKappas = 161, 21
	// rateChoices is how many rates are compared for the next trial, between the quantiles safeQuantile and
	// 1-safeQuantile of the posterior. Bounds that limit the rate with a probability below safeQuantile are left out.
	rateChoices = 12
	// phiNodes is the number of dispersions, see phiOffsets, and zNodes that of curve values, from zLow to zHigh, at
	// which likelihoods are tabulated: beyond them a share, or its complement, is negligible.
	phiNodes, zNodes   = 5, 226
	zLow, zHigh, zStep = negligible, 4 * math.Ln2, (zHigh - zLow) / (zNodes - 1)
	// priorReach is how far in ln rate the grid extends beyond the prior's rate and those tried, a factor of 16: under a
	// flat prior a posterior median then moves by a factor of 4 per trial until a limit is found. Steepness reaches
	// below its prior median by kappaBelow, a factor of 64: the share of requests that meet by chance in an idle engine
	// grows only like a root of the rate. It reaches kappaAbove above it, a factor of 8: a steeper curve has no form
	// whose scatter is wide enough, so that the server would be taken to be the same in all trials.
	priorReach, kappaBelow, kappaAbove = 4 * math.Ln2, 2 * kappaAbove, 3 * math.Ln2
	// Grids leave out log densities below negligible, of the largest, and half of it at their ends; gain what is unlikely.
	negligible, unlikely = -16.0, 1e-5
)

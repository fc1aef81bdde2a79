package search

import "time"

// What servers and traffic are believed to be like.
const (
	// logDisturbed is the logarithm of how likely it is that what a trial saw beyond the limit
	// came from without and tells nothing of its rate: the server stood still once, or another
	// one on the machine took its turn. No single trial rules a rate out any further, unless
	// more than mostDisturbed of its requests were beyond.
	logDisturbed  = -4.6 // 1 %
	mostDisturbed = 0.9
	// misfit is how wrong a curve is, as a share of the distance from the limit on its scale,
	// meanMisfit how wrong that of a mean is at its limit, and flowMisfit what the throughput of
	// a server that is offered e times what it completes differs by from that in balance.
	misfit, meanMisfit, flowMisfit = 0.25, 0.02, 0.1
	// flowFreedom is the number of degrees of freedom of the spread of a throughput, which
	// comes from eight blocks.
	flowFreedom = 7
	// farAbove is how far above the limit, in logits, a share counts as "at least
	// that": there a queue is filling and not yet as long as it will be, so that a
	// share taken at its face would bend the curve, and with it the answer,
	// downwards. farBelow, on the scale of the curve, is how far below it counts as "at most
	// that": requests that are slow whatever the load, such as long prompts, leave a floor there.
	farAbove, farBelow = 3.0, 2.0
	// outgrown is how far from its limit a mean is, in its log, that is no longer taken at its
	// face.
	outgrown = 0.5
	// common is the share from which exceedances are so common that a count
	// distribution without an upper end is wrong: it gives no exceedance at all a
	// fair chance even far beyond saturation. The beta-binomial of the same
	// dispersion takes over.
	common = 0.2
	// flowScatter is the variance of the growth of a backlog over the number of requests, as of
	// Poisson arrivals; flowHeld what engines that work on all requests at once add to that,
	// per time that requests hold them, as in a verdict of measure.
	flowScatter, flowHeld = 1.0, 6.0
)

// How long trials are.
const (
	// usualRequests make a trial long enough for many clumps of exceedances, whatever the
	// quantile; enoughBeyond are the requests beyond a quantile that resolve it, and
	// coarseRequests those of a trial that looks for the right order of magnitude.
	usualRequests, enoughBeyond, coarseRequests = 1200, 12, 100
	// No trial is shorter than shortWindow, unless so many requests come in it, and than
	// coarseLatencies of the slowest requests.
	shortWindow, shortRequests, coarseLatencies = 10 * time.Second, 20_000, 5
	// The longest trials are mostTimes as long as one that measures: more is better spent on
	// another draw of the arrivals. Those near the limit, where the half-width of the interval
	// is below wide, always are.
	wide, mostTimes = 0.25, 4
	// freeLonger is by how much longer trials are that cost no engine time.
	freeLonger = 2.5
	// leastWarmup is the shortest warm-up, half that of servers of which nothing is known;
	// mostCooldown the longest time for the last requests to end.
	leastWarmup, mostCooldown = 15 * time.Second, 60 * time.Second
	// A queue relaxes settledRelaxations times before it is measured, and leastRelaxations
	// times while it is: the warm-up does not take away all of what an empty start hides.
	settledRelaxations, leastRelaxations = 3, 10
	// leastCourses is the length of a window in conversations, one after another. An
	// engine whose cache just holds the histories of those under way fails when
	// their number happens to rise, which it does within some tens of courses.
	leastCourses = 10
	// trialShare is the part of the budget, as a divisor, that the warm-up of one trial, or one
	// lap of a trace, may take.
	trialShare = 8
)

// When the search looks where, and ends.
const (
	// minTrials is the least number of trials under load that an interval may
	// rest on.
	minTrials = 3
	// lost is the half-width of the interval above which nothing but the order of
	// magnitude is sought, and a search that ends says no rate.
	lost = 0.60
	// stride is the least factor between rates while no trial met the objective, or
	// none missed it: a prior that is far off must not be left in small steps.
	stride = 1.5
	// rateChoices is how many rates are weighed for the next trial, from the reach
	// quantile of the posterior to the one that leaves as much above it.
	rateChoices, reach = 12, 0.01
)

// Of races.
const (
	// delta is the gain below which two sets count as equal.
	delta = 0.03
	// skipBelow is the predicted probability of being better by delta below
	// which a set is not even tried.
	skipBelow = 0.08
	// field is how many challengers are tried side by side. It is a constant so
	// that the race does not depend on the machine.
	field = 4
	// predictionSpread is the standard deviation of ln(measured / predicted)
	// between sets that do not say it themselves, commonSpread that of the error which all
	// sets share.
	predictionSpread, commonSpread = 0.12, 0.3
	// usualExplore is the default of RaceConfig.Explore.
	usualExplore = 0.75
	// mostUndecided ends a race so many of whose searches ended without any rate.
	mostUndecided = 3
	// mostMoves is how often the reference is moved at most, by delta each time.
	mostMoves = 6
	// pairedSpread is the standard deviation of a gain that is told from one trial of two
	// sets on the same requests: on M/M/1 queues that differ by 5 %, the statistic
	// told 4 to 10 %. unpairedSpread is the same where requests beyond the limit are
	// counted, or an overload says which is better and hardly by how much.
	pairedSpread, unpairedSpread = 0.03, 0.10
	// muchWider is the ratio of the widths of two intervals from which the wider one is
	// no measurement beside the other.
	muchWider = 2.0
	// turnTrials is how many trials, of minutes each, a final search runs before the other has its
	// turn: each turn begins with a start of the engine, which takes about as long
	// as a trial, and each is another draw of what starts differ by.
	turnTrials = 2
	// leastStarts is how many starts of an engine tell what starts differ by, and sharpStart
	// the half-width of the interval from the trials of one start, relative, above which
	// that start says nothing of it.
	leastStarts, sharpStart = 3, 0.3
)

// Of arithmetic: they change how exact it is, and what it costs.
const (
	// The grid of the posterior is ln max by ln kappa by ln phi. The coarse one only finds
	// out where the mass is, in so many closings.
	fineRates, fineKappas     = 161, 21
	coarseRates, coarseKappas = 49, 11
	closings                  = 3
	// Dispersions have phiNodes, see phiOffsets; likelihoods are tabulated over the curve.
	phiNodes           = 5
	zLow, zHigh, zStep = -16.0, 3.0, 1.0 / 12
	// negligibleMass is the probability of a node that is left out of what a trial is expected
	// to show, and negligibleWeight that of a bound.
	negligibleMass, negligibleWeight = 1e-5, 0.01
	// kappaBelow and kappaAbove are the reach of the grid around the prior's
	// median: factors of 16 and 8.
	kappaBelow, kappaAbove = 2.773, 2.079
	// priorReach is how far beyond the prior's rate and the rates that were tried
	// the grid begins, a factor of 16: under a flat prior a posterior median
	// then grows, or shrinks, by a factor of 4 a trial until a limit is found.
	priorReach = 2.773
	// negligible is the log density, against the largest, below which a part of
	// the coarse grid is left out of the fine one.
	negligible = -16.0
)

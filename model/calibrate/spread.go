package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"planner/internal/list"
	"planner/internal/parallel"
	"planner/model"
	"planner/sweep/measure"
)

// Probe runs one load point at a rate with given constants, for times the usual length, and returns its
// conditions and records. Equal arguments must give equal results, and every rate must meet the same requests
// in the same order, as with [measure.Trial.Schedule]. All requests should run to their end. It is called
// concurrently.
type Probe func(c model.Constants, rate, times float64, seed uint64) (measure.Trial, measure.Observation, error)

// Known is the maximum rate from which shifts are measured.
type Known struct {
	// Constants are those that the maximum rate was found with, Spread how far they may be off.
	Constants model.Constants
	Spread    model.Spread
	// Rate is the maximum rate, in requests per second.
	Rate float64
	// Objective limits the rate. Its bounds must not be empty.
	Objective measure.SLO
	// Seed seeds the probes' schedules.
	Seed uint64
	// Carries estimates the maximum rate with given constants by arithmetic, as a start for the search; nil if
	// unknown.
	Carries func(model.Constants) float64
}

// Shifts are the logarithms of the maximum rates with other plausible constants over the known one, in the
// order of the draws. None is above [WidestMove]; one at or below -WidestMove means that no rate meets the
// limits, and the excess is the logarithm of the factor by which an idle engine misses them.
type Shifts []float64

// Quantile returns the q-quantile of the distribution that the shifts are drawn from; its exp is a factor on
// the rate. The k-th of n draws is its k/(n+1)-quantile, the chance that a further draw lies below it. As each doubt has
// one draw in every n-th part of its distribution, the logarithm of the lower end varied by .05 to .28 from one set of 32
// to the next for nine deployments, and was .07 below that of 384 to 1,000 draws in the mean (independent draws .09 to
// .39, and .12; November 2026). Between "no rate" and a rate the result is the rate.
func (s Shifts) Quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := float64(len(sorted))
	if never := s.Never(); never > 0 && never < len(s) && q*(n+1) > float64(never) {
		// Interpolated, it would depend on WidestMove.
		for i := range never {
			sorted[i] = sorted[never]
		}
	}
	return statisticOf(sorted, min(max((q*(n+1)-1)/max(n-1, 1), math.SmallestNonzeroFloat64), 1))
}

// Ends returns the 5 % and the 95 % quantile; zeros without draws.
func (s Shifts) Ends() (low, high float64) {
	if len(s) == 0 {
		return 0, 0
	}
	return s.Quantile(0.05), s.Quantile(0.95)
}

// Over returns the shifts of the ratio to another rate that was found with the same draws of constants.
func (s Shifts) Over(other Shifts) Shifts {
	ratio := slices.Clone(s[:min(len(s), len(other))])
	for i := range ratio {
		ratio[i] -= other[i]
	}
	return ratio
}

// Never counts the draws for which no rate meets the limits.
func (s Shifts) Never() int {
	return list.Count(s, func(x float64) bool { return x <= -WidestMove })
}

// Longer is the factor by which the limits must be relaxed for some rate to meet them with every draw; 1 if
// they are met.
func (s Shifts) Longer() float64 { return math.Exp(max(-slices.Min(s)-WidestMove, 0)) }

// WidestMove bounds shifts and moves in both directions: a factor of 100 on the rate.
const WidestMove = 4.6

// Situation is a setting in which a maximum rate is found.
type Situation struct {
	// Objective limits the rate. Its bounds must not be empty.
	Objective measure.SLO
	// Run runs one load point at a rate, for times the usual length, as a [Probe] does.
	Run func(rate, times float64) (measure.Trial, measure.Observation, error)
	// Guess is where the search starts: the logarithm of a factor on the rate.
	Guess float64
}

// Move is the logarithm of the maximum rate in another situation over that in the first, within the bounds of
// [Shifts], or why it is not known.
type Move struct {
	By  float64
	Err error
}

const (
	// drawn is the number of sets of constants drawn, always the same ones: the 5 % quantile lies between the lowest two, so
	// that with draws of its own each seed of a workload bought more or fewer GPUs than another.
	drawn, drawSeed = 32, 1
	// mostDraws is how many further draws of requests are tried if the known constants do not just meet the
	// limits at some rate with the first.
	mostDraws = 12
	// Shifts are found to within shiftTolerance, as only their quantiles count, and moves to within
	// moveTolerance, unless mostProbes between a rate that is too high and one too low are used up. The slope
	// of the pressure around the first rate is taken over firstStep on either side and is at least leastSlope.
	shiftTolerance, moveTolerance, mostProbes, firstStep, leastSlope = 0.05, 0.01, 10, 0.08, 0.5
	// Where the pressure grows more slowly than the rate to the power flatSlope, the randomness of a short run
	// shifts the rate at which it crosses the limit. There moves are corrected by two runs of up to mostLonger
	// times the length, and shifts use runs of flatTimes the length.
	flatSlope, flatTimes, mostLonger = 2.0, 4.0, 16.0
)

// Shift samples plausible constants and finds how far each moves the maximum rate, from where the known
// constants just meet the limits to where the sampled ones do. All meet the same requests, so the randomness of
// a short run cancels. If with some draw of requests no rate just meets the limits, others are tried; as a last
// resort the target is the pressure at the known rate. It fails if a probe does, or if records show nothing
// that the objective bounds.
func Shift(k Known, probe Probe) (Shifts, error) {
	n, times := uint64(0), 1.0
	in := func(c model.Constants) Situation {
		s := Situation{Objective: k.Objective, Run: func(rate, _ float64) (measure.Trial, measure.Observation, error) {
			return probe(c, rate, times, k.Seed+n)
		}}
		if k.Carries != nil {
			if now, before := k.Carries(c), k.Carries(k.Constants); now > 0 && before > 0 {
				s.Guess = math.Log(now / before)
			}
		}
		return s
	}
	from := shiftSearch{rate: k.Rate, tolerance: shiftTolerance}
	first := func() (*shiftSearch, error) {
		s, err := begin(from, in(k.Constants))
		for errors.Is(err, errNoRate) && n < mostDraws {
			n++
			s, err = begin(from, in(k.Constants))
		}
		if errors.Is(err, errNoRate) {
			from.latencies = true
			if from.level, err = from.pressure(in(k.Constants), 0); err == nil {
				s, err = begin(from, in(k.Constants))
			}
		}
		return s, err
	}
	s, err := first()
	if err == nil && s.slope < flatSlope {
		times = flatTimes
		s, err = first()
	}
	if err != nil {
		return nil, err
	}
	samples, out := k.Constants.Samples(drawn, drawSeed, k.Spread), make(Shifts, drawn)
	return out, parallel.Do(drawn, func(i int) (err error) {
		if c := samples[i]; c != k.Constants { // the known ones move nothing
			out[i], err = s.move(in(c))
		}
		return err
	})
}

// Moves finds how far other situations move a rate, from where the limits are just met in the first situation
// to where they are in each of the others, by runs with the same requests. It fails if the first has no such
// rate.
func Moves(rate float64, from Situation, to []Situation) ([]Move, error) {
	s, err := begin(shiftSearch{rate: rate, tolerance: moveTolerance, grid: 0.01, longer: mostLonger}, from)
	if err != nil {
		return nil, err
	}
	return parallel.Map(len(to), func(i int) (m Move) {
		m.By, m.Err = s.move(to[i])
		return m
	}), nil
}

// shiftSearch is what all moves of a rate have in common.
type shiftSearch struct {
	rate, tolerance float64
	// level is the target pressure: 0 where the limits are just met. With latencies set, gaps are compared by
	// their latency too, not by the share beyond the limit.
	level     float64
	latencies bool
	// grid is the spacing of the rates tried, so that a caller's cache finds runs again; 0 is none. Where the
	// slope is flat, a run of up to longer times the length decides; 0 is none.
	grid, longer float64
	// start is about where the limits are just met in the first situation, as the logarithm of a factor; origin
	// is the result of a search from there; slope is the flatter of the pressure's slopes over ln rate on
	// either side.
	start, origin, slope float64
}

var errNoRate = errors.New("moves of the maximum rate: no rate near it just meets the limits")

// begin finds where the limits are just met in the first situation.
func begin(s shiftSearch, from Situation) (*shiftSearch, error) {
	if from.Objective.Empty() {
		return nil, errors.New("moves of the maximum rate: the objective bounds no latency")
	}
	if !(s.rate > 0) {
		return nil, fmt.Errorf("moves of the maximum rate: rate %g is not above 0", s.rate)
	}
	s.slope = leastSlope
	x, _, err := s.find(from)
	if err == nil && math.Abs(x) >= WidestMove {
		err = errNoRate
	}
	if err != nil {
		return nil, err
	}
	var ends [2]float64
	if err := parallel.Do(2, func(i int) (err error) {
		ends[i], err = s.pressure(from, x+float64(2*i-1)*firstStep)
		return err
	}); err != nil {
		return nil, err
	}
	s.slope, s.start = max(min(s.level-ends[0], ends[1]-s.level)/firstStep, leastSlope), x
	s.origin, err = s.move(from)
	return &s, err
}

// move returns how far a situation moves the rate.
func (s *shiftSearch) move(in Situation) (float64, error) {
	in.Guess = min(max(in.Guess+s.start, -WidestMove), WidestMove)
	x, slope, err := s.find(in)
	if err != nil || math.Abs(x) >= WidestMove {
		return x, err
	}
	if slope = max(slope, leastSlope); s.longer > 0 && slope < flatSlope {
		times := min((flatSlope/slope)*(flatSlope/slope), s.longer)
		long := Situation{Objective: in.Objective, Run: func(rate, _ float64) (measure.Trial, measure.Observation, error) { return in.Run(rate, times) }}
		p, err := s.pressure(long, x)
		if err != nil {
			return x, err
		}
		// Short runs are too noisy for a slope: the long ones tell their own.
		step := min(max(p/slope, -0.5), 0.5)
		q, err := s.pressure(long, x-step)
		if err != nil {
			return x, err
		}
		if local := (p - q) / step; step != 0 {
			x -= min(max(p/max(local, leastSlope), -0.5), 0.5)
		}
	}
	return min(max(x-s.origin, -WidestMove), WidestMove), nil
}

// pressure is the logarithm of the objective's worst latency over its limit, at exp(x) times the known rate; 20
// if too many requests failed. A growing backlog counts under any objective: with all slots taken the time per
// token grows no further, and only the wait shows the overload. Gaps between tokens take the lengths of a few
// kinds of steps, between which a quantile jumps as the rate grows. They are therefore judged by the share
// beyond the limit, converted as for a latency with an exponential tail, except at the ends of the range, where
// the factor to the limit is wanted.
func (s *shiftSearch) pressure(in Situation, x float64) (float64, error) {
	t, o, err := in.Run(s.rate*math.Exp(x), 1)
	if err != nil {
		return 0, fmt.Errorf("moves of the maximum rate: %w", err)
	}
	worst := math.Inf(-1)
	for _, b := range in.Objective.Bounds {
		v, ok := statistic(&t, &o, b)
		if !ok {
			return 0, fmt.Errorf("moves of the maximum rate: no request shows %s", b)
		}
		over := math.Log(v / limitOf(b))
		if b.Metric == measure.ITL && b.Quantile > 0 && !s.latencies && math.Abs(x) < WidestMove {
			share := float64(o.Gaps.Above(b.Limit)) / float64(o.Gaps.TotalCount())
			over = -math.Log(math.Log(share) / math.Log(b.Allowed()))
		}
		worst = max(worst, over)
	}
	return min(max(worst, backlog(&t, o.Records), -20), 20), nil
}

// backlog is the logarithm of the mean time to first token in the last quarter of the window over a tenth of
// the window: above 0 the queue has grown all along. It is minus infinity for closed loops and windows without
// end.
func backlog(t *measure.Trial, records []measure.Record) float64 {
	if t.Closed() || t.Window <= 0 {
		return math.Inf(-1)
	}
	sum, n := 0.0, 0
	for i := range records {
		r := &records[i]
		if since := t.Warmup + t.Window - r.Due; since <= 0 || since > t.Window/4 {
			continue
		}
		if v, ok := latency(r, measure.TTFT); ok && !math.IsInf(v, 0) {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return math.Inf(-1)
	}
	return math.Log(10 * sum / float64(n) / t.Window.Seconds())
}

// find returns where the limits are just met: it steps until that is bracketed, then uses false position (the
// Illinois variant, which never stalls). It stops when the pressure is near enough to 0 by the flatter of two
// slopes: between the last two probes, and around the known rate, which counts less with distance. steep is the
// slope between the last two probes or the two that bracket the result; after a single probe the one around the
// known rate.
func (s *shiftSearch) find(in Situation) (x, steep float64, err error) {
	a, b, fa, fb := 0.0, s.snap(in.Guess), math.NaN(), math.NaN()
	var slope float64
	steep = s.slope
	try := func(x float64) (found bool, err error) {
		a, fa, b = b, fb, x
		fb, err = s.pressure(in, x)
		fb -= s.level
		slope = max(s.slope*math.Exp(-math.Abs(b-s.start)), leastSlope)
		if local := (fb - fa) / (b - a); local > 0 {
			slope, steep = min(slope, local), local
		}
		return math.Abs(fb) <= s.tolerance*slope, err
	}
	if found, err := try(b); found || err != nil {
		return b - fb/slope, steep, err
	}
	step := math.Copysign(min(max(math.Abs(fb)/s.slope, 0.02), 0.3), -fb)
	for ; !(fa*fb <= 0); step *= 1.6 {
		if math.Abs(b) >= WidestMove {
			return b - max(fb, 0), steep, nil
		}
		if found, err := try(s.snap(min(max(b+step, -WidestMove), WidestMove))); found || err != nil {
			return b - fb/slope, steep, err
		}
	}
	weight := 1.0 // of fa: halved each time that a stays; at a jump that is too slow, so after three times the midpoint is next
	for probes := 0; probes < mostProbes && math.Abs(b-a) > s.tolerance; probes++ {
		x := (a*fb - b*weight*fa) / (fb - weight*fa)
		if weight < 0.2 {
			x = (a + b) / 2
		}
		// The curve bends: stay off the ends, or one of them never moves.
		low, high := min(a, b), max(a, b)
		other, fOther := a, fa
		if found, err := try(s.snap(min(max(x, low+0.1*(high-low)), high-0.1*(high-low)))); found || err != nil {
			return b - fb/slope, steep, err
		}
		weight /= 2
		if fa*fb > 0 {
			a, fa = other, fOther
		} else {
			weight = 1
		}
	}
	// The last two probes may lie on one side of a jump.
	return (a*fb - b*weight*fa) / (fb - weight*fa), (fb - fa) / (b - a), nil
}

// snap rounds a shift to the grid.
func (s *shiftSearch) snap(x float64) float64 {
	if s.grid == 0 {
		return x
	}
	return math.Round(x/s.grid) * s.grid
}

// limitOf returns what a bound's statistic is compared with, in seconds; for goodput, whose statistic is the
// worst ratio of a latency to its limit, 1.
func limitOf(b measure.Bound) float64 {
	if b.Metric == measure.Goodput {
		return 1
	}
	return b.Limit.Seconds()
}

// statistic returns a bound's statistic over the requests due in the window, in seconds; false if no request
// can show it.
func statistic(t *measure.Trial, o *measure.Observation, b measure.Bound) (float64, bool) {
	if b.Metric == measure.ITL {
		if o.Gaps == nil || o.Gaps.TotalCount() == 0 {
			return 0, false
		}
		if b.Quantile == 0 {
			return o.Gaps.Mean() / 1e6, true
		}
		return float64(o.Gaps.ValueAtQuantile(100*b.Quantile)) / 1e6, true
	}
	v := values(t, o.Records, func(r *measure.Record) (float64, bool) {
		switch {
		case !t.Bounds(b, r):
			return 0, false
		case b.Metric != measure.Goodput:
			return latency(r, b.Metric)
		}
		if ratio, ok := b.Limits.Worst(r); ok {
			return ratio, true
		}
		return math.Inf(1), true
	})
	if len(v) == 0 {
		return 0, false
	}
	return statisticOf(v, b.Quantile), true
}

package calibrate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"planner/internal/list"
	"planner/internal/parallel"
	"planner/model"
	"planner/sweep/measure"
)

// Probe runs one load point at a rate with given constants, so many times as long as usual, and
// returns its conditions and records. Equal arguments must give equal results, and every rate must meet the
// same requests in the same order, as [measure.Trial.Schedule] does. All requests
// should be let to end. It is called from several goroutines at once.
type Probe func(c model.Constants, rate, times float64, seed uint64) (measure.Trial, measure.Observation, error)

// Known is what a shift is measured from.
type Known struct {
	// Constants are those that the maximum rate was found with, and Spread is how far they
	// may be off.
	Constants model.Constants
	Spread    model.Spread
	// Rate is the maximum rate, in requests per second.
	Rate float64
	// Objective is what limits it. Its bounds must not be empty.
	Objective measure.SLO
	// Seed drives the draws of constants and the probes' schedules.
	Seed uint64
	// Carries is about which rate arithmetic has with constants, where the search begins; nil where none is known.
	Carries func(model.Constants) float64
}

// Shifts are the logarithms of the maximum rates with other plausible constants over
// the known one, in the order in which the constants were drawn. None lies above
// [WidestMove]; at -WidestMove and below no rate meets the limits, which an idle engine misses
// by the factor whose logarithm is what is beyond.
type Shifts []float64

// Quantile returns the q-quantile of what the shifts are draws of; exp of it is a factor on
// the rate. Of n draws the k-th is taken for that of k/(n+1), as one more draw lies below it
// with that chance: quantiles of the draws themselves are too close together, and of 32 an
// interval of 90 % would hold one more draw in 84 % of the cases. Between no rate and a rate it is the rate.
func (s Shifts) Quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := float64(len(sorted))
	if never := s.Never(); never > 0 && never < len(s) && q*(n+1) > float64(never) {
		// How far below any rate no rate is would be a number of WidestMove's.
		for i := range never {
			sorted[i] = sorted[never]
		}
	}
	return statisticOf(sorted, min(max((q*(n+1)-1)/max(n-1, 1), math.SmallestNonzeroFloat64), 1))
}

// Ends are the 5 % and the 95 % quantile; zeros of no draws.
func (s Shifts) Ends() (low, high float64) {
	if len(s) == 0 {
		return 0, 0
	}
	return s.Quantile(0.05), s.Quantile(0.95)
}

// Over are the shifts of the ratio to another rate, which was found with the same constants.
func (s Shifts) Over(other Shifts) Shifts {
	ratio := slices.Clone(s[:min(len(s), len(other))])
	for i := range ratio {
		ratio[i] -= other[i]
	}
	return ratio
}

// Never counts the draws with which no rate meets the limits.
func (s Shifts) Never() int {
	return list.Count(s, func(x float64) bool { return x <= -WidestMove })
}

// Longer is by which factor the limits would have to be longer for some rate to meet them with all
// draws; 1 where they are long enough.
func (s Shifts) Longer() float64 { return math.Exp(max(-slices.Min(s)-WidestMove, 0)) }

// WidestMove bounds shifts and moves either way, a factor of 100 on the rate.
const WidestMove = 4.6

// Situation is what a maximum rate is found in.
type Situation struct {
	// Objective limits the rate. Its bounds must not be empty.
	Objective measure.SLO
	// Run runs one load point at a rate, as a [Probe] does, so many times as long as usual.
	Run func(rate, times float64) (measure.Trial, measure.Observation, error)
	// Guess is where its rate is looked for first, as the logarithm of a factor.
	Guess float64
}

// Move is the logarithm of the maximum rate in another situation over the known one in
// the first, in the bounds of [Shifts], or why it is not known.
type Move struct {
	By  float64
	Err error
}

const (
	// drawn is the number of sets of constants that are drawn.
	drawn = 32
	// mostDraws is how many draws of requests are tried until with one of them the known constants just meet the
	// limits at some rate.
	mostDraws = 12
	// Shifts are known to shiftTolerance, as only the quantiles of many count, and moves to moveTolerance, or either as well
	// as mostProbes tell between a rate that is too fast and one that is too slow. firstStep is how far on either side of
	// the first rate the slope of the pressure is looked for, which is leastSlope at least.
	shiftTolerance, moveTolerance, mostProbes, firstStep, leastSlope = 0.05, 0.01, 10, 0.08, 0.5
	// Where the pressure grows with the rate to less than the power flatSlope, the chance of a short run moves the rate at
	// which it is at the limit; there a run of up to mostLonger times the length decides, and shifts are found by runs
	// of flatTimes the length.
	flatSlope, flatTimes, mostLonger = 2.0, 4.0, 16.0
)

// Shift samples plausible constants and finds how far each moves the maximum rate: from where the known constants
// just meet the limits to where they do. As all meet the same requests, the chance of a short run cancels. Where the
// chance of a draw leaves no rate that meets them another one is taken, and at last what the known rate brings.
// It fails if a probe does, or if the objective bounds nothing that records show.
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
	out := make(Shifts, drawn)
	return out, parallel.Do(len(out), func(i int) (err error) {
		out[i], err = s.move(in(k.Constants.Sample(rand.New(rand.NewPCG(k.Seed, uint64(i))), k.Spread)))
		return err
	})
}

// Moves finds how far other situations move a rate: by the rates at which the limits are
// just met, in each situation and in the first one, by runs that meet the same requests. An
// error says that the first has no such rate.
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

// shiftSearch is the common ground of all moves of a rate.
type shiftSearch struct {
	rate, tolerance float64
	// level is the pressure that is looked for, 0 where the limits are just met; elsewhere latencies are what
	// is compared, of gaps as well.
	level     float64
	latencies bool
	// grid is what rates are tried on: runs on one are found again by who keeps them; 0 is none. A run of up to longer
	// times the length decides where the slope is flat; 0 is none.
	grid, longer float64
	// start is about where the limits are just met in the first situation, as the logarithm of a factor, origin where
	// that is found from there, and slope the flatter one of the pressure over ln rate on either side.
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
	below, err := s.pressure(from, x-firstStep)
	if err != nil {
		return nil, err
	}
	above, err := s.pressure(from, x+firstStep)
	if err != nil {
		return nil, err
	}
	s.slope, s.start = max(min(s.level-below, above-s.level)/firstStep, leastSlope), x
	s.origin, err = s.move(from)
	return &s, err
}

// move is how far a situation moves the rate.
func (s *shiftSearch) move(in Situation) (float64, error) {
	in.Guess = min(max(in.Guess+s.start, -WidestMove), WidestMove)
	x, slope, err := s.find(in)
	if err != nil || math.Abs(x) >= WidestMove {
		return x, err
	}
	if slope = max(slope, leastSlope); s.longer > 0 && slope < flatSlope {
		p, err := s.pressure(Situation{Objective: in.Objective, Run: func(rate, _ float64) (measure.Trial, measure.Observation, error) {
			return in.Run(rate, min((flatSlope/slope)*(flatSlope/slope), s.longer))
		}}, x)
		if err != nil {
			return x, err
		}
		x -= min(max(p/slope, -0.5), 0.5)
	}
	return min(max(x-s.origin, -WidestMove), WidestMove), nil
}

// pressure is the logarithm of the objective's worst latency over its limit at exp(x)
// times the known rate, and 20 when too many requests never got there. A server that
// cannot keep up is under pressure whatever the objective: with all seats taken its
// time per token grows no further, and only the wait tells. Gaps between tokens have the lengths of
// few kinds of steps, among which a quantile jumps as the rate grows: of them the share beyond the limit
// tells, as of a latency whose tail is exponential, but where no rate meets the limit, and it is asked
// how far off it is.
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

// backlog is the logarithm of the mean wait for a first token at the end of the window
// over a tenth of the window: above 0 the queue has grown all along. It is minus
// infinity for closed loops and windows without end.
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

// find returns where the limits are just met, by their pressure: steps until that is bracketed, then false
// position (the Illinois variant, which never stalls). It is near enough where the pressure is, by the flatter one of
// the slopes between the last two probes and around the known rate, which tells the less, the farther that is. How steep
// the pressure is between the last two probes, or between the two around it, comes with it; of one probe, around the known rate.
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
	weight := 1.0 // of fa: halved each time that a stays; at a jump that is not enough, and after three times the middle is next
	for probes := 0; probes < mostProbes && math.Abs(b-a) > s.tolerance; probes++ {
		x := (a*fb - b*weight*fa) / (fb - weight*fa)
		if weight < 0.2 {
			x = (a + b) / 2
		}
		// The curve bends: keep off the ends, or one of them never moves.
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

// snap puts a shift on the grid.
func (s *shiftSearch) snap(x float64) float64 {
	if s.grid == 0 {
		return x
	}
	return math.Round(x/s.grid) * s.grid
}

// limitOf is what a bound's statistic is compared with, seconds; the statistic of
// goodput is the worst ratio of a latency to its limit.
func limitOf(b measure.Bound) float64 {
	if b.Metric == measure.Goodput {
		return 1
	}
	return b.Limit.Seconds()
}

// statistic returns a bound's statistic over the requests due in the window, seconds;
// false if no request can show it.
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

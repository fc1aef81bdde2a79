package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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
	// Samples is the number of sets of constants that are drawn; 0 means 32.
	Samples int
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

// Never counts the draws with which no rate meets the limits.
func (s Shifts) Never() (n int) {
	for _, x := range s {
		if x <= -WidestMove {
			n++
		}
	}
	return n
}

// Longer is by which factor the limits would have to be longer for some rate to meet them with all
// draws; 1 where they are long enough.
func (s Shifts) Longer() float64 { return math.Exp(max(-slices.Min(s)-WidestMove, 0)) }

// WidestMove bounds shifts and moves either way, a factor of 100 on the rate.
const WidestMove = 4.6

// The search for one shift ends when it is known to shiftTolerance, by the flatter of the slopes on either side,
// or after so many probes between one that is too fast and one that is too slow.
const (
	defaultSamples = 32
	shiftTolerance = 0.02
	mostProbes     = 10
	firstStep      = 0.08
)

// Of so many draws of requests that with the known constants nearest to the limit at the
// known rate is taken, the first one within nearLimit, a logarithm.
const (
	mostDraws = 12
	nearLimit = 0.03
)

// Situation is what a maximum rate is found in.
type Situation struct {
	// Objective limits the rate. Its bounds must not be empty.
	Objective measure.SLO
	// Run runs one load point at a rate, as a [Probe] does, so many times as long as usual.
	Run func(rate, times float64) (measure.Trial, measure.Observation, error)
	// Guess is where its rate is looked for first, as the logarithm of a factor.
	Guess float64
}

// Shift samples plausible constants and finds how far each moves the maximum rate. The
// known constants at the known rate bring some latency, in units of its limit, by the
// bound that is nearest to being missed; the shifted rate is where other constants
// bring the same. As both meet the same requests, the chance of a short run cancels, as far
// as it leaves the latency near the limit: of a few draws of requests the nearest is taken, as
// far below a knee other constants would seem to move the rate by any factor.
// It fails if a probe does, or if the objective bounds nothing that records show.
func Shift(k Known, probe Probe) (Shifts, error) {
	s, in, err := k.drawn(probe, 1)
	if err == nil && s.slope < flatSlope {
		s, in, err = k.drawn(probe, flatTimes)
	}
	if err != nil {
		return nil, err
	}
	out := make(Shifts, cmp.Or(k.Samples, defaultSamples))
	err = parallel.Do(len(out), func(i int) (err error) {
		out[i], _, err = s.find(in(k.Constants.Sample(rand.New(rand.NewPCG(k.Seed, uint64(i))), k.Spread)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// drawn is the search for shifts on the draw of requests with which the known constants at the
// known rate come nearest to the limit, in runs of so many times the length.
func (k *Known) drawn(probe Probe, times float64) (*shiftSearch, func(model.Constants) Situation, error) {
	var s *shiftSearch
	var in func(model.Constants) Situation
	for n := range uint64(mostDraws) {
		with := func(c model.Constants) Situation {
			return Situation{Objective: k.Objective, Run: func(rate, _ float64) (measure.Trial, measure.Observation, error) {
				return probe(c, rate, times, k.Seed+n)
			}}
		}
		one, err := newShiftSearch(k.Rate, with(k.Constants))
		if err != nil {
			return nil, nil, err
		}
		if s == nil || math.Abs(one.level) < math.Abs(s.level) {
			s, in = one, with
		}
		if math.Abs(s.level) <= nearLimit {
			break
		}
	}
	if math.IsInf(s.level, 0) {
		return nil, nil, fmt.Errorf("spread of the maximum rate: at %g/s the objective's latencies are not finite", k.Rate)
	}
	above, err := s.pressure(in(k.Constants), firstStep)
	// A knee is steep above the known rate and flat below; any slope will do to begin with.
	s.slope = max((min(above, s.level+10)-s.level)/firstStep, 0.5)
	return s, in, err
}

// Move is the logarithm of the maximum rate in another situation over the known one in
// the first, in the bounds of [Shifts], or why it is not known.
type Move struct {
	By  float64
	Err error
}

// Where the pressure grows with the rate to less than this power, the chance of a short run
// moves the rate at which it is at the limit; there a run of up to so many times the length
// decides, and shifts are found by runs of flatTimes the length.
const (
	flatSlope  = 2.0
	mostLonger = 16.0
	flatTimes  = 4.0
)

// Moves finds how far other situations move a rate: by the rates at which the limits are
// just met, in each situation and in the first one, by runs that meet the same requests. An
// error says that the first has no such rate.
func Moves(rate float64, from Situation, to []Situation) ([]Move, error) {
	s := &shiftSearch{rate: rate, slope: flatSlope, widest: WidestMove, grid: 0.01}
	all := append([]Situation{from}, to...)
	out := make([]Move, len(all))
	_ = parallel.Do(len(all), func(i int) error { // each has an error of its own
		out[i].By, out[i].Err = s.met(all[i])
		return nil
	})
	if out[0].Err != nil || math.Abs(out[0].By) >= WidestMove {
		return nil, cmp.Or(out[0].Err, errors.New("moves of the maximum rate: no rate near it just meets the limits"))
	}
	for i := range to {
		if out[i+1].By > -WidestMove {
			out[i+1].By -= out[0].By
		}
	}
	return out[1:], nil
}

// met is where a situation just meets its limits.
func (s *shiftSearch) met(in Situation) (float64, error) {
	x, slope, err := s.find(in)
	if err != nil || math.Abs(x) >= s.widest || !(slope < flatSlope) {
		return x, err
	}
	slope = max(slope, flatSlope/math.Sqrt(mostLonger))
	run, times := in.Run, (flatSlope/slope)*(flatSlope/slope)
	in.Run = func(rate, _ float64) (measure.Trial, measure.Observation, error) { return run(rate, times) }
	p, err := s.pressure(in, x)
	return x - min(max(p/slope, -0.5), 0.5), err
}

// shiftSearch is the common ground of all shifts of a rate.
type shiftSearch struct {
	rate  float64
	level float64 // pressure at the known rate
	slope float64 // of pressure over ln rate there, roughly
	// widest bounds what is found either way, and grid is what rates are tried on: runs on
	// one are found again by who keeps them; 0 is none.
	widest, grid float64
}

func newShiftSearch(rate float64, known Situation) (*shiftSearch, error) {
	if known.Objective.Empty() {
		return nil, errors.New("spread of the maximum rate: the objective bounds no latency")
	}
	if !(rate > 0) {
		return nil, fmt.Errorf("spread of the maximum rate: rate %g is not above 0", rate)
	}
	s := &shiftSearch{rate: rate, widest: WidestMove}
	var err error
	s.level, err = s.pressure(known, 0)
	return s, err
}

// pressure is the logarithm of the objective's worst latency over its limit at exp(x)
// times the known rate; infinite when too many requests never got there. A server that
// cannot keep up is under pressure whatever the objective: with all seats taken its
// time per token grows no further, and only the wait tells.
func (s *shiftSearch) pressure(in Situation, x float64) (float64, error) {
	t, o, err := in.Run(s.rate*math.Exp(x), 1)
	if err != nil {
		return 0, fmt.Errorf("spread of the maximum rate: %w", err)
	}
	worst := math.Inf(-1)
	for _, b := range in.Objective.Bounds {
		v, ok := statistic(&t, &o, b)
		if !ok {
			return 0, fmt.Errorf("spread of the maximum rate: no request shows %s", b)
		}
		worst = max(worst, math.Log(v/limitOf(b)))
	}
	return max(worst, backlog(&t, o.Records)), nil
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

// find returns the shift at which a situation brings the known pressure, and the slope of
// the pressure there, NaN where it is met at once: steps until it is bracketed, then false
// position (the Illinois variant, which never stalls).
func (s *shiftSearch) find(in Situation) (shift, slope float64, err error) {
	f := func(x float64) (float64, error) {
		p, err := s.pressure(in, x)
		return min(p-s.level, 20), err // keep infinities out of the arithmetic
	}
	a := s.snap(in.Guess)
	fa, err := f(a)
	if err != nil || fa == 0 {
		return a, math.NaN(), err
	}
	step := math.Copysign(min(max(math.Abs(fa)/s.slope, 0.02), 0.3), -fa)
	b, fb := a, fa
	for fa*fb > 0 {
		if math.Abs(b) >= s.widest {
			return b - max(fb, 0), math.NaN(), nil
		}
		a, fa = b, fb
		b = s.snap(min(max(b+step, -s.widest), s.widest))
		if fb, err = f(b); err != nil {
			return 0, 0, err
		}
		step *= 1.6
	}
	slope = (fb - fa) / (b - a)
	side := 0
	for probes := 0; probes < mostProbes && math.Abs(b-a) > shiftTolerance && fb != 0; probes++ {
		x := (a*fb - b*fa) / (fb - fa)
		// The curve bends: keep off the ends, or one of them never moves.
		low, high := min(a, b), max(a, b)
		x = s.snap(min(max(x, low+0.1*(high-low)), high-0.1*(high-low)))
		fx, err := f(x)
		if err != nil {
			return 0, 0, err
		}
		if local := min((fx-fa)/(x-a), (fb-fx)/(b-x)); math.Abs(fx) < shiftTolerance*local {
			return s.snap(x - fx/local), slope, nil
		}
		if fx*fb > 0 {
			b, fb = x, fx
			if side == 1 {
				fa /= 2
			}
			side = 1
		} else {
			a, fa = x, fx
			if side == -1 {
				fb /= 2
			}
			side = -1
		}
	}
	if fb == fa {
		return b, slope, nil
	}
	return (a*fb - b*fa) / (fb - fa), slope, nil
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

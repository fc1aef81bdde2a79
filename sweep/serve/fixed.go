package serve

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Fixed answers without a model: the first token comes after one time, every further one after
// another.
type Fixed struct {
	// TTFT is drawn for each request, TPOT for each token after the first.
	TTFT, TPOT Distribution
	// Slots is how many requests are served at once; the others wait in one queue, first come,
	// first served. 0 serves all at once. With one slot, no TPOT and a TTFT that is constant or
	// exponential, Poisson arrivals make the queue M/D/1 or M/M/1.
	Slots int
}

// fixed is the backend of a [Fixed].
type fixed struct {
	times    Fixed
	seed     uint64
	requests int
	waiting  []*fixedRequest
	serving  []*fixedRequest // the one with the earliest next token last
	// idle holds the times since which the slots that serve nobody have been free.
	idle []time.Duration
}

// fixedRequest is one request in a fixed backend.
type fixedRequest struct {
	id                     int
	arrived, started, next time.Duration
	begun                  bool
	left                   int // tokens
	rng                    *rand.Rand
}

func newFixed(times Fixed, seed uint64) *fixed {
	return &fixed{times: times, seed: seed, idle: make([]time.Duration, times.Slots)}
}

// Submit puts a request at the end of the queue; none is refused.
func (f *fixed) Submit(at time.Duration, q workload.Request) (int, bool) {
	j := &fixedRequest{id: f.requests, arrived: at, left: q.Output, rng: rand.New(rand.NewPCG(f.seed, uint64(f.requests)))}
	f.requests++
	f.waiting = append(f.waiting, j)
	f.start()
	return j.id, true
}

func (f *fixed) start() {
	for len(f.waiting) > 0 {
		j := f.waiting[0]
		j.started = j.arrived
		if f.times.Slots > 0 {
			if len(f.idle) == 0 {
				return
			}
			// The slot that has been free the longest; it may have become free after the request
			// arrived.
			first := slices.Index(f.idle, slices.Min(f.idle))
			j.started = max(j.arrived, f.idle[first])
			f.idle = slices.Delete(f.idle, first, first+1)
		}
		f.waiting = f.waiting[1:]
		j.next = j.started + f.times.TTFT.draw(j.rng)
		f.schedule(j)
	}
}

// schedule inserts a job by the time of its next token; of simultaneous tokens, that of the earlier
// request comes first.
func (f *fixed) schedule(j *fixedRequest) {
	i, _ := slices.BinarySearchFunc(f.serving, j, func(a, b *fixedRequest) int {
		return cmp.Or(cmp.Compare(b.next, a.next), cmp.Compare(b.id, a.id))
	})
	f.serving = slices.Insert(f.serving, i, j)
}

func (f *fixed) release(at time.Duration) {
	if f.times.Slots > 0 {
		f.idle = append(f.idle, at)
		f.start()
	}
}

// Cancel frees the slot of a request, or its place in the queue.
func (f *fixed) Cancel(at time.Duration, request int) {
	asked := func(j *fixedRequest) bool { return j.id == request }
	if i := slices.IndexFunc(f.serving, asked); i >= 0 {
		f.serving = slices.Delete(f.serving, i, i+1)
		f.release(at)
		return
	}
	f.waiting = slices.DeleteFunc(f.waiting, asked)
}

// Advance draws the tokens up to a time, of all requests in order of time.
func (f *fixed) Advance(to time.Duration, tokens []sim.Token) ([]sim.Token, time.Duration) {
	for n := len(f.serving); n > 0; n = len(f.serving) {
		j := f.serving[n-1]
		if j.next > to {
			return tokens, j.next
		}
		f.serving = f.serving[:n-1]
		j.left--
		tokens = append(tokens, sim.Token{Request: j.id, At: j.next, First: !j.begun, Last: j.left == 0, Wait: j.started - j.arrived})
		if j.left == 0 {
			f.release(j.next)
			continue
		}
		j.begun = true
		j.next += f.times.TPOT.draw(j.rng)
		f.schedule(j)
	}
	return tokens, measure.Never
}

// Occupancy counts requests; there is no KV cache.
func (f *fixed) Occupancy() sim.Occupancy {
	return sim.Occupancy{Running: len(f.serving), Waiting: len(f.waiting)}
}

// Distribution draws durations; nil draws zeros.
type Distribution func(*rand.Rand) time.Duration

// ParseDistribution parses a duration such as "100ms", which never varies, or "exponential:MEAN",
// "lognormal:MEDIAN,SIGMA" with sigma of the logarithm, or "uniform:LOW,HIGH".
func ParseDistribution(s string) (Distribution, error) {
	kind, parameters, found := strings.Cut(s, ":")
	if !found {
		d, err := parseSeconds(s)
		return func(*rand.Rand) time.Duration { return seconds(d) }, err
	}
	if !slices.Contains([]string{"exponential", "lognormal", "uniform"}, kind) {
		return nil, fmt.Errorf("read distribution %q: unknown kind %q; allowed: a duration, exponential, lognormal, uniform", s, kind)
	}
	first, second, two := strings.Cut(parameters, ",")
	a, err := parseSeconds(first)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "exponential":
		if two {
			return nil, fmt.Errorf("read distribution %q: exponential takes its mean alone", s)
		}
		return func(rng *rand.Rand) time.Duration { return seconds(a * rng.ExpFloat64()) }, nil
	case "lognormal":
		sigma, err := strconv.ParseFloat(second, 64)
		if err != nil || !(sigma >= 0) || math.IsInf(sigma, 1) {
			return nil, fmt.Errorf("read distribution %q: lognormal takes a median and a sigma, as in lognormal:100ms,0.5", s)
		}
		return func(rng *rand.Rand) time.Duration { return seconds(a * math.Exp(sigma*rng.NormFloat64())) }, nil
	default: // uniform
		b, err := parseSeconds(second)
		if err != nil || b < a {
			return nil, fmt.Errorf("read distribution %q: uniform takes a low and a high end, as in uniform:80ms,120ms", s)
		}
		return func(rng *rand.Rand) time.Duration { return seconds(a + (b-a)*rng.Float64()) }, nil
	}
}

func parseSeconds(s string) (float64, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("read duration %q: want one that is not negative, as in 100ms", s)
	}
	return d.Seconds(), nil
}

func (d Distribution) draw(rng *rand.Rand) time.Duration {
	if d == nil {
		return 0
	}
	return d(rng)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(min(s, 1e9) * 1e9)) }

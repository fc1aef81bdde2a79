package virtual

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Queue is a first-come, first-served queue of several servers, by Lindley's recursion. Its
// services are exponential, or what a model of an engine has not: of heavy tails, interrupted,
// slower by the minute, or slower when many wait.
type Queue struct {
	// Servers work side by side, each at Rate requests per second.
	Servers int
	Rate    float64
	// Constant service times instead of exponential ones.
	Constant bool
	// Waiting makes the first token the start of the service instead of its end.
	Waiting bool
	// Sigma is that of lognormal services, Pareto the exponent of the tail of Pareto ones.
	Sigma, Pareto float64
	// Rest, if above 0, is how long all servers stand still after each working time,
	// which is exponential with mean Work.
	Work, Rest time.Duration
	// Leak is by what share services become slower a minute.
	Leak float64
	// Crowd, if above 0, is the number of requests under way from which services take
	// Slower times as long.
	Crowd  int
	Slower float64
	// Slow is the factor of the speed of half of all starts; 0 means 1.
	Slow float64
}

// Serve runs the queue. Service times belong to the index of a request, so two
// rates meet the same ones.
func (q Queue) Serve(requests []workload.Request, speed float64, seed uint64) []measure.Record {
	rng := rand.New(rand.NewPCG(seed, streamService))
	if start := rand.New(rand.NewPCG(seed, streamStart)); q.Slow > 0 && start.Float64() < 0.5 {
		speed *= q.Slow
	}
	rests := q.rests(seed)
	free := make([]float64, max(q.Servers, 1))
	var ends []float64 // of the requests under way, sorted
	out := make([]measure.Record, len(requests))
	for i := range requests {
		next := 0
		for s := range free {
			if free[s] < free[next] {
				next = s
			}
		}
		due := requests[i].Due.Seconds()
		start := max(due, free[next])
		service := q.service(rng, speed) * (1 + q.Leak*start/60)
		if q.Crowd > 0 {
			gone, _ := slices.BinarySearch(ends, due)
			if ends = ends[gone:]; len(ends) >= q.Crowd {
				service *= q.Slower
			}
		}
		end := rests.after(start, service)
		free[next] = end
		if q.Crowd > 0 {
			at, _ := slices.BinarySearch(ends, end)
			ends = slices.Insert(ends, at, end)
		}
		first := end
		if q.Waiting {
			first = start
		}
		out[i] = answered(&requests[i], seconds(first), seconds(end))
	}
	return out
}

// service draws a service time of mean 1/Rate.
func (q Queue) service(rng *rand.Rand, speed float64) float64 {
	mean := 1 / (q.Rate * speed)
	switch {
	case q.Constant:
		return mean
	case q.Sigma > 0:
		return mean * math.Exp(q.Sigma*rng.NormFloat64()-q.Sigma*q.Sigma/2)
	case q.Pareto > 1:
		return mean * (q.Pareto - 1) / q.Pareto * math.Pow(1-rng.Float64(), -1/q.Pareto)
	}
	return mean * rng.ExpFloat64()
}

// rests draws the times at which the servers stand still, as they are needed.
type rests struct {
	rng        *rand.Rand
	work, rest float64
	begin      []float64
}

func (q Queue) rests(seed uint64) *rests {
	return &rests{rng: rand.New(rand.NewPCG(seed, streamRest)), work: q.Work.Seconds(), rest: q.Rest.Seconds()}
}

// after is when so much work ends that starts at a time.
func (r *rests) after(start, work float64) float64 {
	if r.rest <= 0 {
		return start + work
	}
	end := start + work
	for i := r.from(start); ; i++ {
		for len(r.begin) <= i {
			last := 0.0
			if n := len(r.begin); n > 0 {
				last = r.begin[n-1] + r.rest
			}
			r.begin = append(r.begin, last+r.work*r.rng.ExpFloat64())
		}
		if r.begin[i] >= end {
			return end
		}
		end += r.begin[i] + r.rest - max(start, r.begin[i])
	}
}

// from is the first rest that ends behind a time, of those that were drawn.
func (r *rests) from(at float64) int {
	i, _ := slices.BinarySearch(r.begin, at-r.rest)
	return i
}

// Batches serves up to Size requests at once, in a time of Service, as soon as so
// many wait or the first of them has waited for Wait.
type Batches struct {
	Size          int
	Service, Wait time.Duration
}

// Serve runs one batch after another.
func (b Batches) Serve(requests []workload.Request, speed float64, _ uint64) []measure.Record {
	out := make([]measure.Record, len(requests))
	free := 0.0
	for first := 0; first < len(requests); {
		full := first + b.Size - 1
		start := max(free, requests[first].Due.Seconds()+b.Wait.Seconds())
		if full < len(requests) {
			start = max(free, min(start, requests[full].Due.Seconds()))
		}
		end := start + b.Service.Seconds()/speed
		last := first
		for last < len(requests) && last <= full && requests[last].Due.Seconds() <= start {
			out[last] = answered(&requests[last], seconds(end), seconds(end))
			last++
		}
		first, free = last, end
	}
	return out
}

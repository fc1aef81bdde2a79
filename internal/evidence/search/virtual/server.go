// Package virtual holds servers in virtual time whose maximum rate is known, to
// try searches on: queues with a closed form and a small batching engine.
package virtual

import (
	"math"
	"time"

	"planner/internal/note"
	"planner/internal/stat"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// A Server turns a schedule into what was seen of each request. speed scales
// its capacity: 1.04 serves everything 4 % faster.
type Server interface {
	Serve(requests []workload.Request, speed float64, seed uint64) []measure.Record
}

// Random streams of the package, apart from those of a schedule.
const (
	streamService uint64 = 101 + iota
	streamDrift
	streamStart
	streamRest
)

// Told reports whether an answer warns of a server that is not the same in all trials.
func Told(said note.Notes) bool {
	return said.Has(note.TrialsDiffer) || said.Has(note.Collapses) || said.Has(note.Cliff)
}

func answered(r *workload.Request, first, last time.Duration) measure.Record {
	return measure.Record{ID: r.ID, Class: r.Class, Due: r.Due, Sent: r.Due, First: first, Last: max(first, last),
		Prompt: r.Prompt, Output: r.Output, Asked: r.Output, Outcome: measure.OK}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// MaxRate is the largest rate at which no larger share than p of the requests exceeds limit,
// where services are exponential or constant: sojourn times of M/M/1 (exponential with rate mu - lambda),
// sojourn times of M/D/1 (Erlang's sum) and waiting times of M/M/c (Erlang C).
func (q Queue) MaxRate(limit time.Duration, p float64) float64 {
	rate, _ := stat.Bisect(0, float64(max(q.Servers, 1))*q.Rate, 200, func(rate float64) bool { return q.Exceeds(rate, limit) > p })
	return rate
}

// Exceeds is the share of requests beyond a limit at a rate.
func (q Queue) Exceeds(rate float64, limit time.Duration) float64 {
	l := limit.Seconds()
	switch {
	case q.Constant && q.Servers <= 1:
		return exceedsMD1(rate, q.Rate, l-1/q.Rate)
	case q.Waiting:
		return erlangC(q.Servers, rate/q.Rate) * math.Exp(-(float64(q.Servers)*q.Rate-rate)*l)
	}
	return math.Exp(-(q.Rate - rate) * l)
}

// exceedsMD1 is the probability of waiting longer than w (Erlang 1909):
// P(W <= w) = (1-rho) sum_k (lambda(kD-w))^k/k! exp(-lambda(kD-w)), kD <= w.
func exceedsMD1(rate, service, w float64) float64 {
	d := 1 / service
	if w < 0 {
		return 1
	}
	sum := 0.0
	for k := 0; float64(k)*d <= w; k++ {
		x := rate * (float64(k)*d - w)
		lg, _ := math.Lgamma(float64(k) + 1)
		term := math.Exp(float64(k)*math.Log(max(math.Abs(x), math.SmallestNonzeroFloat64)) - lg - x)
		if k == 0 {
			term = math.Exp(-x)
		}
		if k%2 == 1 {
			term = -term
		}
		sum += term
	}
	return 1 - (1-rate*d)*sum
}

// erlangC is the probability of having to wait with offered load a.
func erlangC(servers int, a float64) float64 {
	b := 1.0
	for k := 1; k <= servers; k++ {
		b = a * b / (float64(k) + a*b)
	}
	rho := a / float64(servers)
	return b / (1 - rho*(1-b))
}

package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"planner/internal/evidence/search/virtual"
	"planner/search"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// oddServer is a server that has little of an engine, with a limit on its TTFT.
type oddServer struct {
	name   string
	server virtual.Server
	bound  measure.Bound
	// lasting, if set, is the server whose maximum rate counts as true where that of
	// the server itself changes with time.
	lasting virtual.Server
	// capacity is about what it completes, starts the least number of starts of which
	// the truth is that of all together; see subject.frail.
	capacity float64
	starts   int
	frail    bool
}

func oddServers() []oddServer {
	ttft := func(quantile float64, limit time.Duration) measure.Bound {
		return measure.Bound{Metric: measure.TTFT, Quantile: quantile, Limit: limit}
	}
	slow := virtual.Odd{Servers: 4, Rate: 10}
	leak := slow
	leak.Leak = 0.01
	return []oddServer{
		{name: "M/G/8, lognormal services of sigma 1.5", server: virtual.Odd{Servers: 8, Rate: 5, Sigma: 1.5}, bound: ttft(0.99, 3*time.Second), capacity: 40},
		{name: "M/G/8, Pareto services of exponent 2.2", server: virtual.Odd{Servers: 8, Rate: 5, Pareto: 2.2}, bound: ttft(0.95, time.Second), capacity: 40},
		{name: "M/G/8, Pareto services, mean", server: virtual.Odd{Servers: 8, Rate: 5, Pareto: 2.2}, bound: ttft(0, 500*time.Millisecond), capacity: 40},
		{name: "rests of 1 s every 30 s", server: virtual.Odd{Servers: 4, Rate: 10, Work: 30 * time.Second, Rest: time.Second}, bound: ttft(0.99, 1500*time.Millisecond), capacity: 38},
		{name: "cliff: half as fast from 40 under way", server: virtual.Odd{Servers: 4, Rate: 10, Crowd: 40, Slower: 2}, bound: ttft(0.99, 2*time.Second), capacity: 40, frail: true},
		{name: "1 % slower a minute", server: leak, bound: ttft(0.99, time.Second), lasting: slow, capacity: 40},
		{name: "two speeds, by start", server: virtual.Odd{Servers: 4, Rate: 10, Slow: 0.8}, bound: ttft(0.99, time.Second), capacity: 36, starts: 40},
		{name: "batches of 16, time-out 200 ms", server: virtual.Batches{Size: 16, Service: 400 * time.Millisecond, Wait: 200 * time.Millisecond}, bound: ttft(0.95, 800*time.Millisecond), capacity: 40},
	}
}

// subject is the server under requests of one token.
func (o *oddServer) subject() *subject {
	one := workload.Lengths{Dist: workload.Fixed, Value: 1}
	server := o.server
	if o.lasting != nil {
		server = o.lasting
	}
	return &subject{
		workload:  &workload.Workload{Class: "one", Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: one, Output: one}}},
		objective: measure.SLO{Bounds: []measure.Bound{o.bound}, Errors: 0.001}, start: o.capacity, latency: time.Second, starts: o.starts, frail: o.frail,
		observe: func(t measure.Trial) (measure.Observation, error) {
			return measure.Observation{Records: server.Serve(t.Schedule(), 1, t.Seed)}, nil
		},
	}
}

// oddBudget is the engine time of a search, as real engines have it.
const oddBudget = time.Hour

// search runs one search, of which nothing is known beforehand.
func (o *oddServer) search(s *subject, seed uint64) search.Result {
	m := search.NewMaxRate(search.MaxRateConfig{Workload: s.workload, SLO: s.objective, Seed: seed, Budget: oddBudget})
	bench := virtual.Bench{Server: o.server}
	for batch := m.Next(); len(batch) > 0; batch = m.Next() {
		m.Observe(bench.Run(batch[0]))
	}
	return m.Result()
}

// servers prints a row a server over many seeds.
func servers(w io.Writer, seeds, jobs int) {
	fmt.Fprintln(w, "| server | truth | answered | coverage | safe ok | max safe | RMSE | bias | trials | engine s | notes, share of answers |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	for _, o := range oddServers() {
		s := o.subject()
		t := s.truth()
		results := make([]*answer, seeds)
		atOnce(seeds, jobs, func(i int) {
			results[i] = compared(o.search(s, uint64(i+1)), t)
		})
		fmt.Fprintf(w, "| %s | %.2f (%.2f..%.2f) %s |\n", o.name, t.Rate, t.Low, t.High, oddRow(results))
	}
}

// oddRow are the figures of one server's answers.
func oddRow(all []*answer) string {
	spent := 0.0
	notes := map[string]float64{}
	for _, a := range all {
		spent += a.EngineTime.Seconds() / float64(len(all))
		said := map[string]bool{}
		for _, note := range a.Warnings {
			name, _, _ := strings.Cut(string(note.Kind), ":")
			said[name] = true
		}
		for name := range said {
			notes[name] += 1 / float64(len(all))
		}
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(notes)) {
		said = append(said, fmt.Sprintf("%s %.2f", name, notes[name]))
	}
	t := tallyOf(all)
	return fmt.Sprintf("| %.0f | %.3f | %.3f | %.3f | %.4f | %+.4f | %.0f | %.0f | %s", t.both, t.covered, t.safe, t.highest,
		math.Sqrt(stat.Mean(squares(t.logs), nil)), stat.Mean(t.logs, nil), quantile(t.trials, 0.5), spent, strings.Join(said, ", "))
}

func squares(values []float64) []float64 {
	out := slices.Clone(values)
	for i := range out {
		out[i] *= out[i]
	}
	return out
}

package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"planner/internal/evidence/search/virtual"
	"planner/internal/list"
	"planner/internal/parallel"
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
	// the truth is that of all together.
	capacity float64
	starts   int
}

func oddServers() []oddServer {
	ttft := func(quantile float64, limit time.Duration) measure.Bound {
		return measure.Bound{Metric: measure.TTFT, Quantile: quantile, Limit: limit}
	}
	const ms = time.Millisecond
	slow := virtual.Queue{Servers: 4, Rate: 10}
	leak, rests, crowd, modes := slow, slow, slow, slow
	leak.Leak, modes.Slow = 0.01, 0.8
	rests.Work, rests.Rest = 30*time.Second, time.Second
	crowd.Crowd, crowd.Slower = 40, 2
	lognormal := virtual.Queue{Servers: 8, Rate: 5, Sigma: 1.5}
	pareto := virtual.Queue{Servers: 8, Rate: 5, Pareto: 2.2}
	batches := virtual.Batches{Size: 16, Service: 400 * ms, Wait: 200 * ms}
	return []oddServer{
		{name: "M/G/8, lognormal services of sigma 1.5", server: lognormal, bound: ttft(0.99, 3000*ms), capacity: 40},
		{name: "M/G/8, Pareto services of exponent 2.2", server: pareto, bound: ttft(0.95, 1000*ms), capacity: 40},
		{name: "M/G/8, Pareto services, mean", server: pareto, bound: ttft(0, 500*ms), capacity: 40},
		{name: "M/M/4, 3 % late on an idle server", server: slow, bound: ttft(0.9, 350*ms), capacity: 40},
		{name: "rests of 1 s every 30 s", server: rests, bound: ttft(0.99, 1500*ms), capacity: 38},
		{name: "cliff: half as fast from 40 under way", server: crowd, bound: ttft(0.99, 2000*ms), capacity: 40},
		{name: "1 % slower a minute", server: leak, bound: ttft(0.99, 1000*ms), lasting: slow, capacity: 40},
		{name: "two speeds, by start", server: modes, bound: ttft(0.99, 1000*ms), capacity: 36, starts: 40},
		{name: "batches of 16, time-out 200 ms", server: batches, bound: ttft(0.95, 800*ms), capacity: 40},
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
		objective: measure.SLO{Bounds: []measure.Bound{o.bound}, Errors: 0.001},
		start:     o.capacity, latency: time.Second, starts: o.starts,
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
	virtual.Drive(m, virtual.Bench{Server: o.server}.Run)
	return m.Result()
}

// servers prints a row a server over many seeds.
func servers(w io.Writer, seeds int) {
	fmt.Fprintln(w, "| server | truth | answered | coverage | safe ok | told | safe or told | max safe | RMSE | bias | trials | engine s | notes (share) |\n"+
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	for _, o := range oddServers() {
		s := o.subject()
		t := s.truth()
		results := parallel.Map(seeds, func(i int) *answer { return compared(o.search(s, uint64(i+1)), t) })
		fmt.Fprintf(w, "| %s | %.2f (%.2f..%.2f) %s |\n", o.name, t.Rate, t.Low, t.High, oddRow(results))
	}
}

// oddRow are the figures of one server's answers.
func oddRow(all []*answer) string {
	spent, told, fair, n := 0.0, 0.0, 0.0, float64(len(all))
	notes := map[string]float64{}
	for _, a := range all {
		spent += a.EngineTime.Seconds() / float64(len(all))
		if a.told {
			told += 1 / n
		}
		if a.told || a.safe || !a.answered {
			fair += 1 / n
		}
		said := map[string]bool{}
		for _, note := range a.Warnings {
			name, _, _ := strings.Cut(string(note.Kind), ":")
			said[name] = true
		}
		for name := range said {
			notes[name] += 1 / float64(len(all))
		}
	}
	said := list.Map(slices.Sorted(maps.Keys(notes)), func(name string) string { return fmt.Sprintf("%s %.2f", name, notes[name]) })
	t := tallyOf(all)
	return fmt.Sprintf("| %.0f | %.3f | %.3f | %.3f | %.3f | %.3f | %.4f | %+.4f | %.0f | %.0f | %s", t.both, t.covered, t.safe, told, fair, t.highest,
		floats.Norm(t.logs, 2)/math.Sqrt(t.both), stat.Mean(t.logs, nil), quantile(t.trials, 0.5), spent, strings.Join(said, ", "))
}

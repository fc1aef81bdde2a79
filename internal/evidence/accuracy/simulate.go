package main

import (
	"fmt"
	"math"
	"slices"

	"planner/internal/parallel"
	"planner/model"
	"planner/model/sim"
	"planner/sweep/measure"
)

// engine builds the server, idle and cold.
func (s *server) engine(c model.Constants) (*sim.Engine, error) {
	e, err := sim.Build(s.dep, s.seen(c), s.limits, s.cache)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", s.file, err)
	}
	return e, nil
}

// seen returns the constants without the costs that the server's times exclude.
func (s *server) seen(c model.Constants) model.Constants {
	if s.engineTimes {
		c.Frontend = model.Constants{}.Frontend
	}
	return c
}

// simulate runs the loads of a server one after another on one engine.
func (s *server) simulate(c model.Constants) ([]figures, error) {
	engine, err := s.engine(c)
	if err != nil {
		return nil, err
	}
	out := make([]figures, len(s.loads))
	for i, l := range s.loads {
		r := engine.Run(sim.Load{Requests: l.requests, Slots: l.slots, Timeout: l.timeout})
		out[i] = reduceRecords(r.Records, s.perRequest())
		out[i][metricTTFT] += l.client
		if r.End > 0 {
			out[i][metricCompleted] /= r.End.Seconds()
		}
	}
	return out, nil
}

// records runs the first load and returns what became of its requests.
func (s *server) records(c model.Constants) ([]measure.Record, error) {
	engine, err := s.engine(c)
	if err != nil {
		return nil, err
	}
	l := s.loads[0]
	return engine.Run(sim.Load{Requests: l.requests, Slots: l.slots, Timeout: l.timeout}).Records, nil
}

// perRequest says that the mean time per output token is over requests; the open-loop
// files have (mean E2E - mean TTFT) / (tokens - 1), which is the same for one length.
func (s *server) perRequest() bool {
	return s.group != groupOpen && s.group != groupScout && s.group != groupOverload
}

// reduceRecords makes the benchmark's figures from records; completed is a count.
func reduceRecords(records []measure.Record, perRequest bool) figures {
	var ttft, e2e, tpot, tokens []float64
	for i := range records {
		rec := &records[i]
		if rec.Outcome != measure.OK {
			continue
		}
		first, last := float64(rec.First-rec.Due)/1e6, float64(rec.Last-rec.Due)/1e6
		ttft, e2e = append(ttft, first), append(e2e, last)
		if rec.Output > 1 {
			tpot = append(tpot, (last-first)/float64(rec.Output-1))
		}
		tokens = append(tokens, float64(rec.Output-1))
	}
	f := figures{
		mean(ttft), mean(e2e), mean(tpot), quantile(ttft, 0.99), float64(len(ttft)),
		quantile(ttft, 0.5), quantile(tpot, 0.5), quantile(tpot, 0.99), quantile(e2e, 0.99),
	}
	if !perRequest {
		f[metricTPOT] = (f[metricE2E] - f[metricTTFT]) / mean(tokens)
	}
	return f
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(len(v), 1))
}

// quantile interpolates linearly between order statistics, as numpy does.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	at := q * float64(len(s)-1)
	i := int(at)
	return s[i] + (s[min(i+1, len(s)-1)]-s[i])*(at-math.Floor(at))
}

// all simulates every server, some at once; results are in order of the servers.
func all(servers []server, constants func(*server) model.Constants) ([][]figures, error) {
	out := make([][]figures, len(servers))
	err := parallel.Do(len(servers), func(i int) (err error) {
		out[i], err = servers[i].simulate(constants(&servers[i]))
		return err
	})
	return out, err
}

// defaults returns the constants that the planner itself would use.
func defaults(s *server) model.Constants {
	return model.ConstantsFor(s.dep.Hardware, s.limits)
}

package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"planner/model"
	"planner/model/calibrate"
)

// coverageSamples are the sets of constants that an interval is made of.
const coverageSamples = 20

// guise is what is taken as known of a server: what was left out of the calibration makes
// its constants, its hardware's data sheet and how far they may be off.
type guise struct {
	name      string
	as        func(server) server
	constants func(*server) model.Constants
	spread    func(*server) model.Spread
}

// covered is how intervals of 90 % did over some figures.
type covered struct {
	n, inside int
	squares   float64 // of the logarithms of measured over predicted
	widths    []float64
}

func (c *covered) String() string {
	if c.n == 0 {
		return fmt.Sprintf("%25s", "-")
	}
	return fmt.Sprintf("%4.2f in +-%3.0f %%, rms %3.0f %%", float64(c.inside)/float64(c.n), 100*quantile(c.widths, 0.5), 100*math.Sqrt(c.squares/float64(c.n)))
}

// cover simulates every server with constants drawn from its spread and prints how many
// measurements lie within the intervals, by pairs of model and GPU.
func (g *guise) cover(w io.Writer, servers []server) error {
	hidden := make([]server, len(servers))
	for i := range servers {
		hidden[i] = g.as(servers[i])
	}
	central, err := all(hidden, g.constants)
	if err != nil {
		return err
	}
	drawn := make([][][]figures, coverageSamples)
	for k := range drawn {
		if drawn[k], err = all(hidden, func(s *server) model.Constants {
			return g.constants(s).Sample(rand.New(rand.NewPCG(1, uint64(k))), g.spread(s))
		}); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\n%-49s %-26s %s\n", g.name, "TTFT", "TPOT")
	var total [2]covered
	for _, pair := range names(servers, (*server).pair) {
		var c [2]covered
		for i := range servers {
			if servers[i].pair() != pair {
				continue
			}
			for l := range servers[i].loads {
				for m, metric := range []metric{metricTTFT, metricTPOT} {
					values := make([]float64, len(drawn))
					for k := range drawn {
						values[k] = drawn[k][i][l][metric]
					}
					c[m].add(servers[i].loads[l].measured[metric], central[i][l][metric], values)
					total[m].add(servers[i].loads[l].measured[metric], central[i][l][metric], values)
				}
			}
		}
		fmt.Fprintf(w, "%-46s %s  %s\n", pair, &c[0], &c[1])
	}
	fmt.Fprintf(w, "%-46s %s  %s\n", "all", &total[0], &total[1])
	return nil
}

// add counts a figure that was measured, if it was.
func (c *covered) add(measured, predicted float64, drawn []float64) {
	if measured == 0 {
		return
	}
	low, high := calibrate.Shifts(drawn).Ends()
	c.n++
	if measured >= low && measured <= high {
		c.inside++
	}
	e := math.Log(measured / predicted)
	c.squares += e * e
	c.widths = append(c.widths, math.Log(high/low)/2)
}

// printCoverage says how often measurements lie within the stated intervals.
func printCoverage(w io.Writer, servers []server, fits map[string][]float64) error {
	servers = thinned(servers)
	same := func(s server) server { return s }
	with := func(e func(*server) model.EvidenceLevel) func(*server) model.Spread {
		return func(s *server) model.Spread {
			spread := model.SpreadFor(s.dep, s.limits)
			spread[model.DoubtEquations] = e(s).Error()
			return spread
		}
	}
	fixed := func(e model.EvidenceLevel) func(*server) model.Spread {
		return with(func(*server) model.EvidenceLevel { return e })
	}
	unknown := func(s server) server {
		s.dep.Hardware.Name, s.dep.Hardware.Generation, s.dep.Hardware.Flops.MeasuredBF16 = "unknown", model.GenerationUnknown, 0
		return s
	}
	for _, g := range []guise{
		{"as calibrated", same, defaults, fixed(model.Served)},
		{"without the model", same, func(s *server) model.Constants { return turned(s, fits[s.model()]) }, with(func(s *server) model.EvidenceLevel { return s.beside(servers) })},
		{"without its kind of models", same, func(s *server) model.Constants { return turned(s, fits[s.kind()]) }, fixed(model.NeverServed)},
		{"without the GPU", same, func(s *server) model.Constants { return turned(s, fits[s.gpu()]) }, fixed(model.ServedApart)},
		{"GPU of an unknown generation", unknown, defaults, fixed(model.NeverServed)},
	} {
		if err := g.cover(w, servers); err != nil {
			return err
		}
	}
	return nil
}

// beside is the evidence that other models' runs give of a server.
func (s *server) beside(all []server) model.EvidenceLevel {
	e := model.NeverServed
	for i := range all {
		o := &all[i]
		if o.model() == s.model() || o.dep.Arch.MoE.Present() != s.dep.Arch.MoE.Present() || o.dep.Precision.Weights != s.dep.Precision.Weights {
			continue
		}
		if e = min(e, model.ServedApart); o.gpu() == s.gpu() {
			return model.Served
		}
	}
	return e
}

// thinned keeps every fourth row of the closed loop, as each is simulated many times, and
// leaves out what cannot be right as recorded and overload.
func thinned(servers []server) []server {
	n := 0
	return slices.DeleteFunc(slices.Clone(servers), func(s server) bool {
		if s.group == groupClosed {
			n++
		}
		return s.group == groupOverload || s.loads[0].omitted != "" || s.group == groupClosed && n%4 != 1
	})
}

package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"planner/internal/list"
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
	slower, faster int       // figures beyond the slow and the fast end
	logs           []float64 // of measured over predicted
	widths         []float64 // half widths of the intervals, of the logarithm
}

func (c *covered) String() string {
	if len(c.logs) == 0 {
		return fmt.Sprintf("%25s", "-")
	}
	return fmt.Sprintf("%4.2f in +-%3.0f %%, rms %3.0f %%", c.within(), 100*quantile(c.widths, 0.5), 100*c.rms())
}

// within is the share of the figures that lie within their intervals.
func (c *covered) within() float64 {
	return 1 - float64(c.slower+c.faster)/float64(len(c.logs))
}

// rms is the root of the mean square of the logarithms.
func (c *covered) rms() float64 {
	return floats.Norm(c.logs, 2) / math.Sqrt(float64(len(c.logs)))
}

// predict simulates every server as it is taken, with its constants and with samples of them.
func (g *guise) predict(servers []server, samples int) (central [][]figures, drawn [][][]figures, err error) {
	hidden := list.Map(servers, g.as)
	if central, err = all(hidden, g.constants); err != nil {
		return nil, nil, err
	}
	drawn = make([][][]figures, samples)
	for k := range drawn {
		if drawn[k], err = all(hidden, func(s *server) model.Constants {
			return g.constants(s).Samples(samples, 1, g.spread(s))[k]
		}); err != nil {
			return nil, nil, err
		}
	}
	return central, drawn, nil
}

// cover simulates every server with constants drawn from its spread and prints how many
// measurements lie within the intervals, by pairs of model and GPU.
func (g *guise) cover(w io.Writer, servers []server) error {
	central, drawn, err := g.predict(servers, coverageSamples)
	if err != nil {
		return err
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
					values := list.Map(drawn, func(f [][]figures) float64 { return f[i][l][metric] })
					c[m].add(servers[i].loads[l].measured[metric], central[i][l][metric], values)
				}
			}
		}
		total[0].join(&c[0])
		total[1].join(&c[1])
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
	switch {
	case measured > high:
		c.slower++
	case measured < low:
		c.faster++
	}
	c.logs = append(c.logs, math.Log(measured/predicted))
	c.widths = append(c.widths, math.Log(high/low)/2)
}

// join counts the figures of another.
func (c *covered) join(o *covered) {
	c.slower, c.faster = c.slower+o.slower, c.faster+o.faster
	c.logs, c.widths = append(c.logs, o.logs...), append(c.widths, o.widths...)
}

// printCoverage says how often measurements lie within the stated intervals.
func printCoverage(w io.Writer, servers []server, fits map[string][]float64) error {
	servers = thinned(servers)
	same := func(s server) server { return s }
	with := func(e func(*server) model.EvidenceLevel) func(*server) model.Spread {
		return func(s *server) model.Spread {
			spread := model.SpreadFor(s.dep, s.limits)
			// The servers left out stand where those that are fitted do.
			spread[model.DoubtEquations], spread[model.DoubtSite] = e(s).Error(), 0
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

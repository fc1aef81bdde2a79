package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"planner/internal/config"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

func certifyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "certify", Usage: "then test the safe rate on requests of its own, without any curve; the exit code is 4 if it is not certified"}
}

// certify tests a rate of the chosen knobs that the plan rests on, where the
// configuration asks for it.
func (d *decision) certify(ctx context.Context, p *plan.Plan) error {
	if !d.cfg.Search.Certify {
		return nil
	}
	knobs, found := d.chosen.settled()
	found.EngineTime = d.chosen.race.Result().EngineTime // the budget is that of all trials
	c := certificateOf(d.cfg, d.chosen.prior(knobs), found)
	if err := d.drive(ctx, c, d.curved); err != nil {
		return err
	}
	certified := c.Result()
	p.Evidence.Certificate = &certified
	if certified.State != measure.Met {
		p.Warnings = append(p.Warnings, uncertified(certified))
	} else if d.bed.live == nil {
		p.Assumptions = append(p.Assumptions, "the certificate is of the simulated engine with its constants as they are")
	}
	return nil
}

// certificateOf prepares the certificate of what a search found.
func certificateOf(cfg *config.Config, prior search.Prior, found search.Result) *search.Certificate {
	return search.Certify(maxRateConfig(cfg, prior), found, cfg.Search.Trial.Duration)
}

// prior is what is known beforehand of a knob set of the group.
func (g *group) prior(k measure.Knobs) search.Prior {
	for _, p := range g.priors {
		if p.Knobs == k {
			return p
		}
	}
	if g.standard != nil && g.standard.Knobs == k {
		return *g.standard
	}
	return search.Prior{Knobs: k}
}

// uncertified says that a rate was not certified.
func uncertified(c search.Certified) string {
	return fmt.Sprintf("%.4g requests/s are not certified: %s", c.Rate, c.Reason)
}

// certifiedEnd is the exit code of a run by its certificate, if it has one.
func certifiedEnd(c *search.Certified) error {
	if c != nil && c.State != measure.Met {
		return outcome(exitUndecided)
	}
	return nil
}

// certifyOne adds a certificate to the result of a search of one knob set, where
// the configuration asks for it: loop is that of the search, behind trials.
func (d *decision) certifyOne(ctx context.Context, loop sweep.Loop, r *search.Result) error {
	if !d.cfg.Search.Certify || r.Outcome == search.Infeasible || r.Outcome == search.Searching {
		return nil
	}
	c := certificateOf(d.cfg, d.groups[0].priors[0], *r)
	loop.Source = c
	if err := loop.Drive(ctx); err != nil {
		return err
	}
	certified := c.Result()
	r.Certificate = &certified
	r.EngineTime += certified.EngineTime
	r.Trials += certified.Looks
	if certified.State != measure.Met {
		r.Warnings = append(r.Warnings, uncertified(certified))
	}
	return nil
}

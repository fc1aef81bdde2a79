package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"planner/internal/config"
	"planner/model/curve"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
)

// decision is the main job: for each GPU and degree of parallelism the best
// knobs and their maximum rate, and from these the fleet.
type decision struct {
	cfg     *config.Config
	bed     *bed
	journal *sweep.Journal
	show    *display
	keep    func(measure.Trial, measure.Observation) error
	// stop, if set, is asked before each proposal whether the user has had enough.
	stop func() bool

	groups   []*group
	rejected []measure.Rejection
	trials   []measure.Measurement
	// chosen is the group that the plan takes; where there is no plan, the one
	// whose search tells most.
	chosen *group
}

// group is one kind of instance: a GPU and a degree of parallelism, with the
// knob sets to choose from.
type group struct {
	gpu    config.GPU
	priors []search.Prior
	// standard is what the engine would do by itself; nil if it does not run.
	standard *search.Prior
	race     contest
	// choice is what is taken of the race, nil until that has ended.
	choice *choice
}

// newDecision sorts the candidates of the configuration into groups and rejects
// what does not fit.
func newDecision(cfg *config.Config, bed *bed) (*decision, error) {
	d := &decision{cfg: cfg, bed: bed}
	runnable, rejected := cfg.Candidates()
	d.rejected = rejected
	for _, k := range runnable {
		prior, err := priorFor(cfg, bed.sim, k)
		if unable, ok := measure.IsRejection(err); ok {
			d.rejected = append(d.rejected, measure.Rejection{Knobs: k, Reason: unable.Reason})
			continue
		} else if err != nil {
			return nil, err
		}
		g := d.group(k)
		g.priors = append(g.priors, prior)
	}
	for _, g := range d.groups {
		k := g.priors[0].Knobs
		if bed.sim != nil {
			k = cfg.EngineDefaults(k)
		}
		if prior, err := priorFor(cfg, bed.sim, k); err == nil && bed.sim != nil {
			g.standard = &prior
		}
	}
	return d, nil
}

// group finds or makes the group of a knob set.
func (d *decision) group(k measure.Knobs) *group {
	for _, g := range d.groups {
		first := g.priors[0].Knobs
		if first.GPU == k.GPU && first.TensorParallel == k.TensorParallel {
			return g
		}
	}
	gpu, _ := d.cfg.GPU(k.GPU)
	d.groups = append(d.groups, &group{gpu: gpu})
	return d.groups[len(d.groups)-1]
}

// decide runs the trials and solves the plan. On a *plan.Infeasible the trials
// are complete all the same.
func (d *decision) decide(ctx context.Context) (*plan.Plan, error) {
	for _, r := range d.rejected {
		if err := d.journal.Reject(r.Knobs, r.Reason); err != nil {
			return nil, err
		}
	}
	if err := d.foresee(); err != nil {
		return nil, err
	}
	if err := d.search(ctx); err != nil {
		return nil, err
	}
	p, err := d.solve()
	if err != nil {
		return nil, err
	}
	if err := d.attach(ctx, p); err != nil {
		return nil, err
	}
	return p, d.certify(ctx, p)
}

// solve sizes and prices what the searches have found so far.
func (d *decision) solve() (*plan.Plan, error) {
	d.chosen = d.mostTelling()
	offers, rejected, err := d.offers()
	if err != nil {
		return nil, err
	}
	p, err := plan.Solve(d.cfg.Demand, d.cfg.Objective, offers, rejected)
	if err != nil {
		return nil, err
	}
	for _, g := range d.groups {
		if k, _ := g.settled(); k == p.Offer.Knobs {
			d.chosen = g
		}
	}
	return p, nil
}

// search runs the searches of all groups side by side.
func (d *decision) search(ctx context.Context) error {
	var sources []sweep.Source
	for _, g := range d.groups {
		g.race = newContest(d.cfg, g, d.bed.sim)
		sources = append(sources, g.race)
	}
	return d.drive(ctx, &sweep.Together{Sources: sources}, d.raced)
}

// drive runs one source to its end.
func (d *decision) drive(ctx context.Context, s sweep.Source, seen func(measure.Measurement)) error {
	loop := sweep.Loop{Source: s, Run: d.bed.run, Journal: d.journal, Parallel: d.bed.parallel, First: len(d.trials), Stop: d.stop,
		Proposed: d.show.proposed, Keep: d.keep, Observed: func(m measure.Measurement) {
			d.trials = append(d.trials, m)
			seen(m)
		}}
	return loop.Drive(ctx)
}

// raced shows the best rate so far.
func (d *decision) raced(m measure.Measurement) {
	var best search.Estimate
	of := ""
	for _, g := range d.groups {
		if k, r := knobsOf(g.race); r.Estimate.Value > best.Value {
			best, of = r.Estimate, fmt.Sprintf("%s, tensor_parallel %d", k.GPU, k.TensorParallel)
		}
	}
	d.show.observed(m, best, of)
}

// curved shows a trial of the curve.
func (d *decision) curved(m measure.Measurement) {
	d.show.observed(m, search.Estimate{}, "")
}

// offers turns the outcome of the searches into priced instances, and lists what
// was not chosen.
func (d *decision) offers() ([]plan.Offer, []measure.Rejection, error) {
	prompt, output := d.cfg.Workload.MeanTokens()
	var offers []plan.Offer
	rejected := slices.Clone(d.rejected)
	for _, g := range d.groups {
		var err error
		if g.choice, err = d.choose(g); err != nil {
			return nil, nil, err
		}
		c := g.choice
		o := plan.Offer{
			Knobs: c.knobs, GPU: g.gpu.Hardware.Name, GPUs: c.knobs.GPUs(), Rate: c.rate, Binding: c.found.Binding,
			PricedBy: g.gpu.PricedBy, PromptTokens: prompt, OutputTokens: output,
			Watts: g.gpu.Hardware.TDP, PowerPrice: d.cfg.PowerPrice, Warnings: c.warnings,
		}
		if g.gpu.Priced {
			o.PricePerGPUHour = g.gpu.USDPerHour
		}
		switch c.found.Outcome {
		case search.Infeasible:
			o.Obstacle = c.found.Reason
		case search.OutOfBudget, search.Searching:
			o.Unknown = cmp.Or(c.found.Reason, "the search has not ended")
		}
		offers = append(offers, o)
		rejected = append(rejected, c.rejected...)
	}
	explainScaling(offers, d.trials)
	return offers, rejected, nil
}

// mostTelling is the group to report on when there is no plan: of those whose
// idle latency is known the one that comes nearest to its limit, else the first.
func (d *decision) mostTelling() *group {
	var best *group
	nearest := math.Inf(1)
	for _, g := range d.groups {
		if f := floorOf(g); f != nil && float64(f.Value)/float64(f.Limit) < nearest {
			best, nearest = g, float64(f.Value)/float64(f.Limit)
		}
	}
	if best == nil && len(d.groups) > 0 {
		best = d.groups[0]
	}
	return best
}

// floorOf is the idle latency of a group that misses the objective even then;
// nil for one that does not.
func floorOf(g *group) *search.Floor {
	_, r := knobsOf(g.race)
	return r.Floor
}

// attach gives the plan its evidence: the curve of the chosen knobs, the
// roofline, and the engine's own settings. In virtual time the curve is measured
// over the whole range of rates; on a real engine it is what the search saw.
func (d *decision) attach(ctx context.Context, p *plan.Plan) error {
	if d.bed.live == nil {
		if err := d.drive(ctx, d.curveTrials(p), d.curved); err != nil {
			return err
		}
	}
	d.fitCurves(p)
	p.Comparison = d.chosen.choice.comparison
	p.Warnings = append(p.Warnings, d.impreciseWarning(p)...)
	if d.bed.live != nil {
		p.Warnings = append(p.Warnings, untrusted(d.trials, p.Offer.Knobs)...)
	}
	p.Assumptions = append(p.Assumptions, routed(&d.cfg.Workload, p)...)
	if d.bed.live == nil {
		p.Assumptions = append(p.Assumptions, assumed(d.cfg)...)
		if u := d.chosen.choice.doubt; len(u.shifts) > 0 {
			p.Assumptions = append(p.Assumptions, u.String())
		}
	}
	return d.addRoofline(p)
}

// fitCurves fits latency against rate for every bounded metric.
func (d *decision) fitCurves(p *plan.Plan) {
	var mine []measure.Measurement
	for _, m := range d.trials {
		if m.Trial.Knobs == p.Offer.Knobs && m.Rejected == "" {
			mine = append(mine, m)
		}
	}
	metrics := curveMetrics(p)
	curves, errs := make([]*curve.Curve, len(metrics)), make([]error, len(metrics))
	var wait sync.WaitGroup
	for i, metric := range metrics {
		wait.Go(func() {
			curves[i], errs[i] = curve.Fit(metric, curve.FromMeasurements(mine, metric), d.cfg.Workload.Seed)
		})
	}
	wait.Wait()
	for i, metric := range metrics {
		switch {
		case errs[i] != nil:
			p.Warnings = append(p.Warnings, fmt.Sprintf("no curve of %v: %v", metric, errs[i]))
		case p.Evidence.Curve == nil:
			p.Evidence.Curve = curves[i]
		default:
			p.Evidence.Curves = append(p.Evidence.Curves, curves[i])
		}
	}
}

// addRoofline states what the data sheets allow, where they are known.
func (d *decision) addRoofline(p *plan.Plan) error {
	if d.bed.sim == nil {
		return nil
	}
	roofline, err := d.bed.sim.Roofline(p.Offer.Knobs)
	if err != nil {
		return err
	}
	memory, err := d.bed.sim.Fit(p.Offer.Knobs)
	if err != nil {
		return err
	}
	bounds := roofline.Bounds(d.cachedRequest(p.Offer.Knobs), memory)
	p.Evidence.Roofline = &bounds
	ceiling, _ := plan.Ceiling(&bounds, &p.Offer)
	for _, c := range append([]*curve.Curve{p.Evidence.Curve}, p.Evidence.Curves...) {
		if c != nil {
			c.Doubt(ceiling)
		}
	}
	return nil
}

// curveMetrics lists the latencies to draw: that of the binding bound first.
func curveMetrics(p *plan.Plan) []measure.Metric {
	metrics := p.Objective.Metrics()
	for _, b := range p.Objective.Bounds {
		if i := slices.Index(metrics, b.Metric); b.String() == p.Offer.Binding && i > 0 {
			metrics = slices.Insert(slices.Delete(metrics, i, i+1), 0, b.Metric)
		}
	}
	return metrics
}

// curveShares are the shares of the maximum rate at which the curve is
// measured: the whole range that a reader asks about, and a little beyond.
var curveShares = []float64{0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1, 1.1}

// curveTrials measures the chosen knobs at rates that the search had no reason
// to visit.
func (d *decision) curveTrials(p *plan.Plan) *trialList {
	const requests = 4000
	list := &trialList{}
	for i, share := range curveShares {
		rate := share * p.Offer.Rate.Value
		window := time.Duration(max(60, requests/rate) * float64(time.Second))
		settling, course := d.settling(p.Offer.Knobs, rate)
		window = max(window, 2*course)
		list.trials = append(list.trials, measure.Trial{
			Knobs: p.Offer.Knobs, Workload: &d.cfg.Workload, Rate: rate, Warmup: max(min(30*time.Second, window/2), settling), Window: window,
			Cooldown: min(30*time.Second, window/2), Seed: d.cfg.Workload.Seed + 1000 + uint64(i), Objective: d.cfg.Objective, Whole: true,
			Why: fmt.Sprintf("curve at %.0f %% of the maximum rate", 100*share),
		})
	}
	return list
}

// trialList is a source of trials that are known beforehand.
type trialList struct {
	trials []measure.Trial
	asked  bool
}

// Next proposes all trials at once, and none after that.
func (l *trialList) Next() []measure.Trial {
	if l.asked {
		return nil
	}
	l.asked = true
	return l.trials
}

// Observe has nothing to learn.
func (l *trialList) Observe(measure.Measurement) {}

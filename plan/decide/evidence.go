package decide

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/interp"
	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/parallel"
	"planner/model"
	"planner/model/curve"
	"planner/plan"
	"planner/plan/diagnose"
	"planner/plan/effects"
	"planner/plan/trust"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// curveShares are the shares of the maximum rate at which the curve is measured: the range of interest and
// slightly beyond.
var curveShares = []float64{0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1, 1.1}

// curveRequests is the number of requests per trial of the curve. For a trace it is rounded up to whole laps,
// as in searches whose engine time is free.
const curveRequests = 4000

// measureCurve settles the plan after the searches and measures its knobs at rates that these had no reason to
// visit. On a real engine the curve consists of the search's trials.
func (d *Decision) measureCurve() sweep.Source {
	if d.failed != nil {
		return nil
	}
	d.plan, d.solved = d.solve()
	if d.plan == nil || !d.ground.Virtual {
		return nil
	}
	o, w := &d.plan.Offer, d.cfg.Workload.Anywhere()
	list := &sweep.List{Batch: len(curveShares)}
	for i, share := range curveShares {
		rate := share * o.Rate.Value
		settling, course := d.settling(o.Knobs, rate)
		window := w.WholeLaps(max(workload.Window(curveRequests, w.MeanRate(rate)), 2*course), rate)
		list.Trials = append(list.Trials, measure.Trial{
			Knobs: o.Knobs, Workload: w, Rate: rate, Warmup: max(min(30*time.Second, window/2), settling), Window: window,
			Cooldown: min(30*time.Second, window/2), Seed: d.cfg.Workload.Seed + 1000 + uint64(i), Objective: d.cfg.Objective, Whole: true,
			Why: fmt.Sprintf("curve at %.0f %% of the maximum rate", 100*share),
		})
	}
	return list
}

// configured returns a configuration's warnings.
func configured(cfg *config.Config) note.Notes { return list.Map(cfg.Warnings, note.Text) }

// addEvidence adds the evidence to the plan: the curve of the chosen knobs, the roofline, and the engine's own
// settings.
func (d *Decision) addEvidence(p *plan.Plan) {
	d.fitCurves(p)
	p.Comparison = d.chosen.selected.comparison
	load := p.Fleet.PlannedRate / float64(p.Fleet.Instances)
	if p.Demand.Job != nil {
		load = p.Offer.Rate.Safe // until the job ends
	}
	k, rate := p.Offer.Knobs, p.Offer.Rate
	p.Warnings = slices.Concat(configured(d.cfg), p.Warnings, d.busyFrontEnd(k, rate.Value), d.impreciseWarning(p), d.unlimitedWait(k, rate, load, "planned load"),
		d.ofConversations(k, rate.Value), fewSlots(d.cfg, p.Offer.Binding, inFlightAt(d.Seen, k), rate.Value))
	d.doubtTrials(p)
	p.Assumptions = slices.Concat(p.Assumptions, routed(&d.cfg.Workload, p), clocked(d.cfg.Workload.Rates, rate.Value))
	if d.ground.Virtual {
		p.Assumptions = append(p.Assumptions, assumed(d.cfg)...)
		if doubt := d.chosen.selected.doubt; len(doubt) > 0 {
			p.Assumptions = append(p.Assumptions, doubtText(doubt))
		}
		d.addPower(p, load)
		d.addDrafting(p, load)
	}
	p.Handover.Autoscaling, p.Handover.Modelled = autoscaling(p, d.Seen), modelled(d.cfg, d.ground, k)
	p.Warnings = append(p.Warnings, unmodelled(p.Handover.Modelled)...)
	if d.placed == nil || d.placed.Knobs != k {
		known := d.situation(k)
		d.placed = &placed{Knobs: k}
		_ = parallel.Do(3, func(i int) error {
			switch i {
			case 0:
				d.placed.Moves = d.moves(p.Offer, known)
			case 1:
				d.placed.Crossed = d.crossed(p, known)
			default:
				d.placed.Faster = d.faster(p.Offer, known)
			}
			return nil
		})
	}
	p.Warnings = append(p.Warnings, d.placed.Faster...)
	p.Evidence.Crossed = d.placed.Crossed
	for _, m := range d.placed.Moves {
		p.AddChanges(m.of(p))
	}
	d.addRoofline(p)
}

func (d *Decision) fitCurves(p *plan.Plan) {
	mine := list.Map(measure.RanWith(d.Seen, p.Offer.Knobs), func(m *measure.Measurement) measure.Measurement { return *m })
	of := limited(p.Objective)
	if b, ok := p.Objective.Bound(p.Offer.Binding); ok {
		binding := latencyOf(b)
		of = slices.DeleteFunc(of, func(l measure.Bound) bool { return l.Class != binding.Class })
		of = first(of, slices.Index(of, binding))
	}
	curves, errs := curvesOf(mine, of, d.cfg.Workload.Seed)
	for i, l := range of {
		switch {
		case errs[i] != nil:
			p.Warnings = append(p.Warnings, note.New(note.NoCurveOf, l.Metric, errs[i]))
		case p.Evidence.Curve == nil:
			p.Evidence.Curve = curves[i]
		default:
			p.Evidence.Curves = append(p.Evidence.Curves, curves[i])
		}
	}
}

// latencyOf returns the latency that a bound limits, without the limit.
func latencyOf(b measure.Bound) measure.Bound { return measure.Bound{Metric: b.Metric, Class: b.Class} }

// limited returns the latencies that an objective limits.
func limited(slo measure.SLO) []measure.Bound {
	var all []measure.Bound
	for _, b := range slo.Bounds {
		for _, part := range (measure.SLO{Bounds: []measure.Bound{b}}).Latencies() {
			all = append(all, measure.Bound{Metric: part.Metric, Class: b.Class})
		}
	}
	slices.SortFunc(all, func(a, b measure.Bound) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Class, b.Class))
	})
	return slices.Compact(all)
}

// curvesOf fits a curve to each of some latencies.
func curvesOf(trials []measure.Measurement, of []measure.Bound, seed uint64) ([]*curve.Curve, []error) {
	curves, errs := make([]*curve.Curve, len(of)), make([]error, len(of))
	_ = parallel.Do(len(of), func(i int) error {
		own := list.Map(trials, func(m measure.Measurement) measure.Measurement {
			m.Latencies = *m.Of(of[i].Class)
			return m
		})
		if curves[i], errs[i] = curve.Fit(of[i].Metric, curve.FromMeasurements(own, of[i].Metric), seed); errs[i] == nil {
			curves[i].Class = of[i].Class
		}
		return errs[i]
	})
	return curves, errs
}

// first moves an element to the front of a list; an index of -1 is none.
func first[T any](list []T, i int) []T {
	if i < 0 {
		return list
	}
	return slices.Concat(list[i:i+1], list[:i], list[i+1:])
}

// addRoofline states what the data sheets allow, if they are known.
func (d *Decision) addRoofline(p *plan.Plan) {
	bounds := d.bounds(p.Offer.Knobs)
	if bounds == nil {
		return
	}
	p.Evidence.Roofline = &plan.DataSheet{Bounds: *bounds}
	ceiling, _ := p.Evidence.Roofline.Ceiling(&p.Offer)
	for _, c := range p.Evidence.AllCurves() {
		c.Doubt(ceiling * p.Demand.TraceRates.Peak())
	}
}

// addPower states what the plan draws at a load per instance, from the modelled power in the trials around it.
func (d *Decision) addPower(p *plan.Plan, load float64) {
	seen := map[float64][]float64{}
	for _, m := range measure.RanWith(d.Seen, p.Offer.Knobs) {
		if t := m.Server.Time; t != nil && t.Watts > 0 && m.Trial.Rate > 0 {
			seen[m.Trial.Rate] = append(seen[m.Trial.Rate], t.Watts)
		}
	}
	if watts := interpolated(seen); watts != nil && load > 0 {
		p.SetPower(plan.NewPower(&p.Offer, &p.Fleet, load, watts(load), model.PowerError))
	}
}

// settling returns how long the workload's traffic takes to become steady on an engine with these knobs, and
// how long a conversation lasts: both 0 without conversations and shared prefixes. The time of requests is that
// in the trial with the highest rate up to the given one that the server kept up with; 0 if there is none.
func (s *searches) settling(k measure.Knobs, rate float64) (settling, course time.Duration) {
	w := &s.cfg.Workload
	latency := Nearest(s.Seen, k, rate, func(m *measure.Measurement) bool {
		return m.KeptUp() && m.Trial.Rate <= rate && m.E2E.Mean > 0
	}).E2E.Mean
	if settling = w.Settling(rate, latency); settling > 0 && w.Turns > 1 {
		course = w.Course(latency)
	}
	return settling, course
}

// Nearest returns the open-loop trial of some knobs for which a condition holds and whose rate is nearest to a
// rate by their ratio, the first of several; if there is none, a measurement that shows nothing.
func Nearest(trials []measure.Measurement, k measure.Knobs, rate float64, is func(*measure.Measurement) bool) *measure.Measurement {
	found, least := &measure.Measurement{}, math.Inf(1)
	for _, m := range measure.RanWith(trials, k) {
		if off := math.Abs(math.Log(m.Trial.Rate / rate)); m.Trial.Rate > 0 && is(m) && off < least {
			found, least = m, off
		}
	}
	return found
}

// cachedRequest returns the mean request, with the largest prefix cache hit rate of the trials of the knobs
// that the server kept up with, so that bounds for it hold for all of these.
func (s *searches) cachedRequest(k measure.Knobs) model.MeanRequest {
	q := sweep.MeanRequest(&s.cfg.Workload)
	if !k.PrefixCaching {
		return q
	}
	share := 0.0
	for _, m := range measure.RanWith(s.Seen, k) {
		if m.KeptUp() && m.Server.HitRate != nil {
			share = max(share, *m.Server.HitRate)
		}
	}
	q.Cached = share * q.Prompt
	q.Shared, q.Texts = s.cfg.Workload.SharedText()
	return q
}

// Settings returns the knob sets that were tried on a plan's kind of instance, with their approximate rates.
func Settings(p *plan.Plan, trials []measure.Measurement) []effects.Setting {
	return effects.Rates(trials, effects.Setting{Knobs: p.Offer.Knobs, Rate: p.Offer.Rate.Value}, p.Evidence.AllCurves(), p.Evidence.Crossed)
}

// judge diagnoses the server with some knobs from its trials, and checks these against a benchmark checklist
// for a rate that they should show.
func (s *searches) judge(k measure.Knobs, gpu string, rate float64) ([]diagnose.Finding, []trust.Item) {
	mine := list.Filter(s.Seen, func(m measure.Measurement) bool { return m.Trial.Knobs == k })
	of := trust.Subject{GPU: gpu, Rate: rate, Objective: s.cfg.Objective}
	if s.cfg.Model.Known {
		of.Weights = s.cfg.Precision(k).Weights.String()
	}
	return diagnose.Of(mine, s.bounds(k), s.cfg.Objective), trust.Check(mine, of)
}

// bounds returns what the data sheets allow an instance with some knobs; nil if model and hardware are unknown, or
// for knobs that the model rejects but that ran all the same.
func (s *searches) bounds(k measure.Knobs) *model.Bounds {
	if s.ground.Predict == nil {
		return nil
	}
	roofline, memory, err := s.ground.Predict.Model(k)
	if err != nil {
		return nil
	}
	return new(roofline.Bounds(s.cachedRequest(k), memory))
}

// addDrafting states what was assumed about speculative decoding, and from which load on it does harm.
func (d *Decision) addDrafting(p *plan.Plan, load float64) {
	sim, k := d.ground.Predict, p.Offer.Knobs
	s := sim.Args(k).Speculation
	if !s.On() {
		return
	}
	var pays model.Drafting
	roofline, memory, err := sim.Model(k)
	if err == nil {
		pays, err = roofline.Drafting(d.cachedRequest(k), memory)
	}
	if err != nil {
		d.failed = err
		return
	}
	source := "as configured"
	if from := d.cfg.Model.Arch.Published; d.cfg.SpeculationPublished() {
		source = "published: " + from.Source
	}
	text := fmt.Sprintf("speculative decoding is modelled, not measured: %d tokens proposed in a step by %s, of which %.3g are accepted in the mean (%s); ",
		s.Tokens, s.Method, s.PerStep()-1, source)
	switch {
	case pays.Always:
		text += "it makes answers faster at every load"
	case pays.Rate == 0:
		text += "it makes answers slower even on an idle instance"
	default:
		text += fmt.Sprintf("it makes answers faster up to about %.2g requests/s on an instance (%.0f at once), and slower above", pays.Rate, pays.Batch)
	}
	p.Assumptions = append(p.Assumptions, text)
	p.Warnings = append(p.Warnings, note.If(!pays.Always && load > pays.Rate, note.DraftHurts, load, pays.Rate)...)
}

// autoscaling returns the autoscaling signal of a plan's fleet from the trials of its knobs; nil if none of
// them has request times, and for a job, during which all replicas are full.
func autoscaling(p *plan.Plan, trials []measure.Measurement) *plan.Autoscaling {
	inFlight := inFlightAt(trials, p.Offer.Knobs)
	if inFlight == nil || p.Fleet.Instances == 0 || p.Demand.Job != nil {
		return nil
	}
	return p.Autoscale(inFlight)
}

// inFlightAt returns the requests in flight on an instance as a function of its rate: by Little's law the rate
// times the mean time of a request. It is nil if no trial has that.
func inFlightAt(trials []measure.Measurement, k measure.Knobs) func(rate float64) float64 {
	seen := map[float64][]float64{}
	for _, m := range measure.RanWith(trials, k) {
		told := m.Valid && !m.Overloaded && !m.Trial.Closed()
		if told && m.Offered() > 0 && m.E2E.Mean > 0 {
			seen[m.Offered()] = append(seen[m.Offered()], m.E2E.Mean.Seconds())
		}
	}
	seconds := interpolated(seen)
	if seconds == nil {
		return nil
	}
	return func(rate float64) float64 { return rate * seconds(rate) }
}

// fewSlots warns that at a rate requests wait for LoRA adapter slots: that all are in use at least as often as
// the bound that limits the rate allows a request to be late.
func fewSlots(cfg *config.Config, binding string, inFlight func(float64) float64, rate float64) note.Notes {
	l, allowed := cfg.Engine.LoRA, 0.5
	if b, ok := cfg.Objective.Bound(binding); ok {
		if !b.Waits() {
			return nil
		}
		if b.Quantile > 0 {
			allowed = b.Allowed()
		}
	}
	if l.Slots >= l.Adapters || inFlight == nil {
		return nil
	}
	n := inFlight(rate)
	// Requests arrive at random and use all adapters alike, so each adapter is in use independently.
	used := distuv.Binomial{N: float64(l.Adapters), P: -math.Expm1(-n / float64(l.Adapters))}
	taken := used.Survival(float64(l.Slots) - 1)
	return note.If(taken >= allowed, note.FewSlots, n, 100*taken, l.Slots, l.Adapters)
}

// interpolated interpolates figures that were seen at rates linearly between these, averaging those at one rate,
// and is constant beyond the outermost; nil if there are none.
func interpolated(seen map[float64][]float64) func(rate float64) float64 {
	rates := slices.Sorted(maps.Keys(seen))
	figures := list.Map(rates, func(rate float64) float64 { return gonum.Mean(seen[rate], nil) })
	switch len(rates) {
	case 0:
		return nil
	case 1:
		return func(float64) float64 { return figures[0] }
	}
	var line interp.PiecewiseLinear
	if line.Fit(rates, figures) != nil {
		return nil // not reached: the rates are in order, and differ
	}
	return line.Predict
}

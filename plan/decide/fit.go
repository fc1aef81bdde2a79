package decide

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/stat"
	"planner/model"
	"planner/model/curve"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Measured adds to results what they do not say themselves.
type Measured struct {
	// GPU is the name of the GPU that was measured, "" for that of the knobs.
	GPU string
	// GPUs is the number per instance, 0 for as many as the knobs say.
	GPUs int
	// Catalog has the prices of GPUs that the configuration does not name.
	Catalog *model.Catalog
	// Doubts are the reasons to doubt the results.
	Doubts note.Notes
	// Ground is what the results were measured on; zero if unknown.
	Ground sweep.Ground
}

// Fit plans a fleet from results on disk: from the curve of each knob set and its crossing of the limits, or
// from counts of requests beyond them if trials have these. An error says why the results do not determine one.
func Fit(cfg *config.Config, trials []measure.Measurement, m Measured) (sweep.Answer, error) {
	trials, rates := asMeant(trials, cfg.RateOf)
	own := *cfg
	own.Demand.TraceRates = rates
	cfg = &own
	offers, curves, rejected, err := fitSets(cfg, trials)
	if err != nil {
		return sweep.Answer{}, err
	}
	doubts, err := doubtFits(cfg, m.Ground, offers)
	if err != nil {
		return sweep.Answer{}, err
	}
	for i := range offers {
		o := &offers[i]
		o.GPU, o.GPUs = cmp.Or(m.GPU, o.Knobs.GPU), cmp.Or(m.GPUs, o.Knobs.GPUs())
		hw, _ := m.Catalog.GPU(o.GPU) // without a name or a row there is only the configuration's price
		if g, ok := cfg.GPU(o.GPU); ok {
			hw = g.Hardware
		}
		o.Pricing = cfg.PricingOf(hw)
		if m.Ground.Predict != nil { // a run folder, whose configuration has the requests
			o.PromptTokens, o.OutputTokens = cfg.Workload.MeanTokens()
		}
		o.Warnings = append(o.Warnings, uncalibrated(cfg, m.Ground, o.Knobs)...)
	}
	b := Background{Trials: trials}
	made, err := plan.Solve(cfg.Demand, cfg.Objective, offers, rejected)
	if err != nil {
		return without(cfg, err, b)
	}
	if own := curves[made.Offer.Knobs]; len(own) > 0 {
		made.Evidence.Curve, made.Evidence.Curves = own[0], own[1:]
	}
	if rates == nil && slices.ContainsFunc(trials, func(m measure.Measurement) bool { return m.Trial.Workload != nil && m.Trial.Workload.Replayed() }) {
		made.Warnings = append(made.Warnings, note.New(note.TraceRatesUnknown)) // an earlier version measured them
	}
	for _, m := range measure.RanWith(trials, made.Offer.Knobs) {
		made.Warnings = append(made.Warnings, m.Warnings.Of(note.DrainUnclear)...)
	}
	made.Warnings = slices.Concat(made.Warnings, m.Doubts.Distinct(), note.If(!made.Offer.Priced(), note.NoPrice, cmp.Or(made.Offer.GPU, "the GPU")))
	made.Assumptions = append(made.Assumptions, doubts...)
	if o := &made.Offer; m.Ground.Predict == nil && o.OutputTokens > 0 {
		told := fmt.Sprintf("%.4g of the answer", o.OutputTokens)
		if o.PromptTokens > 0 {
			told = fmt.Sprintf("%.4g of the prompt and ", o.PromptTokens) + told
		}
		made.Assumptions = append(made.Assumptions, "tokens of a request in the mean, as measured: "+told)
	}
	made.Handover.Autoscaling, made.Handover.Modelled = autoscaling(made, trials), modelled(cfg, m.Ground, made.Offer.Knobs)
	all := searches{cfg: cfg, ground: m.Ground, Chain: sweep.Chain{Seen: trials}}
	b.Diagnosis, b.Trust = all.judge(made.Offer.Knobs, cmp.Or(made.Offer.GPU, made.Offer.Knobs.GPU), made.Offer.Rate.Value)
	return sweep.Answer{State: sweep.Done, Value: judged(made, b)}, nil
}

// doubtFits adds the uncertainty of the simulated engine's constants to the rates of offers, and says how large it
// is. It is nearly the same for all sets of a kind of instance, and taken from the fastest.
func doubtFits(cfg *config.Config, g sweep.Ground, offers []plan.Offer) (said []string, err error) {
	s, fitted := &searches{cfg: cfg, ground: g}, slices.Clone(offers)
	for i := range offers {
		o := &offers[i]
		alike := list.Filter(fitted, func(f plan.Offer) bool { return f.Knobs.Kind() == o.Knobs.Kind() })
		fastest := slices.MaxFunc(alike, func(a, b plan.Offer) int { return cmp.Compare(a.Rate.Value, b.Rate.Value) })
		doubt := s.doubtOf(fastest.Knobs, fastest.Rate)
		o.Rate = widen(o.Rate, doubt)
		loosen(o, doubt)
		if len(doubt) > 0 && o.Knobs == fastest.Knobs {
			said = append(said, doubtText(doubt))
		}
	}
	return said, s.failed
}

// asMeant returns the trials with rates of a trace converted to the demand's definition, and the trace's rates
// by it; nil without a trace.
func asMeant(trials []measure.Measurement, of workload.RateOf) (told []measure.Measurement, rates *workload.Rates) {
	told = slices.Clone(trials)
	for i := range told {
		t := &told[i].Trial
		if t.Workload == nil || t.Workload.Rates == nil {
			continue
		}
		w := *t.Workload
		rates = w.Rates.As(of)
		t.Rate *= rates.Peak() / w.Rates.Peak()
		w.Rates, t.Workload = rates, &w
	}
	return told, rates
}

// fitSets fits the trials of each knob set separately, in their order: to offers of one instance, and to curves,
// the binding metric's first and none if no trial resolves it. A set that cannot be fitted is rejected with the
// reason, unless all are. Different traffic has no common curve.
func fitSets(cfg *config.Config, trials []measure.Measurement) (offers []plan.Offer, curves map[measure.Knobs][]*curve.Curve, rejected []measure.Rejection, err error) {
	var ran []measure.Measurement
	var traffic []byte
	for _, m := range trials {
		if !m.Ran() { // it was no trial, and had no traffic
			rejected = append(rejected, measure.Rejection{Knobs: m.Trial.Knobs, Reason: m.Rejected})
			continue
		}
		text, err := json.Marshal(m.Trial.Workload)
		if err == nil && traffic != nil && !bytes.Equal(text, traffic) {
			err = errors.New("fit: the results are of different workloads; fit those of one workload at a time")
		}
		if err != nil {
			return nil, nil, nil, err
		}
		traffic, ran = text, append(ran, m)
	}
	curves = map[measure.Knobs][]*curve.Curve{}
	for _, set := range list.Groups(ran, func(m measure.Measurement) measure.Knobs { return m.Trial.Knobs }) {
		o, own, why := fitSet(cfg, set)
		if why == nil {
			offers, curves[o.Knobs] = append(offers, o), own
			continue
		}
		err = cmp.Or(err, why)
		rejected = append(rejected, measure.Rejection{Knobs: o.Knobs, Reason: note.ReasonOf(why)})
	}
	if len(offers) > 0 {
		err = nil
	}
	return offers, curves, rejected, err
}

func fitSet(cfg *config.Config, trials []measure.Measurement) (plan.Offer, []*curve.Curve, error) {
	o := plan.Offer{Knobs: trials[0].Trial.Knobs,
		PromptTokens: meanTokens(trials, func(m *measure.Measurement) float64 { return m.MeanPrompt }),
		OutputTokens: meanTokens(trials, func(m *measure.Measurement) float64 { return m.MeanOutput })}
	curves, crossing, err := fitCurvesOf(cfg, trials)
	rate, counted := countedRate(cfg, trials)
	switch {
	case counted:
		o.Rate, o.Binding, o.Unreached = rate.Estimate, rate.Binding, rate.Reason.Note.Kind == note.NoneMissed
		// Counts exist even for quantiles that no trial resolves.
		o.Warnings = slices.Concat(rate.Warnings, note.If(o.Unreached, note.NotReached), note.If(err != nil, note.NoCurve, err))
	case err != nil:
		return o, nil, err
	default:
		o.Rate, o.Binding = plan.FromCrossing(&crossing), crossing.Bound.String()
		switch crossing.Outcome {
		case curve.Below, curve.Undetermined:
			if o.Unknown = crossing.Note + "; measure lower ones"; crossing.Value == 0 && curves[0].Model.Form != curve.Interpolated {
				o.Obstacle, o.Unknown = note.Text(crossing.Note).Reason(), "" // an idle server exceeds it, too
			}
		case curve.NotReached:
			o.Unreached = true
			o.Warnings = append(o.Warnings, note.New(note.NotReached))
		}
	}
	if !counted {
		limitByRepeats(&o, cfg.Objective.Bounds, trials)
	}
	if !counted || o.Warnings.Has(note.CountsRead) {
		limitByErrors(&o, cfg.Objective.Errors, trials)
	}
	o.Tail = tail(cfg.Demand.Job, trials, o.Knobs, o.Rate.Safe)
	return o, curves, nil
}

// limitByRepeats limits the safe rate of a curve that goes between measurements at one rate of which one keeps a
// limit and another misses it. Where that is the lowest rate, none is known.
func limitByRepeats(o *plan.Offer, bounds []measure.Bound, trials []measure.Measurement) {
	trials = list.Filter(trials, func(m measure.Measurement) bool { return m.Valid && m.Ran() && m.Trial.Rate > 0 }) // those of curves
	for _, at := range list.Groups(trials, func(m measure.Measurement) float64 { return m.Trial.Rate }) {
		rate, below := at[0].Trial.Rate, 0.0
		for i := range trials {
			if r := trials[i].Trial.Rate; r < rate {
				below = max(below, r)
			}
		}
		for _, b := range bounds {
			var seen []time.Duration
			for i := range at {
				if v := at[i].Of(b.Class).Latency(b.Metric).Stat(b.Quantile); v > 0 {
					seen = append(seen, v)
				}
			}
			if len(seen) == 0 || slices.Min(seen) > b.Limit || slices.Max(seen) <= b.Limit {
				continue
			}
			said := note.New(note.RepeatsDisagree, b.String(), rate, slices.Min(seen), slices.Max(seen))
			o.Warnings = append(o.Warnings, said)
			if o.Rate.Low, o.Rate.Safe = min(o.Rate.Low, below), min(o.Rate.Safe, below); below == 0 && o.Obstacle.Text == "" {
				o.Rate, o.Unreached = search.Estimate{}, false
				o.Unknown = said.String() + ", and none was; measure lower rates"
			}
		}
	}
}

// limitByErrors limits a rate derived from latencies, which are those of successful requests: if at a lower
// rate significantly more requests failed than allowed, the rate is the highest below that one with no more
// failures than allowed.
func limitByErrors(o *plan.Offer, allowed float64, trials []measure.Measurement) {
	share := func(m *measure.Measurement) float64 { return float64(m.Failed) / float64(max(m.Requests, 1)) }
	kept, lost, failing := 0.0, math.Inf(1), (*measure.Measurement)(nil)
	for i := range trials {
		m := &trials[i]
		if m.Trial.Rate > 0 && m.Trial.Rate < lost && stat.ShareLower(float64(m.Failed), float64(m.Requests), 0.05) > allowed {
			lost, failing = m.Trial.Rate, m
		}
	}
	if allowed < 0 || lost > max(o.Rate.Value, o.Rate.High) || o.Obstacle.Text != "" {
		return
	}
	for i := range trials {
		if m := &trials[i]; m.Trial.Rate < lost && share(m) <= allowed {
			kept = max(kept, m.Trial.Rate)
		}
	}
	if kept == 0 || o.Rate.Value >= lost {
		o.Rate.Value, o.Binding, o.Unreached = kept, measure.ErrorsBound, false
		o.Warnings = slices.DeleteFunc(o.Warnings, func(n note.Note) bool { return n.Kind == note.NotReached })
	}
	if kept == 0 {
		o.Rate = search.Estimate{}
		o.Unknown = fmt.Sprintf("more than %.4g %% of the requests failed at %.4g requests/s, and no rate was measured at which fewer did; measure lower ones", 100*allowed, lost)
		return
	}
	o.Rate.Low, o.Rate.High = min(o.Rate.Low, kept), min(o.Rate.High, lost)
	o.Rate.Safe = min(o.Rate.Safe, o.Rate.Low)
	o.Warnings = append(o.Warnings, note.New(note.LimitedByFailures, lost, failing.Failed, failing.Requests, "the rate is at most the highest below that at which slo.errors allows what failed"))
}

// meanTokens returns the mean tokens per request over the trials that have them and kept up; 0 if none does.
func meanTokens(trials []measure.Measurement, of func(*measure.Measurement) float64) float64 {
	sum, requests := 0.0, 0.0
	for i := range trials {
		if m := &trials[i]; m.Valid && !m.Overloaded && of(m) > 0 {
			n := float64(max(m.Requests-m.Failed, 1))
			sum, requests = sum+n*of(m), requests+n
		}
	}
	return sum / max(requests, 1)
}

// moreTrials says what helps if results do not determine a curve.
const moreTrials = "longer trials resolve higher quantiles, and trials beyond the limit show where it lies"

// fitCurvesOf fits a curve to each latency with a bound and finds the lowest crossing. The curve of the binding
// bound comes first.
func fitCurvesOf(cfg *config.Config, trials []measure.Measurement) ([]*curve.Curve, curve.Crossing, error) {
	for _, b := range cfg.Objective.Bounds {
		if b.Metric == measure.Goodput {
			return nil, curve.Crossing{}, errors.New("fit: slo.goodput holds several limits against each request, and a curve is fitted to quantiles; " +
				"give limits on ttft, tpot, itl or e2e, or measure with `planner search`")
		}
	}
	if !slices.ContainsFunc(trials, func(m measure.Measurement) bool { return m.Trial.Rate > 0 }) {
		return nil, curve.Crossing{}, errors.New("fit: no result is of a known request rate: the load of a closed loop follows the server, and other files may not tell theirs; " +
			"measure at several request rates, or give them as rate_per_s of a CSV")
	}
	of := limited(cfg.Objective)
	curves, errs := curvesOf(trials, of, cfg.Workload.Seed)
	for i, err := range errs {
		name := strings.TrimSuffix(of[i].Metric.String()+" of "+of[i].Class, " of ")
		seen := slices.ContainsFunc(trials, func(m measure.Measurement) bool {
			l := m.Of(of[i].Class).Latency(of[i].Metric)
			return slices.ContainsFunc(measure.Statistics, func(q float64) bool { return l.Stat(q) > 0 })
		})
		switch {
		case err != nil && !seen:
			return nil, curve.Crossing{}, fmt.Errorf("fit %s: the results say nothing of it; want limits on latencies that they have", name)
		case err != nil:
			return nil, curve.Crossing{}, fmt.Errorf("fit %s: %w; %s", name, err, moreTrials)
		}
	}
	var crossings []curve.Crossing
	for _, b := range cfg.Objective.Bounds {
		x, err := curves[slices.Index(of, latencyOf(b))].Crossing(b)
		if err != nil {
			return nil, x, fmt.Errorf("%w; %s", err, moreTrials)
		}
		crossings = append(crossings, x)
	}
	lowest, ok := curve.Lowest(crossings)
	if !ok {
		return nil, lowest, errors.New("fit: the results hold none of the statistics that the SLO bounds")
	}
	return first(curves, slices.Index(of, latencyOf(lowest.Bound))), lowest, nil
}

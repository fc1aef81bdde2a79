package decide

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/config"
	"planner/internal/list"
	"planner/internal/note"
	"planner/plan"
	"planner/search"
	"planner/sweep"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// assumed lists what a simulated answer takes for granted.
func assumed(cfg *config.Config) []string {
	release := cmp.Or(cfg.Engine.Version, sweep.NewestKnown)
	by := "step times from data sheets and published kernel measurements"
	if cfg.Engine.Calibration != "" {
		by = "step times calibrated by " + cfg.Engine.Calibration
	}
	return []string{
		fmt.Sprintf("latencies come from the simulated engine (vLLM %s: its scheduler step by step; %s), not from a server that was measured", release, by),
		"traffic: " + traffic(&cfg.Workload),
	}
}

// routed says what a fleet's load balancer must do for instances to find in their prefix caches what the single
// instance of a trial finds in its own.
func routed(w *workload.Workload, p *plan.Plan) []string {
	shares := w.Turns > 1 || slices.ContainsFunc(w.Replay, func(r workload.TraceRow) bool { return len(r.Shared) > 0 })
	if !shares || !p.Offer.Knobs.PrefixCaching || p.Fleet.Instances < 2 {
		return nil
	}
	what := "the turns of a conversation reach"
	if w.Replayed() {
		what = "requests of the trace with a common prefix reach"
	}
	return []string{what + " the same instance, which has the earlier ones in its prefix cache, as in the trials: " +
		"behind a load balancer without affinity by session or prefix one instance carries less"}
}

// ownPace is the factor by which a trace's clock may deviate from its own pace before a plan says so.
const ownPace = 1.5

// clocked says what a replay at another rate than the trace's own does to its hours.
func clocked(of *workload.Rates, rate float64) []string {
	if of == nil || !(rate > 0) {
		return nil
	}
	pace := of.MeanAt(rate) / of.Mean
	if pace < ownPace && pace > 1/ownPace {
		return nil
	}
	than := "less than in one; a log of more requests shows more"
	if pace < 1 {
		than = "more than in one; `planner trace --thin` makes of the log one of a single instance"
	}
	hour := time.Duration(float64(time.Hour) / pace).Round(time.Second)
	return []string{fmt.Sprintf("at the maximum rate the clock of the trace runs at %.3g times its own pace: an hour of it takes %v, in which a queue grows %s", pace, hour, than)}
}

// traffic describes a workload in words.
func traffic(w *workload.Workload) string {
	prompt, output := w.MeanTokens()
	means := fmt.Sprintf("%.0f prompt and %.0f output tokens in the mean", prompt, output)
	if w.Replayed() {
		return fmt.Sprintf("%d requests of %s, %s", len(w.Replay), w.TraceFile, means)
	}
	parts := list.Map(w.Shapes, func(s workload.Shape) string {
		if w.OwnLengths() {
			return s.Words()
		}
		return cmp.Or(s.Name, w.Class) + ": " + s.Words()
	})
	s := fmt.Sprintf("%s, %s; %v arrivals", strings.Join(parts, "; "), means, w.Arrivals)
	if w.Turns > 1 {
		s += fmt.Sprintf("; conversations of %d turns", w.Turns)
	}
	return s
}

// wideFactor is how many times wider than asked for an interval must be for a plan to warn of it.
const wideFactor = 1.5

// impreciseWarning says that the maximum rate is known much less precisely than the configuration asks for,
// why, what that costs and what helps.
func (d *Decision) impreciseWarning(p *plan.Plan) note.Notes {
	e, asked := p.Offer.Rate, d.cfg.Search.Precision
	half := (e.High - e.Low) / 2 / e.Value
	if !(e.Value > 0) || !(half > wideFactor*asked) {
		return nil
	}
	wide := func(why string) note.Notes {
		return note.Notes{note.New(note.Imprecise, 100*(e.Low/e.Value-1), 100*(e.High/e.Value-1), 100*asked, why)}
	}
	found := d.chosen.selected.found
	low, high := d.chosen.selected.doubt.Ends()
	switch alone := found.Estimate; {
	case (math.Exp(high)-math.Exp(low))/2 > (alone.High-alone.Low)/2/alone.Value:
		return wide("; most of that is what is not known of the engine's constants on this GPU and model, which more trials do not tell" + atCentralRate(p) +
			"; a measurement narrows it: a short bench of two loads on such a GPU, `planner calibrate`, and engine.calibration")
	case found.Outcome != search.Found:
		return wide(": " + found.Reason.Text + atCentralRate(p) + "; a larger search.budget narrows it")
	}
	return wide(": one curve does not describe all trials" + atCentralRate(p))
}

// unlimitedWait says how long first tokens take near a load if the objective does not limit it: in the trial
// nearest to it of those that the server kept up with, at no more than the safe rate.
func (s *searches) unlimitedWait(k measure.Knobs, e search.Estimate, load float64, name string) note.Notes {
	if s.cfg.Objective.Throughput || slices.ContainsFunc(s.cfg.Objective.Bounds, measure.Bound.Waits) {
		return nil
	}
	best := Nearest(s.Seen, k, load, func(m *measure.Measurement) bool {
		return m.Valid && m.KeptUp() && m.Trial.Rate <= e.Safe
	})
	for _, q := range []float64{0.99, 0.95, 0.9, 0.5} {
		b := measure.Bound{Metric: measure.TTFT, Quantile: q}
		if seen := best.Bounded(b); seen > 0 {
			return note.Notes{note.New(note.NoWaitLimit, name, best.Trial.Rate, b, seen.Round(time.Millisecond))}
		}
	}
	return nil
}

// tail returns how long the last requests of a job take while the instances empty: the p99 of E2E in the trial of the
// highest rate, up to the one that they are sized by, that the server kept up with; 0 without a job or such a trial.
func tail(job *plan.Job, trials []measure.Measurement, k measure.Knobs, rate float64) time.Duration {
	if job == nil {
		return 0
	}
	near := Nearest(trials, k, rate, func(m *measure.Measurement) bool { return m.Trial.Rate <= rate && m.Valid && m.KeptUp() })
	return max(0, near.E2E.P99)
}

// keptHits is the share of the prefix cache hit rate at rates that meet the objective below which the cache has
// collapsed.
const keptHits = 0.75

// ofConversations warns about conversations at a rate of some knobs: beyond it the prefix cache may lose their
// histories, and a short warm-up leaves these short.
func (s *searches) ofConversations(k measure.Knobs, rate float64) note.Notes {
	if s.cfg.Workload.Turns <= 1 {
		return nil
	}
	met, missed := 0.0, 1.0
	for _, m := range measure.RanWith(s.Seen, k) {
		switch {
		case m.Trial.Closed() || m.Server.HitRate == nil || m.Verdict == nil:
		case m.Valid && m.Verdict.State == measure.Met:
			met = max(met, *m.Server.HitRate)
		case m.Verdict.State == measure.Missed:
			missed = min(missed, *m.Server.HitRate)
		}
	}
	said := note.If(missed < keptHits*met, note.CacheCollapse, 100*met, 100*missed)
	settling, _ := s.settling(k, rate)
	warmup := s.cfg.Search.Warmup
	return append(said, note.If(warmup > 0 && warmup < settling, note.WarmUpShort, warmup, settling.Round(time.Second))...)
}

// atCentralRate says what the width of the interval costs: the fleet is sized by its lower end.
func atCentralRate(p *plan.Plan) string {
	f, err := p.FleetAt(p.Offer.Rate.Value)
	if err != nil || f.GPUs >= p.Fleet.GPUs {
		return ""
	}
	return fmt.Sprintf("; the fleet is sized by the safe rate and takes %d GPUs, where the central %.3g requests/s would take %d",
		p.Fleet.GPUs, p.Offer.Rate.Value, f.GPUs)
}

// explainScaling says why an instance with more GPUs carries less than one with fewer of the same kind, if it
// does beyond the intervals.
func explainScaling(offers []plan.Offer, trials []measure.Measurement) {
	for i := range offers {
		big := &offers[i]
		for _, small := range offers {
			slower := small.GPU == big.GPU && small.GPUs < big.GPUs && big.Rate.Value > 0 && big.Rate.Value < small.Rate.Low
			if !slower {
				continue
			}
			carried := []any{big.GPUs, small.GPUs, big.Rate.Value, small.Rate.Value}
			if a, b := sharesNear(trials, &small), sharesNear(trials, big); a == nil || b == nil {
				big.Warnings = append(big.Warnings, note.New(note.MoreGPUsSlower, carried...))
			} else {
				big.Warnings = append(big.Warnings, note.New(note.MoreGPUsTalk, append(carried, 100*b.Communication, 100*a.Communication)...))
			}
			break
		}
	}
}

// sharesNear returns how the engine spent its time in the offer's trial nearest to its maximum rate; nil if no
// trial says.
func sharesNear(trials []measure.Measurement, o *plan.Offer) *measure.TimeShares {
	return Nearest(trials, o.Knobs, o.Rate.Value, func(m *measure.Measurement) bool { return m.Server.Time != nil }).Server.Time
}

// doubtTrials warns of trials of the plan's knobs on a real engine that could not be trusted or broke it.
func (d *Decision) doubtTrials(p *plan.Plan) {
	if k := p.Offer.Knobs; !d.ground.Virtual {
		p.Warnings = brokeDown(slices.Concat(p.Warnings, untrusted(d.Seen, k), ofOtherLoad(d.Seen, k)), d.Seen, k, p.Offer.Binding)
	}
}

// brokeDown adds warnings if the engine broke down in trials of the knobs: that they ran on more than one start
// of it, and from which load on it breaks down again.
func brokeDown(warnings note.Notes, trials []measure.Measurement, k measure.Knobs, binding string) note.Notes {
	var broke note.Notes
	var lowest *measure.Measurement
	ran := measure.RanWith(trials, k)
	for _, m := range ran {
		broke = append(broke, slices.Concat(m.Warnings.Of(note.EngineRepeated), m.Warnings.Of(note.TrialRepeated))...)
		if m.Aborted.Note.Kind == note.EngineBroke && (lowest == nil || m.Trial.Rate < lowest.Trial.Rate) {
			lowest = m
		}
	}
	if len(broke) > 0 || lowest != nil {
		warnings = list.Filter(warnings, func(n note.Note) bool { return n.Kind != note.OneStart })
	}
	if len(broke) > 0 {
		warnings = append(warnings, note.New(note.BrokeDown, len(broke), len(ran), broke[0].Figures["why"]))
	}
	if lowest != nil {
		warnings = append(warnings, note.New(note.BreaksDown, lowest.Trial.Rate, lowest.Aborted.Note.Figures["why"]))
	}
	if f := failing(trials, k); f != nil && binding == measure.ErrorsBound {
		warnings = append(warnings, note.New(note.LimitedByFailures, f.Trial.Rate, f.Failed, f.Requests, f.Complaint()))
	}
	return warnings
}

// failing returns the trial with the lowest rate in which too many requests failed, most of them through the
// running server; nil if there is none.
func failing(trials []measure.Measurement, k measure.Knobs) (lowest *measure.Measurement) {
	for _, m := range measure.RanWith(trials, k) {
		if m.Trial.Rate == 0 || m.Failed == 0 || !m.Refuses() || m.Aborted.Note.Kind == note.EngineBroke {
			continue
		}
		if c, ok := m.Count(measure.ErrorsBound); ok && c.Value > m.Trial.Objective.Errors && (lowest == nil || m.Trial.Rate < lowest.Trial.Rate) {
			lowest = m
		}
	}
	return lowest
}

// untrusted warns of trials of the knobs that could not be trusted, such as those whose load generator had too
// little of the machine: the answer rests on the others, and on those before the engine failed for good.
func untrusted(trials []measure.Measurement, k measure.Knobs) note.Notes {
	all, doubtful, why := 0, 0, ""
	lost := lostWith(trials, k)
	said := note.If(lost != "", note.EngineLost, lost)
	for _, m := range measure.RanWith(trials, k) {
		all++
		if !m.Valid && m.Aborted.Text == "" {
			doubtful++
			if why == "" && len(m.Warnings) > 0 {
				why = ", first " + m.Warnings[0].String()
			}
		}
	}
	switch {
	case doubtful == 0:
		return said
	case all == 1:
		return append(said, note.New(note.OnlyUntrusted, why))
	case doubtful == all:
		return append(said, note.New(note.AllUntrusted, all, why))
	}
	return append(said, note.New(note.SomeUntrusted, doubtful, all, why))
}

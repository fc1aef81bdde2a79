package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"planner/internal/config"
	"planner/plan"
	"planner/sweep"
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

// routed says what a fleet's load balancer must do for its instances to find in
// their prefix caches what the only instance of a trial finds in its own.
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

// traffic is a workload in words.
func traffic(w *workload.Workload) string {
	prompt, output := w.MeanTokens()
	means := fmt.Sprintf("%.0f prompt and %.0f output tokens in the mean", prompt, output)
	if w.Replayed() {
		return fmt.Sprintf("%d requests of %s, %s", len(w.Replay), w.TraceFile, means)
	}
	var parts []string
	for i := range w.Shapes {
		parts = append(parts, shape(w, i))
	}
	s := fmt.Sprintf("%s, %s; %v arrivals", strings.Join(parts, "; "), means, w.Arrivals)
	if w.Turns > 1 {
		s += fmt.Sprintf("; conversations of %d turns", w.Turns)
	}
	return s
}

func shape(w *workload.Workload, i int) string {
	s := w.Shapes[i]
	text := fmt.Sprintf("%s: prompts %s, outputs %s", cmp.Or(s.Name, w.Class), lengths(s.Prompt), lengths(s.Output))
	if s.Prefix.Groups > 0 {
		text += fmt.Sprintf(", %d shared prefixes of %d tokens", s.Prefix.Groups, s.Prefix.Tokens)
		if s.Prefix.Prompts > 0 {
			text += fmt.Sprintf(" with %d prompts each", s.Prefix.Prompts)
		}
	}
	return text
}

// lengths is a distribution of lengths in words.
func lengths(l workload.Lengths) string {
	ends := ""
	switch {
	case l.Max > 0:
		ends = fmt.Sprintf(" in %d..%d", l.Min, l.Max)
	case l.Min > 1:
		ends = fmt.Sprintf(" from %d", l.Min)
	}
	switch l.Dist {
	case workload.Fixed:
		return fmt.Sprintf("of %d tokens", l.Value)
	case workload.Uniform:
		return "uniform" + ends
	case workload.Normal:
		return fmt.Sprintf("normal %.4g +- %.4g%s", l.Mean, l.StdDev, ends)
	case workload.Lognormal:
		return fmt.Sprintf("lognormal of median %.4g and sigma %.2g%s", l.Median, l.Sigma, ends)
	}
	return fmt.Sprintf("%d lengths of %s%s", len(l.Samples), l.File, ends)
}

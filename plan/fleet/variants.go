package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
)

// variants returns the policies that a search tries around one: the autoscaler with other thresholds, floors
// and windows, and static fleets of every size up to the maximum. Those likely to be cheap come first.
func variants(base Policy) []Tried {
	var out []Tried
	add := func(p Policy) { out = append(out, Tried{Name: Name(&p), policy: p}) }
	base.Replicas = 0
	if base.Autoscaler.Kind != None {
		add(base)
		for _, floor := range floors(&base) {
			for _, factor := range []float64{1, 1.4, 0.7, 2, 0.5} {
				for _, window := range windows(&base) {
					p := base
					p.Min, p.Initial = floor, max(floor, base.Initial)
					p.Autoscaler = scaled(&base.Autoscaler, factor)
					p.Autoscaler.HPA.Down.Stabilization = window
					add(p)
				}
			}
		}
	}
	for n := 1; n <= base.Max; n++ {
		p := base
		p.Replicas, p.Autoscaler = n, Autoscaler{Kind: None}
		add(p)
	}
	return out
}

// fresh returns the policies that are not yet known, and marks them as known.
func fresh(all []Tried, known map[string]bool) []Tried {
	return slices.DeleteFunc(all, func(t Tried) bool {
		twice := known[t.Name]
		known[t.Name] = true
		return twice
	})
}

// around returns variants of the cheapest policy that meets the objective: with other thresholds, lower
// ceilings, other routers, and other metrics with targets that ask for equally many replicas in the mean.
func around(best *Tried) []Tried {
	var out []Tried
	add := func(change func(*Policy)) {
		p := best.policy
		p.Autoscaler = scaled(&p.Autoscaler, 1)
		change(&p)
		out = append(out, Tried{Name: Name(&p), policy: p})
	}
	for _, factor := range []float64{1.2, 1.4, 2, 0.85} {
		add(func(p *Policy) { p.Autoscaler = scaled(&best.policy.Autoscaler, factor) })
	}
	peak := min(best.summary.Peak, best.policy.Max) // draining replicas may exceed Max
	for ceiling := peak - 1; ceiling >= max(best.policy.Min, peak-2, 1); ceiling-- {
		add(func(p *Policy) { p.Max, p.Initial = ceiling, min(p.Initial, ceiling) })
	}
	a := &best.policy.Autoscaler
	for _, r := range []Router{LeastInFlight, LeastPrefill, RoundRobin} {
		if r.Predicts() || !a.Monitor.Predicted || a.Kind != Saturation {
			add(func(p *Policy) { p.Router = r })
		}
	}
	if a.Kind != ByHPA && a.Kind != ByKEDA || len(a.Metrics) != 1 {
		return out
	}
	means := best.summary.Means
	for _, name := range MetricNames() {
		if of, known := means[name], means[a.Metrics[0].Name]; of > 0 && known > 0 {
			add(func(p *Policy) {
				p.Autoscaler.Metrics[0] = Metric{Name: name, Target: roundTo(a.Metrics[0].Target * of / known)}
			})
		}
	}
	return out
}

// floors returns the minimum numbers of replicas to try.
func floors(base *Policy) []int {
	all := []int{base.Min, base.Min + 1, (base.Min + base.Max) / 2}
	slices.Sort(all)
	return slices.Compact(all)
}

// windows returns the scale-down stabilisation windows to try; a schedule and a forecast do not use them.
func windows(base *Policy) []time.Duration {
	if k := base.Autoscaler.Kind; k == Schedule || k == Forecast {
		return []time.Duration{base.Autoscaler.HPA.Down.Stabilization}
	}
	return []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
}

func scaled(a *Autoscaler, factor float64) Autoscaler {
	out := *a
	out.Metrics = slices.Clone(a.Metrics)
	for i := range out.Metrics {
		out.Metrics[i].Target = roundTo(out.Metrics[i].Target * factor)
	}
	out.Analyser.Up, out.Analyser.Down = roundTo(a.Analyser.Up*factor), roundTo(a.Analyser.Down*factor)
	return out
}

func roundTo(x float64) float64 {
	if x <= 0 {
		return x
	}
	digit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Round(x/digit) * digit
}

// Name describes a policy in one line.
func Name(p *Policy) string {
	if p.Replicas > 0 {
		return fmt.Sprintf("static %d, %s", p.Replicas, p.Router)
	}
	a := &p.Autoscaler
	by := list.Map(a.Metrics, func(m Metric) string { return strings.TrimSpace(fmt.Sprintf("%s %.4g", m.Name, m.Target)) })
	for _, e := range a.Entries {
		by = append(by, fmt.Sprintf("%s: %d;", e.Cron, e.Replicas))
	}
	if a.Kind == Saturation {
		by = append(by, fmt.Sprintf("up %.3g down %.3g", a.Analyser.Up, a.Analyser.Down))
	}
	name := strings.TrimSpace(fmt.Sprintf("%s %d-%d %s", a.Kind, p.Min, p.Max, strings.Join(by, " ")))
	if a.Kind == ByHPA || a.Kind == ByKEDA || a.Kind == Saturation {
		name += fmt.Sprintf(", down window %.3g min", a.HPA.Down.Stabilization.Minutes())
	}
	return name + ", " + string(p.Router)
}

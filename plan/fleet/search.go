package fleet

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/sweep/measure"
)

// Searched is the outcome of a search.
type Searched struct {
	// Policies is the number of policies tried, Days the simulated days, and Dropped the number of policies
	// given up before the end of their replay.
	Policies int     `json:"policies"`
	Dropped  int     `json:"dropped_early"`
	Days     float64 `json:"simulated_days"`
	// HeldOut is the attainment of the chosen policy on traffic that it was not chosen on.
	HeldOut *Estimate `json:"attainment_held_out"`
	// Frontier are the policies to which no other is both cheaper and better on the first seed. Chosen is the
	// name of the cheapest that meets the objective, "" if none does.
	Frontier []Tried `json:"frontier"`
	Chosen   string  `json:"chosen"`
	// Faster is what the cheapest policy would cost if replicas started faster.
	Faster []Faster `json:"faster_start_up"`
}

// Tried is a policy that was replayed.
type Tried struct {
	Name       string  `json:"policy"`
	Attainment float64 `json:"attainment"`
	Kept       bool    `json:"kept"`
	GPUHours   float64 `json:"gpu_hours"`
	USDPerHour float64 `json:"usd_per_hour"`

	policy  Policy
	summary EpisodeSummary
}

// Faster is the cheapest policy with a shorter start-up.
type Faster struct {
	StartUp     time.Duration `json:"start_up_s"`
	Policy      string        `json:"policy"`
	USDPerMonth float64       `json:"usd_per_month"`
	// Worth is what each minute of the difference saves per month.
	Worth float64 `json:"usd_per_month_and_minute"`
}

// batch is the number of policies replayed before their costs are compared with others'; it is fixed so that
// the search does not depend on the machine.
const batch = 8

// shortlist is how many policies that meet the objective on one seed are at most replayed on all.
const shortlist = 6

// Find searches around a policy for the cheapest that meets the objective on the seeds and, lest that be by
// chance, also in the mean on held-out traffic; nil if none does.
func (p *Plant) Find(base Policy, seeds, heldOut []uint64, heldOutTraffic func(seed uint64) []Stage) (*Answer, *Searched) {
	out := &Searched{}
	stages := p.Traffic(seeds[0])
	known := map[string]bool{}
	tried := p.try(fresh(variants(base), known), math.Inf(1), stages, seeds[0], out)
	if kept := keep(tried); len(kept) > 0 && kept[0].policy.Replicas == 0 {
		tried = append(tried, p.try(fresh(around(&kept[0]), known), kept[0].summary.ReplicaHours, stages, seeds[0], out)...)
	}
	out.Frontier = frontier(tried)
	kept := keep(tried)
	for _, t := range kept[:min(len(kept), shortlist)] {
		answer := p.Answer(t.policy, seeds)
		out.Days += float64(len(seeds)) * days(stages)
		if answer.Verdict != measure.Met {
			continue
		}
		other := *p
		other.Traffic = heldOutTraffic
		held := other.Answer(t.policy, heldOut)
		out.Days += float64(len(heldOut)) * days(heldOutTraffic(heldOut[0]))
		if !held.holds() {
			continue
		}
		out.Chosen, out.HeldOut = t.Name, &held.Attainment
		if t.policy.Replicas == 0 {
			out.Faster = p.faster(t, stages, seeds[0], out)
		}
		return answer, out
	}
	return nil, out
}

// keep returns the policies that meet the objective, the cheapest first.
func keep(tried []Tried) []Tried {
	kept := list.Filter(tried, func(t Tried) bool { return t.Kept })
	slices.SortStableFunc(kept, func(a, b Tried) int { return cmp.Compare(a.GPUHours, b.GPUHours) })
	return kept
}

// holds reports whether the objective is met in the mean over the seeds.
func (a *Answer) holds() bool {
	return !slices.ContainsFunc(a.Classes, func(c ClassAnswer) bool {
		return slices.ContainsFunc(c.Limits, func(l LimitAnswer) bool { return l.Share.Value < l.Asked })
	})
}

func days(stages []Stage) float64 {
	return list.Sum(stages, func(s Stage) time.Duration { return s.length() }).Hours() / 24
}

// try replays policies on one seed. It drops those that miss twice what they may, or take a quarter more
// replica hours than the cheapest that met the objective in an earlier batch.
func (p *Plant) try(all []Tried, ceiling float64, stages []Stage, seed uint64, out *Searched) []Tried {
	most := p.mayMiss(stages)
	for from := 0; from < len(all); from += batch {
		part := all[from:min(from+batch, len(all))]
		p.sideBySide(len(part), func(i int) {
			s := p.scenario(part[i].policy, stages, seed)
			s.MostMissed, s.MostHours = most, 1.25*ceiling
			part[i].summary = summarize(s, Run(s))
		})
		for i := range part {
			t := &part[i]
			sum := &t.summary
			one := p.sum([]EpisodeSummary{t.summary})
			out.Policies++
			out.Days += min(sum.Duration.Hours()/24, days(stages))
			if sum.Dropped {
				out.Dropped++
			}
			t.Attainment, t.Kept, t.GPUHours, t.USDPerHour = sum.Within, one.Verdict == measure.Met && !sum.Dropped, sum.ReplicaHours*float64(p.GPUs), one.Cost.PerHour
			if t.Kept {
				ceiling = min(ceiling, sum.ReplicaHours)
			}
		}
	}
	return slices.DeleteFunc(all, func(t Tried) bool { return t.summary.Dropped })
}

// mayMiss is the number of requests that may miss a limit before a policy is given up: twice what the objective
// allows if no request misses two limits; 0, for no bound, if nothing is asked.
func (p *Plant) mayMiss(stages []Stage) int {
	if !anyAsked(p.Limits) {
		return 0
	}
	total := list.Sum(stages, func(s Stage) int { return len(s.Requests) })
	share := list.Largest(p.Limits, func(l ClassLimits) (may float64) {
		for _, asked := range l.Asked {
			if asked > 0 {
				may += 1 - asked
			}
		}
		return may
	})
	return int(2*share*float64(total)) + 1
}

// frontier returns the policies to which no other is both cheaper and better.
func frontier(all []Tried) []Tried {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Tried) int {
		return cmp.Or(cmp.Compare(a.GPUHours, b.GPUHours), cmp.Compare(b.Attainment, a.Attainment))
	})
	best := -1.0
	return slices.DeleteFunc(sorted, func(t Tried) bool {
		worse := t.Attainment <= best
		best = max(best, t.Attainment)
		return worse
	})
}

// faster replays the chosen policy, and variants with higher thresholds, with shorter start-ups, and returns
// the cheapest that meets the objective for each.
func (p *Plant) faster(chosen Tried, stages []Stage, seed uint64, out *Searched) []Faster {
	whole := chosen.policy.StartUp.Total(false)
	near := []Tried{chosen}
	for _, factor := range []float64{1.2, 1.4, 2} {
		later := chosen.policy
		later.Autoscaler = scaled(&later.Autoscaler, factor)
		near = append(near, Tried{Name: Name(&later), policy: later})
	}
	all := []Faster{{whole, chosen.Name, chosen.USDPerHour * hoursPerMonth, math.NaN()}}
	for _, cut := range []time.Duration{time.Minute, whole} {
		if cut > whole || cut == whole && whole <= time.Minute {
			continue
		}
		again := slices.Clone(near)
		for i := range again {
			again[i].policy.StartUp = StartUp{Init: whole - cut}
		}
		best := Faster{StartUp: whole - cut, USDPerMonth: math.Inf(1)}
		for _, t := range p.try(again, math.Inf(1), stages, seed, out) {
			if usd := t.USDPerHour * hoursPerMonth; t.Kept && usd < best.USDPerMonth {
				best.Policy, best.USDPerMonth = t.Name, usd
			}
		}
		best.Worth = (all[0].USDPerMonth - best.USDPerMonth) / cut.Minutes()
		if best.Policy != "" {
			all = append(all, best)
		}
	}
	return all
}

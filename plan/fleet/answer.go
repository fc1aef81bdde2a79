package fleet

import (
	"math"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"planner/internal/list"
	"planner/internal/parallel"
	"planner/sweep/measure"
)

// Plant is what a policy is applied to: a scenario without its policy and without what a seed draws.
type Plant struct {
	Scenario
	// Traffic returns the traffic of a seed.
	Traffic func(seed uint64) []Stage
	// GPUs is the number per replica, each at USDPerGPUHour (NaN if unknown).
	GPUs          int
	USDPerGPUHour float64
	// Together is the number of replays that fit in memory at once; 0 means any number.
	Together int
}

func (p *Plant) scenario(policy Policy, stages []Stage, seed uint64) *Scenario {
	s := p.Scenario
	s.Policy, s.Stages, s.Seed = policy, stages, seed
	return &s
}

// Estimate is the mean of a figure over seeds with its confidence interval.
type Estimate struct {
	Value      float64 `json:"value"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// confidence is the level of all intervals.
const confidence = 0.95

// estimate returns the mean of one figure per seed with its t interval, clipped to [0, most]; of a single
// figure the interval is NaN.
func estimate(figures []float64, most float64) Estimate {
	n := float64(len(figures))
	mean, dev := stat.MeanStdDev(figures, nil)
	if n < 2 {
		return Estimate{figures[0], math.NaN(), math.NaN(), confidence}
	}
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1+confidence)/2) * dev / math.Sqrt(n)
	return Estimate{mean, max(mean-half, 0), min(mean+half, most), confidence}
}

// Answer is the outcome of a policy over several seeds.
type Answer struct {
	Requests   int           `json:"requests"`
	Duration   time.Duration `json:"duration_s"`
	Attainment Estimate      `json:"attainment"`
	Verdict    measure.State `json:"verdict"`
	Classes    []ClassAnswer `json:"classes"`
	Replicas   Replicas      `json:"replicas"`
	GPUs       int           `json:"gpus_per_replica"`
	Cost       Cost          `json:"cost"`
	Counts     Counts        `json:"counts"`
	Course
	Seeds []SeedRow `json:"seeds"`
	// Static is the smallest static fleet that meets the objective; nil if none was found or looked for.
	Static *StaticAnswer `json:"static"`
	Search *Searched     `json:"search,omitempty"`

	Warnings []string       `json:"warnings"`
	Facts    map[string]any `json:"run"`

	// Policy and Limits are what was replayed.
	Policy Policy        `json:"policy"`
	Limits []ClassLimits `json:"-"`
}

// Course is the course of the first seed.
type Course struct {
	Misses    []Miss      `json:"episodes"`
	Timeline  []MinuteRow `json:"timeline"`
	Decisions []Decision  `json:"decisions"`
}

// SetRun stores the facts that depend on time and machine.
func (a *Answer) SetRun(facts map[string]any) { a.Facts = facts }

// ClassAnswer is the outcome for the requests of one class.
type ClassAnswer struct {
	Class      string        `json:"class"`
	Requests   int           `json:"requests"`
	Attainment Estimate      `json:"attainment"`
	Limits     []LimitAnswer `json:"limits"`
}

// LimitAnswer is the share of a class within one limit and the share that is asked for, 0 if none is. Under
// "goodput" it is the share within all limits.
type LimitAnswer struct {
	Metric  string        `json:"metric"`
	Limit   time.Duration `json:"limit_ms"`
	Share   Estimate      `json:"share"`
	Asked   float64       `json:"asked"`
	Verdict measure.State `json:"verdict"`
}

// Replicas are their mean number, the most at once on any seed, and the hours for which they held GPUs.
type Replicas struct {
	Mean     Estimate `json:"mean"`
	Peak     int      `json:"peak"`
	Hours    Estimate `json:"replica_hours"`
	GPUHours Estimate `json:"gpu_hours"`
}

// Cost is in US dollars; NaN, null in JSON, if no price is known.
type Cost struct {
	Total              Estimate `json:"usd"`
	PerHour            float64  `json:"usd_per_hour"`
	PerMonth           float64  `json:"usd_per_month"`
	PerThousandRequest float64  `json:"usd_per_thousand_requests"`
}

// Counts are means over the seeds.
type Counts struct {
	StartUps  float64 `json:"start_ups"`
	Decisions float64 `json:"decisions"`
	Failures  float64 `json:"nodes_lost"`
	Retries   float64 `json:"retries"`
	Failed    float64 `json:"failed_requests"`
}

// StaticAnswer is the outcome of a static fleet, for comparison.
type StaticAnswer struct {
	Replicas   int      `json:"replicas"`
	Attainment Estimate `json:"attainment"`
	GPUHours   float64  `json:"gpu_hours"`
	USD        float64  `json:"usd"`
}

// SeedRow is the outcome of one seed.
type SeedRow struct {
	Seed       uint64  `json:"seed"`
	Attainment float64 `json:"attainment"`
	Replicas   float64 `json:"replicas_mean"`
	GPUHours   float64 `json:"gpu_hours"`
}

// replay replays a policy on seeds concurrently, with a timeline of the first. To save memory, the requests of
// a seed are drawn for its replay and dropped after it.
func (p *Plant) replay(policy Policy, seeds []uint64) []EpisodeSummary {
	out := make([]EpisodeSummary, len(seeds))
	p.sideBySide(len(seeds), func(i int) {
		s := p.scenario(policy, p.Traffic(seeds[i]), seeds[i])
		e := Run(s)
		out[i] = summarize(s, e)
		if i == 0 {
			out[i].Timeline = e.Timeline(p.Limits)
		}
	})
	return out
}

// sideBySide runs do(0) to do(n-1) concurrently, as far as processors and Together allow.
func (p *Plant) sideBySide(n int, do func(int)) {
	together := runtime.GOMAXPROCS(0)
	if p.Together > 0 {
		together = min(together, p.Together)
	}
	_ = parallel.DoAtMost(together, n, func(i int) error {
		do(i)
		return nil
	})
}

// Seeds returns n consecutive seeds.
func Seeds(first uint64, n int) []uint64 {
	return list.Times(n, func(i int) uint64 { return first + uint64(i) })
}

// Answer replays a policy on seeds and summarises the outcome.
func (p *Plant) Answer(policy Policy, seeds []uint64) *Answer {
	all := p.replay(policy, seeds)
	a := p.sum(all)
	a.Policy, a.Course = policy, all[0].Course
	return a
}

func (p *Plant) sum(all []EpisodeSummary) *Answer {
	first := &all[0]
	a := &Answer{Requests: first.Requests, Duration: first.Duration, Limits: p.Limits, GPUs: p.GPUs, Verdict: measure.Met}
	inf := math.Inf(1)
	a.Attainment = estimate(list.Map(all, func(s EpisodeSummary) float64 { return s.Within }), 1)
	for i, c := range first.Classes {
		c.Attainment = estimate(list.Map(all, func(s EpisodeSummary) float64 { return s.Classes[i].Attainment.Value }), 1)
		c.Limits = slices.Clone(c.Limits)
		for j := range c.Limits {
			l := &c.Limits[j]
			l.Share = estimate(list.Map(all, func(s EpisodeSummary) float64 { return s.Classes[i].Limits[j].Share.Value }), 1)
			l.Verdict = verdict(l.Share, l.Asked)
			if l.Verdict == measure.Missed || l.Verdict == measure.Unsure && a.Verdict == measure.Met {
				a.Verdict = l.Verdict
			}
		}
		a.Classes = append(a.Classes, c)
	}
	hours := list.Map(all, func(s EpisodeSummary) float64 { return s.ReplicaHours })
	gpuHours := list.Map(all, func(s EpisodeSummary) float64 { return s.ReplicaHours * float64(p.GPUs) })
	a.Replicas = Replicas{Mean: estimate(list.Map(all, func(s EpisodeSummary) float64 { return s.Replicas }), inf),
		Peak:  list.Largest(all, func(s EpisodeSummary) int { return s.Peak }),
		Hours: estimate(hours, inf), GPUHours: estimate(gpuHours, inf)}
	mean := func(of func(EpisodeSummary) int) float64 {
		return stat.Mean(list.Map(all, func(s EpisodeSummary) float64 { return float64(of(s)) }), nil)
	}
	a.Counts = Counts{mean(func(s EpisodeSummary) int { return s.Starts }), mean(func(s EpisodeSummary) int { return len(s.Decisions) }),
		mean(func(s EpisodeSummary) int { return s.Failures }), mean(func(s EpisodeSummary) int { return s.Retries }), mean(func(s EpisodeSummary) int { return s.Failed })}
	a.Cost = p.cost(all)
	a.Seeds = list.Map(all, func(s EpisodeSummary) SeedRow {
		return SeedRow{s.Seed, s.Within, s.Replicas, s.ReplicaHours * float64(p.GPUs)}
	})
	return a
}

func verdict(share Estimate, asked float64) measure.State {
	switch {
	case share.Low >= asked || share.Value >= asked && math.IsNaN(share.Low):
		return measure.Met
	case share.High < asked || math.IsNaN(share.High):
		return measure.Missed
	}
	return measure.Unsure
}

// hoursPerMonth is the length of a mean month.
const hoursPerMonth = 730

func (p *Plant) cost(all []EpisodeSummary) Cost {
	usd := list.Map(all, func(s EpisodeSummary) float64 { return s.ReplicaHours * float64(p.GPUs) * p.USDPerGPUHour })
	c := Cost{Total: estimate(usd, math.Inf(1))}
	hours := stat.Mean(list.Map(all, func(s EpisodeSummary) float64 { return s.Duration.Hours() }), nil)
	requests := stat.Mean(list.Map(all, func(s EpisodeSummary) float64 { return float64(s.Requests) }), nil)
	c.PerHour = c.Total.Value / hours
	c.PerMonth, c.PerThousandRequest = c.PerHour*hoursPerMonth, 1000*c.Total.Value/requests
	return c
}

// Static finds the smallest static fleet, of at most the given number of replicas, that meets the objective;
// nil if none does. A size at which twice the allowed requests miss on the first seed is given up there.
func (p *Plant) Static(policy Policy, most int, seeds []uint64) *StaticAnswer {
	first := *p
	first.MostMissed = p.mayMiss(p.Traffic(seeds[0]))
	enough := func(n int) *Answer {
		policy.Replicas = n
		all := first.replay(policy, seeds[:1])
		if all[0].Dropped {
			return nil
		}
		if a := p.sum(append(all, p.replay(policy, seeds[1:])...)); a.Verdict == measure.Met {
			return a
		}
		return nil
	}
	low, high := 0, 1
	best := enough(high)
	for best == nil {
		if high >= most {
			return nil
		}
		low, high = high, min(2*high, most)
		best = enough(high)
	}
	for high-low > 1 {
		mid := (low + high) / 2
		if a := enough(mid); a != nil {
			high, best = mid, a
		} else {
			low = mid
		}
	}
	return &StaticAnswer{high, best.Attainment, best.Replicas.GPUHours.Value, best.Cost.Total.Value}
}

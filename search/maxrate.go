package search

import (
	"cmp"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/internal/parallel"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Prior is what a simulator, or arithmetic, predicts for one configuration before any measurement. It is passed in as
// data: this package never simulates.
type Prior struct {
	Knobs measure.Knobs
	// Rate is the predicted maximum rate in requests per second; 0 means that nothing is known.
	Rate float64
	// Spread is the standard deviation of ln Rate; 0 means the default.
	Spread float64
	// Latency is the predicted latency of the slowest requests at Rate, for the first warm-up; 0 means unknown.
	Latency time.Duration
	// Kappa is the predicted steepness d ln(-ln(1-p)) / d ln rate at Rate, and Phi the predicted dispersion of
	// exceedance counts at the objective's share; 0 means the default for either.
	Kappa, Phi float64
	// Gamma is how the dispersion grows with the share, as in [stat.Dispersion]; 0 means the default.
	Gamma float64
	// Binding names the bound that Kappa, Phi and Gamma are about, as measure.Bound.String does; empty if unknown.
	Binding string
}

// MaxRateConfig says what to search for and how well the answer must be known.
type MaxRateConfig struct {
	Prior    Prior // the knobs of the configuration and what is predicted for it
	Workload *workload.Workload
	SLO      measure.SLO // the objective; it must not be empty
	Seed     uint64      // determines the seeds of the trials
	// Precision is the half-width of the interval, relative to the rate, at which the search ends; 0 means 0.10.
	// Confidence is that of the interval; 0 means 0.90.
	Precision, Confidence float64
	// Budget is the engine time for all trials, warm-up included; 0 means that engine time is free, as on a simulated
	// engine: trials are then as long as can be simulated quickly. Overhead is what a trial costs besides its load.
	Budget, Overhead time.Duration
	// Steady says that the engine is equally fast in every trial, as a simulated one is; implied where Budget is 0.
	Steady bool
	// Limit is the largest rate that is tried, in requests per second; 0 means a million.
	Limit float64
	// Warmup and Window fix those of every trial; 0 leaves them to the search.
	Warmup, Window time.Duration
	// MinRequests is the least number of requests in a measuring trial; 0 means what the quantiles need.
	MinRequests int

	output int // the mean number of output tokens of a request
}

func (c MaxRateConfig) withDefaults() MaxRateConfig {
	c.Precision, c.Confidence, c.Limit = cmp.Or(c.Precision, 0.10), cmp.Or(c.Confidence, 0.90), cmp.Or(c.Limit, 1e6)
	c.Workload = c.Workload.Anywhere()
	_, output := c.Workload.MeanTokens()
	c.output = int(math.Ceil(output))
	return c
}

// MaxRate searches for the largest rate at which one configuration meets an objective. Its proposals depend only on what
// it was told: a replayed search proposes the same trials, bit for bit.
type MaxRate struct {
	cfg    MaxRateConfig
	bounds []assumed
	// tried are the trials under load that count; doubted are untrusted, inRow of them since the last that counts.
	tried, doubted []attempt
	inRow          int
	// met and missed count trials that met the objective by their raw counts, or not; highest is the largest rate.
	met, missed int
	highest     float64
	// chosen is how many of tried a race based a choice on.
	chosen     int
	posteriors posteriors
	// ran counts all trials, simulated their requests; spent is their engine time, wasted that of the doubted ones.
	ran, simulated int
	spent, wasted  time.Duration
	// latency is the end-to-end latency of the slowest requests within the limits, mean the mean one; 0 if unknown.
	latency, mean time.Duration
	idle          idle
	// outcome and reason say how the search ended, once it has.
	outcome Outcome
	reason  note.Reason
}

// attempt is one trial under load, judged by its raw counts.
type attempt struct {
	*measure.Measurement
	// rate is the rate that it is evidence about, shows its evidence on each bound, and met whether it met all of them.
	rate  float64
	shows []likelihood
	met   bool
	// measured says that it ran to its end with at least half the window and half the requests of a measuring trial.
	measured bool
}

// failing says how requests failed, prefixed with lead, if that is why the objective was missed; otherwise it is empty.
func (t attempt) failing(lead string) string {
	if !t.Missed() || t.Verdict.Binding != measure.ErrorsBound {
		return ""
	}
	return lead + t.Complaint()
}

// NewMaxRate starts a search.
func NewMaxRate(cfg MaxRateConfig) *MaxRate {
	if cfg.SLO.Empty() {
		panic("search: maximum rate under an objective without bounds")
	}
	s := &MaxRate{cfg: cfg.withDefaults(), latency: cfg.Prior.Latency, idle: idle{broken: -1}}
	s.bounds = assume(s.cfg.SLO, s.cfg.Prior, !s.cfg.free() && !s.cfg.Steady)
	if turns := s.cfg.Workload.Turns; turns > 1 && cfg.Prior.Phi == 0 {
		for j := range s.bounds {
			// When the engine falls behind, all turns of the conversations in progress are late.
			s.bounds[j].phi *= float64(turns)
		}
	}
	return s
}

// Observe takes the measurement of a trial of the same knobs and objective, which need not be the proposed one.
func (s *MaxRate) Observe(m measure.Measurement) {
	if m.Rejected.Text != "" {
		if s.outcome, s.reason = Infeasible, m.Rejected; measure.Broke(m.Rejected) {
			s.outcome = Unmeasured
		}
		return
	}
	s.ran++
	s.spent += m.EngineTime(s.cfg.Overhead)
	s.simulated += int(float64(m.Requests) * (1 + m.Trial.Warmup.Seconds()/max(m.Duration.Seconds(), 1)))
	if m.Trial.Closed() {
		s.observeIdle(&m)
		s.latency = max(s.latency, m.E2E.Slowest())
		return
	}
	t := s.shown(&m)
	if !m.Tells() {
		s.doubted, s.inRow, s.wasted = append(s.doubted, t), s.inRow+1, s.wasted+m.EngineTime(s.cfg.Overhead)
		return
	}
	s.tried, s.inRow, s.highest = append(s.tried, t), 0, max(s.highest, t.rate)
	s.posteriors = parallel.Map(len(s.bounds), func(j int) *posterior { return s.bounds[j].infer(s.seen(j)) })
	if !t.met {
		s.missed++
		return
	}
	s.met++
	// Latencies of a trial that missed, or at far below the highest rate, are not those near the limit.
	if 2*t.rate >= s.highest || m.E2E.Slowest() > s.latency {
		s.latency, s.mean = m.E2E.Slowest(), max(m.E2E.Mean, 0)
	}
}

// seen is the evidence on bound j.
func (s *MaxRate) seen(j int) []likelihood {
	return list.Map(s.tried, func(t attempt) likelihood { return t.shows[j] })
}

// shown is the evidence of a trial under load. A trial that was ended early, or whose backlog grew, did not meet the
// objective. Where it grew, a bound that was missed or that includes waiting is worse in the long run than the trial shows;
// any other was within its limit, at the rate of completion.
func (s *MaxRate) shown(m *measure.Measurement) attempt {
	flow, _ := m.Count(measure.ThroughputBound)
	grew, whole := m.Grew(), m.Aborted.Text == ""
	t := attempt{Measurement: m, met: !grew && whole, shows: make([]likelihood, len(s.bounds))}
	t.measured = whole && 2*m.Trial.Window >= s.cfg.timed(m.Trial.Rate, 1, s.learned()).Window && 2*float64(m.Requests) >= s.cfg.leastRequests()
	for j := range s.bounds {
		c, _ := m.Count(s.bounds[j].name)
		t.met = t.met && !s.bounds[j].missed(c)
	}
	t.rate = m.Carried(s.cfg.Workload, t.met)
	for j := range s.bounds {
		b, rate := &s.bounds[j], t.rate
		c, _ := m.Count(b.name)
		more := grew && (b.waits || b.missed(c))
		switch {
		case b.kind == onThroughput:
			rate *= s.luck(m, flow.N)
			if !m.Valid && !m.Drifted() {
				c = measure.Count{}
			}
		case grew && !more:
			rate *= 1 - min(max(flow.Value, 0), 0.99)
		}
		t.shows[j] = b.observe(c, rate, more)
	}
	return t
}

// luck is the number of arrivals in the second half of the window, where throughput is counted, over the number
// expected. What a server completes does not depend on it.
func (s *MaxRate) luck(m *measure.Measurement, came int) float64 {
	expected := s.cfg.Workload.MeanRate(m.Trial.Rate) * m.Duration.Seconds() / 2
	if s.cfg.Workload.Turns > 1 || expected <= 0 || came == 0 {
		return 1
	}
	return float64(came) / expected
}

// missed reports whether the raw count is beyond what is allowed.
func (a *assumed) missed(c measure.Count) bool {
	return a.kind == onShare && float64(c.K) > float64(c.N)*a.share || a.kind == onMean && c.N > 0 && c.Value > 1
}

// lowest is the trial at the smallest rate of those that count. There must be one.
func (s *MaxRate) lowest() attempt {
	return slices.MinFunc(s.tried, func(a, b attempt) int { return cmp.Compare(a.rate, b.rate) })
}

// Separate streams of draws, for trials at the reference of a race, for its final searches, and for certificates.
const streamTests, streamFinal, streamCertify = 102, 103, 7001

// trialSeed is the seed of trial index: the same for every configuration, so that all meet the same requests (common
// random numbers), and different for each trial, so that clumps of arrivals average out instead of biasing the answer.
func trialSeed(base uint64, index int) uint64 {
	// 53 bits survive a JSON number in every reader.
	return workload.Draw64(base, uint64(index)) >> 11
}

// Package diagnose says what of a server's behaviour is not as it should be, by the
// decision flow of the field, from trials that were run anyway: which symptom, by which
// figures, and which knob or measurement is next.
package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/model"
	"planner/sweep/measure"
)

// FindingKind names a finding.
type FindingKind string

// What can be found.
const (
	// Failing: requests fail though those that are served are quick.
	Failing FindingKind = "failing"
	// Faster: tokens come faster than the hardware named can read the weights.
	Faster FindingKind = "faster_than_hardware"
	// Prefill: the time to first token grows with the prompt, at low load already.
	Prefill FindingKind = "prefill"
	// Bandwidth: tokens come slowly at low load, as fast as the weights can be read.
	Bandwidth FindingKind = "bandwidth"
	// Inefficiency: tokens come slowly at low load, far from what the bandwidth allows.
	Inefficiency FindingKind = "inefficiency"
	// Tight: a latency is near its limit where requests are hardly ever together.
	Tight FindingKind = "tight_limit"
	// Queueing: some first tokens come very late though most come soon.
	Queueing FindingKind = "queueing"
	// MixedLengths: the same, and those late are the long prompts.
	MixedLengths FindingKind = "mixed_lengths"
	// Batching: a limit on the pace of tokens ends the load where throughput still grows.
	Batching FindingKind = "batching"
	// CacheMisses and CacheEviction: shared prefixes are not found in the prefix cache, in
	// the latter case as it cannot hold them.
	CacheMisses   FindingKind = "cache_misses"
	CacheEviction FindingKind = "cache_eviction"
	// Host: a saturated server does far less than the hardware allows.
	Host FindingKind = "host"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Kind FindingKind `json:"kind"` // its name for programs
	// Symptom says what it is, Evidence by which figures of which trials, and Next which
	// knob or measurement comes next.
	Symptom  string   `json:"symptom"`
	Evidence []string `json:"evidence"`
	Next     string   `json:"next"`
}

// The figures from which on something is a symptom. Lengths of prompts alone spread the
// times to first token of common workloads by a factor of four.
const (
	fewest        = 100  // requests of a trial that says anything
	failed        = 0.05 // of the requests of a trial
	quick         = 0.25 // of the time-out: an answer that did not wait in a queue as others that timed out did
	alone         = 0.1  // of the highest throughput seen: up to it requests are hardly ever together
	few           = 4    // requests in flight in the mean that are little load for any server
	nearLimit     = 0.7  // of a limit, at low load: what is left for load is little
	slowerThan    = 2.0  // times the modelled idle latency
	grows         = 0.6  // of what a TTFT in proportion to the prompt would grow by
	streamed      = 0.5  // share of the bandwidth from which on the bandwidth is the reason
	moderate      = 0.75 // share of the highest throughput seen up to which nothing should queue
	spike         = 6.0  // p99 over p50
	spikeNoLimit  = 12.0 // the same where no limit says what is late
	longer        = 2.0  // the prompts of the slowest requests over the mean
	gained        = 1.25 // throughput beyond the last load within the limit
	sharedPrompt  = 0.2  // of a prompt, from which on a prefix cache matters
	found         = 0.5  // of what is shared that a cache should find at least
	noFaster      = 0.9  // warm over cold
	noSlower      = 1.5  // a full batch over a small one: a larger one costs little
	farBelow      = 0.12 // of the roofline; served engines reach a quarter to a half
	mostlyFixed   = 0.5  // share of the time that neither bandwidth, compute nor links explain
	linked        = 0.15 // share of the steps that is communication, where prompts take
	beyondCompute = 4.0  // times as long as computing them would
	fullPool      = 0.9  // of the KV cache
	spareCache    = 0.25 // of it, up to which it has room for several times as many requests
	saturatedPart = 0.93 // of the rate that came, below which it is not completed
)

// serverTrials are the trials of one set of knobs, by load.
type serverTrials struct {
	trials []*measure.Measurement
	// bounds are those of the data sheets; nil where model or hardware is not known.
	bounds *model.Bounds
	slo    measure.SLO
	// highest is the most requests per second that were completed.
	highest float64
}

// Of lists what the trials of one set of knobs show, beside what the data sheets allow,
// which may be nil, and by an objective where they have none of their own, as those of other tools. It is nil where no
// trial says anything.
func Of(trials []measure.Measurement, bounds *model.Bounds, objective measure.SLO) []Finding {
	s := serverTrials{bounds: bounds, slo: objective}
	for i := range trials {
		if m := &trials[i]; m.Rejected.Text == "" && m.Valid && m.Requests >= fewest && 2*m.Failed < m.Requests {
			s.trials = append(s.trials, m)
		}
	}
	if f := failing(trials); f != nil {
		return []Finding{*f}
	}
	if len(s.trials) == 0 {
		return nil
	}
	if own := s.trials[0].Trial.Objective; !own.Empty() {
		s.slo = own
	}
	slices.SortStableFunc(s.trials, func(a, b *measure.Measurement) int { return cmp.Compare(a.Achieved, b.Achieved) })
	for _, m := range s.trials {
		if m.Achieved > s.highest { // no number where a file does not tell it
			s.highest = m.Achieved
		}
	}
	// What a server shows under load follows from what it shows without any.
	all := []Finding{}
	for _, stage := range [][]func() *Finding{{s.faster}, {s.prefill, s.decode, s.cache}, {s.waits, s.places, s.host}, {s.tight}, {s.batching}} {
		for _, look := range stage {
			if f := look(); f != nil && !slices.ContainsFunc(all, func(g Finding) bool { return g.Kind == f.Kind }) {
				all = append(all, *f)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// whole are the trials that were not ended early. A closed loop has the first turns of conversations alone, which say
// little of the others.
func (s *serverTrials) whole() []*measure.Measurement {
	return slices.DeleteFunc(slices.Clone(s.trials), func(m *measure.Measurement) bool {
		w := m.Trial.Workload
		return m.Aborted.Text != "" || m.Trial.Closed() && w != nil && w.Turns > 1
	})
}

// low is the trial of the least load, nil where that is no low one: more than half of
// the highest throughput, with many requests at once.
func (s *serverTrials) low() *measure.Measurement {
	all := s.whole()
	if len(all) == 0 || all[0].Overloaded {
		return nil
	}
	if m := all[0]; m.Achieved <= s.highest/2 || inFlight(m) <= few {
		return m
	}
	return nil
}

// inFlight is the mean number of requests in the server, by Little's law.
func inFlight(m *measure.Measurement) float64 { return m.Achieved * max(m.E2E.Mean.Seconds(), 0) }

// limitOf is the tightest limit on a latency of all requests, 0 where there is none.
func (s *serverTrials) limitOf(metric measure.Metric) time.Duration {
	least := time.Duration(0)
	for _, b := range s.slo.Of("").Latencies() {
		if b.Metric == metric && (least == 0 || b.Limit < least) {
			least = b.Limit
		}
	}
	return least
}

func at(m *measure.Measurement) string {
	if m.Trial.Closed() {
		return fmt.Sprintf("at concurrency %d (trial %d)", m.Trial.Concurrency, m.Trial.Number)
	}
	return fmt.Sprintf("at %s requests/s (trial %d)", figure(cmp.Or(m.Trial.Rate, m.Achieved)), m.Trial.Number)
}

func ms(d time.Duration) string { return figure(float64(d)/float64(time.Millisecond)) + " ms" }

// figure has three digits, and all before the point.
func figure(v float64) string {
	if v >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// times is a multiple in words: "83 % of", and from twice on "2.3 times".
func times(x float64) string {
	if x < 2 {
		return percent(x) + " of"
	}
	return fmt.Sprintf("%.1f times", x)
}

func over(a, b time.Duration) float64 {
	if a <= 0 || b <= 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

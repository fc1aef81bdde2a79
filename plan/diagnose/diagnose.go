// Package diagnose finds what is wrong with a server's behaviour by the usual decision flow, from trials that
// were run anyway: the symptom, the figures that show it, and the knob or measurement to try next.
package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"planner/internal/list"
	"planner/model"
	"planner/sweep/measure"
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind string `json:"kind"` // its name for programs
	// Symptom says what is wrong, Evidence gives the figures that show it and their trials, and Next the knob
	// or measurement to try next.
	Symptom  string   `json:"symptom"`
	Evidence []string `json:"evidence"`
	Next     string   `json:"next"`
}

// The thresholds of symptoms. Prompt lengths alone spread the times to first token of common workloads by a
// factor of four.
const (
	fewest        = 100  // requests that a trial needs to count
	failed        = 0.05 // of the requests of a trial
	quick         = 0.25 // of the timeout: a request served this fast did not wait in a queue in which others timed out
	alone         = 0.1  // of the highest throughput seen, up to which requests hardly ever overlap
	few           = 4    // mean requests in flight that are a low load for any server
	nearLimit     = 0.7  // of a limit, at low load: little is left for load
	slowerThan    = 2.0  // times the modelled latency at low load
	grows         = 0.6  // of the growth of a TTFT proportional to the prompt
	streamed      = 0.5  // share of the bandwidth from which on it is the bottleneck, and of the roofline from which on the host is not
	moderate      = 0.75 // share of the highest throughput seen up to which nothing should queue
	spike         = 6.0  // p99 over p50 of the TTFT
	spikeNoLimit  = 12.0 // the same if no limit says what is late
	longer        = 2.0  // slowest requests' prompts over the mean, or long prompts over short ones
	gained        = 1.25 // throughput beyond the limit over that of the last load within
	sharedPrompt  = 0.2  // shared part of a prompt from which on a prefix cache matters
	found         = 0.5  // of the shared part, which a cache should find at least
	noFaster      = 0.9  // TTFT with a warm cache over a cold one, above which the cache does not help
	noSlower      = 1.5  // TPOT of a full batch over a small one, below which a larger one costs little
	farBelow      = 0.12 // of the roofline; engines in service reach a quarter to a half
	mostlyFixed   = 0.5  // share of the time that neither bandwidth, compute nor links explain
	linked        = 0.15 // share of communication in the steps from which on links explain slow prompts
	beyondCompute = 4.0  // times the computing time of prompts
	fullPool      = 0.9  // of the KV cache
	spareCache    = 0.25 // of the KV cache, up to which it has room for several times as many requests
	saturatedPart = 0.93 // of the arrival rate, below which the server does not keep up
)

// serverTrials are the trials of one set of knobs, by load.
type serverTrials struct {
	trials []*measure.Measurement
	// bounds are those of the data sheets; nil if model or hardware is unknown.
	bounds *model.Bounds
	slo    measure.SLO
	// highest is the highest rate of completed requests, per second.
	highest float64
}

// Of lists what the trials of one set of knobs show, against the bounds of the data sheets, which may be nil.
// The objective applies to trials without one of their own, such as those of other tools. It is nil if no trial
// is usable.
func Of(trials []measure.Measurement, bounds *model.Bounds, objective measure.SLO) []Finding {
	s := serverTrials{bounds: bounds, slo: objective, trials: list.Pointers(trials, func(m *measure.Measurement) bool {
		return m.Rejected.Text == "" && m.Valid && m.Requests >= fewest && 2*m.Failed < m.Requests
	})}
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
		if m.Achieved > s.highest { // NaN if a file does not say
			s.highest = m.Achieved
		}
	}
	// Behaviour under load follows from that without: the first stage with findings ends the search.
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

// whole returns the trials that were not ended early. It leaves out closed loops of conversations, which
// contain only first turns and say little of the others.
func (s *serverTrials) whole() []*measure.Measurement {
	return slices.DeleteFunc(slices.Clone(s.trials), func(m *measure.Measurement) bool {
		w := m.Trial.Workload
		return m.Aborted.Text != "" || m.Trial.Closed() && w != nil && w.Turns > 1
	})
}

// low returns the trial with the lowest load; nil if it is overloaded, or if it has more than half of the
// highest throughput and many requests in flight.
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

// limitOf returns the tightest limit on a latency over all requests, 0 if there is none.
func (s *serverTrials) limitOf(metric measure.Metric) time.Duration {
	of := list.Filter(s.slo.Of("").Latencies(), func(b measure.Bound) bool { return b.Metric == metric })
	return list.Least(list.Map(of, func(b measure.Bound) time.Duration { return b.Limit }))
}

func at(m *measure.Measurement) string {
	if m.Trial.Closed() {
		return fmt.Sprintf("at concurrency %d (trial %d)", m.Trial.Concurrency, m.Trial.Number)
	}
	return fmt.Sprintf("at %s requests/s (trial %d)", figure(cmp.Or(m.Trial.Rate, m.Achieved)), m.Trial.Number)
}

func ms(d time.Duration) string { return figure(float64(d)/float64(time.Millisecond)) + " ms" }

// figure formats with three digits, or with all digits before the point if there are more.
func figure(v float64) string {
	if v >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// times puts a multiple into words: "83 % of", and from two on "2.3 times".
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

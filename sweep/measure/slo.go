package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/wire"
)

// SLO is a service-level objective: every bound holds, and no larger share of
// the requests than Errors fails. An empty SLO is met by nothing and missed by
// nothing; it has no verdict.
type SLO struct {
	Bounds []Bound
	// Throughput says that an objective without bounds is still judged: what arrives is completed,
	// however long it takes.
	Throughput bool
	// Errors is the largest share of failed requests; negative means unbounded.
	Errors float64
}

// Empty reports whether there is nothing to judge; Errors alone is not judged.
func (s SLO) Empty() bool { return len(s.Bounds) == 0 && !s.Throughput }

// Bound returns the bound of a name, see [Bound.String]; false if there is none.
func (s SLO) Bound(name string) (Bound, bool) {
	return list.Find(s.Bounds, func(b Bound) bool { return b.String() == name })
}

// Horizon returns how long after its intended time every bound on a request of so many output
// tokens is decided. Limits per token count once for each of them.
func (s SLO) Horizon(output int) time.Duration {
	h := time.Duration(0)
	for _, b := range s.Bounds {
		switch {
		case b.Metric == Goodput:
			// The first token just in time, and each one after it at its limit.
			h = max(h, b.Limits.E2E, b.Limits.TTFT+b.Limits.TPOT*time.Duration(output))
		case b.Metric.row().perToken:
			h = max(h, b.Limit*time.Duration(output))
		default:
			h = max(h, b.Limit)
		}
	}
	return h
}

// Latencies lists the bounds on latencies and the limits of Goodput, the latter as bounds at its
// share.
func (s SLO) Latencies() []Bound {
	var out []Bound
	for _, b := range s.Bounds {
		if b.Metric != Goodput {
			out = append(out, b)
		}
		out = append(out, b.Limits.Parts(b.Quantile)...)
	}
	return out
}

// Metrics lists the latencies that the objective limits, those of Goodput
// included, each once and in the order of TTFT, TPOT, ITL, E2E.
func (s SLO) Metrics() []Metric {
	out := list.Map(s.Latencies(), func(b Bound) Metric { return b.Metric })
	slices.Sort(out)
	return slices.Compact(out)
}

// tightest returns the smallest limit on latencies per token, or on the others; 0 if there is none.
func (s SLO) tightest(perToken bool) time.Duration {
	of := list.Filter(s.Latencies(), func(b Bound) bool { return b.Metric.row().perToken == perToken })
	return list.Least(list.Map(of, func(b Bound) time.Duration { return b.Limit }))
}

// ClientLag returns the largest 99th percentile of the send lag at which a trial is believed
// whatever was judged: a hundredth of the tightest limit on a latency that includes the lag. Limits
// per token do not include it, but a client that sends late also reads late: if there are no
// others, it is a quarter of the tightest, which over an answer of ten tokens and more is a few per
// cent. It is at least a millisecond, which no client can avoid.
func (s SLO) ClientLag() time.Duration {
	lag := s.tightest(false) / 100
	if lag == 0 {
		lag = s.tightest(true) / 4
	}
	return max(lag, leastLag)
}

// Sort puts the bounds into their canonical order: those of all requests before those of
// each class, of these TTFT, TPOT, ITL, E2E, Goodput, and within each the mean first and
// quantiles from low to high.
func (s *SLO) Sort() {
	slices.SortFunc(s.Bounds, func(a, b Bound) int {
		return cmp.Or(strings.Compare(a.Class, b.Class), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Quantile, b.Quantile))
	})
}

// Of returns the objective of a class alone, its bounds as those of all requests.
func (s SLO) Of(class string) SLO {
	of := SLO{Errors: s.Errors}
	for _, b := range s.Bounds {
		if b.Class == class {
			b.Class = ""
			of.Bounds = append(of.Bounds, b)
		}
	}
	return of
}

// Classes lists the classes with bounds of their own.
func (s SLO) Classes() []string {
	names := list.Distinct(list.Map(s.Bounds, func(b Bound) string { return b.Class }))
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// sloFile is what a file holds of an objective, limitsFile the limits of all requests or of a
// class. The goodput of all requests comes after the errors.
type (
	sloFile struct {
		limitsFile
		Errors    float64               `json:"errors"`              // the largest share of failed requests
		Goodput   Bound                 `json:"goodput,omitzero"`    // several limits on each request at once
		Objective string                `json:"objective,omitempty"` // throughput where no latency has a limit
		Classes   map[string]limitsFile `json:"classes,omitempty"`   // the limits of classes of a mix
	}
	limitsFile struct {
		TTFT    map[string]time.Duration `json:"ttft_ms,omitempty"` // on the time to first token, by statistic
		TPOT    map[string]time.Duration `json:"tpot_ms,omitempty"` // on the time per output token
		ITL     map[string]time.Duration `json:"itl_ms,omitempty"`  // on the time between tokens
		E2E     map[string]time.Duration `json:"e2e_ms,omitempty"`  // on the whole request
		Goodput Bound                    `json:"goodput,omitzero"`  // several limits on each request at once
	}
)

func (l *limitsFile) of(m Metric) *map[string]time.Duration {
	return map[Metric]*map[string]time.Duration{TTFT: &l.TTFT, TPOT: &l.TPOT, ITL: &l.ITL, E2E: &l.E2E}[m]
}

// limits returns the limits of all requests.
func (s SLO) limits() (l limitsFile) {
	for _, b := range s.Of("").Bounds {
		if b.Metric == Goodput {
			l.Goodput = b
			continue
		}
		at := l.of(b.Metric)
		if *at == nil {
			*at = map[string]time.Duration{}
		}
		(*at)[b.Stat()] = max(b.Limit, 0)
	}
	return l
}

// bounds returns the limits as bounds on the requests of a class.
func (l *limitsFile) bounds(class string) ([]Bound, error) {
	var bounds []Bound
	for _, m := range AllLatencies() {
		for stat, limit := range *l.of(m) {
			q, err := ParseStat(stat)
			if err != nil {
				return nil, err
			}
			bounds = append(bounds, Bound{Metric: m, Class: class, Quantile: q, Limit: limit})
		}
	}
	if g := l.Goodput; g != (Bound{}) {
		g.Metric, g.Class = Goodput, class
		bounds = append(bounds, g)
	}
	for _, b := range bounds {
		if err := b.check(); err != nil {
			return nil, err
		}
	}
	return bounds, nil
}

// Written returns the objective as a file holds it: {"ttft_ms":{"p99":500},"errors":0.001}; errors
// is null when they are not bounded. Goodput is {"share":0.95,"ttft_ms":500}. The limits of each
// class stand likewise under "classes", and "objective" is "throughput" where no latency has a
// limit. An objective that bounds nothing is null.
func (s SLO) Written() any {
	if s.Empty() {
		return (*sloFile)(nil)
	}
	all := s.limits()
	w := &sloFile{limitsFile: all, Errors: s.Errors, Goodput: all.Goodput, Classes: map[string]limitsFile{}}
	if s.Errors < 0 {
		w.Errors = math.NaN()
	}
	if s.Throughput {
		w.Objective = ThroughputBound
	}
	for _, name := range s.Classes() {
		w.Classes[name] = s.Of(name).limits()
	}
	return w
}

// UnmarshalJSON reads what Written gives. Bounds come in the order of SLO.Sort.
func (s *SLO) UnmarshalJSON(data []byte) error {
	if *s = (SLO{}); string(data) == "null" {
		return nil
	}
	w := sloFile{Errors: math.NaN()}
	if err := wire.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read objective: %w", err)
	}
	if s.Errors = w.Errors; math.IsNaN(w.Errors) {
		s.Errors = -1
	}
	s.Throughput = w.Objective == ThroughputBound
	w.limitsFile.Goodput = w.Goodput
	classes := map[string]limitsFile{"": w.limitsFile}
	maps.Copy(classes, w.Classes)
	for name, l := range classes {
		bounds, err := l.bounds(name)
		if err != nil {
			return fmt.Errorf("read objective: %w", err)
		}
		s.Bounds = append(s.Bounds, bounds...)
	}
	s.Sort()
	return nil
}

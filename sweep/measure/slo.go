package measure

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

	"planner/internal/wire"
)

// SLO is a service-level objective: every bound holds, and no larger share of
// the requests than Errors fails. An empty SLO is met by nothing and missed by
// nothing; it has no verdict.
type SLO struct {
	Bounds []Bound
	// Throughput says that an objective without bounds is one all the same: what arrives
	// is completed, however long it takes.
	Throughput bool
	// Errors is the largest share of failed requests; negative means unbounded.
	Errors float64
}

// Empty reports whether there is nothing to judge.
func (s SLO) Empty() bool { return len(s.Bounds) == 0 && !s.Throughput }

// Horizon is how long after the intended time of a request every bound on its
// first token and its end is decided. TPOT bounds count for output tokens each.
func (s SLO) Horizon(output int) time.Duration {
	h := time.Duration(0)
	for _, b := range s.Bounds {
		switch {
		case b.Metric == Goodput:
			h = max(h, b.Limits.horizon(output))
		case b.Metric.row().perToken:
			h = max(h, b.Limit*time.Duration(output))
		default:
			h = max(h, b.Limit)
		}
	}
	return h
}

// Latencies lists the bounds on latencies and the limits of Goodput, these as bounds
// at its share.
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
	var out []Metric
	for _, b := range s.Latencies() {
		out = append(out, b.Metric)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tightest is the smallest limit on the latencies that are per token, or on the others;
// 0 if there is none.
func (s SLO) tightest(perToken bool) time.Duration {
	least := time.Duration(0)
	for _, b := range s.Latencies() {
		if b.Metric.row().perToken == perToken && b.Limit > 0 && (least == 0 || b.Limit < least) {
			least = b.Limit
		}
	}
	return least
}

// ClientLag is how late a client may send, at the 99th percentile of its requests,
// for its trial to be believed: a hundredth of the tightest limit on a latency that
// contains the delay. Limits on the time between tokens do not contain it, but a
// client that is late with sending reads late, too: of these it is a quarter, which
// over an answer of ten tokens and more is some per cent. It is at least a
// millisecond, which no client can avoid.
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

// Of are the bounds of a class, as those of all requests.
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
	var names []string
	for _, b := range s.Bounds {
		if b.Class != "" && !slices.Contains(names, b.Class) {
			names = append(names, b.Class)
		}
	}
	return names
}

// object is a JSON object whose keys keep their order.
type object struct {
	members [][]byte
	err     error
}

func (o *object) add(key string, value any) {
	member, err := wire.Marshal(map[string]any{key: value})
	o.members = append(o.members, bytes.TrimSuffix(bytes.TrimPrefix(member, []byte("{")), []byte("}")))
	o.err = errors.Join(o.err, err)
}

// MarshalJSON writes the members.
func (o *object) MarshalJSON() ([]byte, error) {
	return slices.Concat([]byte("{"), bytes.Join(o.members, []byte(",")), []byte("}")), o.err
}

// latencies adds the limits on latencies of all requests.
func (o *object) latencies(s SLO) {
	limits := map[Metric]map[string]time.Duration{}
	for _, b := range s.Bounds {
		switch {
		case !b.Metric.valid():
			o.err = errors.Join(o.err, fmt.Errorf("write objective: invalid metric %d", int(b.Metric)))
		case b.Class == "" && limits[b.Metric] == nil:
			limits[b.Metric] = map[string]time.Duration{b.Stat(): max(b.Limit, 0)}
		case b.Class == "":
			limits[b.Metric][b.Stat()] = max(b.Limit, 0)
		}
	}
	for _, m := range AllLatencies() {
		if limits[m] != nil {
			o.add(m.key(), limits[m])
		}
	}
}

// goodput adds that bound of all requests.
func (o *object) goodput(s SLO) {
	for _, b := range s.Bounds {
		if b.Metric == Goodput && b.Class == "" {
			o.add(b.Metric.String(), b)
		}
	}
}

// MarshalJSON writes {"ttft_ms":{"p99":500},"errors":0.001}; errors is null
// when they are not bounded. Goodput is {"share":0.95,"ttft_ms":500}. The limits of each
// class stand likewise under "classes", and "objective" is "throughput" where no latency has
// a limit. An objective that bounds nothing is null.
func (s SLO) MarshalJSON() ([]byte, error) {
	if s.Empty() {
		return []byte("null"), nil
	}
	var all, classes object
	all.latencies(s)
	allowed := s.Errors
	if allowed < 0 {
		allowed = math.NaN()
	}
	all.add("errors", allowed)
	all.goodput(s)
	if s.Throughput {
		all.add("objective", ThroughputBound)
	}
	for _, name := range s.Classes() {
		var own object
		own.latencies(s.Of(name))
		own.goodput(s.Of(name))
		classes.add(name, &own)
	}
	if len(classes.members) > 0 {
		all.add("classes", &classes)
	}
	return all.MarshalJSON()
}

// sloFile is an objective in a file, limitsFile the limits of all requests or of a class.
type (
	sloFile struct {
		limitsFile
		Errors    float64               `json:"errors"`
		Objective string                `json:"objective,omitempty"`
		Classes   map[string]limitsFile `json:"classes,omitempty"`
	}
	limitsFile struct {
		TTFT    map[string]time.Duration `json:"ttft_ms,omitempty"`
		TPOT    map[string]time.Duration `json:"tpot_ms,omitempty"`
		ITL     map[string]time.Duration `json:"itl_ms,omitempty"`
		E2E     map[string]time.Duration `json:"e2e_ms,omitempty"`
		Goodput Bound                    `json:"goodput,omitzero"`
	}
)

// Written is how an objective is written.
func (s SLO) Written() any { return (*sloFile)(nil) }

// UnmarshalJSON reads what MarshalJSON writes. Bounds come in the order of
// SLO.Sort.
func (s *SLO) UnmarshalJSON(data []byte) error {
	if *s = (SLO{}); string(data) == "null" {
		return nil
	}
	w := struct {
		Errors  float64        `json:"errors"`
		Goodput *Bound         `json:"goodput"`
		Classes map[string]SLO `json:"classes"`
		Aim     string         `json:"objective"`
	}{Errors: math.NaN()}
	var limits map[string]json.RawMessage
	if err := errors.Join(wire.Unmarshal(data, &w), json.Unmarshal(data, &limits)); err != nil {
		return fmt.Errorf("read objective: %w", err)
	}
	if s.Errors = w.Errors; math.IsNaN(w.Errors) {
		s.Errors = -1
	}
	for _, m := range AllLatencies() {
		var stats map[string]*float64
		if raw := limits[m.key()]; raw != nil {
			if err := json.Unmarshal(raw, &stats); err != nil {
				return fmt.Errorf("read objective: %s: %w", m.key(), err)
			}
		}
		for stat, limit := range stats {
			q, err := ParseStat(stat)
			if err != nil {
				return fmt.Errorf("read objective: %w", err)
			}
			b := Bound{Metric: m, Quantile: q, Limit: -1}
			if limit != nil {
				b.Limit = wire.Duration(*limit, time.Millisecond)
			}
			s.Bounds = append(s.Bounds, b)
		}
	}
	s.Throughput = w.Aim == ThroughputBound
	if g := w.Goodput; g != nil {
		g.Metric = Goodput
		s.Bounds = append(s.Bounds, *g)
	}
	for _, b := range s.Bounds {
		if err := b.check(); err != nil {
			return fmt.Errorf("read objective: %w", err)
		}
	}
	for name, own := range w.Classes {
		for _, b := range own.Bounds {
			b.Class = name
			s.Bounds = append(s.Bounds, b)
		}
	}
	s.Sort()
	return nil
}

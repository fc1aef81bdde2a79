package measure

import (
	"encoding/json"
	"fmt"

	"planner/internal/units"
	"planner/sweep/workload"
)

// wireMeasurement is a Measurement in a file: one line of the journal, the
// answer of a single load point. Keys carry their units; what does not apply is
// null.
type wireMeasurement struct {
	wireTrial
	Duration float64 `json:"duration_s"`
	Throughput
	Goodput *float64 `json:"goodput_per_s"`
	Tally
	Latencies
	SendLag Summary                 `json:"send_lag_ms"`
	Classes map[string]ClassSummary `json:"classes,omitempty"`
	wireServer
	wireJudgement
}

// wireTrial holds the conditions.
type wireTrial struct {
	Number      int                `json:"trial"`
	Knobs       Knobs              `json:"knobs"`
	Workload    *workload.Workload `json:"workload"`
	Rate        *float64           `json:"rate_per_s"`
	Concurrency *int               `json:"concurrency"`
	// Planned is the number of requests of a closed loop.
	Planned  int     `json:"requests_planned,omitempty"`
	Warmup   float64 `json:"warm_up_s"`
	Window   float64 `json:"window_s"`
	Cooldown float64 `json:"cool_down_s"`
	Seed     uint64  `json:"seed"`
	SLO      *SLO    `json:"slo"`
	Why      string  `json:"why,omitempty"`
}

// wireServer holds what the engine says of itself.
type wireServer struct {
	Engine      wireEngine  `json:"engine"`
	KVBlocks    *int        `json:"kv_blocks"`
	BlockTokens *int        `json:"block_tokens"`
	Preemptions *int        `json:"preemptions"`
	HitRate     *float64    `json:"prefix_hit_rate"`
	PeakKV      *float64    `json:"kv_peak"`
	Time        *TimeShares `json:"time_shares"`
}

type wireEngine struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// wireJudgement holds what is made of the figures.
type wireJudgement struct {
	Counts     []Count  `json:"counts,omitempty"`
	Verdict    *Verdict `json:"verdict"`
	Overloaded bool     `json:"overloaded"`
	Aborted    string   `json:"aborted,omitempty"`
	Valid      bool     `json:"valid"`
	Warnings   []string `json:"warnings"`
}

// wireRejection is the line of a configuration that cannot run.
type wireRejection struct {
	Knobs    Knobs  `json:"knobs"`
	Rejected string `json:"rejected"`
}

// MarshalJSON writes the measurement under the keys of a journal line. A
// rejected configuration is only its knobs and the reason.
func (m Measurement) MarshalJSON() ([]byte, error) {
	if m.Rejected != "" {
		return json.Marshal(wireRejection{m.Trial.Knobs, m.Rejected})
	}
	w := wireMeasurement{
		wireTrial: trialToWire(&m.Trial), Duration: toSeconds(m.Duration),
		Throughput: m.Throughput, Goodput: units.Known(m.Goodput), Tally: m.Tally,
		Latencies: m.Latencies, SendLag: m.SendLag, Classes: m.Classes,
		wireServer: serverToWire(&m.Server),
		wireJudgement: wireJudgement{Counts: m.Counts, Verdict: m.Verdict, Overloaded: m.Overloaded,
			Aborted: m.Aborted, Valid: m.Valid, Warnings: m.Warnings},
	}
	if w.Failures == nil {
		w.Failures = map[string]int{}
	}
	if w.Warnings == nil {
		w.Warnings = []string{}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. The workload that it finds names
// the one of the trial; the rows of a trace are not in it.
func (m *Measurement) UnmarshalJSON(b []byte) error {
	var r wireRejection
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("read measurement: %w", err)
	}
	if r.Rejected != "" {
		*m = Measurement{Trial: Trial{Knobs: r.Knobs}, Rejected: r.Rejected}
		return nil
	}
	none := unresolved()
	w := wireMeasurement{Latencies: Latencies{none, none, none, none}, SendLag: none}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("read measurement: %w", err)
	}
	*m = Measurement{
		Trial: w.trial(), Duration: fromSeconds(w.Duration),
		Throughput: w.Throughput, Tally: w.Tally, Latencies: w.Latencies, SendLag: w.SendLag,
		Counts: w.Counts, Classes: w.Classes, Server: w.server(),
		Verdict: w.Verdict, Overloaded: w.Overloaded, Aborted: w.Aborted,
		Valid: w.Valid, Warnings: w.Warnings,
	}
	m.Goodput = orUnknown(w.Goodput)
	return nil
}

func trialToWire(t *Trial) wireTrial {
	w := wireTrial{
		Number: t.Number, Knobs: t.Knobs, Workload: t.Workload, Planned: t.Requests,
		Warmup: toSeconds(t.Warmup), Window: toSeconds(t.Window), Cooldown: toSeconds(t.Cooldown),
		Seed: t.Seed, Why: t.Why,
	}
	if t.Rate > 0 {
		w.Rate = &t.Rate
	}
	if t.Closed() {
		w.Concurrency = &t.Concurrency
	}
	if !t.Objective.Empty() {
		w.SLO = &t.Objective
	}
	return w
}

func (w *wireTrial) trial() Trial {
	t := Trial{
		Number: w.Number, Knobs: w.Knobs, Workload: w.Workload, Requests: w.Planned,
		Warmup: fromSeconds(w.Warmup), Window: fromSeconds(w.Window), Cooldown: fromSeconds(w.Cooldown),
		Seed: w.Seed, Why: w.Why,
	}
	if w.Rate != nil {
		t.Rate = *w.Rate
	}
	if w.Concurrency != nil {
		t.Concurrency = *w.Concurrency
	}
	if w.SLO != nil {
		t.Objective = *w.SLO
	}
	return t
}

func serverToWire(s *Server) wireServer {
	w := wireServer{
		Engine: wireEngine{s.Kind, s.Version}, HitRate: units.Known(s.HitRate), PeakKV: units.Known(s.PeakKV), Time: s.Time,
	}
	if s.KVBlocks > 0 {
		w.KVBlocks = &s.KVBlocks
	}
	if s.BlockTokens > 0 {
		w.BlockTokens = &s.BlockTokens
	}
	if s.Preemptions >= 0 {
		w.Preemptions = &s.Preemptions
	}
	return w
}

func (w *wireServer) server() Server {
	s := Server{
		Kind: w.Engine.Kind, Version: w.Engine.Version, KVBlocks: -1, BlockTokens: -1, Preemptions: -1,
		HitRate: orUnknown(w.HitRate), PeakKV: orUnknown(w.PeakKV), Time: w.Time,
	}
	if w.KVBlocks != nil {
		s.KVBlocks = *w.KVBlocks
	}
	if w.BlockTokens != nil {
		s.BlockTokens = *w.BlockTokens
	}
	if w.Preemptions != nil {
		s.Preemptions = *w.Preemptions
	}
	return s
}

func orUnknown(x *float64) float64 {
	if x == nil {
		return -1
	}
	return *x
}

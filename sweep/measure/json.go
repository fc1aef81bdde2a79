package measure

import (
	"errors"
	"fmt"
	"math"

	"planner/internal/note"
	"planner/internal/wire"
	"planner/sweep/workload"
)

// plain is a measurement without methods.
type plain Measurement

// written is a measurement with null for a load that it has not, and the sentences
// of its notes.
type written struct {
	Number      int                `json:"trial"`
	Knobs       Knobs              `json:"knobs"`
	Workload    *workload.Workload `json:"workload"`
	Rate        *float64           `json:"rate_per_s"`
	Concurrency *int               `json:"concurrency"`
	plain
	Warnings []string `json:"warnings"`
}

// MarshalJSON writes the measurement as a line of the journal. A rejected
// configuration is only its knobs and the reason.
func (m Measurement) MarshalJSON() ([]byte, error) {
	t := &m.Trial
	if m.Rejected != "" {
		return wire.Marshal(struct {
			Knobs    Knobs  `json:"knobs"`
			Rejected string `json:"rejected"`
		}{t.Knobs, m.Rejected})
	}
	if m.Failures == nil {
		m.Failures = map[string]int{}
	}
	w := written{Number: t.Number, Knobs: t.Knobs, Workload: t.Workload, plain: plain(m), Warnings: m.Warnings.Texts()}
	if t.Rate > 0 {
		w.Rate = &t.Rate
	}
	if t.Closed() {
		w.Concurrency = &t.Concurrency
	}
	return wire.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. The workload that it finds names
// the one of the trial; the rows of a trace are not in it.
func (m *Measurement) UnmarshalJSON(b []byte) error {
	none := UnresolvedSummary()
	p := plain{Throughput: Throughput{Goodput: math.NaN()}, Latencies: Latencies{none, none, none, none}, SendLag: none}
	old := note.Warnings{}
	if err := errors.Join(wire.Unmarshal(b, &p), wire.Unmarshal(b, &old)); err != nil {
		return fmt.Errorf("read measurement: %w", err)
	}
	p.Warnings = old.Read()
	if p.Rejected != "" {
		p = plain{Trial: Trial{Knobs: p.Trial.Knobs}, Rejected: p.Rejected}
	}
	if math.IsNaN(p.Trial.Rate) {
		p.Trial.Rate = 0
	}
	*m = Measurement(p)
	return nil
}

// Package trust checks the data behind a plan against a benchmark's checklist: what a reader must know before
// believing the figures.
package trust

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
)

// ItemState is the state of an item.
type ItemState string

// The states of an item. What the data does not say is unknown, never a pass.
const (
	Pass    ItemState = "pass"
	Fail    ItemState = "fail"
	Unknown ItemState = "unknown"
)

// Item is one item of the checklist.
type Item struct {
	Name  string    `json:"check"` // the item of the checklist
	State ItemState `json:"state"` // pass, fail or unknown
	Why   string    `json:"why"`   // the evidence, or what is missing
}

// Subject is what the trials measured, as far as known.
type Subject struct {
	// GPU names the hardware, Weights the model's weight format; "" means unknown.
	GPU, Weights string
	// Rate is the maximum rate that the trials should support, in requests per second.
	Rate float64
	// Objective applies to trials that have none of their own, such as those of other tools.
	Objective measure.SLO
}

// dataset holds the trials behind a plan.
type dataset struct {
	Subject

	// ran are the trials that ran, used those of them that can be trusted.
	ran, used []*measure.Measurement
	simulated bool
}

// Check checks the trials of one set of knobs; nil if none put load on a server: what one request at a time
// shows, such as that an idle engine misses the limits, needs no check.
func Check(trials []measure.Measurement, of Subject) []Item {
	d := dataset{Subject: of}
	for i := range trials {
		if m := &trials[i]; m.Ran() {
			d.ran = append(d.ran, m)
			if m.Valid {
				d.used = append(d.used, m)
			}
		}
	}
	if !slices.ContainsFunc(d.ran, func(m *measure.Measurement) bool { return m.Trial.Concurrency != 1 }) {
		return nil
	}
	d.simulated = d.ran[0].Server.Engine.Kind == "simulated"
	var items []Item
	for _, c := range []struct {
		name  string
		check func() (ItemState, string)
	}{
		{"warm-up", d.warmUp}, {"open loop", d.openLoop}, {"samples", d.samples}, {"tails", d.tails}, {"lengths", d.lengths}, {"sweep", d.sweep},
		{"duration", d.duration}, {"hardware", d.hardware}, {"precision", d.precision}, {"versions", d.versions}, {"repeats", d.repeats}, {"client limits", d.client},
	} {
		state, why := c.check()
		items = append(items, Item{c.name, state, why})
	}
	return items
}

// Failed returns the names of the items that fail.
func Failed(items []Item) []string {
	failed := list.Filter(items, func(i Item) bool { return i.State == Fail })
	return list.Map(failed, func(i Item) string { return i.Name })
}

func share(trials []*measure.Measurement, holds func(*measure.Measurement) bool) float64 {
	return float64(list.Count(trials, holds)) / float64(max(len(trials), 1))
}

// noted returns the first note of some kinds over the trials, "" if none has one, and the share of trials that
// have one.
func noted(trials []*measure.Measurement, kinds ...note.Kind) (first string, part float64) {
	part = share(trials, func(m *measure.Measurement) bool {
		n, ok := list.Find(m.Warnings, func(n note.Note) bool { return slices.Contains(kinds, n.Kind) })
		if ok && first == "" {
			first = n.String()
		}
		return ok
	})
	return first, part
}

// some is the share of trials above which a fault is one of the data as a whole; fewer trials are left out or
// outvoted.
const some = 0.25

// near returns the trusted trials within a factor of Rate, or all trusted ones if none is, and says which.
func (d *dataset) near(factor float64) (trials []*measure.Measurement, where string) {
	trials = list.Filter(d.used, func(m *measure.Measurement) bool {
		return d.Rate > 0 && m.Trial.Rate >= d.Rate/factor && m.Trial.Rate <= d.Rate*factor
	})
	if len(trials) == 0 {
		return d.used, "not near the maximum"
	}
	return trials, "near the maximum"
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

func (d *dataset) hardware() (ItemState, string) {
	switch {
	case d.GPU == "":
		return Unknown, "no GPU is named"
	case d.simulated:
		return Unknown, "computed from the data sheet of " + d.GPU + "; no server was measured"
	}
	return Pass, "measured on " + d.GPU
}

func (d *dataset) precision() (ItemState, string) {
	if d.Weights == "" {
		return Unknown, "the format of the weights is not known"
	}
	return Pass, "weights in " + d.Weights
}

func (d *dataset) versions() (ItemState, string) {
	var seen []string
	for _, m := range d.ran {
		e := m.Server.Engine
		text := strings.TrimSpace(e.Kind + " " + cmp.Or(e.Version, "?"))
		if e.Kind == "" || e.Version == "" {
			return Unknown, "the release of the engine is not known"
		}
		if !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	if len(seen) > 1 {
		return Fail, "the trials are of several releases: " + strings.Join(seen, ", ")
	}
	return Pass, "all trials on " + seen[0]
}

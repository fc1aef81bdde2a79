package replay

import (
	"errors"
	"slices"
	"time"

	"planner/internal/config"
	"planner/plan/fleet"
	"planner/sweep/workload"
)

const day = 24 * time.Hour

// traffic is the traffic drawn with a seed, and about how many requests it has.
type traffic struct {
	draw     func(seed uint64) []fleet.Stage
	requests float64
	// heldOut is the held-out traffic of a search: the last of several days, or else other draws; nil without one.
	heldOut func(seed uint64) []fleet.Stage
}

// traced returns the traffic of a trace.
func traced(w workload.Workload, spike *fleet.Spike, extent Extent) (traffic, error) {
	t := traffic{requests: float64(len(w.Replay)) * extent.Scale * float64(extent.Repeat)}
	t.draw = func(seed uint64) []fleet.Stage { return fleet.Replayed(&w, spike, extent.Scale, extent.Repeat, seed) }
	if !extent.Search {
		return t, nil
	}
	if w.TraceSpan() < 2*day {
		return t, errors.New("--search: the trace is shorter than two days, and a policy is to hold on a day that it was not chosen on: want a longer trace, or fleet.profile with its rates")
	}
	held := w
	cut := w.Replay[len(w.Replay)-1].Arrival - day
	k := slices.IndexFunc(w.Replay, func(r workload.TraceRow) bool { return r.Arrival > cut })
	w.Replay, held.Replay = w.Replay[:k], w.Replay[k:]
	t.heldOut = func(seed uint64) []fleet.Stage { return fleet.Replayed(&held, spike, extent.Scale, 1, seed) }
	return t, nil
}

// staged returns traffic with given rates.
func staged(w *workload.Workload, spec *config.FleetSettings, extent Extent) traffic {
	profile := spec.Traffic().Times(extent.Scale, 0, 1<<62)
	t := traffic{requests: profile.Mean() * profile.Length().Seconds() * float64(extent.Repeat)}
	t.draw = func(seed uint64) []fleet.Stage { return fleet.Staged(w, profile, extent.Repeat, seed) }
	if !extent.Search {
		return t
	}
	t.heldOut = t.draw
	if length := profile.Length(); length >= 2*day && len(spec.Stages) == 0 {
		var last workload.Profile
		profile, last = profile.Split((length - 1) / day * day)
		t.heldOut = func(seed uint64) []fleet.Stage { return fleet.Staged(w, last, 1, seed) }
	}
	return t
}

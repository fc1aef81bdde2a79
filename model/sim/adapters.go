package sim

import (
	"slices"

	"planner/model"
)

// adapterSlots are the slots for low-rank adapters: requests of at most so many different
// ones run at once (max_loras), and those used last stay loaded. Its zero value is an engine
// without adapters.
type adapterSlots struct {
	slots   int
	running map[int]int // how many requests run with each adapter
	loaded  []int       // the one used longest ago first
}

func newAdapterSlots(l model.LoRA) adapterSlots {
	if !l.On() {
		return adapterSlots{}
	}
	return adapterSlots{slots: l.Slots, running: map[int]int{}}
}

// takes reports whether a request with an adapter may run.
func (a *adapterSlots) takes(adapter int) bool {
	return a.slots == 0 || a.running[adapter] > 0 || len(a.running) < a.slots
}

// enter notes that a request runs, and reports whether its adapter is loaded for it.
func (a *adapterSlots) enter(adapter int) (loads bool) {
	if a.slots == 0 {
		return false
	}
	a.running[adapter]++
	at := slices.Index(a.loaded, adapter)
	if at < 0 {
		if len(a.loaded) == a.slots {
			idle := slices.IndexFunc(a.loaded, func(other int) bool { return a.running[other] == 0 })
			a.loaded = slices.Delete(a.loaded, idle, idle+1)
		}
	} else {
		a.loaded = slices.Delete(a.loaded, at, at+1)
	}
	a.loaded = append(a.loaded, adapter)
	return at < 0
}

// leave notes that a request has ended or lost its place.
func (a *adapterSlots) leave(adapter int) {
	if a.slots == 0 {
		return
	}
	if a.running[adapter]--; a.running[adapter] == 0 {
		delete(a.running, adapter)
	}
}

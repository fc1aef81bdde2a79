package sim

import (
	"slices"

	"planner/model"
)

// adapterSlots are the slots for LoRA adapters. The running requests use at most slots different
// adapters (max_loras); idle ones stay loaded until their slot is needed, the least recently used
// leaving first. The zero value is an engine without adapters.
type adapterSlots struct {
	slots   int
	running map[int]int // running requests per adapter
	loaded  []int       // least recently used first
}

func newAdapterSlots(l model.LoRA) adapterSlots {
	if !l.On() {
		return adapterSlots{}
	}
	return adapterSlots{slots: l.Slots, running: map[int]int{}}
}

// takes reports whether a request that uses the adapter may run now.
func (a *adapterSlots) takes(adapter int) bool {
	return a.slots == 0 || a.running[adapter] > 0 || len(a.running) < a.slots
}

// enter notes that a request starts to run and reports whether its adapter must be loaded first.
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

// leave notes that a request has ended or was preempted.
func (a *adapterSlots) leave(adapter int) {
	if a.slots == 0 {
		return
	}
	if a.running[adapter]--; a.running[adapter] == 0 {
		delete(a.running, adapter)
	}
}

package decide

import (
	"testing"

	"planner/internal/note"
	"planner/model"
)

// Ten requests in flight ask for nine of 64 adapters in the mean, 64 x (1 - (63/64)^10) = 9.3.
func TestFewSlots(t *testing.T) {
	ten := func(float64) float64 { return 10 }
	for slots, want := range map[int]bool{4: true, 9: true, 10: false, 64: false} {
		got := fewSlots(model.LoRA{Adapters: 64, Slots: slots, Rank: 16}, ten, 3)
		if got.Has(note.FewSlots) != want {
			t.Errorf("%d slots: %q", slots, got)
		}
	}
	if got := fewSlots(model.LoRA{}, ten, 3); got != nil {
		t.Errorf("no adapters: %q", got)
	}
	if got := fewSlots(model.LoRA{Adapters: 2, Slots: 2, Rank: 16}, func(float64) float64 { return 1000 }, 3); got != nil {
		t.Errorf("a slot for each: %q", got)
	}
}

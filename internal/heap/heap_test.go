package heap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type number int

func (n number) Before(m number) bool { return n < m }

// TestHeap takes values out at the top and in the middle: the first is on top all along.
func TestHeap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h Heap[number]
	var all []number
	for range 2000 {
		switch {
		case len(h) == 0 || rng.IntN(5) < 3:
			n := number(rng.IntN(100))
			h.Push(n)
			all = append(all, n)
		default:
			out := h.Remove(rng.IntN(min(len(h), 3)))
			i := slices.Index(all, out)
			if i < 0 {
				t.Fatalf("%d was not in the heap", out)
			}
			all = slices.Delete(all, i, i+1)
		}
		if len(h) != len(all) || len(h) > 0 && h[0] != slices.Min(all) {
			t.Fatalf("%v on top of %v", h[:1], all)
		}
	}
}

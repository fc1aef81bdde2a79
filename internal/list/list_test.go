package list

import (
	"fmt"
	"testing"
)

func TestLists(t *testing.T) {
	words := []string{"b", "aa", "c", "b", "dd"}
	long := func(s string) bool { return len(s) > 1 }
	first, ok := Find(words, long)
	none, found := Find(words, func(s string) bool { return len(s) > 2 })
	got := fmt.Sprintln(first, ok, none, found, Filter(words, long), Distinct(words), Groups(words, func(s string) int { return len(s) }), Count(words, long), Least([]int{0, 3, -1, 2}))
	if want := "aa true  false [aa dd] [b aa c dd] [[b c b] [aa dd]] 2 2\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

package spelling

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "rate", 4}, {"rate", "", 4}, {"rate", "rate", 0},
		{"kitten", "sitting", 3}, {"saturday", "sunday", 3}, {"llama", "lama", 1}, {"ab", "ba", 2},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if Distance(c.a, c.b) != Distance(c.b, c.a) {
			t.Errorf("%q and %q: the way back is of another length", c.a, c.b)
		}
	}
}

package ingest

import (
	"strings"
	"testing"
)

// FuzzLengths reads lengths that a distribution can use, or gives an error.
func FuzzLengths(f *testing.F) {
	f.Add("tokens\n1\n2.6\n# x\n\n\"7\",8\n")
	f.Add("1e3\r\n5\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		lengths, err := ReadLengths(strings.NewReader(text))
		if err == nil && len(lengths) == 0 {
			t.Error("no lengths, no error")
		}
		for i, n := range lengths {
			if n < 1 || i > 0 && n < lengths[i-1] {
				t.Errorf("lengths %v", lengths)
			}
		}
	})
}

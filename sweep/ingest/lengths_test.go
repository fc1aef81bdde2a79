package ingest

import (
	"fmt"
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

// TestReadLengths: a file has lengths alone, so that no column of others is taken for them.
func TestReadLengths(t *testing.T) {
	for text, want := range map[string]string{
		"tokens,\n447.0,\n# a, b\n\"3\"\n":  "[3 447]",
		"# made by a tool\n\ntokens\n447\n": "[447]",
		"tokens\nthree\n":                   "[] line 2: \"three\" is no length above 0",
		"id,prompt\n1,447\n2,3\n":           "[] line 1: several columns, want one, of lengths",
		"447,200\n":                         "[] line 1: several columns, want one, of lengths",
		",prompt\n0,447\n":                  "[] line 1: several columns, want one, of lengths",
	} {
		got, err := ReadLengths(strings.NewReader(text))
		said := fmt.Sprint(got)
		if err != nil {
			said += " " + err.Error()
		}
		if said != want {
			t.Errorf("%q: %s, want %s", text, said, want)
		}
	}
}

// A spreadsheet begins its CSV with a byte-order mark.
func TestReadProfile(t *testing.T) {
	p, err := ReadProfile("day.csv", strings.NewReader("\ufefftime_s,rate_per_s\n0,1\n60,2\n"))
	if err != nil || len(p) != 2 || p.Peak() != 2 {
		t.Errorf("%v, %v", p, err)
	}
}

package endpoint

import "testing"

// A status without words of the server is told without a colon.
func TestStatusWithoutWords(t *testing.T) {
	for words, want := range map[string]string{"": "status 418", "no tea": "status 418: no tea"} {
		if got := (&StatusError{Status: 418, Words: words}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package input

import (
	"fmt"
	"strings"
)

// CheckJSON refuses a JSON text of more than most values, each of which takes far more memory than the two
// bytes that it may have. Signs are the characters that precede a value.
func CheckJSON[T ~string | ~[]byte](text T, signs string, most int) error {
	values := 0
	for i := range len(text) {
		if strings.IndexByte(signs, text[i]) >= 0 {
			values++
		}
	}
	if values > most {
		return fmt.Errorf("more than %d values, which is the most that is read of such a file", most)
	}
	return nil
}

// AnyValue are the characters before every value of a JSON text but the first, Composite those before a
// composite.
const (
	AnyValue  = ",[{"
	Composite = "[{"
)

// mostDepth is the maximum nesting of tables, lists and keys in settings.
const mostDepth = 64

// CheckTOML refuses a TOML text whose nesting would take memory quadratic in its size, and returns the line at
// which it is too deep.
func CheckTOML(text string) (line int, err error) {
	depth, dots := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			i = stringEnd(text, i)
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '[', '{':
			depth, dots = depth+1, 0
		case ']', '}':
			depth, dots = max(depth-1, 0), 0
		case '.':
			dots++
		case '=', ',', '\n':
			dots = 0
		}
		if depth > mostDepth || dots > mostDepth {
			return 1 + strings.Count(text[:i], "\n"), fmt.Errorf("more than %d tables, lists or keys within each other", mostDepth)
		}
	}
	return 0, nil
}

// stringEnd returns the index of the last byte of the string that begins at i, of any of the four kinds.
func stringEnd(text string, i int) int {
	quote, long := text[i], i+2 < len(text) && text[i+1] == text[i] && text[i+2] == text[i]
	if long {
		i += 2
	}
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == '\n' && !long:
			return i
		case text[i] == quote && !long:
			return i
		case text[i] == quote && i+2 < len(text) && text[i+1] == quote && text[i+2] == quote:
			return i + 2
		}
	}
	return i
}

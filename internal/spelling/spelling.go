// Package spelling finds the name that a misspelt word may mean.
package spelling

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// Nearest returns the first of the names, at least one, that is the fewest [Steps] from a word.
func Nearest(word string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return cmp.Compare(Steps(word, a), Steps(word, b)) })
}

// Slip reports whether a word is similar enough to a name to be a slip for it.
func Slip(word, name string) bool { return Steps(word, name) <= len(word)/2 }

// Steps is the case-insensitive distance of a word to a name or, at one step more, to the name's beginning, or
// with the parts of both sorted: prise means price_per_gpu_hour rather than rate, and gpus_per_node means
// node_gpus.
func Steps(word, name string) int {
	word, name = strings.ToLower(word), strings.ToLower(name)
	d := Distance(word, name)
	if len(word) >= 3 && len(word) < len(name) {
		d = min(d, Distance(word, name[:len(word)])+1)
	}
	return min(d, Distance(inOrder(word), inOrder(name))+1)
}

// inOrder returns a name with its parts sorted.
func inOrder(name string) string {
	parts := strings.Split(name, "_")
	slices.Sort(parts)
	return strings.Join(parts, "_")
}

// Distance is the Levenshtein distance of two words in bytes: the least number of insertions, deletions and
// substitutions that turn one into the other.
func Distance(a, b string) int { return smetrics.WagnerFischer(a, b, 1, 1, 1) }

// Package list makes lists of lists.
package list

// Map is a list of what f makes of each item.
func Map[T, U any](items []T, f func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = f(item)
	}
	return out
}

// Count is the number of items for which something is true.
func Count[T any](items []T, is func(T) bool) (n int) {
	for _, item := range items {
		if is(item) {
			n++
		}
	}
	return n
}

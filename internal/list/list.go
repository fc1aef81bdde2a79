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

// Find is the first item for which something is true; false if there is none.
func Find[T any](items []T, is func(T) bool) (found T, ok bool) {
	for _, item := range items {
		if is(item) {
			return item, true
		}
	}
	return found, false
}

// Filter are the items for which something is true.
func Filter[T any](items []T, is func(T) bool) (out []T) {
	for _, item := range items {
		if is(item) {
			out = append(out, item)
		}
	}
	return out
}

// Groups divides items by a key, in the order of the first of each.
func Groups[T any, K comparable](items []T, key func(T) K) (groups [][]T) {
	at := map[K]int{}
	for _, item := range items {
		k := key(item)
		i, known := at[k]
		if !known {
			i, groups = len(groups), append(groups, nil)
			at[k] = i
		}
		groups[i] = append(groups[i], item)
	}
	return groups
}

// Distinct are the items without those that came before, in their order.
func Distinct[T comparable](items []T) []T {
	var out []T
	seen := map[T]bool{}
	for _, item := range items {
		if !seen[item] {
			out, seen[item] = append(out, item), true
		}
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

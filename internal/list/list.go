// Package list has functions on slices.
package list

import "cmp"

// Map returns f of each item.
func Map[T, U any](items []T, f func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = f(item)
	}
	return out
}

// Times returns f of each number from 0 to n-1, called in this order.
func Times[T any](n int, f func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// Find returns the first item for which is holds; false if there is none.
func Find[T any](items []T, is func(T) bool) (found T, ok bool) {
	for _, item := range items {
		if is(item) {
			return item, true
		}
	}
	return found, false
}

// Filter returns the items for which is holds.
func Filter[T any](items []T, is func(T) bool) (out []T) {
	for _, item := range items {
		if is(item) {
			out = append(out, item)
		}
	}
	return out
}

// Pointers returns pointers to the items for which is holds.
func Pointers[T any](items []T, is func(*T) bool) []*T {
	out := make([]*T, 0, len(items))
	for i := range items {
		if is(&items[i]) {
			out = append(out, &items[i])
		}
	}
	return out
}

// FilterMap returns what f makes of the items for which it reports true.
func FilterMap[T, U any](items []T, f func(T) (U, bool)) (out []U) {
	for _, item := range items {
		if x, ok := f(item); ok {
			out = append(out, x)
		}
	}
	return out
}

// Groups groups items by a key, in the order of each group's first item.
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

// Distinct returns the items without repetitions, in order.
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

// Least returns the least of the values above zero; zero if there is none.
func Least[T cmp.Ordered](values []T) (least T) {
	var zero T
	for _, v := range values {
		if v > zero && (v < least || least == zero) {
			least = v
		}
	}
	return least
}

// Largest returns the largest figure of the items; zero if none is above it.
func Largest[T any, N cmp.Ordered](items []T, of func(T) N) (largest N) {
	for _, item := range items {
		largest = max(largest, of(item))
	}
	return largest
}

// Sum returns the sum of a figure of the items, from the first on.
func Sum[T any, N ~int | ~int64 | ~float64](items []T, of func(T) N) (sum N) {
	for _, item := range items {
		sum += of(item)
	}
	return sum
}

// Count returns the number of items for which is holds.
func Count[T any](items []T, is func(T) bool) (n int) {
	for _, item := range items {
		if is(item) {
			n++
		}
	}
	return n
}

package stat

import (
	"cmp"
	"slices"
)

// Censored is the distribution of values some of which are only known to exceed a bound: the
// product-limit estimate (Kaplan and Meier 1958). Without such right-censored values its quantiles
// are those of Quantile.
type Censored[T cmp.Ordered] struct {
	values []T
	// below[i] is the share of the distribution up to values[i]; nil when no
	// value is censored.
	below []float64
}

// NewCensored takes the known values and the lower bounds of the unknown ones,
// each in any order.
func NewCensored[T cmp.Ordered](known, longer []T) *Censored[T] {
	c := &Censored[T]{values: slices.Clone(known)}
	slices.Sort(c.values)
	if len(longer) == 0 {
		return c
	}
	bounds := slices.Sorted(slices.Values(longer))
	c.below = make([]float64, len(c.values))
	survive, gone := 1.0, 0
	for i, v := range c.values {
		// A bound equal to a value was still at risk when the value came.
		for gone < len(bounds) && bounds[gone] < v {
			gone++
		}
		survive *= 1 - 1/float64(len(c.values)-i+len(bounds)-gone)
		c.below[i] = 1 - survive
	}
	return c
}

// Known returns the known values in ascending order.
func (c *Censored[T]) Known() []T { return c.values }

// Above returns the share of the distribution above a value.
func (c *Censored[T]) Above(v T) float64 {
	i, _ := slices.BinarySearchFunc(c.values, v, func(known, v T) int {
		if known <= v {
			return -1
		}
		return 1
	})
	if c.below == nil || i == 0 {
		return 1 - float64(i)/float64(len(c.values))
	}
	return 1 - c.below[i-1]
}

// Quantile returns the q-quantile; false when it lies beyond what was seen.
func (c *Censored[T]) Quantile(q float64) (T, bool) {
	var none T
	if len(c.values) == 0 {
		return none, false
	}
	if c.below == nil {
		return Quantile(c.values, q), true
	}
	i, _ := slices.BinarySearch(c.below, q-rounding)
	if i == len(c.values) {
		return none, false
	}
	return c.values[i], true
}

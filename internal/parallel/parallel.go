// Package parallel runs functions concurrently.
package parallel

import (
	"cmp"
	"runtime"
	"sync"
)

// Do calls f for 0 to n-1, as many at a time as there are processors, and returns the error with the lowest
// index.
func Do(n int, f func(int) error) error { return DoAtMost(runtime.GOMAXPROCS(0), n, f) }

// DoAtMost is Do with a given number at a time.
func DoAtMost(together, n int, f func(int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, together)
	var wait sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	wait.Wait()
	return cmp.Or(errs...)
}

// Map returns f of 0 to n-1, computed as many at a time as there are processors.
func Map[T any](n int, f func(int) T) []T {
	out := make([]T, n)
	_ = Do(n, func(i int) error {
		out[i] = f(i)
		return nil
	})
	return out
}

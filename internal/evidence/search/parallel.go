package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel computes f for 0..n-1 on all CPUs; the results are in order.
func parallel[T any](n int, f func(int) T) []T {
	out := make([]T, n)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				out[i] = f(i)
			}
		})
	}
	wait.Wait()
	return out
}

package main

import (
	"math"
	"runtime/debug"
)

// beFrugal has memory collected more often where files of users take much of it. What is
// read of any is bounded, so that this is enough.
func beFrugal() { debug.SetMemoryLimit(400 << 20) }

// beLavish has it collected rarely: trials are short-lived heaps of records, and a few
// hundred megabytes are worth it, to a load generator too.
func beLavish() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(math.MaxInt64)
}

package main

import "planner/sweep/measure"

// otherTraffic reports whether two runs say of themselves that their first trials
// were of different workloads.
func otherTraffic(a, b []measure.Measurement) bool {
	return len(a) > 0 && len(b) > 0 && !a[0].Trial.Workload.Alike(b[0].Trial.Workload)
}

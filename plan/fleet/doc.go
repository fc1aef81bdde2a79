// Package fleet replays traffic against replicas of the simulated engine in one virtual time: a router assigns
// each request to a replica, replicas start, drain and fail, and an autoscaler asks for more or fewer by the
// metrics that a real one would see.
//
// # Reading guide
//
// [Scenario] is what is replayed and [Run] replays it (run.go, request.go, event.go): events in order of time,
// between which each engine runs on its own. replica.go has the life cycle of a replica and its placement on a
// node, router.go the routers, monitor.go the metrics that can be scraped. An [Autoscaler] makes a controller,
// which decides by current and past metrics: hpa.go is the HorizontalPodAutoscaler, controllers.go has the
// others. summary.go summarises an [Episode]: how many requests met their limits, when and why others did not,
// and what the replicas cost. search.go looks for the cheapest policy that meets the objective.
//
// The package is pure: no clock, no I/O, and every draw comes from the seed.
package fleet

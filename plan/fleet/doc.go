// Package fleet replays traffic against replicas of the simulated engine in one virtual
// time: a router sends each request to one of them, replicas start, drain and fail, and
// an autoscaler asks for more or fewer by what a real one would see.
//
// # Reading guide
//
// [Scenario] is what is replayed and [Run] replays it (run.go, request.go, event.go): events in order of time,
// between which every engine runs by itself. replica.go has the life of a replica and
// its place on a node, router.go who gets a request, monitor.go what can be scraped. An
// [Autoscaler] makes a controller, a function of what it sees and saw: hpa.go is the
// HorizontalPodAutoscaler, controllers.go the others. summary.go tells of an [Episode]
// how many requests were served within their limits, when and why not, and what the
// replicas cost; search.go looks for the cheapest policy that serves enough.
//
// The package is pure: no clock, no I/O, and every draw comes from the seed.
package fleet

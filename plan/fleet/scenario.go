package fleet

import (
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// Scenario is what is replayed: traffic, a policy, and failures. Each stage begins when the previous one is
// over.
type Scenario struct {
	// Engine returns an idle engine with a cold prefix cache.
	Engine func() *sim.Engine
	Stages []Stage
	// Timeout is how long a client waits for a request, 0 for ever; Retries is how often it sends a failed one
	// again.
	Timeout time.Duration
	Retries int
	// Limits are the limits on the requests of each class.
	Limits []ClassLimits
	Policy Policy
	Nodes  Nodes
	// The replay is given up once more than MostMissed requests have missed a limit, or replicas have held GPUs
	// for more than MostHours; 0 means no bound.
	MostMissed int
	MostHours  float64
	// Watch, if set, is called now and then with the virtual time that has passed since the last call.
	// Concurrent replays call it concurrently.
	Watch func(time.Duration)
	// Seed drives the router's choices and the failures.
	Seed uint64
}

// Stage is a part of the traffic. Due times count from its start, and parents are requests of the same stage.
type Stage struct {
	Requests []workload.Request
	Length   time.Duration
	// Drain makes the next stage wait for the last request of this one.
	Drain bool
}

// length is the duration of the stage: no request is due after it.
func (s *Stage) length() time.Duration {
	if n := len(s.Requests); n > 0 {
		return max(s.Length, s.Requests[n-1].Due+1)
	}
	return s.Length
}

// Policy is how a fleet is run.
type Policy struct {
	// Replicas is the size of a static fleet; 0 leaves it to the autoscaler.
	Replicas int `json:"replicas"`
	// Min and Max bound what an autoscaler may ask for; Initial replicas are ready at the start, 0 for Min.
	Min     int    `json:"min_replicas"`
	Max     int    `json:"max_replicas"`
	Initial int    `json:"initial_replicas"`
	Router  Router `json:"router"`
	// LoadCap is the multiple of the mean load that a replica may have before requests with its prefix go
	// elsewhere.
	LoadCap float64 `json:"load_cap"`
	// Sticky keeps the turns of a conversation on one replica while it is ready.
	Sticky  bool    `json:"sticky"`
	StartUp StartUp `json:"start_up_s"`
	// Drain is the time that a dismissed replica has to finish its requests.
	Drain      time.Duration `json:"drain_s"`
	Autoscaler Autoscaler    `json:"autoscaler"`
}

// StartUp is how long a replica takes to become ready, by phase.
type StartUp struct {
	Init    time.Duration `json:"init"`
	Weights time.Duration `json:"weights"`
	Compile time.Duration `json:"compile"`
	Graphs  time.Duration `json:"graphs"`
	Probe   time.Duration `json:"probe"`
	// Cached says that compiled code stays on its node: later replicas there skip Compile.
	Cached bool `json:"cached"`
}

// Total is the duration of a start; warm means on a node where a replica has started before.
func (s StartUp) Total(warm bool) time.Duration {
	total := s.Init + s.Weights + s.Compile + s.Graphs + s.Probe
	if warm && s.Cached {
		total -= s.Compile
	}
	return total
}

// Nodes are the machines that replicas are placed on.
type Nodes struct {
	// Slots is how many replicas fit on one node.
	Slots int
	// Max is the number of nodes; 0 means as many as needed.
	Max int
	// MTBF is a node's mean time to failure, 0 for never, and Repair the time until it is back.
	MTBF, Repair time.Duration
	// SpotMTBF is the mean time until a node gets notice that it will be reclaimed, 0 for never, and Notice the
	// time from then until it is. Another takes its place at once.
	SpotMTBF, Notice time.Duration
}

// Router names a rule by which requests are assigned.
type Router string

// The routers.
const (
	Random         Router = "random"
	RoundRobin     Router = "round-robin"
	LeastInFlight  Router = "least-in-flight"
	LeastTokens    Router = "least-tokens"
	LeastPrefill   Router = "least-prefill"
	PrefixAffinity Router = "prefix-affinity"
)

// Routers lists the routers.
func Routers() []Router {
	return []Router{Random, RoundRobin, LeastInFlight, LeastTokens, LeastPrefill, PrefixAffinity}
}

// Predicts reports whether the router knows the load of its replicas, so that it can predict a request's
// latencies.
func (r Router) Predicts() bool { return r != Random && r != RoundRobin }

package fleet

import (
	"time"

	"planner/model/sim"
	"planner/sweep/workload"
)

// Scenario is what is replayed: traffic, a policy and what may go wrong. Each stage
// begins when the one before it is over.
type Scenario struct {
	// Engine builds an idle engine with a cold prefix cache.
	Engine func() *sim.Engine
	Stages []Stage
	// Timeout is how long a client waits for a request, 0 for ever, and Retries how
	// often it sends one again that failed.
	Timeout time.Duration
	Retries int
	// Limits are what the requests of each class are judged by.
	Limits []ClassLimits
	Policy Policy
	Nodes  Nodes
	// MostMissed requests may miss a limit, and MostHours of replicas be held, before the
	// replay is given up; 0 for no bound.
	MostMissed int
	MostHours  float64
	// Watch, if set, is told now and then of the virtual time that has passed since it
	// was last told. Replays side by side tell it at once.
	Watch func(time.Duration)
	// Seed drives the router's choices and what fails.
	Seed uint64
}

// Stage is a part of the traffic. The requests are due from its beginning on, and their
// parents are requests of the same stage.
type Stage struct {
	Requests []workload.Request
	Length   time.Duration
	// Drain makes the next stage wait for the last request of this one.
	Drain bool
}

// length is how long the stage lasts: no request is due behind it.
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
	// Min and Max bound what an autoscaler may ask for; Initial replicas are ready at
	// the beginning, 0 for Min.
	Min     int    `json:"min_replicas"`
	Max     int    `json:"max_replicas"`
	Initial int    `json:"initial_replicas"`
	Router  Router `json:"router"`
	// LoadCap is how many times the mean load a replica may have before requests with
	// its prefix go elsewhere.
	LoadCap float64 `json:"load_cap"`
	// Sticky keeps the turns of a conversation on the replica of the first.
	Sticky  bool    `json:"sticky"`
	StartUp StartUp `json:"start_up_s"`
	// Drain is how long a replica that is given up may finish what it has.
	Drain      time.Duration `json:"drain_s"`
	Autoscaler Autoscaler    `json:"autoscaler"`
}

// StartUp is how long a replica takes until it serves, by stage.
type StartUp struct {
	Init    time.Duration `json:"init"`
	Weights time.Duration `json:"weights"`
	Compile time.Duration `json:"compile"`
	Graphs  time.Duration `json:"graphs"`
	Probe   time.Duration `json:"probe"`
	// Cached says that what was compiled stays on its node: later replicas there skip
	// Compile.
	Cached bool `json:"cached"`
}

// Total is the whole of a start; warm is one on a node that has compiled before.
func (s StartUp) Total(warm bool) time.Duration {
	total := s.Init + s.Weights + s.Compile + s.Graphs + s.Probe
	if warm && s.Cached {
		total -= s.Compile
	}
	return total
}

// Nodes are the machines that replicas are placed on.
type Nodes struct {
	// Slots is how many replicas fit on one.
	Slots int
	// Max is how many there are; 0 means as many as are asked for.
	Max int
	// MTBF is the mean time between two failures of a node, 0 for never, and Repair
	// how long it is away then.
	MTBF, Repair time.Duration
	// SpotMTBF is the mean time until a node is taken away, 0 for never, and Notice
	// how long before that it is told. Another takes its place at once.
	SpotMTBF, Notice time.Duration
}

// Router names who gets a request.
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

// Predicts reports whether a router knows what its replicas hold, so that it can predict
// the latencies of a request.
func (r Router) Predicts() bool { return r != Random && r != RoundRobin }

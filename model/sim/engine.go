package sim

import (
	"math"
	"time"

	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Engine is one simulated instance. Its prefix cache lives on from one run to the
// next, so a run after another one finds it warm.
//
// A request reaches the engine's loop [Timer].Frontend after it is due. All of
// that cost lies before the loop here. In a real server a part of it lies behind:
// tokens leave through the front end too. Only the sum can be seen from outside,
// since the way out delays the first token and the last one alike; what a split
// would change is how early a request queues, by a few milliseconds.
type Engine struct {
	timer    Timer
	roofline *model.Roofline // the timer, if it is one; nil otherwise
	config   Config
	cores    []*core
}

// NewEngine returns an idle engine with a cold cache.
func NewEngine(timer Timer, config Config) *Engine {
	e := &Engine{timer: timer, config: config}
	e.roofline, _ = timer.(*model.Roofline)
	n := max(config.Replicas, 1)
	for i := 0; i < n; {
		c := &core{engine: e}
		for {
			c.replicas = append(c.replicas, newScheduler(config))
			if i++; !config.LockStep || i == n {
				break
			}
		}
		e.cores = append(e.cores, c)
	}
	return e
}

// Build returns an idle engine with a cold cache for a deployment.
func Build(dep model.Deployment, c model.Constants, args model.EngineArgs, prefixCaching bool) (*Engine, error) {
	roofline, err := model.NewRoofline(dep, c, args)
	if err != nil {
		return nil, err
	}
	memory, err := model.MemoryPlan(dep, args)
	if err != nil {
		return nil, err
	}
	config, err := Configure(roofline, memory, prefixCaching)
	if err != nil {
		return nil, err
	}
	return NewEngine(roofline, config), nil
}

// Load is what a run sends to an engine.
type Load struct {
	// Requests is the schedule. In open loop each is sent when it is due.
	Requests []workload.Request
	// Slots, if above 0, makes it a closed loop: so many requests are under way
	// at once, and the next one is due the moment a slot becomes free. Parents
	// and intended times of the schedule play no part then.
	Slots int
	// Timeout is how long a client waits for a whole request before it gives up
	// and the engine frees what the request held; 0 means forever.
	Timeout time.Duration
	// Gaps asks for the times between tokens of the requests due in
	// [GapsFrom, GapsTo).
	Gaps             bool
	GapsFrom, GapsTo time.Duration
	// Watch, if set, is called about every Every of virtual time and ends the
	// run by returning a reason. What is under way then stays in flight in the records.
	Watch func(Progress) (stop note.Reason)
	Every time.Duration
}

// Progress is how far a run has come.
type Progress struct {
	// Now is the virtual time since the start of the run.
	Now time.Duration
	// Arrived counts the requests that have reached the engine, Ended those
	// that ended in any way.
	Arrived, Ended int
	Occupancy
	// Records hold what is known so far, in the order of the schedule. They must
	// not be changed.
	Records []measure.Record
}

// Occupancy is what an engine holds, over all replicas.
type Occupancy struct {
	// Running and Waiting count requests with blocks and without.
	Running, Waiting int
	// KV is the share of the blocks in use.
	KV float64
	// Preemptions count how often a request lost its blocks since the start, Queries the
	// tokens that the prefix cache was asked for when requests were admitted, of which it
	// held Hits. Resumed requests are left out, as vLLM does; its releases before 0.32 also
	// count attempts at admission that failed.
	Preemptions, Queries, Hits int
}

// Run sends a load to the engine and returns when all of it has ended, or earlier
// if the load says so. Two runs of one load on equal engines give equal results: one
// record for every request of the load, in its order. The engine's version is left for
// the caller, who knows it by name.
func (e *Engine) Run(load Load) measure.Observation { return e.run(load).observation() }

func (e *Engine) run(load Load) *loadRun {
	for _, c := range e.cores {
		c.reset()
	}
	r := newRun(e, load)
	for {
		c, now := r.next()
		if c == nil && math.IsInf(now, 1) || r.over(now) {
			return r
		}
		r.happen(c, now)
	}
}

// first returns the core that has something to do and whose turn is next, nil if
// all are idle.
func (e *Engine) first() *core {
	var first *core
	for _, c := range e.cores {
		if !c.idle() && (first == nil || c.now < first.now) {
			first = c
		}
	}
	return first
}

// lightest returns the replica with the least to do, and its core: as vLLM's load balancer counts
// it, four for a waiting request and one for a running one.
func (e *Engine) lightest() (at *core, replica *scheduler) {
	least := math.MaxInt
	for _, c := range e.cores {
		for _, s := range c.replicas {
			if work := 4*s.waiting.len() + len(s.running); work < least {
				at, replica, least = c, s, work
			}
		}
	}
	return at, replica
}

// nextOther is when the next of the other cores has its turn, infinite if they
// are idle.
func (e *Engine) nextOther(than *core) float64 {
	at := math.Inf(1)
	for _, c := range e.cores {
		if c != than && !c.idle() {
			at = min(at, c.now)
		}
	}
	return at
}

// duration converts seconds.
func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * 1e9))
}

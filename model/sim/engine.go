package sim

import (
	"math"
	"time"

	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// Engine is one simulated instance. Its prefix cache persists from run to run, so later runs find
// it warm.
//
// A request reaches the engine's loop [Timer].Frontend after it is due: the whole front-end cost is
// charged before the loop. In a real server a part of it comes after, as tokens leave through the
// front end too. Only the sum can be seen from outside, since the way out delays the first token
// and the last one alike; a split would only change, by a few milliseconds, when a request joins
// the queue.
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

// Load is the work that a run sends to an engine.
type Load struct {
	// Requests is the schedule. In an open loop each is sent when it is due.
	Requests []workload.Request
	// Slots, if above 0, makes it a closed loop: that many requests are in flight at once, and the
	// next one is due the moment a slot becomes free. The schedule's parents and due times are then
	// ignored.
	Slots int
	// Timeout is how long a client waits for a complete answer before it gives up and the engine
	// frees the request's blocks; 0 means forever.
	Timeout time.Duration
	// Gaps asks for the inter-token times of the requests due in [GapsFrom, GapsTo).
	Gaps             bool
	GapsFrom, GapsTo time.Duration
	// Watch, if set, is called about once per Every of virtual time and ends the run by returning a
	// reason. Unfinished requests then stay marked as in flight in the records.
	Watch func(Progress) (stop note.Reason)
	Every time.Duration
}

// Progress is the state of a run under way.
type Progress struct {
	// Now is the virtual time since the start of the run.
	Now time.Duration
	// Arrived counts the requests that have reached the engine, Ended those that have ended, with
	// any outcome.
	Arrived, Ended int
	Occupancy
	// Records holds what is known so far, in the order of the schedule. It must not be modified.
	Records []measure.Record
}

// Occupancy is the load on an engine and its counters, over all replicas.
type Occupancy struct {
	// Running and Waiting count the requests that hold blocks and those that do not.
	Running, Waiting int
	// KV is the share of the blocks in use, averaged over the replicas.
	KV float64
	// Preemptions counts the requests' losses of their blocks since the start, Queries the tokens
	// looked up in the prefix cache at admission, Hits those it held. Resumed requests are left
	// out, as in vLLM; its releases before 0.32 also count failed attempts at admission.
	Preemptions, Queries, Hits int
}

// Run sends a load to the engine and returns when all of it has ended, or when Watch stops it. Runs
// of one load on equal engines give equal results: one record per request, in the load's order. The
// engine's version is for the caller to fill in.
func (e *Engine) Run(load Load) measure.Observation { return e.run(load).observation() }

func (e *Engine) run(load Load) *loadRun {
	for _, c := range e.cores {
		c.reset()
	}
	r := newRun(e, load)
	for {
		c, now := r.next()
		if c == nil && math.IsInf(now, 1) || r.over(now) {
			for _, c := range e.cores {
				c.settle(r)
			}
			return r
		}
		r.happen(c, now)
	}
}

// first returns the core with work to do whose turn comes first, nil if all are idle.
func (e *Engine) first() *core {
	var first *core
	for _, c := range e.cores {
		if !c.idle() && (first == nil || c.now < first.now) {
			first = c
		}
	}
	return first
}

// lightest returns the least loaded replica and its core by the score of vLLM's load balancer: four
// per waiting request and one per running one.
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

// overlaps reports whether halves of a batch may overlap, whose times are no series.
func (e *Engine) overlaps() bool { return e.roofline != nil && e.roofline.Overlaps() }

// nextOther returns when the first of the other cores has its turn, infinite if they are idle.
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

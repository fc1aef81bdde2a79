package sim

import "planner/model"

// core is one engine loop with its GPUs: a scheduler, or several that step
// together.
//
// The loop schedules, and then waits for the oldest step under way if there are
// as many as it keeps: one without asynchronous scheduling, two with it. So with
// asynchronous scheduling a step is scheduled when the one before it starts, and a
// request that arrives during step N is computed in step N+2 at the earliest.
type core struct {
	engine   *Engine
	replicas []*Scheduler
	// now is when the loop schedules next, free when the GPUs have nothing more
	// to do (seconds).
	now, free float64
	flight    [2]flight
	flights   int
	// heard is when output arrived last.
	heard   float64
	growths []float64 // see core.growth
}

// flight is one step under way; replicas[i] computes batches[i].
type flight struct {
	batches []*Batch
	end     float64
}

func (c *core) idle() bool {
	if c.flights > 0 {
		return false
	}
	for _, s := range c.replicas {
		if s.Running() > 0 || s.Waiting() > 0 {
			return false
		}
	}
	return true
}

// reset throws out what an aborted run left and sets the clock to zero.
func (c *core) reset() {
	for _, s := range c.replicas {
		for s.Running() > 0 {
			s.Abort(s.running[s.Running()-1])
		}
		for s.Waiting() > 0 {
			s.Abort(s.waiting.front())
		}
	}
	for ; c.flights > 0; c.pop() {
		for i, b := range c.flight[0].batches {
			c.replicas[i].Output(b)
		}
	}
	c.now, c.free, c.heard = 0, 0, 0
}

func (c *core) pop() {
	c.flight[0], c.flight[1] = c.flight[1], c.flight[0]
	c.flights--
}

// advance takes the loop's next step, or several.
func (c *core) advance(r *run) {
	if c.glide(r) {
		return
	}
	f := &c.flight[c.flights]
	f.batches = f.batches[:0]
	empty, preempted := true, false
	var slowest model.StepTime
	for _, s := range c.replicas {
		b := s.Schedule()
		f.batches = append(f.batches, b)
		r.scheduled(c, b)
		preempted = preempted || len(b.Preempted) > 0
		if !b.Empty() {
			empty = false
			if t := c.engine.timer.Step(b.Load); t.Total >= slowest.Total {
				slowest = t
			}
		}
	}
	switch {
	case !empty:
		c.free = max(c.now, c.free) + slowest.Total
		f.end = c.free
		c.flights++
		r.stats.step(c, slowest, f.batches)
	case c.flights == 0 && !preempted:
		panic("sim: requests wait and nothing can be scheduled")
	default:
		for i, b := range f.batches {
			c.replicas[i].discard(b)
		}
	}
	if c.flights > 0 && (c.flights == c.depth() || empty) {
		c.output(r)
	}
}

// depth is how many steps the loop keeps under way.
func (c *core) depth() int {
	if c.engine.config.Rules.Async {
		return 2
	}
	return 1
}

// output waits for the oldest step and tells the run what it brought.
func (c *core) output(r *run) {
	f := &c.flight[0]
	if f.end > r.stop.horizon {
		r.stop.done = true
		return
	}
	c.now = f.end
	for i, b := range f.batches {
		r.heard(c, c.replicas[i].Output(b))
	}
	c.pop()
	c.heard = c.now
}

package sim

import (
	"math"

	"planner/model"
)

// uneventful is how many steps the scheduler can take in which every running
// request decodes and nothing else happens: nobody ends, nobody can be admitted.
// Arrivals, and a pool that runs out of blocks, are the caller's to watch.
func (s *Scheduler) uneventful() int {
	c := &s.calm
	if c.off || len(s.running) == 0 {
		return 0
	}
	s.settle()
	if c.members < len(s.running) {
		return 0
	}
	if s.waiting.len() > 0 && !s.stuck && len(s.running) < s.limits.ActiveSeqs && len(s.running) < s.limits.BatchTokens {
		return 0
	}
	return c.stops[0].settled.stop - 1 - c.ticks
}

// glide takes steps in which nothing happens but decoding, until something does.
// The time of such a step grows by the same amount from one to the next, so each
// costs an addition or two; block edges are counted, not stopped for. It returns
// false if there is no such step.
func (c *core) glide(r *run) bool {
	if len(c.replicas) > 1 {
		return false
	}
	s := c.replicas[0]
	async := s.rules.Async
	if async && (c.flights != 1 || len(c.flight[0].batches[0].items) > 0) {
		return false
	}
	most := s.uneventful()
	if most <= 0 || s.edges() > s.Free() {
		return false
	}
	var load model.Batch
	s.loadNext(&load)
	step := c.engine.timer.Step(load)
	growth := c.growth(&load)
	limit := min(r.upcoming(), r.stop.watchAt)
	// What another loop ends may start something here.
	others := c.engine.nextOther(c)
	taken := 0
	for taken < most && c.now < limit && (taken == 0 || c.now < others) {
		need := s.edges()
		if need > s.Free() {
			break
		}
		took := step.Total + growth*float64(taken)
		end := c.free + took // of this step
		heard := c.free      // the output of the one before
		if !async {
			end = c.now + took
			heard = end
		}
		if heard > r.stop.horizon {
			break
		}
		s.tick(need)
		r.stats.KV.add(s.Usage(), took)
		c.free, c.now = end, heard
		r.steadyGap(c.now-c.heard, s.calm.counted)
		c.heard = c.now
		taken++
	}
	if taken == 0 {
		return false
	}
	s.calm.heard = s.calm.ticks
	if async {
		c.flight[0].end = c.free
	}
	r.stats.steps(c, &load, step, growth, taken)
	return true
}

// loadNext adds to a load what the settled sequences will be in the next step.
func (s *Scheduler) loadNext(l *model.Batch) {
	s.calm.ticks++
	s.loadSettled(l)
	s.calm.ticks--
}

// growth is what each further step of the same decodes adds. Without windows it
// depends on their number alone and is remembered.
func (c *core) growth(load *model.Batch) float64 {
	if c.replicas[0].limits.Window.Tokens > 0 {
		_, g := c.engine.timer.Decode(*load)
		return g
	}
	for len(c.growths) <= load.Decodes {
		c.growths = append(c.growths, math.NaN())
	}
	g := &c.growths[load.Decodes]
	if math.IsNaN(*g) {
		_, *g = c.engine.timer.Decode(*load)
	}
	return *g
}

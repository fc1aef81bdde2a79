package sim

import (
	"math"
	"sort"

	"planner/model"
	"planner/sweep/measure"
)

// core is one engine loop with its GPUs: a scheduler, or several that step
// together.
//
// The loop schedules, and then waits for the oldest step under way if there are
// as many as it keeps: one without asynchronous scheduling, two with it. So with
// asynchronous scheduling a step is scheduled when the one before it starts, and a
// request that arrives during step N is computed in step N+2 at the earliest.
type core struct {
	engine   *Engine
	replicas []*scheduler
	// now is when the loop schedules next, free when the GPUs have nothing more
	// to do (seconds).
	now, free float64
	// flight holds the steps under way, of which there are flights; replicas[i] computes
	// batches[i].
	flight [2]struct {
		batches []*stepBatch
		end     float64
	}
	flights int
	// lastOutput is when output arrived last.
	lastOutput float64
	growths    []float64 // see core.growth
	streak     streak
}

func (c *core) idle() bool {
	if c.flights > 0 {
		return false
	}
	for _, s := range c.replicas {
		if len(s.running) > 0 || s.waiting.len() > 0 {
			return false
		}
	}
	return true
}

// reset throws out what an aborted run left and sets the clock to zero.
func (c *core) reset() {
	for _, s := range c.replicas {
		for len(s.running) > 0 {
			s.abort(s.running[len(s.running)-1])
		}
		for s.waiting.len() > 0 {
			s.abort(s.waiting.front())
		}
	}
	for ; c.flights > 0; c.pop() {
		for i, b := range c.flight[0].batches {
			c.replicas[i].output(b)
		}
	}
	c.now, c.free, c.lastOutput, c.streak.paused = 0, 0, 0, false
}

func (c *core) pop() {
	c.flight[0], c.flight[1] = c.flight[1], c.flight[0]
	c.flights--
}

// advance takes the loop's next step, or several.
func (c *core) advance(r *loadRun) {
	if c.fastForward(r) {
		return
	}
	f := &c.flight[c.flights]
	f.batches = f.batches[:0]
	empty, preempted := true, false
	tokens := 0
	for _, s := range c.replicas {
		b := s.schedule()
		f.batches = append(f.batches, b)
		r.scheduled(c, b)
		preempted = preempted || len(b.preempted) > 0
		if !b.empty() {
			empty = false
			tokens += b.load.Tokens()
		}
	}
	slowest := c.slowest(f.batches, tokens)
	switch {
	case !empty:
		c.free = max(c.now, c.free) + slowest.Total
		f.end = c.free
		c.flights++
		r.stats.addStep(c, slowest, f.batches)
	case c.flights == 0 && !preempted:
		panic("sim: requests wait and nothing can be scheduled")
	default:
		for i, b := range f.batches {
			c.replicas[i].spare.batches = append(c.replicas[i].spare.batches, b)
		}
	}
	if c.flights > 0 && (c.flights == c.depth() || empty) {
		c.output(r)
	}
}

// slowest is the step of the replica that takes longest, on which the others wait: they
// share the experts, where the tokens of all of them meet.
func (c *core) slowest(batches []*stepBatch, tokens int) model.StepTime {
	var slowest model.StepTime
	for _, b := range batches {
		if b.empty() {
			continue
		}
		if len(batches) > 1 {
			b.load.Everywhere = tokens
		}
		if t := c.engine.timer.Step(b.load); t.Total >= slowest.Total {
			slowest = t
		}
	}
	return slowest
}

// depth is how many steps the loop keeps under way.
func (c *core) depth() int {
	if c.engine.config.Rules.Async {
		return 2
	}
	return 1
}

// output waits for the oldest step and tells the run what it brought.
func (c *core) output(r *loadRun) {
	f := &c.flight[0]
	c.now = f.end
	for i, b := range f.batches {
		r.received(c, c.replicas[i].output(b))
	}
	c.pop()
	c.lastOutput = c.now
}

// decodeOnly is how many steps the scheduler can take in which every running
// request decodes and nothing else happens: nobody ends or passes the window, nobody can be admitted.
// Arrivals, and a pool that runs out of blocks, are the caller's to watch.
func (s *scheduler) decodeOnly() int {
	c := &s.steady
	if c.off || len(s.running) == 0 {
		return 0
	}
	s.joinSteady()
	if c.members < len(s.running) {
		return 0
	}
	if s.waiting.len() > 0 && !s.stuck && len(s.running) < s.config.Seqs && len(s.running) < s.config.BatchTokens {
		return 0
	}
	s.passWindow(c.steps + 1)
	next := c.ends[0].at
	if len(c.passes) > 0 {
		next = min(next, c.passes[0].at)
	}
	return int(next) - 1 - c.steps
}

// streak is a row of steps in which nothing happens but decoding. It is paused where
// the driver of an online engine wants to look, and goes on as if nobody had looked:
// where it stops for that changes no sum of its times.
type streak struct {
	load        model.Batch // of its first step
	step        model.StepTime
	growth      float64 // of the time, from a step to the next
	most, taken int
	paused      bool
	// begun is when the loop scheduled the first step, start when the GPUs began with it.
	begun, start float64
	async        bool
}

// took is how long a step of the streak takes: one that the GPUs and not the host bound
// takes longer the more tokens went before.
func (k *streak) took(step int) float64 {
	return max(k.step.Total, k.step.Total-k.step.Host+k.growth*float64(step))
}

// alike is how many steps take as long as the first, which the host bounds.
func (k *streak) alike() float64 {
	if k.growth <= 0 {
		return math.Inf(1)
	}
	return math.Ceil(k.step.Host / k.growth)
}

// spent is how long so many steps take: a sum of equal times, and then of an arithmetic series.
func (k *streak) spent(steps int) float64 {
	n := float64(steps)
	alike := min(n, k.alike())
	return n*k.step.Total + (n-alike)*(k.growth*(n+alike-1)/2-k.step.Host)
}

// now is when the loop schedules next after so many steps.
func (k *streak) now(steps int) float64 {
	switch {
	case steps == 0:
		return k.begun
	case k.async:
		steps--
	}
	return k.start + k.spent(steps)
}

// gaps adds the inter-token times of steps from one up to another: those that differ by less than
// a microsecond at once.
func (k *streak) gaps(to *measure.Gaps, from, end, each int) {
	if k.async {
		from, end = from-1, end-1
	}
	for n := 0; from < end; from += n {
		gap := k.took(from)
		n = end - from
		if next := (math.Round(gap*1e6) + 0.5) / 1e6; k.growth > 0 {
			n = int(min(float64(n), max(1, k.alike()-float64(from), (next-gap)/k.growth)))
		}
		to.AddRow(duration(k.start+k.spent(from+1)), duration(gap), n, each)
	}
}

// begin looks whether a streak can begin; there must be a step of it.
func (c *core) begin() bool {
	if len(c.replicas) > 1 {
		return false
	}
	s := c.replicas[0]
	if s.config.Rules.Async && (c.flights != 1 || len(c.flight[0].batches[0].items) > 0) {
		return false
	}
	most := s.decodeOnly()
	if most <= 0 || s.steadyDue() > s.pool.free {
		return false
	}
	c.streak = streak{most: most, begun: c.now, start: c.now, async: s.config.Rules.Async}
	if c.streak.async {
		c.streak.start = c.free
	}
	s.steady.steps++ // what the steady sequences will be in the next step
	s.addSteadyLoad(&c.streak.load)
	s.steady.steps--
	c.streak.step = c.engine.timer.Step(c.streak.load)
	c.streak.growth = c.growth(&c.streak.load)
	return true
}

// settle ends a streak that is paused.
func (c *core) settle(r *loadRun) {
	if k := &c.streak; k.paused {
		k.paused = false
		r.stats.addSteps(c, k)
	}
}

// fastForward takes steps in which nothing happens but decoding, until something does.
// The time of such a step grows by the same amount from one to the next, so that of all is
// a sum that is known; block edges are counted, not stopped for. It returns
// false if there is no such step.
func (c *core) fastForward(r *loadRun) bool {
	k := &c.streak
	if !k.paused && !c.begin() {
		return false
	}
	s := c.replicas[0]
	before := k.taken
	limit := min(r.upcoming(), r.watchAt)
	stop := min(limit, r.until)
	// What another loop ends may start something here.
	others := c.engine.nextOther(c)
	end := before + sort.Search(k.most-before, func(i int) bool {
		now := k.now(before + i)
		return now >= stop || before+i > 0 && now >= others
	})
	for ; k.taken < end && s.steadyDue() <= s.pool.free; k.taken++ {
		s.stepSteady(s.steadyDue())
	}
	if k.taken > before {
		first := before
		if before == 0 && s.steady.counted > 0 {
			first++
			r.gaps.Add(duration(k.now(1)), duration(k.now(1)-c.lastOutput), s.steady.counted)
		}
		c.now, c.free = k.now(k.taken), k.start+k.spent(k.taken)
		c.lastOutput = c.now
		r.stats.peakKV = max(r.stats.peakKV, s.usage())
		s.steady.outputs = s.steady.steps
		if k.async {
			c.flight[0].end = c.free
		}
		if s.steady.counted > 0 {
			k.gaps(r.gaps, first, k.taken, s.steady.counted)
		}
	}
	k.paused = k.taken > 0
	if k.taken < end || k.taken == before || k.taken == k.most || c.now >= limit || c.now >= others {
		c.settle(r)
	}
	return k.taken > before
}

// growth is what each further step of the same decodes adds. Without windows it
// depends on their number alone and is remembered.
func (c *core) growth(load *model.Batch) float64 {
	if c.replicas[0].config.Layout.Window > 0 {
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

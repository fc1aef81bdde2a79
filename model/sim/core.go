package sim

import (
	"math"
	"slices"
	"sort"

	"planner/model"
	"planner/sweep/measure"
)

// core is one engine loop with its GPUs: one scheduler, or several that step together.
//
// The loop schedules a step, then waits for the oldest step in flight if it already has as many as
// [core.depth] allows: one, or two with asynchronous scheduling. So with asynchronous scheduling a
// step is scheduled when its predecessor starts, and a request that arrives during step N is
// computed in step N+2 at the earliest.
type core struct {
	engine   *Engine
	replicas []*scheduler
	// now is when the loop next schedules, free when the GPUs run out of work (seconds).
	now, free float64
	// flight holds the steps in flight, flights of them, oldest first; replicas[i] computes
	// batches[i].
	flight [2]struct {
		batches []*stepBatch
		end     float64
	}
	flights int
	// lastOutput is when the last output arrived.
	lastOutput float64
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

// reset discards what an aborted run left behind and sets the clock to zero.
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

// advance performs the loop's next step, or several if it can fast-forward.
func (c *core) advance(r *loadRun) {
	if c.fastForward(r) {
		return
	}
	if c.engine.config.MicroBatch > 0 {
		for _, s := range c.replicas {
			if seconds, launched := s.launch(); launched {
				c.now += seconds
				return
			}
		}
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

// slowest returns the time of the slowest replica's step. The others wait for it, because the
// tokens of all replicas meet in the shared experts.
func (c *core) slowest(batches []*stepBatch, tokens int) model.StepTime {
	var slowest model.StepTime
	for i, b := range batches {
		if b.empty() {
			continue
		}
		if len(batches) > 1 {
			b.load.Everywhere = tokens
		}
		var t model.StepTime
		if c.engine.config.MicroBatch > 0 {
			c.replicas[i].split(b, func(part model.Batch) { t.Add(c.engine.timer.Step(part), 1) })
		} else {
			t = c.engine.timer.Step(b.load)
		}
		if t.Total >= slowest.Total {
			slowest = t
		}
	}
	return slowest
}

// depth is the number of steps that the loop keeps in flight.
func (c *core) depth() int {
	if c.engine.config.Rules.Async {
		return 2
	}
	return 1
}

// output waits for the oldest step in flight and reports its tokens to the run.
func (c *core) output(r *loadRun) {
	f := &c.flight[0]
	c.now = f.end
	for i, b := range f.batches {
		r.received(c, c.replicas[i].output(b))
	}
	c.pop()
	c.lastOutput = c.now
}

// decodeOnly returns the number of coming steps in which every running request decodes and nothing
// else happens: none ends or passes the window, and none can be admitted. Arrivals and a pool that
// runs out of blocks are the caller's to watch.
func (s *scheduler) decodeOnly() int {
	c := &s.steady
	if c.off || len(s.running) == 0 {
		return 0
	}
	s.joinSteady()
	if c.members < len(s.running) {
		return 0
	}
	if s.waiting.len() > 0 && (!s.stuck || s.awaitsText()) && len(s.running) < s.config.Seqs && len(s.running) < s.config.BatchTokens {
		return 0
	}
	s.passWindow(c.steps + 1)
	next := c.ends[0].at
	if len(c.passes) > 0 {
		next = min(next, c.passes[0].at)
	}
	return int(next) - 1 - c.steps
}

// awaitsText reports whether the next sequence to be admitted continues text that a steady one is generating: each
// block that this completes is one less to allocate.
func (s *scheduler) awaitsText() bool {
	for _, r := range s.waiting.items[s.waiting.head:] {
		if s.slots.takes(r.adapter) {
			return slices.ContainsFunc(r.path, func(n nodeSpan) bool { return s.pool.cache.nodes[n.node].writer != nil })
		}
	}
	return false
}

// streak is a run of decode-only steps. It is paused whenever something happens elsewhere, as at another
// core or when the driver of an online engine looks in, and resumes with the same running sums, so its
// times do not depend on that.
type streak struct {
	parts       []part         // of each replica
	step        model.StepTime // of the slowest one
	growth      float64        // of the time from one step to the next
	most, taken int
	paused      bool
	// begun is when the loop scheduled the first step, start when the GPUs began it.
	begun, start float64
	async        bool
}

// part is what one replica does in a streak: the load of its first step, the time that this keeps the GPUs
// busy, and by how much each further one is longer.
type part struct {
	load         model.Batch
	busy, growth float64
}

// took returns the time of a step of the streak: constant while the host is the bottleneck, growing
// with the contexts once the GPUs are.
func (k *streak) took(step int) float64 {
	return max(k.step.Total, k.step.Total-k.step.Host+k.growth*float64(step))
}

// alike returns how many steps, from the first on, are bound by the host and so equally long.
func (k *streak) alike() float64 {
	if k.growth <= 0 {
		return math.Inf(1)
	}
	return math.Ceil(k.step.Host / k.growth)
}

// spent returns the time of the first steps: equal ones, then an arithmetic series.
func (k *streak) spent(steps int) float64 {
	n := float64(steps)
	alike := min(n, k.alike())
	return n*k.step.Total + (n-alike)*(k.growth*(n+alike-1)/2-k.step.Host)
}

// now returns when the loop next schedules after the given steps.
func (k *streak) now(steps int) float64 {
	switch {
	case steps == 0:
		return k.begun
	case k.async:
		steps--
	}
	return k.start + k.spent(steps)
}

// gaps adds the inter-token times of the steps in [from, end) for a number of sequences (each).
// Those that round to the same microsecond become one row.
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

// begin starts a streak if at least one step of it is possible.
func (c *core) begin() bool {
	k := &c.streak
	most, async := math.MaxInt, c.engine.config.Rules.Async
	for i, s := range c.replicas {
		if async && (c.flights != 1 || len(c.flight[0].batches[i].items) > 0) {
			return false
		}
		if len(s.running) == 0 && s.waiting.len() == 0 {
			continue
		}
		n := s.decodeOnly()
		if n <= 0 || s.steadyDue() > s.pool.free {
			return false
		}
		most = min(most, n)
	}
	if most == math.MaxInt || len(c.replicas) > 1 && c.engine.overlaps() {
		return false
	}
	*k = streak{parts: k.parts[:0], most: most, begun: c.now, start: c.now, async: async}
	if async {
		k.start = c.free
	}
	tokens := 0
	for _, s := range c.replicas {
		var p part
		s.steady.steps++ // the state of the steady sequences in the next step
		s.addSteadyLoad(&p.load)
		p.load.Adapters = len(s.slots.running)
		s.steady.steps--
		tokens += p.load.Decodes
		k.parts = append(k.parts, p)
	}
	for i := range k.parts {
		p := &k.parts[i]
		if p.load.Decodes == 0 {
			continue
		}
		if len(k.parts) > 1 {
			p.load.Everywhere = tokens
		}
		t := c.engine.timer.Step(p.load)
		p.busy, p.growth = t.Total-t.Host, c.engine.timer.Growth(p.load)
		if t.Total >= k.step.Total {
			k.step, k.growth = t, p.growth
		}
	}
	for i := range k.parts {
		k.most = min(k.most, k.waitsFor(&k.parts[i]))
	}
	return true
}

// waitsFor returns the number of steps, from the first on, in which a part is not slower than the slowest
// one of the first step.
func (k *streak) waitsFor(p *part) int {
	steps := math.Inf(1)
	if p.growth > 0 {
		steps = (k.step.Total - p.busy) / p.growth
	}
	if over := k.step.Total - k.step.Host - p.busy; over >= 0 && p.growth > k.growth {
		steps = max(steps, over/(p.growth-k.growth))
	} else if over >= 0 {
		return math.MaxInt
	}
	return int(min(steps, 1e9)) + 1
}

// settle ends a paused streak.
func (c *core) settle(r *loadRun) {
	if k := &c.streak; k.paused {
		k.paused = false
		r.stats.addSteps(c, k)
	}
}

// fastForward takes decode-only steps until something else happens. Their times and their blocks form
// series with closed sums. It returns false if not even one such step is possible.
func (c *core) fastForward(r *loadRun) bool {
	k := &c.streak
	if !k.paused && !c.begin() {
		return false
	}
	before := k.taken
	stop := min(r.upcoming(), r.watchAt, r.until)
	// A request that ends on another core may be followed by one here.
	others := math.Inf(1)
	if r.chained || r.onEnd != nil {
		others = c.engine.nextOther(c)
	}
	end := before + sort.Search(k.most-before, func(i int) bool {
		now := k.now(before + i)
		return now >= stop || i > 0 && now >= others
	})
	steps, counted := end-before, 0
	for _, s := range c.replicas {
		steps, _ = s.steadySteps(steps)
		counted += s.steady.counted
	}
	k.taken += steps
	if k.taken > before {
		first := before
		if before == 0 && counted > 0 {
			first++
			r.gaps.Add(duration(k.now(1)), duration(k.now(1)-c.lastOutput), counted)
		}
		c.now, c.free = k.now(k.taken), k.start+k.spent(k.taken)
		c.lastOutput = c.now
		for _, s := range c.replicas {
			s.stepSteady(s.steadySteps(steps))
			s.steady.outputs = s.steady.steps
			r.stats.peakKV = max(r.stats.peakKV, s.usage())
		}
		if k.async {
			c.flight[0].end = c.free
		}
		if counted > 0 {
			k.gaps(r.gaps, first, k.taken, counted)
		}
	}
	k.paused = k.taken > 0
	if k.taken < end || k.taken == before || k.taken == k.most {
		c.settle(r)
	}
	return k.taken > before
}

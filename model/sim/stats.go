package sim

import "planner/model"

// Stats sum up what an engine did in a run, over all replicas.
type Stats struct {
	// Steps counts steps, Busy is the time they took, in seconds summed over
	// engine loops, of which there were Loops.
	Steps, Loops int
	Busy         float64
	// Time is the sum over the steps, by cause.
	Time model.StepTime
	// Work is what the steps moved and computed on each GPU, MBU and MFU the
	// shares of the data sheet's bandwidth and compute that this is while steps
	// ran; zero if the timer does not know.
	Work     model.Work
	MBU, MFU float64
	// PromptTokens and OutputTokens count tokens that were computed and sampled;
	// what a preemption made necessary again counts again.
	PromptTokens, OutputTokens int
	// Preemptions counts how often a request lost its blocks.
	Preemptions int
	// Cache counts prompt tokens.
	Cache Cache
	// KV is the share of the block pool in use, Running and Waiting count
	// requests; each of one replica.
	KV, Running, Waiting Level
}

// Cache counts what the prefix cache was asked for when requests were admitted:
// Queries tokens, of which it held Hits. Resumed requests are left out, as vLLM
// does; its releases before 0.32 also count attempts at admission that failed.
type Cache struct{ Queries, Hits int }

// HitRate is the share of tokens that the cache held, 0 if it was asked for none.
func (c Cache) HitRate() float64 {
	if c.Queries == 0 {
		return 0
	}
	return float64(c.Hits) / float64(c.Queries)
}

// Level is a quantity over the time in which steps ran.
type Level struct {
	Mean, Peak float64

	sum float64 // over time
}

func (l *Level) add(value, seconds float64) {
	l.sum += value * seconds
	l.Peak = max(l.Peak, value)
}

// meter tells how well a timer's hardware is used.
type meter interface {
	Work(model.Batch) model.Work
	Achieved(w model.Work, seconds float64) (mbu, mfu float64)
}

// work adds what n steps of a batch do, each on one of m replicas.
func (s *Stats) work(c *core, b *model.Batch, n, m float64) {
	if c.engine.meter == nil {
		return
	}
	w := c.engine.meter.Work(*b)
	s.Work.WeightBytes += w.WeightBytes * n / m
	s.Work.KVBytes += w.KVBytes * n / m
	s.Work.Flops += w.Flops * n / m
}

// step counts a step that was just scheduled.
func (s *Stats) step(c *core, t model.StepTime, batches []*Batch) {
	s.Steps++
	s.Time.Add(t)
	n := float64(len(c.replicas))
	for i, r := range c.replicas {
		s.work(c, &batches[i].Load, 1, n)
		s.KV.add(r.Usage(), t.Total/n)
		s.queue(r, t.Total/n)
		for _, chunk := range batches[i].Load.Chunks {
			s.PromptTokens += chunk.Tokens
		}
		s.OutputTokens += batches[i].Load.Sampled
	}
}

// steps counts n steps of one replica that begin with a load and in which the
// queues stay as they are.
func (s *Stats) steps(c *core, load *model.Batch, t model.StepTime, growth float64, n int) {
	// Bytes and operations are linear in the contexts, so the mean step will do.
	mean := *load
	mean.Context += load.Decodes * (n - 1) / 2
	mean.Windowed += load.WindowedGrowing * (n - 1) / 2
	s.work(c, &mean, float64(n), 1)
	further := growth * float64(n) * float64(n-1) / 2
	s.Steps += n
	s.Time.AddScaled(t, float64(n))
	s.Time.DecodeAttention += further
	s.Time.Total += further
	s.queue(c.replicas[0], t.Total*float64(n)+further)
	s.OutputTokens += n * load.Decodes
}

func (s *Stats) queue(r *Scheduler, seconds float64) {
	s.Running.add(float64(r.Running()), seconds)
	s.Waiting.add(float64(r.Waiting()), seconds)
}

// finish makes the means.
func (s *Stats) finish(e *Engine) {
	s.Loops = len(e.cores)
	s.Busy = s.Time.Total
	if s.Busy == 0 {
		return
	}
	for _, l := range []*Level{&s.KV, &s.Running, &s.Waiting} {
		l.Mean = l.sum / s.Busy
	}
	if e.meter != nil {
		s.MBU, s.MFU = e.meter.Achieved(s.Work, s.Busy)
	}
}

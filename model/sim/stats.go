package sim

import "planner/model"

// Stats sum up what an engine did in a run, over all replicas. Means are over the
// time in which steps ran.
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
	// Tokens counts the tokens computed: of prompts, and generated.
	PromptTokens, OutputTokens int
	// Preemptions counts how often a request lost its blocks.
	Preemptions int
	// Queries counts the prompt tokens looked up in the prefix cache at
	// admission, Hits those of them that were found. Resumed requests are left
	// out.
	Queries, Hits int
	// MeanKV and PeakKV are shares of the block pool in use.
	MeanKV, PeakKV float64
	// MeanRunning, MeanWaiting, PeakRunning and PeakWaiting count requests of
	// one replica.
	MeanRunning, MeanWaiting float64
	PeakRunning, PeakWaiting int

	// Sums over time, of which the means are made.
	kv, running, waiting float64
}

// HitRate is the share of looked-up prompt tokens that the prefix cache held, 0
// if there were none.
func (s *Stats) HitRate() float64 {
	if s.Queries == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Queries)
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
		s.pool(r.Usage(), t.Total/n)
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
	r := c.replicas[0]
	s.queue(r, t.Total*float64(n)+further)
	s.OutputTokens += n * len(r.running)
}

func (s *Stats) pool(usage, seconds float64) {
	s.kv += usage * seconds
	s.PeakKV = max(s.PeakKV, usage)
}

func (s *Stats) queue(r *Scheduler, seconds float64) {
	running, waiting := len(r.running), r.waiting.len()
	s.running += float64(running) * seconds
	s.waiting += float64(waiting) * seconds
	s.PeakRunning = max(s.PeakRunning, running)
	s.PeakWaiting = max(s.PeakWaiting, waiting)
}

// finish makes the means.
func (s *Stats) finish(e *Engine) {
	s.Loops = len(e.cores)
	s.Busy = s.Time.Total
	if e.meter != nil {
		s.MBU, s.MFU = e.meter.Achieved(s.Work, s.Busy)
	}
	if s.Busy > 0 {
		s.MeanKV, s.MeanRunning, s.MeanWaiting = s.kv/s.Busy, s.running/s.Busy, s.waiting/s.Busy
	}
}

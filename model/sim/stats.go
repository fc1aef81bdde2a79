package sim

import (
	"planner/model"
	"planner/sweep/measure"
)

// stats sums up what an engine did in a run, over all replicas.
type stats struct {
	steps int
	// time is the sum over all steps, by cause. work is what they moved and computed on each GPU;
	// it stays 0 if the timer is not a roofline.
	time model.StepTime
	work model.Work
	// counts holds only the cumulative counters of an occupancy; its other fields are computed on
	// demand.
	counts         Occupancy
	arrived, ended int // see Progress
	// peakKV is the largest share in use of any replica's block pool.
	peakKV float64
}

// addWork adds the work of n steps of a batch on one of m replicas.
func (s *stats) addWork(c *core, b *model.Batch, n, m float64) {
	if c.engine.roofline == nil {
		return
	}
	w := c.engine.roofline.Work(*b)
	s.work.WeightBytes += w.WeightBytes * n / m
	s.work.KVBytes += w.KVBytes * n / m
	s.work.Flops += w.Flops * n / m
}

// addStep counts a step that was just scheduled.
func (s *stats) addStep(c *core, t model.StepTime, batches []*stepBatch) {
	s.steps++
	s.time.Add(t, 1)
	n := float64(len(c.replicas))
	for i, r := range c.replicas {
		s.addWork(c, &batches[i].load, 1, n)
		s.peakKV = max(s.peakKV, r.usage())
	}
}

// addSteps counts the steps of a streak.
func (s *stats) addSteps(c *core, k *streak) {
	n := k.taken
	for i := range k.parts {
		// Bytes and FLOPs are linear in the contexts, so the first step and the last stand for all.
		load := k.parts[i].load
		s.addWork(c, &load, float64(n)/2, float64(len(k.parts)))
		load.Context += load.Decodes * (n - 1)
		load.Windowed += load.WindowedGrowing * (n - 1)
		s.addWork(c, &load, float64(n)/2, float64(len(k.parts)))
	}
	longer := k.spent(n) - k.step.Total*float64(n)
	further := k.growth * float64(n) * float64(n-1) / 2
	s.steps += n
	s.time.Add(k.step, float64(n))
	s.time.DecodeAttention += further
	s.time.Host += longer - further
	s.time.Total += longer
}

// observation returns the run in the form of a measured trial.
func (r *loadRun) observation() measure.Observation {
	s, c := &r.stats, &r.engine.config
	return measure.Observation{
		Records: r.records, End: duration(r.end), Gaps: r.gaps, Aborted: r.stopped,
		Server: measure.Server{
			Engine: measure.Software{Kind: "simulated"}, KVBlocks: new(c.Blocks), BlockTokens: new(c.Layout.BlockTokens),
			Preemptions: new(s.counts.Preemptions), HitRate: new(float64(s.counts.Hits) / float64(max(s.counts.Queries, 1))), PeakKV: new(s.peakKV), Time: r.timeShares(),
		},
	}
}

// timeShares splits the busy time by what bound it; nil if no step ran.
func (r *loadRun) timeShares() *measure.TimeShares {
	if r.stats.steps == 0 {
		return nil
	}
	busy := r.stats.time.Total
	t := sharesOf(r.stats.time)
	if r.engine.roofline != nil {
		t.MBU, t.MFU = r.engine.roofline.Achieved(r.stats.work, busy)
	}
	if end := duration(r.end).Seconds() * float64(len(r.engine.cores)); end > 0 {
		t.Idle = max(0, 1-busy/end)
	}
	if r.engine.roofline != nil {
		t.Watts = r.engine.roofline.Power(t.MBU, t.MFU, 1-t.Idle)
	}
	return &t
}

// sharesOf splits the time of steps by what bounds it. The LM head counts as weights: below some
// 280 rows it is bound by reading its matrix. Elementwise work counts as compute, waiting for the
// host as fixed.
func sharesOf(t model.StepTime) measure.TimeShares {
	var out measure.TimeShares
	largest := 0.0
	for _, part := range []struct {
		name    string
		share   *float64
		seconds float64
	}{
		{"weights", &out.Weights, t.Weights + t.ExpertWeights + t.Head},
		{"kv", &out.KV, t.DecodeAttention},
		{"compute", &out.Compute, t.Compute + t.ExpertCompute + t.PrefillAttention + t.Elementwise},
		{"communication", &out.Communication, t.Communication},
		{"fixed", &out.Fixed, t.Fixed + t.Host},
		{"draft", &out.Draft, t.Draft},
	} {
		if t.Total > 0 {
			*part.share = part.seconds / t.Total
		}
		if *part.share > largest {
			largest, out.Binding = *part.share, part.name
		}
	}
	return out
}

package sim

// State is what a live engine holds, over all replicas, at the time of the last
// call.
type State struct {
	// Running and Waiting count requests with blocks and without.
	Running, Waiting int
	// KV is the share of the blocks in use.
	KV float64
	// Preemptions and Cache count since the start.
	Preemptions int
	Cache       Cache
}

// State is what the engine holds and has done.
func (l *Live) State() State {
	s := State{Preemptions: l.run.stats.Preemptions, Cache: l.run.stats.Cache}
	replicas := 0
	for _, c := range l.run.engine.cores {
		for _, r := range c.replicas {
			s.Running += r.Running()
			s.Waiting += r.Waiting()
			s.KV += r.Usage()
			replicas++
		}
	}
	s.KV /= float64(replicas)
	return s
}

// Begun reports whether a request has been given blocks, now or earlier.
func (l *Live) Begun(request int) bool {
	k := &l.run.calls[request]
	return k.ended || k.seq != nil && k.seq.order > 0
}

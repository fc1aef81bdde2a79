package model

// Work is what one step moves and computes on each GPU, whatever time it takes.
type Work struct {
	WeightBytes float64
	KVBytes     float64
	Flops       float64 // useful ones: two per weight and token, four per query-key pair and element of the head dimension
}

// Work returns the bytes and operations of a step on one GPU.
func (r *Roofline) Work(b Batch) Work {
	l := r.sums(&b)
	tokens := l.all()
	if tokens == 0 {
		return Work{}
	}
	var w Work
	w.WeightBytes = r.dense.bytes
	w.Flops = r.dense.flops * tokens
	if r.experts.bytes > 0 {
		all := tokens * l.replicas
		touched := r.touched(all)
		w.WeightBytes += r.experts.bytes * touched
		w.Flops += r.experts.flops * all
	}
	if l.sampled > 0 {
		w.WeightBytes += r.head.bytes
		w.Flops += r.head.flops * l.sampled
	}
	w.KVBytes = r.kv.fullBytes*(l.context+l.past) + r.kv.windowBytes*(l.windowed+l.windowPast) + r.states.bytes*l.requests
	w.Flops += r.states.flops * tokens
	extra := l.tokens * r.prefill.extra // costs time, computes nothing
	w.Flops += r.prefill.fullFlops * (l.pairs - extra + l.context)
	if r.kv.size > 0 {
		w.Flops += r.prefill.windowFlops * (l.windowPairs - extra + l.windowed)
	}
	if stages := float64(r.dep.PP); stages > 1 {
		w.WeightBytes, w.KVBytes, w.Flops = w.WeightBytes/stages, w.KVBytes/stages, w.Flops/stages
	}
	return w
}

// Achieved returns the shares of the data sheet's peaks that a step of the given seconds reaches: of memory
// bandwidth (MBU), and of dense compute in the fastest format that the model's matrices are multiplied in
// (MFU).
func (r *Roofline) Achieved(w Work, seconds float64) (mbu, mfu float64) {
	if seconds <= 0 {
		return 0, 0
	}
	return (w.WeightBytes + w.KVBytes) / seconds / r.dep.Hardware.Bandwidth, w.Flops / seconds / r.dep.peakFlops()
}

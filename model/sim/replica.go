package sim

import (
	"math"
	"time"

	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// FleetEngine drives one engine of a fleet in virtual time. Requests come one by one from a router
// that looks at all engines' occupancy; of each answer the first and the last token are reported.
// The records do not depend on how often it is advanced: they equal those of [Engine.Run] for the
// same requests. An engine that is driven this way must not be used otherwise.
type FleetEngine struct {
	run *loadRun
	// told holds the events in order of time; the first heard of them have been handed out.
	told  []Told
	heard int
}

// Told is an event of a request: its first token or its end.
type Told struct {
	// At is in seconds of the fleet's clock.
	At float64
	// Request is the number under which the request was submitted.
	Request int
	// End is the record of a request that has ended; nil for a first token.
	End *measure.Record
}

// Replica starts driving the engine at a time in seconds and keeps its prefix cache. Clients wait
// for timeout at most; 0 means forever.
func (e *Engine) Replica(at float64, timeout time.Duration) *FleetEngine {
	for _, c := range e.cores {
		c.reset()
		c.now = at
	}
	r := &FleetEngine{run: newRun(e, Load{Timeout: timeout})}
	r.run.onFirst = func(id int, at float64) { r.tell(Told{At: at, Request: r.run.records[id].ID}) }
	r.run.onEnd = r.end
	return r
}

// end reports a request that has ended and frees its number.
func (r *FleetEngine) end(id int, at float64) {
	record := r.run.records[id]
	r.tell(Told{At: at, Request: record.ID, End: &record})
	r.run.retire(id)
}

// tell inserts an event in order of time: cores that do not step together, and clients that left
// while a step ran, report out of order.
func (r *FleetEngine) tell(t Told) {
	r.told = append(r.told, t)
	for i := len(r.told) - 1; i > r.heard && r.told[i].At < r.told[i-1].At; i-- {
		r.told[i], r.told[i-1] = r.told[i-1], r.told[i]
	}
}

// Submit sends a request at a time in seconds. due is when its client issued it, and id the
// caller's number for it in [Told].
func (r *FleetEngine) Submit(at, due float64, id int, q *workload.Request) {
	own := *q
	own.ID = id
	r.run.submit(own, at, due)
}

// Advance simulates up to a time in seconds.
func (r *FleetEngine) Advance(to float64) { r.run.advance(to) }

// Step takes the next event and, while nothing ends, the decode steps that follow it by a time in
// seconds.
func (r *FleetEngine) Step(to float64) {
	r.run.until = to
	r.run.happen(r.run.next())
}

// Next returns when the engine's next event is; infinite if there is none.
func (r *FleetEngine) Next() float64 {
	_, now := r.run.next()
	return now
}

// Untold returns the time of the first event not yet handed out; infinite if there is none.
func (r *FleetEngine) Untold() float64 {
	if r.heard < len(r.told) {
		return r.told[r.heard].At
	}
	return math.Inf(1)
}

// Hear appends the events up to a time to a slice. A step still running then reports nothing yet.
func (r *FleetEngine) Hear(to float64, told []Told) []Told {
	for r.heard < len(r.told) && r.told[r.heard].At <= to {
		told = append(told, r.told[r.heard])
		r.told[r.heard].End = nil
		r.heard++
	}
	if r.heard == len(r.told) {
		r.told, r.heard = r.told[:0], 0
	}
	return told
}

// Occupancy returns the load on the engine and its counters.
func (r *FleetEngine) Occupancy() Occupancy { return r.run.occupancy() }

// Predict estimates the time to first token and the time per output token after it, in seconds,
// that a request with this prompt length would see if it came now; output is the mean length of
// answers in tokens. It considers the present requests of the least loaded replica: waiting prompts
// are computed first and, if blocks are short, some running requests must end first. While the
// request is answered, as many others arrive as it finds there (Little's law) and delay it by their
// prompts.
func (r *FleetEngine) Predict(prompt int, output float64) (ttft, tpot float64) {
	e := r.run.engine
	_, s := e.lightest()
	running, queued := len(s.running), 0
	context := prompt
	var ahead int // prompt tokens
	context += s.steady.offsets + len(s.steady.ends)*s.steady.steps
	for _, q := range s.running[s.steady.members:] {
		context += q.total()
		ahead += max(q.prompt-q.computed, 0)
	}
	for _, q := range s.waiting.items[s.waiting.head:] {
		context += q.total()
		ahead += q.total()
		queued++
	}
	together := running + queued + 1
	if blocks := s.pool.size - 1; blocksFor(context, s.blockTokens) > blocks {
		share := float64(blocks) / float64(blocksFor(context, s.blockTokens))
		together, context = max(int(float64(together)*share), 1), int(float64(context)*share)
	}
	together = min(together, s.config.Seqs)
	mean, spec := context/together, s.config.Speculation
	batch := model.Batch{Decodes: together, Drafted: together * spec.Tokens, Sampled: together * (1 + spec.Tokens), Context: context,
		Longest: mean, Windowed: together * model.Windowed(mean, s.config.Layout.Window, s.config.Chunked), Adapters: int(math.Ceil(s.config.LoRA.Distinct(float64(together))))}
	step := e.timer.Step(batch).Total
	chunk := min(mean, s.config.BatchTokens)
	batch.Chunks = []model.Chunk{{Tokens: chunk}}
	perToken := max(e.timer.Step(batch).Total-step, 0) / float64(chunk)
	tpot = step/spec.PerStep() + float64(together-1)*perToken*float64(prompt)/max(output, 1)
	ttft = e.timer.Frontend(prompt) + step + perToken*float64(ahead+prompt)
	if short := running + queued + 1 - together; short > 0 {
		ttft += float64(short) / float64(together) * output * tpot
	}
	return ttft, tpot
}

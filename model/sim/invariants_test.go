package sim

import (
	"math"
	"testing"
	"time"

	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// steady is a timer of equal steps and a constant cost in front.
type steady struct{ step, frontend float64 }

func (s steady) Step(model.Batch) model.StepTime {
	return model.StepTime{Fixed: s.step, Total: s.step}
}

func (s steady) Growth(model.Batch) float64 { return 0 }

func (s steady) Frontend(int) float64 { return s.frontend }

// plain is an engine with a roomy pool.
func plain(async bool, seqs int) Config {
	return Config{
		Rules: Rules{Async: async, FullSequenceGate: true, UnkeyedFirst: true},
		Seqs:  seqs, BatchTokens: 8192, ModelLen: 8192, Blocks: 20000, Layout: model.KVLayout{BlockTokens: 16},
	}
}

// TestConservation: over random scenarios every request has one outcome, times are
// in order, tokens are complete, and all blocks return to the pool.
func TestConservation(t *testing.T) {
	for seed := range uint64(60) {
		s := randomScenario(t, seed)
		if seed%4 == 3 {
			s.config.Speculation = model.Speculation{Method: model.DraftEagle, Tokens: 3, Accepted: []float64{0.7, 0.5, 0.2}}
		}
		if seed%5 == 2 {
			s.config.LoRA = model.LoRA{Adapters: 9, Slots: 3, Rank: 8}
		}
		if l := &s.config.Layout; s.config.PrefixCaching && seed%2 == 1 && l.WindowGroups == 0 {
			s.config.AlignedStates, l.FullGroups, l.StateGroups = true, 1, 3
		}
		if seed%4 != 3 && seed%5 == 1 {
			s.config.MicroBatch, s.config.SaveToken, s.config.Rules.Async = 64, 1e-5, false
		}
		e := NewEngine(s.timer, s.config)
		last := time.Duration(-1)
		s.load.Every = 100 * time.Millisecond
		s.load.Watch = func(p Progress) note.Reason {
			if p.Now <= last {
				t.Errorf("seed %d: the clock went from %v to %v", seed, last, p.Now)
			}
			last = p.Now
			if p.Arrived < p.Ended-rejectedOrEarly(p.Records) || p.Running+p.Waiting > p.Arrived {
				t.Errorf("seed %d: %d arrived, %d ended, %d running, %d waiting", seed, p.Arrived, p.Ended, p.Running, p.Waiting)
			}
			for _, c := range e.cores {
				for _, s := range c.replicas {
					checkBooks(t, s)
				}
			}
			return note.Reason{}
		}
		r := simulate(e, s.load)
		if len(r.Records) != len(s.load.Requests) {
			t.Fatalf("seed %d: %d records for %d requests", seed, len(r.Records), len(s.load.Requests))
		}
		for i := range r.Records {
			checkRecord(t, seed, &s.load, &r.Records[i], r.End)
		}
		for _, c := range e.cores {
			for _, s := range c.replicas {
				if s.pool.free != s.pool.size-1 || !c.idle() {
					t.Errorf("seed %d: %d of %d blocks free at the end", seed, s.pool.free, s.pool.size-1)
				}
			}
		}
	}
}

// rejectedOrEarly counts requests that ended without reaching the engine: their
// clients gave up first.
func rejectedOrEarly(records []measure.Record) int {
	n := 0
	for i := range records {
		if r := &records[i]; r.Outcome == measure.Timeout && r.First < 0 {
			n++
		}
	}
	return n
}

func checkRecord(t *testing.T, seed uint64, load *Load, r *measure.Record, end time.Duration) {
	t.Helper()
	q := &load.Requests[r.ID]
	ok := r.Prompt == q.Prompt && r.Cached <= r.Prompt && r.Due >= 0 && r.Last <= end && r.Output <= q.Output
	switch r.Outcome {
	case measure.OK:
		ok = ok && r.Output == q.Output && r.Sent == r.Due && r.First > r.Due && r.Last >= r.First && (q.Output == 1) == (r.Last == r.First)
		if load.Timeout > 0 {
			ok = ok && r.Last-r.Due <= load.Timeout
		}
	case measure.Timeout:
		ok = ok && load.Timeout > 0 && r.Last < 0 && r.First <= r.Due+load.Timeout
	case measure.Rejected:
		ok = ok && r.First < 0 && r.Last < 0
	default:
		ok = false
	}
	if load.Slots == 0 && q.Parent == 0 {
		ok = ok && r.Due == q.Due
	}
	if !ok {
		t.Errorf("seed %d: record %+v of request %+v", seed, *r, *q)
	}
}

// TestLittle: the mean number of requests in the engine, as it tells whoever watches, is the
// rate times the mean time there, taken from the records. Who watches looks when a step
// begins: who arrives while it runs is missed, and who ends with it is there until the next.
func TestLittle(t *testing.T) {
	timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 8192}, true)
	config.Rules.Async = false
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(512, 256), Output: normal(200, 100)}}}
	for _, rate := range []float64{2, 10, 25} {
		sum, inside, before := 0.0, 0, time.Duration(0)
		r := simulate(NewEngine(timer, config), Load{Requests: w.Schedule(rate, 200*time.Second, 7), Watch: func(p Progress) note.Reason {
			sum += float64(inside) * (p.Now - before).Seconds()
			inside, before = p.Running+p.Waiting, p.Now
			return note.Reason{}
		}})
		spent := 0.0
		for i := range r.Records {
			rec := &r.Records[i]
			spent += (rec.Last - rec.Due).Seconds() - timer.Frontend(rec.Prompt)
		}
		got, want := sum/r.End.Seconds(), spent/r.End.Seconds()
		if math.Abs(got/want-1) > 0.04 {
			t.Errorf("%v/s: %.3f requests in the engine, rate x time gives %.3f", rate, got, want)
		}
	}
}

// TestOneAtATimeIsMD1: with one sequence at a time, equal steps and equal lengths
// the engine is a queue with deterministic service. The mean wait of M/D/1 is
// rho D / 2(1 - rho) (Pollaczek-Khinchine).
func TestOneAtATimeIsMD1(t *testing.T) {
	const tokens, step = 3, 0.010
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{
		Prompt: workload.Lengths{Dist: workload.Fixed, Value: 100}, Output: workload.Lengths{Dist: workload.Fixed, Value: tokens}}}}
	for _, async := range []bool{false, true} {
		for _, rho := range []float64{0.3, 0.6, 0.8} {
			const service = tokens * step
			requests := w.Schedule(rho/service, 5000*time.Second, 3)
			r := simulate(NewEngine(steady{step: step}, plain(async, 1)), Load{Requests: requests})
			wait := 0.0
			for i := range r.Records {
				wait += (r.Records[i].Last - r.Records[i].Due).Seconds() - service
			}
			got, want := wait/float64(len(requests)), rho*service/(2*(1-rho))
			if math.Abs(got/want-1) > 0.04 {
				t.Errorf("async %v, utilisation %v, %d requests: mean wait %.5f s, want %.5f", async, rho, len(requests), got, want)
			}
			if busy := r.stats.time.Total / r.End.Seconds(); math.Abs(busy-rho) > 0.01 {
				t.Errorf("async %v: busy %.3f of the time, want %.3f", async, busy, rho)
			}
		}
	}
}

// TestPhaseOfArrival: a request that comes while others decode waits for the rest
// of the step under way, with asynchronous scheduling for one more, and then for
// its own: 1.5 or 2.5 steps in the mean.
func TestPhaseOfArrival(t *testing.T) {
	const step, front = 0.010, 0.007
	requests := []workload.Request{{ID: 0, Prompt: 50, Output: 8000}}
	for i := range 1000 {
		due := time.Duration(float64(time.Second) * (1 + float64(i)*(0.05+step/1000)))
		requests = append(requests, workload.Request{ID: i + 1, Due: due, Prompt: 50, Output: 2})
	}
	for _, c := range []struct {
		async bool
		steps float64
	}{{false, 1.5}, {true, 2.5}} {
		r := simulate(NewEngine(steady{step, front}, plain(c.async, 8)), Load{Requests: requests})
		sum := 0.0
		for _, rec := range r.Records[1:] {
			sum += (rec.First - rec.Due).Seconds()
		}
		if got, want := sum/1000, front+c.steps*step; math.Abs(got-want) > step/100 {
			t.Errorf("async %v: mean time to first token %.5f s, want %.5f", c.async, got, want)
		}
		if r.Records[0].Output != 8000 || r.Records[0].Outcome != measure.OK {
			t.Errorf("async %v: %+v", c.async, r.Records[0])
		}
	}
}

// TestAlone: a request that has the engine to itself takes its frontend and its
// steps, one after another.
func TestAlone(t *testing.T) {
	timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 8192, MaxNumBatchedTokens: 1024}, true)
	const prompt, output = 2500, 100
	first := timer.Frontend(prompt)
	for done := 0; done < prompt; done += 1024 {
		b := model.Batch{Chunks: []model.Chunk{{Tokens: min(1024, prompt-done), Context: done}}}
		if done+1024 >= prompt {
			b.Sampled = 1
		}
		first += timer.Step(b).Total
	}
	last := first
	for context := prompt + 1; context < prompt+output; context++ {
		last += timer.Step(model.Batch{Decodes: 1, Context: context, Longest: context, Sampled: 1}).Total
	}
	for _, async := range []bool{false, true} {
		config.Rules.Async = async
		got := simulate(NewEngine(timer, config), Load{Requests: []workload.Request{{Prompt: prompt, Output: output}}}).Records[0]
		if d := got.First - duration(first); d.Abs() > time.Microsecond {
			t.Errorf("async %v: first token after %v, want %v", async, got.First, duration(first))
		}
		if d := got.Last - duration(last); d.Abs() > time.Microsecond {
			t.Errorf("async %v: last token after %v, want %v", async, got.Last, duration(last))
		}
	}
}

// scaled makes every time of a timer longer.
type scaled struct {
	Timer
	by float64
}

func (s scaled) Step(b model.Batch) model.StepTime {
	var t model.StepTime
	t.Add(s.Timer.Step(b), s.by)
	return t
}

func (s scaled) Growth(b model.Batch) float64 { return s.by * s.Timer.Growth(b) }

func (s scaled) Frontend(tokens int) float64 { return s.by * s.Timer.Frontend(tokens) }

// TestTimeHasNoScale: an engine that is half as fast at half the rate does the
// same in twice the time.
func TestTimeHasNoScale(t *testing.T) {
	for seed := range uint64(20) {
		s := randomScenario(t, seed)
		s.warm, s.load.Timeout = false, 0
		a := s.run(false)
		s.timer = scaled{s.timer, 2}
		for i := range s.load.Requests {
			s.load.Requests[i].Due *= 2
		}
		b := s.run(false)
		for i := range a.Records {
			x, y := &a.Records[i], &b.Records[i]
			if d := 2*x.First - y.First; d.Abs() > 2*time.Microsecond && x.First >= 0 {
				t.Fatalf("seed %d, request %d: first token at %v and %v", seed, i, x.First, y.First)
			}
			if d := 2*x.Last - y.Last; d.Abs() > 2*time.Microsecond && x.Last >= 0 {
				t.Fatalf("seed %d, request %d: last token at %v and %v", seed, i, x.Last, y.Last)
			}
		}
	}
}

// TestMonotone: one sequence at a time in order of arrival, a slower GPU, a longer
// prompt or a longer output make no request end earlier (Lindley's recursion). A
// larger batch can reorder work, so nothing of the kind holds for each request
// there; a pool beyond what is ever needed changes nothing at all.
func TestMonotone(t *testing.T) {
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(512, 256), Output: normal(60, 40)}}}
	requests := w.Schedule(1.5, 200*time.Second, 5)
	limits := model.EngineArgs{MaxModelLen: 8192, MaxNumSeqs: 1, MaxNumBatchedTokens: 2048}
	run := func(dep model.Deployment, l model.EngineArgs, change func(*workload.Request)) []measure.Record {
		timer, config := modelled(t, dep, l, false)
		changed := append([]workload.Request(nil), requests...)
		for i := range changed {
			if change != nil {
				change(&changed[i])
			}
		}
		return simulate(NewEngine(timer, config), Load{Requests: changed}).Records
	}
	dep := model.Deployment{Arch: llama8B(), Hardware: h100()}
	base := run(dep, limits, nil)
	notEarlier := func(name string, got []measure.Record) {
		t.Helper()
		later := 0
		for i := range base {
			if got[i].First < base[i].First || got[i].Last < base[i].Last {
				t.Fatalf("%s: request %d was faster: %+v, before %+v", name, i, got[i], base[i])
			}
			if got[i].Last > base[i].Last {
				later++
			}
		}
		if later == 0 {
			t.Errorf("%s: nothing changed", name)
		}
	}
	slow := dep
	slow.Hardware.Bandwidth *= 0.7
	notEarlier("less bandwidth", run(slow, limits, nil))
	notEarlier("longer prompts", run(dep, limits, func(q *workload.Request) { q.Prompt += 100 }))
	notEarlier("longer outputs", run(dep, limits, func(q *workload.Request) { q.Output += 10 }))

	limits.MaxNumSeqs = 64
	roomy := run(dep, limits, nil)
	limits.KVBlocks = 8000
	for i, r := range run(dep, limits, nil) {
		if r != roomy[i] {
			t.Fatalf("a pool that never fills: request %d: %+v, with more blocks %+v", i, r, roomy[i])
		}
	}
}

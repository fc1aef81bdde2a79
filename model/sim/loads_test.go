package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/model"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// TestClosedLoop: never more requests under way than slots, and each but the first
// ones is due the moment another ends.
func TestClosedLoop(t *testing.T) {
	const slots = 7
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(300, 100), Output: normal(50, 30)}}}
	timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 4096}, true)
	r := simulate(NewEngine(timer, config), Load{Requests: w.Slots(100, 1), Slots: slots})
	var ends []time.Duration
	for i := range r.Records {
		rec := &r.Records[i]
		if rec.Outcome != measure.OK {
			t.Fatalf("request %d: %+v", i, *rec)
		}
		if i < slots && rec.Due != 0 {
			t.Errorf("request %d is due at %v", i, rec.Due)
		}
		ends = append(ends, rec.Last)
	}
	slices.Sort(ends)
	for i := slots; i < len(r.Records); i++ {
		if r.Records[i].Due != ends[i-slots] {
			t.Fatalf("request %d is due at %v, a slot became free at %v", i, r.Records[i].Due, ends[i-slots])
		}
	}
}

// TestTurns: a turn waits for the one before, and finds all of its full blocks in
// the cache, generated tokens included, but for the last token, whose KV was
// never computed.
func TestTurns(t *testing.T) {
	w := workload.Workload{Arrivals: workload.Constant, Turns: 3, Think: 100 * time.Millisecond,
		Shapes: []workload.Shape{{Prompt: normal(200, 80), Output: normal(90, 40)}}}
	for _, async := range []bool{false, true} {
		config := plain(async, 64)
		config.PrefixCaching = true
		requests := w.Schedule(3, 20*time.Second, 9)
		r := simulate(NewEngine(steady{0.010, 0.001}, config), Load{Requests: requests})
		turns := 0
		for i := range r.Records {
			q, rec := &requests[i], &r.Records[i]
			if q.Parent == 0 {
				if rec.Cached != 0 {
					t.Errorf("request %d begins a conversation with %d cached tokens", i, rec.Cached)
				}
				continue
			}
			turns++
			p := &r.Records[q.Parent-1]
			if want := max(q.Due, p.Last); rec.Due != want {
				t.Errorf("turn %d is due at %v, want %v", i, rec.Due, want)
			}
			if want := (p.Prompt + p.Output - 1) / 16 * 16; rec.Cached != want {
				t.Errorf("async %v, turn %d: %d tokens cached, want %d", async, i, rec.Cached, want)
			}
		}
		if turns < 10 {
			t.Errorf("only %d turns", turns)
		}
	}
}

// TestWarmCache: a second run of the same prompts finds them in the cache.
func TestWarmCache(t *testing.T) {
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{
		Prompt: normal(600, 200), Output: normal(20, 5), Prefix: workload.Prefix{Groups: 2, Tokens: 100, Prompts: 5}}}}
	timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 4096}, true)
	load := Load{Requests: w.Schedule(5, 20*time.Second, 1)}
	e := NewEngine(timer, config)
	cold, warm := simulate(e, load), simulate(e, load)
	for i, r := range warm.Records {
		if want := (r.Prompt - 1) / 16 * 16; r.Cached != want {
			t.Fatalf("request %d: %d of %d tokens cached, want %d", i, r.Cached, r.Prompt, want)
		}
	}
	if c, w := *cold.Server.HitRate, *warm.Server.HitRate; c >= w || w < 0.9 {
		t.Errorf("hit rate %.3f cold, %.3f warm", c, w)
	}
	if cold.Records[0].Cached != 0 {
		t.Error("the first request of a cold engine hits the cache")
	}
}

// TestTimeout: a client that gives up frees its place for the next one.
func TestTimeout(t *testing.T) {
	requests := []workload.Request{{ID: 0, Prompt: 100, Output: 1000}, {ID: 1, Due: time.Second, Prompt: 100, Output: 10}, {ID: 2, Due: 1500 * time.Millisecond, Prompt: 100, Output: 10}}
	for _, async := range []bool{false, true} {
		r := simulate(NewEngine(steady{0.010, 0}, plain(async, 1)), Load{Requests: requests, Timeout: 2 * time.Second})
		a, b, c := r.Records[0], r.Records[1], r.Records[2]
		if a.Outcome != measure.Timeout || a.First != 10*time.Millisecond || a.Last != measure.Never || a.Output < 198 || a.Output > 200 {
			t.Errorf("async %v: the one that takes 10 s: %+v", async, a)
		}
		// Its last step ends at 2.00 s; with two steps under way the next one
		// was scheduled already.
		if b.Outcome != measure.OK || b.First < 2010*time.Millisecond || b.First > 2030*time.Millisecond {
			t.Errorf("async %v: the one that waited for it: %+v", async, b)
		}
		if c.Outcome != measure.OK || c.First <= b.Last {
			t.Errorf("async %v: the third: %+v", async, c)
		}
	}
}

// TestRejected: what can never run is refused, the rest goes on.
func TestRejected(t *testing.T) {
	config := plain(true, 8)
	config.Blocks = 101 // 1600 tokens
	requests := []workload.Request{
		{ID: 0, Prompt: 8000, Output: 200}, // beyond the longest length
		{ID: 1, Prompt: 1500, Output: 102}, // beyond the pool
		{ID: 2, Prompt: 1500, Output: 101}, // the last token needs no KV
	}
	r := simulate(NewEngine(steady{0.010, 0}, config), Load{Requests: requests})
	for i, want := range []measure.Outcome{measure.Rejected, measure.Rejected, measure.OK} {
		if got := r.Records[i].Outcome; got != want {
			t.Errorf("request %d: %v, want %v", i, got, want)
		}
	}
}

// TestWatch: a run can be ended from outside.
func TestWatch(t *testing.T) {
	var requests []workload.Request
	for i := range 200 {
		requests = append(requests, workload.Request{ID: i, Due: time.Duration(i) * 100 * time.Millisecond, Prompt: 100, Output: 100})
	}
	e := NewEngine(steady{0.010, 0}, plain(true, 1))
	r := simulate(e, Load{Requests: requests, Every: time.Second, Watch: func(p Progress) note.Reason {
		if p.Waiting > 50 {
			return note.Text("the queue grows").Reason()
		}
		return note.Reason{}
	}})
	if r.Aborted.Text != "the queue grows" || r.End < 5*time.Second || r.End > 7*time.Second {
		t.Errorf("stopped %q at %v", r.Aborted.Text, r.End)
	}
}

// TestReplicas: independent replicas share the requests; with a mixture of experts
// they step together and wait for the slower one.
func TestReplicas(t *testing.T) {
	requests := []workload.Request{{ID: 0, Prompt: 100, Output: 50}, {ID: 1, Prompt: 100, Output: 50}, {ID: 2, Prompt: 100, Output: 50}}
	config := plain(false, 1)
	one := simulate(NewEngine(steady{0.010, 0}, config), Load{Requests: requests})
	config.Replicas = 3
	three := simulate(NewEngine(steady{0.010, 0}, config), Load{Requests: requests})
	config.LockStep = true
	together := simulate(NewEngine(steady{0.010, 0}, config), Load{Requests: requests})
	for i := range requests {
		if got, want := one.Records[i].Last, time.Duration(i+1)*500*time.Millisecond; got != want {
			t.Errorf("one replica: request %d ends at %v, want %v", i, got, want)
		}
		if three.Records[i].Last != 500*time.Millisecond || together.Records[i].Last != 500*time.Millisecond {
			t.Errorf("three replicas: request %d ends at %v and in lock step at %v, want 500ms", i, three.Records[i].Last, together.Records[i].Last)
		}
	}
	if three.stats.steps != 150 || together.stats.steps != 50 {
		t.Errorf("%d steps apart and %d together, want 150 and 50", three.stats.steps, together.stats.steps)
	}
}

// TestWindowGroups: a sequence of a hybrid model takes blocks for its full groups
// all along, and for its window groups up to the window.
func TestWindowGroups(t *testing.T) {
	for _, c := range []struct {
		layout model.KVLayout
		tokens int
		want   int
	}{
		{model.KVLayout{}, 1000, 63},
		{model.KVLayout{Window: 128, WindowGroups: 1, FullGroups: 1}, 100, 7 + 7},
		{model.KVLayout{Window: 128, WindowGroups: 1, FullGroups: 1}, 1000, 63 + 9},
		{model.KVLayout{Window: 128, WindowGroups: 5, FullGroups: 1}, 1000, 63 + 45},
		{model.KVLayout{Window: 128, WindowGroups: 1, FullGroups: 2}, 1000, 63 + 5}, // of pairs
		{model.KVLayout{Window: 128, WindowGroups: 1}, 1000, 63},                    // nothing but windows
	} {
		c.layout.BlockTokens = 16
		s := newScheduler(Config{Seqs: 4, BatchTokens: 2048, ModelLen: 4096, Blocks: 1001, Layout: c.layout})
		before := s.pool.free
		s.add(0, &workload.Request{Prompt: c.tokens, Output: 5}, false)
		s.output(s.schedule())
		if got := before - s.pool.free; got != c.want {
			t.Errorf("%+v: %d tokens take %d blocks, want %d", c.layout, c.tokens, got, c.want)
		}
	}
}

// TestWindowsOfSteps: what decodes read of window layers is the sum over the running sequences, also of the steady
// ones; with chunks it starts anew.
func TestWindowsOfSteps(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		for groups := range 2 {
			rng := rand.New(rand.NewPCG(1, 2))
			s := newScheduler(Config{Seqs: 30, BatchTokens: 2048, ModelLen: 1000, Blocks: 5000, Chunked: chunked,
				Layout: model.KVLayout{BlockTokens: 16, Window: 64, FullGroups: 1, WindowGroups: groups}})
			for id := range 30 {
				s.add(id, &workload.Request{Prompt: 1 + rng.IntN(200), Output: 2 + rng.IntN(300)}, false)
			}
			steps := 0
			for len(s.running)+s.waiting.len() > 0 {
				b := s.schedule()
				if want := 0; len(b.load.Chunks) == 0 {
					for _, r := range s.running {
						if r.steady.member {
							s.refresh(r)
						}
						want += model.Windowed(r.computed, 64, chunked)
					}
					if steps++; b.load.Windowed != want {
						t.Fatalf("chunks %v: step %d reads %d keys, want %d", chunked, steps, b.load.Windowed, want)
					}
				}
				s.output(b)
			}
			if steps < 200 {
				t.Errorf("%d steps", steps)
			}
		}
	}
}

// TestSharesOfSteps: what bounds a step is the largest of its shares, which add up to one.
func TestSharesOfSteps(t *testing.T) {
	timer, _ := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 8192}, true)
	for want, b := range map[string]model.Batch{
		"weights": {Decodes: 1, Context: 100, Longest: 100, Sampled: 1},
		"kv":      {Decodes: 64, Context: 64 * 30000, Longest: 30000, Sampled: 64},
		"compute": {Chunks: []model.Chunk{{Tokens: 8192}}, Sampled: 1},
	} {
		x := sharesOf(timer.Step(b))
		if sum := x.Weights + x.KV + x.Compute + x.Communication + x.Fixed; math.Abs(sum-1) > 1e-12 || x.Binding != want {
			t.Errorf("%+v is bound by %q, want %s; shares add up to %v", b, x.Binding, want, sum)
		}
	}
	if x := sharesOf(model.StepTime{}); x != (measure.TimeShares{}) {
		t.Errorf("an empty step: %+v", x)
	}
}

// TestStats: the parts of the time are those of the steps, and the use of the
// hardware lies between nothing and all of it.
func TestStats(t *testing.T) {
	timer, config := modelled(t, model.Deployment{Arch: llama8B(), Hardware: h100()}, model.EngineArgs{MaxModelLen: 8192}, true)
	w := workload.Workload{Arrivals: workload.Poisson, Shapes: []workload.Shape{{Prompt: normal(512, 256), Output: normal(200, 100)}}}
	r := simulate(NewEngine(timer, config), Load{Requests: w.Schedule(15, 60*time.Second, 1), Gaps: true, GapsTo: time.Minute})
	o := r.Observation
	x := o.Server.Time
	if sum := x.Weights + x.KV + x.Compute + x.Communication + x.Fixed; sum < 0.999 || sum > 1.001 {
		t.Errorf("shares add up to %v", sum)
	}
	if x.Binding != "weights" || x.MBU < 0.3 || x.MBU > 0.95 || x.MFU < 0.02 || x.MFU > 0.8 || x.Idle < 0 || x.Idle > 0.3 {
		t.Errorf("%+v", *x)
	}
	gaps := 0
	for _, rec := range o.Records {
		gaps += rec.Output - 1
	}
	if got := o.Gaps.TotalCount(); got != int64(gaps) {
		t.Errorf("%d gaps between %d tokens", got, gaps)
	}
	mean := 0.0
	for _, rec := range o.Records {
		mean += (rec.Last - rec.First).Seconds()
	}
	if got, want := o.Gaps.Mean()/1e6, mean/float64(gaps); got/want > 1.001 || got/want < 0.999 {
		t.Errorf("mean gap %v s, from the records %v s", got, want)
	}
}

// TestCapacityOfStages compares the rate of the mean field with that of the simulator, where prompts fill the
// steps of all pipeline stages.
func TestCapacityOfStages(t *testing.T) {
	for _, stages := range []int{1, 2, 4} {
		dep := model.Deployment{Arch: llama8B(), Hardware: h100(), PP: stages}
		args := model.EngineArgs{MaxModelLen: 8192, MaxNumSeqs: 256, MaxNumBatchedTokens: 512}
		timer, config := modelled(t, dep, args, false)
		requests := make([]workload.Request, 600)
		for i := range requests {
			requests[i] = workload.Request{ID: i, Prompt: 2100 + i*1237%1800, Output: 40}
		}
		capacity := timer.Capacity(model.MeanRequest{Prompt: 3000, Output: 40}, must.Get(model.MemoryPlan(dep, args)), model.Targets{})
		r := simulate(NewEngine(timer, config), Load{Requests: requests, Slots: int(capacity.Batch) + 1}).Records
		if ratio := 200 / (r[400].Sent - r[200].Sent).Seconds() / capacity.Rate; ratio < 0.8 || ratio > 1.25 {
			t.Errorf("%d stages carry %.2f of the %.3g requests/s that are predicted", stages, ratio, capacity.Rate)
		}
	}
}

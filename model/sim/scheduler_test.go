package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"planner/internal/evidence/must"
	"planner/model"
	"planner/sweep/workload"
)

// TestRulesTellReleasesApart replays recordings of one release under the rules of
// the one before: as many cases must differ as differed in vLLM, so the
// recordings do exercise what the rules switch.
func TestRulesTellReleasesApart(t *testing.T) {
	for _, c := range []struct {
		file  string
		older string
		want  int
	}{
		{"0.20.2", "0.15.1", 12}, {"0.26.0", "0.20.2", 7}, {"0.32.0", "0.26.0", 1},
	} {
		differ := 0
		must.OK(eachRecording("testdata/vllm-scheduler/"+c.file+".jsonl.gz", func(rec *recording) {
			rec.VLLM = c.older
			if replay(rec, false) != nil {
				differ++
			}
		}))
		if differ != c.want {
			t.Errorf("%s under the rules of %s: %d cases differ, want %d", c.file, c.older, differ, c.want)
		}
	}
}

func TestRulesFor(t *testing.T) {
	for _, c := range []struct {
		version string
		want    Rules
	}{
		{"0.9.2", Rules{}},
		{"0.10.1", Rules{}},
		{"0.13.0", Rules{}},
		{"0.14.0", Rules{Async: true}},
		{"0.18.2", Rules{Async: true}},
		{"0.19.1", Rules{Async: true, FullSequenceGate: true}},
		{"0.23.0", Rules{Async: true, FullSequenceGate: true}},
		{"0.24.0", Rules{Async: true, FullSequenceGate: true, UnkeyedFirst: true, SharedStates: true}},
		{"0.31.0", Rules{Async: true, FullSequenceGate: true, UnkeyedFirst: true, SharedStates: true}},
		{"0.32.0", Rules{Async: true, FullSequenceGate: true, UnkeyedFirst: true, SharedStates: true, LoneUncapped: true}},
		{"1.0.0", Rules{Async: true, FullSequenceGate: true, UnkeyedFirst: true, SharedStates: true, LoneUncapped: true}},
		{"", Rules{Async: true, FullSequenceGate: true, UnkeyedFirst: true, SharedStates: true, LoneUncapped: true}},
	} {
		v := must.Get(model.ParseVersion(c.version))
		if got := RulesFor(v); got != c.want {
			t.Errorf("RulesFor(%q) = %+v, want %+v", c.version, got, c.want)
		}
	}
}

func TestThreshold(t *testing.T) {
	newest := RulesFor(model.Version{})
	for _, c := range []struct {
		name     string
		config   Config
		requests int
		want     int
	}{
		{"off", Config{Rules: newest}, 4, 0},
		{"fixed", Config{Rules: newest, LongPrefill: 100}, 4, 100},
		{"lone, since 0.32", Config{Rules: newest, LongPrefill: 100}, 1, 0},
		{"lone, before", Config{LongPrefill: 100}, 1, 100},
	} {
		c.config.Seqs, c.config.BatchTokens, c.config.ModelLen, c.config.Blocks, c.config.Layout.BlockTokens = 4, 1024, 4096, 100, 16
		s := newScheduler(c.config)
		for i := range c.requests {
			s.add(i, &workload.Request{Prompt: 10, Output: 10}, false)
		}
		if got := s.threshold(); got != c.want {
			t.Errorf("%s: threshold %d, want %d", c.name, got, c.want)
		}
	}
}

// TestSettledAndAborts drives two schedulers with the same random requests, one
// of them without steady sequences and with blocks that it always tells apart, and compares every step. Requests share
// prefixes, continue others that may still be running, and are given up at random.
// The pool's books are checked on the way.
func TestSettledAndAborts(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rules := RulesFor(model.Version{Minor: 10 + rng.IntN(23)})
		rules.Async = rng.IntN(2) == 0
		config := Config{Rules: rules, Seqs: 1 + rng.IntN(20), ModelLen: 400, Layout: model.KVLayout{BlockTokens: 16}, PrefixCaching: rng.IntN(4) > 0, Blocks: 30 + rng.IntN(300)}
		config.BatchTokens = config.Seqs + rng.IntN(300)
		if rng.IntN(3) == 0 {
			config.LongPrefill = 20 + rng.IntN(100)
		}
		a, b := driver{s: newScheduler(config)}, driver{s: newScheduler(config)}
		b.s.steady.off, b.s.distinct = true, config.PrefixCaching
		firstNamed := rng.IntN(60) // until then nobody can look for what is cached
		var requests []*workload.Request
		type pair struct{ x, y *sequence }
		live := map[int]pair{}
		for k := range 1500 {
			for len(requests) < 60 && rng.IntN(12) == 0 {
				q := randomRequest(rng, requests, config.ModelLen)
				if q.ID < firstNamed {
					q.Shared, q.Own, q.Generated = nil, 0, 0
				}
				requests = append(requests, q)
				live[q.ID] = pair{a.s.add(q.ID, q, false), b.s.add(q.ID, q, false)}
			}
			if rng.IntN(40) == 0 && len(requests) > 0 {
				if id := rng.IntN(len(requests)); live[id].x != nil {
					a.s.abort(live[id].x)
					b.s.abort(live[id].y)
					delete(live, id)
				}
			}
			x, y := a.step(), b.step()
			if !x.equal(y) {
				t.Fatalf("seed %d, step %d:\nsteady %+v\n  plain %+v", seed, k, *x, *y)
			}
			for _, id := range x.Finished {
				delete(live, id)
			}
			if k%10 == 0 {
				checkBooks(t, a.s)
				checkBooks(t, b.s)
			}
		}
		if a.s.pool.cache.count() > a.s.config.Blocks+len(live)*4 {
			t.Errorf("seed %d: %d texts remembered with %d blocks", seed, a.s.pool.cache.count(), a.s.config.Blocks)
		}
	}
}

// TestNoAllocation: a scheduler in its stride allocates nothing, whether its pool
// has room or is so tight that it preempts.
func TestNoAllocation(t *testing.T) {
	for _, blocks := range []int{5000, 300} {
		for _, async := range []bool{false, true} {
			rules := RulesFor(model.Version{})
			rules.Async = async
			d := driver{s: newScheduler(Config{Rules: rules, Seqs: 64, BatchTokens: 512, ModelLen: 4096, Blocks: blocks, Layout: model.KVLayout{BlockTokens: 16}, PrefixCaching: true})}
			rng := rand.New(rand.NewPCG(1, 1))
			q := new(workload.Request)
			q.Shared = make([]workload.Segment, 1)
			preempted, next := 0, 0
			step := func() {
				for len(d.s.running)+d.s.waiting.len() < 50 {
					next++
					q.ID, q.Output = next, 1+rng.IntN(200)
					q.Shared[0] = workload.Segment{Content: workload.Content(1 + rng.IntN(5)), Tokens: 100}
					q.Prompt = 100 + rng.IntN(200)
					d.s.add(q.ID, q, false)
				}
				preempted += len(d.step().Preempted)
			}
			for range 20000 {
				step()
			}
			if got := testing.AllocsPerRun(2000, step); got > 0 {
				t.Errorf("%d blocks, async %v: %v allocations a step", blocks, async, got)
			}
			if (preempted > 0) != (blocks == 300) {
				t.Errorf("%d blocks: %d preemptions", blocks, preempted)
			}
		}
	}
}

func (t *tree) count() int { return len(t.nodes) - len(t.idle) }

func randomRequest(rng *rand.Rand, earlier []*workload.Request, longest int) *workload.Request {
	id := len(earlier)
	q := &workload.Request{ID: id, Own: workload.Content(contentOwn | id), Generated: workload.Content(contentReply | id)}
	switch {
	case rng.IntN(3) == 0 && id > 0:
		p := earlier[rng.IntN(id)]
		shared := 0
		for _, s := range p.Shared {
			shared += s.Tokens
		}
		q.Shared = append(slices.Clone(p.Shared), workload.Segment{Content: p.Own, Tokens: p.Prompt - shared},
			workload.Segment{Content: p.Generated, Tokens: p.Output})
	case rng.IntN(2) == 0:
		q.Shared = []workload.Segment{{Content: workload.Content(contentPrefix | rng.IntN(3)), Tokens: 1 + rng.IntN(120)}}
	}
	shared := 0
	for _, s := range q.Shared {
		shared += s.Tokens
	}
	q.Prompt = shared + rng.IntN(60)
	if q.Prompt == 0 || q.Prompt > longest-10 {
		q.Shared, q.Prompt = nil, 1+rng.IntN(80)
	}
	q.Output = 1 + rng.IntN(min(150, longest-q.Prompt))
	if rng.IntN(3) == 0 {
		q.Own, q.Generated = 0, 0
	}
	return q
}

// checkBooks checks that every block is held or in the queue once, that extents have as many
// users as hold them, and that the cache's lists agree with them.
func checkBooks(t *testing.T, s *scheduler) {
	t.Helper()
	p := &s.pool
	for _, r := range s.running {
		if r.steady.member {
			s.refresh(r)
		}
	}
	refs := make([]int32, len(p.extents))
	taken := 0
	for _, r := range s.running {
		end := p.count(r.kv.extents)
		taken += s.withWindow(s.blocks(r)) - int(end)
		for i := len(r.kv.extents) - 1; i >= 0; i-- {
			begin := p.count(r.kv.extents[:i])
			for id := r.kv.extents[i]; end != begin; id = p.extents[id].front {
				if p.extents[id].end != end {
					t.Fatalf("a sequence holds extent %d %+v up to %d", id, p.extents[id], end)
				}
				refs[id]++
				end = p.extents[id].first
			}
		}
	}
	free, live := p.blank, 0
	queued := make([]bool, len(p.extents))
	for id := p.queue.first; id != 0; id = p.extents[id].links[inQueue].next {
		free += p.extents[id].blocks()
		queued[id] = true
		if p.extents[id].state {
			live++
		}
	}
	if free != p.free {
		t.Fatalf("%d blocks in the queue, %d counted free", free, p.free)
	}
	for node := range p.cache.nodes {
		for id := p.cache.nodes[node].extents.first; id != 0; id = p.extents[id].links[inNode].next {
			x := &p.extents[id]
			if x.node != int32(node) || x.blocks() <= 0 || x.refs != refs[id] || (x.refs == 0) != queued[id] {
				t.Fatalf("extent %d of node %d: %+v with %d holders, in the queue %v", id, node, *x, refs[id], queued[id])
			}
			if x.refs > 0 {
				taken += x.blocks()
			}
			live++
		}
	}
	if free+taken != p.size-1 {
		t.Fatalf("%d blocks free and %d taken of %d", free, taken, p.size-1)
	}
	if live+len(p.idle) != len(p.extents)-1 {
		t.Fatalf("%d extents in use and %d idle of %d", live, len(p.idle), len(p.extents)-1)
	}
}

// A model with states finds a prefix only where one was kept: where a chunk of a prompt ended, which
// is the last whole block before its end. Blocks have 16 tokens; three requests share 40, of which two blocks
// are whole, and have 30 of their own. Since 0.24 the second one stops there for the third.
func TestPrefixesEndAtStates(t *testing.T) {
	for _, c := range []struct {
		shared bool
		cached int
		first  [][2]int // tokens of the second request's steps
	}{{false, 0, [][2]int{{1, 64}, {1, 6}}}, {true, 32, [][2]int{{1, 32}, {1, 32}, {1, 6}}}} {
		d := driver{s: newScheduler(Config{Rules: Rules{SharedStates: c.shared}, Seqs: 1, BatchTokens: 512, ModelLen: 100, PrefixCaching: true,
			AlignedStates: true, Blocks: 100, Layout: model.KVLayout{BlockTokens: 16}})}
		for i := range 3 {
			d.s.add(i, &workload.Request{ID: i, Prompt: 70, Output: 1, Shared: []workload.Segment{{Content: 1, Tokens: 40}}, Own: workload.Content(10 + i)}, false)
		}
		var steps [][2]int
		cached := 0
		for len(d.s.running)+d.s.waiting.len() > 0 {
			step := d.step()
			for _, x := range step.Scheduled {
				if x[0] == 1 {
					steps = append(steps, x)
				}
			}
			for _, x := range step.Cached {
				if x[0] != 2 {
					t.Errorf("request %d found %d tokens", x[0], x[1])
				}
				cached = x[1]
			}
		}
		if cached != c.cached || !slices.Equal(steps, c.first) {
			t.Errorf("stops at prefixes %v: the third request found %d tokens, want %d; the second took %v, want %v", c.shared, cached, c.cached, steps, c.first)
		}
	}
}

// Kept states take blocks from the pool, here three each: of 30, a request takes six and leaves two of keys and values
// and a state. After five others, the first one finds nothing; with states that take none, two blocks.
func TestStatesTakeRoom(t *testing.T) {
	for _, c := range []struct{ groups, cached int }{{3, 0}, {0, 32}} {
		d := driver{s: newScheduler(Config{Rules: RulesFor(model.Version{}), Seqs: 1, BatchTokens: 512, ModelLen: 100, PrefixCaching: true, AlignedStates: true,
			Blocks: 31, Layout: model.KVLayout{BlockTokens: 16, FullGroups: 1, StateGroups: c.groups}})}
		cached := 0
		for i := range 7 {
			d.s.add(i, &workload.Request{ID: i, Prompt: 40, Output: 1, Own: workload.Content(1 + i%6)}, false)
			for len(d.s.running)+d.s.waiting.len() > 0 {
				for _, x := range d.step().Cached {
					cached += x[1]
				}
			}
			checkBooks(t, d.s)
		}
		if cached != c.cached {
			t.Errorf("%d groups of states: %d tokens found, want %d", c.groups, cached, c.cached)
		}
	}
}

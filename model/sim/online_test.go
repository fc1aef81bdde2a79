package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"planner/sweep/measure"
	"planner/sweep/workload"
)

// follower drives a live engine and keeps what it tells of requests by their
// place in a schedule, whatever number they had.
type follower struct {
	live    *Online
	tokens  []Token // Request is the place in the schedule
	records map[int]measure.Record
	places  map[int]int // by number
	told    []Token
}

func follow(e *Engine) *follower {
	return &follower{live: e.Online(), records: map[int]measure.Record{}, places: map[int]int{}}
}

func (f *follower) submit(at time.Duration, q workload.Request, place int) bool {
	n, ok := f.live.Submit(at, q)
	if ok {
		f.places[n] = place
	}
	return ok
}

func (f *follower) advance(to time.Duration) {
	f.told, _ = f.live.Advance(to, f.told[:0])
	for _, k := range f.told {
		number := k.Request
		k.Request = f.places[number]
		f.tokens = append(f.tokens, k)
		if k.Last {
			f.records[k.Request] = f.live.run.records[number]
		}
	}
}

func (f *follower) finish() {
	for at := f.live.upcoming(); at != measure.Never; at = f.live.upcoming() {
		f.advance(at)
	}
}

// TestLiveEqualsRun submits a schedule request by request, with the clock moved in
// random steps, and gets the records of a run; the tokens told one by one agree
// with them.
func TestLiveEqualsRun(t *testing.T) {
	for seed := range uint64(30) {
		s := randomScenario(t, seed)
		s.load = Load{Requests: s.load.Requests}
		for i := range s.load.Requests {
			s.load.Requests[i].Parent = 0
		}
		want := NewEngine(s.timer, s.config).Run(s.load)
		rng := rand.New(rand.NewPCG(seed, 3))
		f := follow(NewEngine(s.timer, s.config))
		for i, q := range s.load.Requests {
			for polls := rng.IntN(3); polls > 0; polls-- {
				if at := f.live.upcoming(); at != measure.Never && at < q.Due {
					f.advance(at)
				}
			}
			f.advance(q.Due)
			if ok := f.submit(q.Due, q, i); ok != (want.Records[i].Outcome != measure.Rejected) {
				t.Fatalf("seed %d: request %d accepted: %v, in a run %v", seed, i, ok, want.Records[i].Outcome)
			}
		}
		f.finish()
		checkTokens(t, seed, f.tokens, want.Records)
		for i, got := range f.records {
			if (got.First-want.Records[i].First).Abs() > time.Microsecond || (got.Last-want.Records[i].Last).Abs() > time.Microsecond {
				t.Fatalf("seed %d: live %+v, run %+v", seed, got, want.Records[i])
			}
		}
	}
}

func checkTokens(t *testing.T, seed uint64, tokens []Token, want []measure.Record) {
	t.Helper()
	seen := map[int]int{}
	last := time.Duration(0)
	for _, k := range tokens {
		r := &want[k.Request]
		if seen[k.Request]++; seen[k.Request] == 1 && (k.At-r.First).Abs() > time.Microsecond {
			t.Fatalf("seed %d: first token at %v, want %v", seed, k.At, r.First)
		}
		if k.Last != (seen[k.Request] == r.Output) || k.Last && (k.At-r.Last).Abs() > time.Microsecond || k.At < last {
			t.Fatalf("seed %d: token %+v is number %d of %+v", seed, k, seen[k.Request], *r)
		}
		last = k.At
	}
	accepted := 0
	for i := range want {
		if want[i].Outcome != measure.Rejected {
			accepted++
		}
	}
	if len(seen) != accepted {
		t.Fatalf("seed %d: tokens of %d requests, want %d", seed, len(seen), accepted)
	}
}

// TestLiveForgets: an engine that is driven for long holds what is under way and
// no more, though clients leave at any time, and no request is taken for another.
func TestLiveForgets(t *testing.T) {
	for _, async := range []bool{false, true} {
		const requests, most = 50_000, 12
		f := follow(NewEngine(steady{0.002, 0.001}, plain(async, 4)))
		rng := rand.New(rand.NewPCG(5, 6))
		under, lengths, cancelled := map[int]int{}, map[int]int{}, map[int]bool{}
		counts := map[int]int{}
		now := time.Duration(0)
		for place := range requests {
			now += time.Duration(rng.ExpFloat64() * 8e6)
			before := len(f.tokens)
			f.advance(now)
			for _, k := range f.tokens[before:] {
				counts[k.Request]++
				if cancelled[k.Request] {
					t.Fatalf("async %v: a token at %v of request %d, which was cancelled", async, k.At, k.Request)
				}
				if k.Last {
					if counts[k.Request] != lengths[k.Request] {
						t.Fatalf("async %v: %d tokens of request %d, want %d", async, counts[k.Request], k.Request, lengths[k.Request])
					}
					delete(under, k.Request)
				}
			}
			f.tokens = f.tokens[:0]
			for len(under) >= most || len(under) > 0 && rng.IntN(4) == 0 {
				victim := place - 1 // often one that is still on its way to the engine
				if _, ok := under[victim]; !ok || rng.IntN(2) == 0 {
					victim = slices.Min(slices.Collect(maps.Keys(under)))
				}
				f.live.Cancel(now, under[victim])
				cancelled[victim] = true
				delete(under, victim)
			}
			lengths[place] = 1 + rng.IntN(6)
			n, ok := f.live.Submit(now, workload.Request{Prompt: 20 + rng.IntN(200), Output: lengths[place]})
			if !ok {
				t.Fatal("refused")
			}
			f.places[n], under[place] = place, n
		}
		if held := len(f.live.run.calls); held > 2*most {
			t.Errorf("async %v: %d requests are held behind %d of which %d at most were under way", async, held, requests, most)
		}
	}
}

// TestLiveCancel: a request that is cancelled gets no more tokens and gives its
// place to the next.
func TestLiveCancel(t *testing.T) {
	for _, async := range []bool{false, true} {
		live := NewEngine(steady{0.010, 0}, plain(async, 1)).Online()
		s := randomScenario(t, 0)
		q := s.load.Requests[0]
		q.Prompt, q.Output, q.Shared = 100, 1000, nil
		a, _ := live.Submit(0, q)
		b, _ := live.Submit(0, q)
		early, _ := live.Advance(100*time.Millisecond, nil)
		live.Cancel(105*time.Millisecond, a)
		late, _ := live.Advance(200*time.Millisecond, nil)
		if len(early) != 10 || early[0].Request != a {
			t.Errorf("async %v: %d tokens in 100 ms: %+v", async, len(early), early)
		}
		if len(late) < 8 || late[0].Request != b || late[0].At > 140*time.Millisecond {
			t.Errorf("async %v: after the cancellation %+v", async, late)
		}
		if r := live.run.records[a]; r.Outcome != measure.Timeout {
			t.Errorf("async %v: %+v", async, r)
		}
	}
}

// TestOccupancy follows two requests through an engine that serves one at a time.
func TestOccupancy(t *testing.T) {
	config := plain(false, 1)
	live := NewEngine(steady{0.010, 0}, config).Online()
	live.Submit(0, workload.Request{Prompt: 100, Output: 3})
	live.Submit(0, workload.Request{Prompt: 100, Output: 3})
	live.Advance(15*time.Millisecond, nil)
	s := live.Occupancy()
	if s.Running != 1 || s.Waiting != 1 {
		t.Errorf("after one step: %+v", s)
	}
	used := blocksFor(100, config.Layout.BlockTokens)
	if want := float64(used) / float64(config.Blocks-1); s.KV < want || s.KV > want+1/float64(config.Blocks-1) {
		t.Errorf("share of blocks %v, want %v or one block more", s.KV, want)
	}
	live.Advance(35*time.Millisecond, nil)
	if s := live.Occupancy(); s.Running != 1 || s.Waiting != 0 || s.Queries != 200 && config.PrefixCaching {
		t.Errorf("while the second one runs: %+v", s)
	}
	live.Advance(time.Second, nil)
	if s := live.Occupancy(); s.Running+s.Waiting != 0 || s.KV != 0 || s.Preemptions != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestLiveWait: the time before the first step is told apart from the first step.
func TestLiveWait(t *testing.T) {
	live := NewEngine(steady{0.010, 0.003}, plain(false, 1)).Online()
	q := workload.Request{Prompt: 100, Output: 3}
	live.Submit(0, q)
	live.Submit(0, q)
	tokens, next := live.Advance(time.Second, nil)
	if len(tokens) != 6 || next != measure.Never {
		t.Fatalf("%d tokens, next %v", len(tokens), next)
	}
	if first := tokens[0]; !first.First || first.At != 13*time.Millisecond || first.Wait > time.Microsecond {
		t.Errorf("first request: %+v", first)
	}
	if second := tokens[3]; !second.First || second.At != 43*time.Millisecond || (second.Wait-30*time.Millisecond).Abs() > time.Microsecond {
		t.Errorf("second request: %+v", second)
	}
}

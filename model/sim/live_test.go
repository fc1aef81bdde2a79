package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"planner/sweep/measure"
)

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
		live := NewEngine(s.timer, s.config).Live()
		var tokens []Token
		numbers := map[int]int{} // ours by live's
		for i, q := range s.load.Requests {
			for polls := rng.IntN(3); polls > 0; polls-- {
				if at, ok := live.Next(); ok && at < q.Due {
					tokens = live.Advance(at, tokens)
				}
			}
			tokens = live.Advance(q.Due, tokens)
			n, ok := live.Submit(q.Due, q)
			if ok != (want.Records[i].Outcome != measure.Rejected) {
				t.Fatalf("seed %d: request %d accepted: %v, in a run %v", seed, i, ok, want.Records[i].Outcome)
			}
			if ok {
				numbers[n] = i
			}
		}
		for at, ok := live.Next(); ok; at, ok = live.Next() {
			tokens = live.Advance(at, tokens)
		}
		checkTokens(t, seed, tokens, numbers, want.Records)
		for n, i := range numbers {
			got := live.Record(n)
			if got.ID = i; (got.First-want.Records[i].First).Abs() > time.Microsecond || (got.Last-want.Records[i].Last).Abs() > time.Microsecond {
				t.Fatalf("seed %d: live %+v, run %+v", seed, got, want.Records[i])
			}
		}
	}
}

func checkTokens(t *testing.T, seed uint64, tokens []Token, numbers map[int]int, want []measure.Record) {
	t.Helper()
	seen := map[int]int{}
	last := time.Duration(0)
	for _, k := range tokens {
		r := &want[numbers[k.Request]]
		if seen[k.Request]++; seen[k.Request] == 1 && (k.At-r.First).Abs() > time.Microsecond {
			t.Fatalf("seed %d: first token at %v, want %v", seed, k.At, r.First)
		}
		if k.Last != (seen[k.Request] == r.Output) || k.Last && (k.At-r.Last).Abs() > time.Microsecond || k.At < last {
			t.Fatalf("seed %d: token %+v is number %d of %+v", seed, k, seen[k.Request], *r)
		}
		last = k.At
	}
	if len(seen) != len(numbers) {
		t.Fatalf("seed %d: tokens of %d requests, want %d", seed, len(seen), len(numbers))
	}
}

// TestLiveCancel: a request that is cancelled gets no more tokens and gives its
// place to the next.
func TestLiveCancel(t *testing.T) {
	for _, async := range []bool{false, true} {
		live := NewEngine(steady{0.010, 0}, plain(async, 1)).Live()
		s := randomScenario(t, 0)
		q := s.load.Requests[0]
		q.Prompt, q.Output, q.Shared = 100, 1000, nil
		a, _ := live.Submit(0, q)
		b, _ := live.Submit(0, q)
		early := live.Advance(100*time.Millisecond, nil)
		live.Cancel(105*time.Millisecond, a)
		late := live.Advance(200*time.Millisecond, nil)
		if len(early) != 10 || early[0].Request != a {
			t.Errorf("async %v: %d tokens in 100 ms: %+v", async, len(early), early)
		}
		if len(late) < 8 || late[0].Request != b || late[0].At > 140*time.Millisecond {
			t.Errorf("async %v: after the cancellation %+v", async, late)
		}
		if r := live.Record(a); r.Outcome != measure.Timeout {
			t.Errorf("async %v: %+v", async, r)
		}
	}
}

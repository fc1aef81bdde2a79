package serve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model/sim"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// drive sends requests of one length to a backend and returns when each token
// came. The clock moves in steps that have nothing to do with the arrivals.
func drive(b backend, arrivals []time.Duration, output int) [][]time.Duration {
	got := make([][]time.Duration, len(arrivals))
	var tokens []sim.Token
	next, now := measure.Never, time.Duration(0)
	note := func(to time.Duration) {
		now = to
		tokens, next = b.Advance(now, tokens[:0])
		for _, t := range tokens {
			got[t.Request] = append(got[t.Request], t.At)
		}
	}
	for _, at := range arrivals {
		for next >= 0 && next <= at {
			note(next + 37*time.Microsecond) // as late as a clock that is not perfect
		}
		// It was stamped a little before the clock moved on.
		b.Submit(at, workload.Request{Prompt: 1, Output: output})
		note(max(now, at))
	}
	for next >= 0 {
		note(next)
	}
	return got
}

func poisson(rate float64, n int, seed uint64) []time.Duration {
	rng := rand.New(rand.NewPCG(seed, 9))
	at, all := 0.0, make([]time.Duration, n)
	for i := range all {
		at += rng.ExpFloat64() / rate
		all[i] = seconds(at)
	}
	return all
}

// TestQueue compares one slot with Lindley's recursion on the same arrivals and
// services, exactly, and with the closed forms of M/D/1 (Pollaczek and Khinchine)
// and M/M/1.
func TestQueue(t *testing.T) {
	const n, service = 100_000, 0.010
	for _, c := range []struct {
		times  string
		factor float64 // of the mean wait of M/M/1
	}{{"10ms", 0.5}, {"exponential:10ms", 1}} {
		times := must.Get(ParseDistribution(c.times))
		for _, rho := range []float64{0.5, 0.7} {
			arrivals := poisson(rho/service, n, 1)
			got := drive(newFixed(Fixed{TTFT: times, Slots: 1}, 5), arrivals, 1)
			free, sum := time.Duration(0), 0.0
			for i, at := range arrivals {
				start := max(at, free)
				free = start + times.draw(rand.New(rand.NewPCG(5, uint64(i))))
				if got[i][0] != free {
					t.Fatalf("%s at %v: request %d ends at %v, want %v", c.times, rho, i, got[i][0], free)
				}
				sum += (start - at).Seconds()
			}
			want := c.factor * rho / (1 - rho) * service
			if mean := sum / n; math.Abs(mean-want) > 0.05*want {
				t.Errorf("%s at %v: mean wait %.4g s, want %.4g", c.times, rho, mean, want)
			}
		}
	}
}

// TestFixed: without a limit requests do not wait for each other; with two slots
// never more than two are served; a request that is cancelled gives its slot back.
func TestFixed(t *testing.T) {
	times := Fixed{TTFT: constant(100 * time.Millisecond), TPOT: constant(10 * time.Millisecond)}
	got := drive(newFixed(times, 0), []time.Duration{0, 0, 5e6}, 3)
	for i, first := range []time.Duration{100e6, 100e6, 105e6} {
		if want := []time.Duration{first, first + 10e6, first + 20e6}; !slices.Equal(got[i], want) {
			t.Errorf("request %d: %v, want %v", i, got[i], want)
		}
	}
	times.Slots = 2
	got = drive(newFixed(times, 0), []time.Duration{0, 0, 5e6, 6e6}, 1)
	if got[2][0] != 200e6 || got[3][0] != 200e6 {
		t.Errorf("with two slots: %v", got)
	}
	times.Slots = 1
	f := newFixed(times, 0)
	for range 3 {
		f.Submit(0, workload.Request{Output: 5})
	}
	f.Cancel(1e6, 1) // waits
	f.Cancel(50e6, 0)
	if l := f.Occupancy(); l.Running != 1 || l.Waiting != 0 {
		t.Errorf("after the cancellations %+v", l)
	}
	tokens, _ := f.Advance(time.Second, nil)
	if len(tokens) != 5 || tokens[0].Request != 2 || tokens[0].At != 150e6 || tokens[0].Wait != 50e6 || !tokens[0].First || !tokens[4].Last {
		t.Errorf("the third request: %+v", tokens)
	}
}

// TestServedEqualsRun sends a schedule over HTTP to a simulated engine and runs the
// same arrivals through it in virtual time: every first and last token is due at
// the same microsecond, though preemptions, cache hits and queues lie between. A
// request that a busy machine hands to the engine only after the engine's clock
// has passed it is served later than in virtual time, so a run has three tries.
func TestServedEqualsRun(t *testing.T) {
	for _, async := range []bool{false, true} {
		var differ []string
		for range 3 {
			if differ = servedAgainstRun(t, async); len(differ) == 0 {
				break
			}
		}
		for _, d := range differ {
			t.Errorf("async %v: %s", async, d)
		}
	}
}

// servedAgainstRun lists the requests whose tokens are due at other times than in
// virtual time.
func servedAgainstRun(t *testing.T, async bool) (differ []string) {
	config := small()
	config.Rules.Async = async
	config.Seqs, config.Blocks, config.BatchTokens = 8, 40, 256
	timer := steady{0.004, 0.0015}
	r := run(t, &Simulator{Timer: timer, Config: config})
	rng := rand.New(rand.NewPCG(4, 4))
	var wg sync.WaitGroup
	for i := range 40 {
		prompt := 1 + rng.IntN(200)
		body := fmt.Sprintf(`{"prompt":[%d`, i%3)
		for k := 1; k < prompt; k++ {
			body += fmt.Sprintf(",%d", k)
		}
		body += fmt.Sprintf(`],"max_tokens":%d,"ignore_eos":true,"stream":%v}`, 1+rng.IntN(60), i%2 == 0)
		wg.Go(func() { post(t, r.url+"/v1/completions", body, "X-Request-Id", fmt.Sprint(i%3)) })
		time.Sleep(time.Duration(rng.ExpFloat64() * 5e6))
	}
	wg.Wait()
	all := r.emissions(t)
	slices.SortFunc(all, func(a, b Emission) int { return int(a.Arrived - b.Arrived) })
	load := sim.Load{}
	for i, e := range all {
		text := workload.Content(1 + e.ID[len("cmpl-")]) // by the first token
		load.Requests = append(load.Requests, workload.Request{
			ID: i, Due: e.Arrived, Prompt: e.Prompt, Output: e.Asked, Shared: []workload.Segment{{Content: text, Tokens: e.Prompt}},
		})
	}
	result := sim.NewEngine(timer, config).Run(load)
	for i, e := range all {
		want := result.Records[i]
		first, last := e.Due[0], e.Due[len(e.Due)-1]
		if (first-want.First).Abs() > time.Microsecond || (last-want.Last).Abs() > time.Microsecond || e.Cached != want.Cached || len(e.Due) != e.Asked {
			differ = append(differ, fmt.Sprintf("request %d: first %v, last %v, cached %d; in virtual time %+v", i, first, last, e.Cached, want))
		}
	}
	if *result.Server.HitRate == 0 || *result.Server.Preemptions == 0 {
		t.Errorf("nothing was put to the test: %+v", result.Server)
	}
	return differ
}

// TestBlocks: two texts name the same leading blocks exactly if these hold the same
// tokens, in prompts as in replies, and none under another salt.
func TestBlocks(t *testing.T) {
	const size = 4
	rng := rand.New(rand.NewPCG(7, 7))
	var texts [][]int32 // prompts and replies
	var all [][]workload.Segment
	for n := range 300 {
		c := &completion{hash: uint64(n), output: 1 + rng.IntN(10)}
		if len(texts) > 0 && rng.IntN(4) > 0 { // go on from an earlier text
			old := texts[rng.IntN(len(texts))]
			c.prompt = append(c.prompt, old[:rng.IntN(len(old)+1)]...)
		}
		for range rng.IntN(12) + 1 {
			c.prompt = append(c.prompt, int32(rng.IntN(2)))
		}
		text := slices.Clone(c.prompt)
		for k := range c.output {
			text = append(text, c.tokenID(k))
		}
		blocks := c.blocks(size, 0)
		if len(blocks) != len(text)/size {
			t.Fatalf("%d blocks of %d tokens", len(blocks), len(text))
		}
		for i, old := range all {
			same := 0
			for same < min(len(blocks), len(old)) && blocks[same] == old[same] {
				same++
			}
			if want := commonBlocks(text, texts[i], size); same != want {
				t.Fatalf("%d leading blocks named alike of %v and %v, want %d", same, text, texts[i], want)
			}
		}
		if other := c.blocks(size, 1); len(other) > 0 && other[0] == blocks[0] {
			t.Fatal("the same block under another salt")
		}
		texts, all = append(texts, text), append(all, blocks)
	}
}

// commonBlocks counts the full blocks with which two texts begin alike.
func commonBlocks(a, b []int32, size int) int {
	n := 0
	for (n+1)*size <= min(len(a), len(b)) && slices.Equal(a[n*size:(n+1)*size], b[n*size:(n+1)*size]) {
		n++
	}
	return n
}

package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// inBubble runs a client against h over pipes in virtual time, in which only sleeping takes time:
// every figure is exact.
func inBubble(t *testing.T, h handler, test func(t *testing.T, c *Client)) {
	inBubbleOf(t, false, nil, nil, func(c net.Conn) { answerAll(c, h) }, test)
}

// inBubbleOf is [inBubble] with a server of connections, over TLS where wanted.
func inBubbleOf(t *testing.T, secure bool, conf *tls.Config, roots *x509.CertPool, serve func(net.Conn), test func(t *testing.T, c *Client)) {
	synctest.Test(t, func(t *testing.T) {
		var servers sync.WaitGroup
		c := piped(func(c net.Conn) {
			if secure {
				c = tls.Server(c, conf)
			}
			servers.Go(func() { serve(c) })
		})
		if secure {
			c.URL, c.tls = "https://server", &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
		}
		test(t, c)
		servers.Wait()
	})
}

// steady answers with tokens ttft and then tpot apart, by the bubble's clock.
func steady(ttft, tpot time.Duration) handler {
	return func(c net.Conn, a asked) bool {
		for i := range a.tokens {
			wait, head := tpot, ""
			if i == 0 {
				wait, head = ttft, streamHead
			}
			time.Sleep(wait)
			say(head+chunked(tokenEvent(" w", promptTokens(a.body), i+1)))(c, a)
		}
		_, err := c.Write([]byte(ending(promptTokens(a.body), a.tokens)))
		return err == nil
	}
}

func TestOpenLoopExactly(t *testing.T) {
	inBubble(t, steady(30*time.Millisecond, 5*time.Millisecond), func(t *testing.T, c *Client) {
		trial := measure.Trial{Workload: fixedLengths(16, 11, workload.Poisson), Rate: 50, Warmup: 2 * time.Second, Window: 4 * time.Second,
			Cooldown: time.Second, Seed: 3}
		schedule := trial.Schedule()
		obs, err := c.Run(t.Context(), trial, schedule)
		if err != nil || len(obs.Records) != len(schedule) {
			t.Fatalf("%d records for %d requests, %v", len(obs.Records), len(schedule), err)
		}
		inWindow, cut := 0, 0
		for i, r := range obs.Records {
			if r.ID != i || r.Due != schedule[i].Due || r.Sent != r.Due || r.Asked != 11 {
				t.Fatalf("record %+v of request %+v", r, schedule[i])
			}
			if r.Outcome == measure.InFlight {
				cut++
				if r.Due < trial.Warmup+trial.Window || r.Last >= 0 {
					t.Errorf("cut though due in the window: %+v", r)
				}
				continue
			}
			ttft, _ := r.TTFT()
			tpot, _ := r.TPOT()
			if r.Outcome != measure.OK || ttft != 30*time.Millisecond || tpot != 5*time.Millisecond || r.Output != 11 || r.Prompt != 16 {
				t.Fatalf("TTFT %v, TPOT %v: %+v", ttft, tpot, r)
			}
			if r.Due >= trial.Warmup && r.Due < trial.Warmup+trial.Window {
				inWindow++
			}
		}
		if len(obs.ClassGaps) != 1 || !obs.ClassGaps[0].Equals(obs.Gaps.Histogram) {
			t.Error("the gaps of the one class are not all gaps")
		}
		if obs.End != 7*time.Second || cut == 0 {
			t.Errorf("ended at %v with %d requests in flight; want 7s and some", obs.End, cut)
		}
		if obs.Gaps.TotalCount() != int64(10*inWindow) || obs.Gaps.Min() != 5000 || obs.Gaps.Max()/10 != 500 {
			t.Errorf("%d gaps from %d to %d us; want %d of 5 ms", obs.Gaps.TotalCount(), obs.Gaps.Min(), obs.Gaps.Max(), 10*inWindow)
		}
	})
}

// TestSlowServer: a server slower than the schedule is sent all of it, and the time in its queue is
// in every latency: no coordinated omission.
func TestSlowServer(t *testing.T) {
	var turn chan bool
	inBubble(t, func(c net.Conn, a asked) bool {
		turn <- true
		defer func() { <-turn }()
		return steady(20*time.Millisecond, 0)(c, a)
	}, func(t *testing.T, c *Client) {
		turn = make(chan bool, 1)
		trial := measure.Trial{Workload: fixedLengths(16, 1, workload.Constant), Rate: 100, Window: 3 * time.Second}
		trial.Workload.Timeout = 0
		obs := observe(t, c, trial, trial.Schedule())
		for i, r := range obs.Records {
			if r.Sent != r.Due {
				t.Fatalf("request %d due at %v was sent at %v", i, r.Due, r.Sent)
			}
			// Request i waits for i others of 20 ms, and was due 10 ms after each.
			if d, _ := r.E2E(); i > 0 && (d-time.Duration(i)*10*time.Millisecond).Abs() > 40*time.Millisecond {
				t.Fatalf("request %d took %v", i, d)
			}
		}
	})
}

func TestTimeoutCountsFromDue(t *testing.T) {
	inBubble(t, stall(streamHead), func(t *testing.T, c *Client) {
		trial := measure.Trial{Workload: fixedLengths(16, 4, workload.Constant), Rate: 10, Window: time.Second}
		trial.Workload.Timeout = 1500 * time.Millisecond
		obs := observe(t, c, trial, trial.Schedule())
		last := obs.Records[len(obs.Records)-1]
		for _, r := range obs.Records {
			if r.Outcome != measure.Timeout {
				t.Errorf("%+v, want a timeout", r)
			}
		}
		if want := last.Due + trial.Workload.Timeout; obs.End != want {
			t.Errorf("ended at %v, want %v", obs.End, want)
		}
	})
}

// TestClosedLoop: a slot's next request is due when its last one has ended, and
// no more are in flight than there are slots.
func TestClosedLoop(t *testing.T) {
	var flying, most atomic.Int64
	inBubble(t, func(c net.Conn, a asked) bool {
		most.Store(max(most.Load(), flying.Add(1)))
		defer flying.Add(-1)
		return steady(10*time.Millisecond, 10*time.Millisecond)(c, a)
	}, func(t *testing.T, c *Client) {
		trial := measure.Trial{Concurrency: 3, Requests: 12}
		obs, err := c.Run(t.Context(), trial, requests(12, 16, 4, 0))
		if err != nil || len(obs.Records) != 12 {
			t.Fatalf("%d records, %v", len(obs.Records), err)
		}
		for i, r := range obs.Records {
			want := time.Duration(i/3) * 40 * time.Millisecond
			if r.Due != want || r.Outcome != measure.OK {
				t.Errorf("request %d: %+v, want due at %v", i, r, want)
			}
		}
		if most.Load() != 3 {
			t.Errorf("%d in flight, want 3", most.Load())
		}
	})
}

// TestTurns: a turn leaves at its own time or at its parent's end, whichever is
// later, and not at all when the schedule is over by then.
func TestTurns(t *testing.T) {
	inBubble(t, steady(100*time.Millisecond, 100*time.Millisecond), func(t *testing.T, c *Client) {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		schedule := []workload.Request{
			{ID: 0, Due: 0, Prompt: 8, Output: 10},                    // Ends at 1,000.
			{ID: 1, Due: ms(500), Prompt: 28, Output: 2, Parent: 1},   // Waits, ends at 1,200.
			{ID: 2, Due: ms(1500), Prompt: 38, Output: 20, Parent: 2}, // Does not wait; ends at 3,500.
			{ID: 3, Due: ms(1900), Prompt: 60, Output: 2, Parent: 3},  // Never comes due.
		}
		trial := measure.Trial{Workload: fixedLengths(1, 1, workload.Constant), Rate: 1, Window: 2 * time.Second}
		obs, err := c.Run(t.Context(), trial, schedule)
		if err != nil || len(obs.Records) != 3 {
			t.Fatalf("%d records, want 3, %v", len(obs.Records), err)
		}
		for i, want := range []time.Duration{0, ms(1000), ms(1500)} {
			if r := obs.Records[i]; r.Due != want || r.Sent != want || r.Outcome != measure.OK {
				t.Errorf("turn %d: %+v, want due at %v", i, r, want)
			}
		}
	})
}

func TestAbort(t *testing.T) {
	inBubble(t, steady(10*time.Second, 0), func(t *testing.T, c *Client) {
		trial := measure.Trial{Workload: fixedLengths(16, 4, workload.Constant), Rate: 10, Window: time.Minute}
		c.Abort = func(now time.Duration, records func() []measure.Record) note.Reason {
			all := records()
			if now > 2*time.Second && len(all) >= 20 && all[0].Outcome == measure.InFlight && all[0].First < 0 {
				return note.Text("too slow").Reason()
			}
			return note.Reason{}
		}
		obs, err := c.Run(t.Context(), trial, trial.Schedule())
		if err != nil || obs.Aborted.Text != "too slow" || obs.End > 3*time.Second {
			t.Errorf("aborted %q at %v, %v", obs.Aborted.Text, obs.End, err)
		}
		for _, r := range obs.Records {
			if r.Outcome != measure.InFlight || r.Due > obs.End {
				t.Errorf("%+v, want in flight", r)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	inBubble(t, steady(10*time.Second, 0), func(t *testing.T, c *Client) {
		stop := errors.New("stopped by the user")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		trial := measure.Trial{Workload: fixedLengths(16, 4, workload.Constant), Rate: 10, Window: time.Minute}
		obs, err := c.Run(ctx, trial, trial.Schedule())
		if !errors.Is(err, stop) || obs.Aborted.Text == "" || obs.End != time.Second || len(obs.Records) < 9 {
			t.Errorf("%d records until %v, aborted %q, %v", len(obs.Records), obs.End, obs.Aborted.Text, err)
		}
	})
}

func TestSnapshot(t *testing.T) {
	inBubble(t, steady(30*time.Millisecond, 0), func(t *testing.T, c *Client) {
		trial := measure.Trial{Workload: fixedLengths(16, 4, workload.Constant), Rate: 10, Window: 5 * time.Second}
		r := must.Get(c.Start(t.Context(), trial, trial.Schedule()))
		time.Sleep(3515 * time.Millisecond)
		want := Interim{Elapsed: 3515 * time.Millisecond, Left: 1485 * time.Millisecond, Sent: 35, Done: 34, InFlight: 1}
		got := r.Interim()
		// Requests are due as the seconds end: either may come first.
		if got.Rate < 9 || got.Rate > 11 {
			t.Errorf("rate %v, want 10", got.Rate)
		}
		if got.TTFT50/time.Millisecond != 30 || got.TTFT99/time.Millisecond != 30 {
			t.Errorf("TTFT %v, %v, want 30 ms", got.TTFT50, got.TTFT99)
		}
		got.TTFT50, got.TTFT99, got.Rate = 0, 0, 0
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestChunksOfSeveralTokens: gaps between chunks are not presented as those between tokens, while
// the time per token counts tokens.
func TestChunksOfSeveralTokens(t *testing.T) {
	inBubble(t, func(c net.Conn, a asked) bool {
		for n := 3; n <= 12; n += 3 {
			time.Sleep(30 * time.Millisecond)
			head := ""
			if n == 3 {
				head = streamHead
			}
			say(head+chunked(tokenEvent(" one two three", 8, n)))(c, a)
		}
		say(ending(8, 12))(c, a)
		return true
	}, func(t *testing.T, c *Client) {
		obs, err := c.Run(t.Context(), measure.Trial{Concurrency: 1, Requests: 10}, requests(10, 8, 12, 0))
		const remark = "3.00 of them came in a chunk"
		if err != nil || obs.Gaps != nil || !strings.Contains(obs.Remarks.String(), remark) {
			t.Errorf("gaps %v, remarks %q, %v", obs.Gaps, obs.Remarks, err)
		}
		itl := measure.SLO{Bounds: []measure.Bound{{Metric: measure.ITL, Quantile: 0.99, Limit: time.Second}}, Errors: -1}
		bounded, err := c.Run(t.Context(), measure.Trial{Concurrency: 1, Requests: 2, Objective: itl}, requests(2, 8, 12, 0))
		if err != nil || !strings.Contains(bounded.Doubts.String(), remark) {
			t.Errorf("a bound on ITL without its figure is not doubted: %q, %v", bounded.Doubts, err)
		}
		if tpot, ok := obs.Records[0].TPOT(); !ok || tpot != 90*time.Millisecond/11 {
			t.Errorf("TPOT %v", tpot)
		}
		if strings.Contains(obs.Remarks.String(), "together with another") {
			t.Errorf("remarks %q", obs.Remarks)
		}
	})
}

// TestTokensWithoutText: a server without a tokenizer sends no text, and the chunk that says why an
// answer ended brings its last token (vLLM 0.32 with --skip-tokenizer-init).
func TestTokensWithoutText(t *testing.T) {
	inBubble(t, func(c net.Conn, a asked) bool {
		say(streamHead)(c, a)
		for n := range a.tokens {
			reason := "null"
			if n == a.tokens-1 {
				reason = `"length"`
			}
			time.Sleep(20 * time.Millisecond)
			say(chunked(fmt.Sprintf(`data: {"id":"cmpl-ab51","object":"text_completion","created":1795327694,"model":"tiny","choices":[{"index":0,"text":"",`+
				`"logprobs":null,"finish_reason":%s,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}],`+
				`"usage":{"prompt_tokens":8,"total_tokens":%d,"completion_tokens":%d}}`+"\n\n", reason, n+9, n+1)))(c, a)
		}
		say(chunked(usageEvent(8, a.tokens))+chunked(doneEvent), lastChunk)(c, a)
		return true
	}, func(t *testing.T, c *Client) {
		for _, tokens := range []int{1, 2, 5} {
			obs := observe(t, c, measure.Trial{Concurrency: 1, Requests: 1}, requests(1, 8, tokens, 0))
			r := obs.Records[0]
			ttft, _ := r.TTFT()
			e2e, ok := r.E2E()
			if !ok || r.Output != tokens || ttft != 20*time.Millisecond || e2e != time.Duration(tokens)*20*time.Millisecond {
				t.Errorf("%d tokens: %v %q, %d tokens, %v to the first, %v in all", tokens, r.Outcome, r.Detail, r.Output, ttft, e2e)
			}
			if obs.Gaps == nil || obs.Gaps.TotalCount() != int64(tokens-1) {
				t.Errorf("%d tokens: gaps %+v", tokens, obs.Gaps)
			}
		}
	})
}

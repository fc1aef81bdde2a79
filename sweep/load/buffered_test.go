package load

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// held generates a token every 30 ms, and sends them in writes of so many.
func held(sizes ...int) handler {
	return func(c net.Conn, a asked) bool {
		head, n := streamHead, 0
		for _, size := range sizes {
			time.Sleep(time.Duration(size) * 30 * time.Millisecond)
			var chunks strings.Builder
			for range size {
				n++
				chunks.WriteString(chunked(tokenEvent(" a", 8, n)))
			}
			say(head+chunks.String())(c, a)
			head = ""
		}
		say(ending(8, n))(c, a)
		return true
	}
}

// between are limits on the times between tokens, which a server of 30 ms misses.
var between = measure.SLO{Errors: -1, Bounds: []measure.Bound{
	{Metric: measure.TPOT, Quantile: 0.5, Limit: 20 * time.Millisecond}, {Metric: measure.ITL, Quantile: 0.5, Limit: 20 * time.Millisecond}}}

// TestCoalesced: events that one read returns share its time and are counted. If many do, the times
// between them are not those between tokens, nor, if they are many of one answer, is the time per
// token.
func TestCoalesced(t *testing.T) {
	for _, c := range []struct {
		sizes     []int
		itl, tpot bool
		told      string
	}{
		{[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, true, true, ""},
		{[]int{1, 1, 1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 2}, true, true, "19 % of the chunks"},
		{[]int{2, 2, 2, 2, 2}, false, true, "50 % of the chunks"},
		{[]int{4, 1, 1, 1, 1, 1, 1}, false, false, "in 100 % of the answers"},
		{[]int{1, 9}, false, true, "80 % of the chunks"},
		{[]int{10}, false, false, "in 100 % of the answers"},
	} {
		t.Run(fmt.Sprint(c.sizes), func(t *testing.T) {
			n := 0
			for _, size := range c.sizes {
				n += size
			}
			inBubble(t, held(c.sizes...), func(t *testing.T, client *Client) {
				obs, err := client.Run(t.Context(), measure.Trial{Concurrency: 1, Requests: 4}, requests(4, 8, n, 0))
				if err != nil || (obs.Gaps != nil) != c.itl || obs.Unpaced == c.tpot || !strings.Contains(obs.Remarks.String(), c.told) {
					t.Errorf("gaps %v, unpaced %v, doubts %q, remarks %q, %v", obs.Gaps, obs.Unpaced, obs.Doubts, obs.Remarks, err)
				}
				trial := measure.Trial{Workload: &workload.Workload{}, Concurrency: 8, Requests: 400, Objective: between}
				obs, err = client.Run(t.Context(), trial, requests(400, 8, n, 0))
				// A busy machine does not matter here.
				obs.Pauses, obs.Pause = nil, 0
				obs.Doubts = slices.DeleteFunc(obs.Doubts, func(d note.Note) bool { return strings.HasPrefix(d.String(), "client: ") })
				m := measure.Reduce(trial, obs)
				if err != nil || m.Valid != (c.itl && c.tpot) || m.Verdict.State == measure.Met || m.TPOT.N > 0 != c.tpot || !c.tpot && m.TPOT.P50 != measure.Unresolved {
					t.Errorf("valid %v, %v, TPOT %+v, %v: %v", m.Valid, m.Verdict.State, m.TPOT, err, m.Warnings)
				}
			})
		})
	}
}

// TestCountBelowChunks: a server that counts fewer tokens than it sends chunks with text
// contradicts itself, and gives no times per token.
func TestCountBelowChunks(t *testing.T) {
	server := func(c net.Conn, a asked) bool {
		say(streamHead)(c, a)
		for range 10 {
			time.Sleep(30 * time.Millisecond)
			say(chunked(`data: {"choices":[{"text":" a"}]}`+"\n\n"))(c, a)
		}
		say(ending(8, 5))(c, a)
		return true
	}
	inBubble(t, server, func(t *testing.T, client *Client) {
		trial := measure.Trial{Workload: &workload.Workload{}, Concurrency: 2, Requests: 20, Objective: between}
		client.Engine = "generic"
		obs, err := client.Run(t.Context(), trial, requests(20, 8, 10, 0))
		m := measure.Reduce(trial, obs)
		if err != nil || m.Valid || m.TPOT.N > 0 || !strings.Contains(m.Warnings.String(), "counts 0.50 of them for each chunk") {
			t.Errorf("valid %v, TPOT %+v, %v: %v", m.Valid, m.TPOT, err, m.Warnings)
		}
		client.Engine = "vllm"
		obs, err = client.Run(t.Context(), trial, requests(20, 8, 10, 0))
		if err != nil || obs.Records[0].Detail != "5 tokens for 10 by the server's count, in 10 events" {
			t.Errorf("%+v, %v", obs.Records[0], err)
		}
	})
}

// TestBufferingProxy: an answer that comes whole, in one write that takes many reads, has no times
// between its tokens.
func TestBufferingProxy(t *testing.T) {
	conf, roots := certificate()
	for _, secure := range []bool{false, true} {
		c := securely(t, secure, conf, roots, func(c net.Conn) { answerAll(c, burst(false)) })
		trial := measure.Trial{Workload: &workload.Workload{}, Concurrency: 2, Requests: 20, Objective: between}
		obs, err := c.Run(t.Context(), trial, requests(20, 8, 600, 0))
		m := measure.Reduce(trial, obs)
		if err != nil || failures(&obs) > 0 || m.Verdict.State != measure.Unsure || m.TPOT.N > 0 || m.ITL.N > 0 || !strings.Contains(m.Warnings.String(), "as a buffer on the way gives them") {
			t.Errorf("TLS %v: %v, TPOT %+v, ITL %+v, %v: %v", secure, m.Verdict, m.TPOT, m.ITL, err, m.Warnings)
		}
	}
}

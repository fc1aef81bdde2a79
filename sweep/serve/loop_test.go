package serve

import (
	"io"
	"net"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/model/sim"
)

// TestTokenAllocates: a token costs no allocation on its way from the engine to the
// kernel, with counts and token ids in its event and without.
func TestTokenAllocates(t *testing.T) {
	for _, options := range []string{"", `,"return_token_ids":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`} {
		l, r := lone(t, `{"prompt":[1,2],"max_tokens":3000,"ignore_eos":true,"stream":true`+options+`}`)
		k := 0
		next := func() {
			l.deliver(sim.Token{At: time.Duration(k), First: k == 0})
			k++
		}
		next()
		if n := testing.AllocsPerRun(2000, next); n != 0 {
			t.Errorf("%v allocations per token", n)
		}
		if len(r.Left) != k || r.Blocked > 0 {
			t.Errorf("%d of %d tokens left, %d blocked", len(r.Left), k, r.Blocked)
		}
	}
}

// lone is a loop with one reply, whose client reads everything away.
func lone(t testing.TB, body string) (*eventLoop, *reply) {
	t.Helper()
	port := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	defer port.Close()
	there := must.Get(net.Dial("tcp", port.Addr().String()))
	here := must.Get(port.Accept())
	t.Cleanup(func() { here.Close(); there.Close() })
	go func() { _, _ = io.Copy(io.Discard, there) }()
	server := Simulator{Model: "m", MaxModelLen: 1 << 20, reply: 512}
	c := must.Get(server.parseRequest([]byte(body), false))
	out := must.Get(newSendBuffer(here.(*net.TCPConn)))
	r := newReply(c, "cmpl-1", "m", 1)
	r.Due, r.Left = make([]time.Duration, 0, c.output), make([]time.Duration, 0, c.output)
	r.out, r.chunked, r.keepAlive, r.number = out, true, true, 0
	return &eventLoop{start: time.Now(), backend: newFixed(Fixed{}, 0), metrics: newMetrics("m"), replies: map[int]*reply{0: r}}, r
}

// A server that stops closes connections under replies: their clients have not left.
func TestTokenOfStoppedServer(t *testing.T) {
	for stopped, want := range map[bool]string{false: outcomeLeft, true: outcomeStopped} {
		l, r := lone(t, `{"prompt":[1,2],"max_tokens":3,"stream":true}`)
		l.closed = stopped
		r.out.conn.Close()
		if l.deliver(sim.Token{First: true}); r.Outcome != want {
			t.Errorf("stopped %t: the reply ended as %q, want %q", stopped, r.Outcome, want)
		}
	}
}

// BenchmarkToken is what a token costs from the engine to the kernel.
func BenchmarkToken(b *testing.B) {
	l, r := lone(b, `{"prompt":[1,2],"max_tokens":1000000,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
	b.ReportAllocs()
	for b.Loop() {
		r.Due, r.Left = r.Due[:0], r.Left[:0]
		l.deliver(sim.Token{})
	}
}

package serve

import (
	"io"
	"net"
	"testing"
	"time"

	"planner/model/sim"
)

// TestTokenAllocates: a token costs no allocation on its way from the engine to the
// kernel, with counts and token ids in its event and without.
func TestTokenAllocates(t *testing.T) {
	for _, options := range []string{"", `,"return_token_ids":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`} {
		d, r := lone(t, `{"prompt":[1,2],"max_tokens":3000,"ignore_eos":true,"stream":true`+options+`}`)
		k := 0
		next := func() {
			d.told(sim.Token{At: time.Duration(k), First: k == 0}, time.Hour)
			k++
		}
		next()
		if n := testing.AllocsPerRun(2000, next); n != 0 {
			t.Errorf("%v allocations per token", n)
		}
		if len(r.left) != k || r.blocked > 0 {
			t.Errorf("%d of %d tokens left, %d blocked", len(r.left), k, r.blocked)
		}
	}
}

// lone is a desk with one reply, whose client reads everything away.
func lone(t testing.TB, body string) (*desk, *reply) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	go func() { _, _ = io.Copy(io.Discard, there) }()
	terms := terms{model: "m", modelLen: 1 << 20, reply: 512}
	a, err := terms.parseAsk([]byte(body), false)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{start: time.Now(), backend: newFixed(Fixed{}, 0), meter: &meter{model: "m"}, replies: map[int]*reply{}}
	d.meter.init(terms.modelLen)
	r := &reply{ask: a, frames: newFrames(a, "cmpl-1", "m", 1), out: newOutlet(here), done: make(chan struct{}),
		due: make([]time.Duration, 0, a.output), left: make([]time.Duration, 0, a.output)}
	r.frames.chunked, r.frames.keepAlive = true, true
	d.replies[0] = r
	return d, r
}

// BenchmarkToken is what a token costs from the engine to the kernel.
func BenchmarkToken(b *testing.B) {
	d, r := lone(b, `{"prompt":[1,2],"max_tokens":1000000,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
	b.ReportAllocs()
	for b.Loop() {
		r.due, r.left, r.sent = r.due[:0], r.left[:0], 0
		d.told(sim.Token{}, time.Hour)
	}
}

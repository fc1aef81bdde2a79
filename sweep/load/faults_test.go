package load

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

// say answers with the given pieces of raw HTTP and closes the connection.
func say(pieces ...string) handler {
	return func(c net.Conn, _ asked) bool {
		for _, p := range pieces {
			if _, err := io.WriteString(c, p); err != nil {
				return false
			}
		}
		return false
	}
}

// reset sends something and then breaks the connection.
func reset(pieces ...string) handler {
	return func(c net.Conn, a asked) bool {
		say(pieces...)(c, a)
		time.Sleep(20 * time.Millisecond) // What was said arrives first.
		if s, ok := c.(*tls.Conn); ok {
			c = s.NetConn()
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.Close()
		return false
	}
}

// stall sends something and then nothing more.
func stall(pieces ...string) handler {
	return func(c net.Conn, a asked) bool {
		say(pieces...)(c, a)
		io.Copy(io.Discard, c)
		return false
	}
}

// whole is an answer that states its length.
func whole(status, kind, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, kind, len(body), body)
}

// tokensOf returns the chunks of n tokens.
func tokensOf(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(chunked(tokenEvent(" w", 8, i+1)))
	}
	return b.String()
}

const eventStream = "text/event-stream"

// flood sends something and then something else again and again.
func flood(head, rest string) handler {
	again := []byte(rest)
	return func(c net.Conn, _ asked) bool {
		_, err := io.WriteString(c, head)
		for err == nil {
			_, err = c.Write(again)
		}
		return false
	}
}

// drip floods slowly.
func drip(head, rest string) handler {
	return func(c net.Conn, _ asked) bool {
		_, err := io.WriteString(c, head)
		for err == nil {
			time.Sleep(20 * time.Millisecond)
			_, err = io.WriteString(c, rest)
		}
		return false
	}
}

// rough does something to a connection of which it has read at most the head of a
// request.
type rough struct {
	fault
	// reads: it reads the request first.
	reads bool
	// held: only the time-out ends it.
	held bool
	// bare: it acts on the connection as it was accepted, before TLS and any request.
	bare bool
	// only is the scheme that the fault exists for; "" for both.
	only string
}

// roughs are what a server may do to a connection without reading a request to its end; these
// requests have longer bodies than fit into the buffers on the way.
var roughs = []rough{
	{fault: fault{"refused unread", say(whole("413 Too Large", "text/plain", "too long")), measure.HTTPStatus, "413: too long", 0}},
	{fault: fault{"refused unread, and stalls", stall("HTTP/1.1 500 Oops\r\nContent-Length: 99\r\n\r\nout of"), measure.HTTPStatus, "500: out of", 0}, held: true},
	{fault: fault{"refused unread and open", stall(whole("503 No", "text/plain", "busy")), measure.HTTPStatus, "503: busy", 0}},
	{fault: fault{"good ahead of its request", ahead, measure.OK, "", 4}},
	{fault: fault{"error ahead of its request", stall(streamHead, chunked(`data: {"error":"no"}`+"\n\n")), measure.StreamError, "no", 0}},
	{fault: fault{"never read", stall(), measure.Timeout, "", 0}},
	{fault: fault{"closed unread", say(), measure.Reset, "", 0}},
	{fault: fault{"reset unread", reset(), measure.Reset, "", 0}},
	{fault: fault{"closed when accepted", say(), measure.Reset, "", 0}, bare: true},
	{fault: fault{"reset when accepted", reset(), measure.Reset, "", 0}, bare: true},
	{fault: fault{"silent when accepted", stall(), measure.Timeout, "", 0}, bare: true},
	{fault: fault{"speaks first", stall("SSH-2.0-OpenSSH_9.6\r\n"), measure.Malformed, "", 0}, bare: true, only: "http"},
	{fault: fault{"no TLS", stall("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), measure.Refused, "", 0}, bare: true, only: "https"},
	{fault: fault{"TLS for plain", stall("\x15\x03\x01\x00\x02\x02\x46"), measure.Malformed, "", 0}, bare: true, only: "http"},
	{fault: fault{"handshake refused", stall("\x15\x03\x03\x00\x02\x02\x28"), measure.Refused, "", 0}, bare: true, only: "https"},
	{fault: fault{"handshake cut", say("\x16\x03\x03\x00\x7a\x02\x00"), measure.Reset, "", 0}, bare: true, only: "https"},
}

// overTLS is what net/http may take some of them for: it reads a line that was cut, and
// may give up an answer when the request breaks.
var overTLS = map[string]measure.Outcome{"cut head": measure.Malformed, "refused unread": measure.Reset}

// ahead answers well before it reads on.
func ahead(c net.Conn, a asked) bool {
	say(streamHead, tokensOf(4), ending(8, 4))(c, a)
	io.Copy(io.Discard, c)
	return false
}

// way is how a request reaches a server that misbehaves.
type way struct{ secure, reused bool }

func (w way) String() string {
	return map[bool]string{false: "http", true: "https"}[w.secure] + map[bool]string{false: ", new connection", true: ", kept connection"}[w.reused]
}

// serveFault runs a server that answers the first request well if the connection is to be reused,
// and misbehaves from then on. It returns its URL.
func serveFault(l net.Listener, w way, f rough, conf *tls.Config) (stop func()) {
	var seen atomic.Int64
	good := say(streamHead, tokensOf(4), ending(8, 4))
	return serveConns(l, func(c net.Conn) {
		defer c.Close()
		if f.bare && (!w.reused || seen.Load() > 0) {
			f.server(c, asked{})
			return
		}
		if w.secure {
			c = tls.Server(c, conf)
		}
		r := bufio.NewReaderSize(c, 4<<10)
		for {
			a, err := readHead(r)
			first := err == nil && w.reused && seen.Add(1) == 1
			if err == nil && (first || f.reads) {
				err = a.readBody(r)
			}
			switch {
			case err != nil:
				return
			case !first:
				f.server(c, a)
				return
			default:
				good(c, a)
				if f.bare {
					return
				}
			}
		}
	})
}

// TestFaults: whatever a server does, over TLS or not, at the first request of a connection or at a
// later one, is reported as what it is, never taken for a success or a latency, and not waited for
// beyond the time-out.
func TestFaults(t *testing.T) {
	conf, roots := certificate()
	cases := slices.Clone(roughs)
	for _, f := range faults {
		cases = append(cases, rough{fault: f, reads: true})
	}
	// Those that are held need quiet: they have a time-out to keep.
	for _, held := range []bool{false, true} {
		slots, all := make(chan struct{}, 40), sync.WaitGroup{}
		for _, f := range cases {
			for _, w := range []way{{false, false}, {false, true}, {true, false}, {true, true}} {
				if (f.held || f.outcome == measure.Timeout) != held || f.only != "" && (f.only == "https") != w.secure {
					continue
				}
				all.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					timeout := 20 * time.Second
					if held {
						timeout = time.Second
					}
					err := meet(t.Context(), w, f, timeout, conf, roots)
					for err != nil && timeout < 10*time.Second { // A busy machine may need longer.
						timeout *= 2
						err = meet(t.Context(), w, f, timeout, conf, roots)
					}
					if err != nil {
						t.Errorf("%s, %v: %v", f.name, w, err)
					}
				})
			}
		}
		all.Wait()
	}
}

// meet sends a request to a server that misbehaves and says what is wrong with its
// record.
func meet(ctx context.Context, w way, f rough, timeout time.Duration, conf *tls.Config, roots *x509.CertPool) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer serveFault(l, w, f, conf)()
	c := &Client{URL: map[bool]string{false: "http://", true: "https://"}[w.secure] + l.Addr().String(), Model: "m", Stream: true, Engine: "vllm",
		tls: &tls.Config{RootCAs: roots}, dial: narrow}
	n, prompt := 1, 8
	if w.reused {
		n = 2
	}
	if !f.reads {
		prompt = 40_000
	}
	trial := measure.Trial{Workload: &workload.Workload{Timeout: timeout}, Concurrency: 1, Requests: n}
	obs, err := c.Run(ctx, trial, requests(n, prompt, 4, 0))
	switch {
	case err != nil || len(obs.Records) != n:
		return fmt.Errorf("%d records, %w", len(obs.Records), err)
	case n > 1 && obs.Records[0].Outcome != measure.OK:
		return fmt.Errorf("the request ahead of it: %v %q", obs.Records[0].Outcome, obs.Records[0].Detail)
	}
	r := &obs.Records[n-1]
	if also, ok := overTLS[f.name]; ok && w.secure && r.Outcome == also {
		return nil
	}
	return f.check(r, obs.End, timeout)
}

func (f *fault) check(r *measure.Record, end, timeout time.Duration) error {
	detail, begins := strings.CutSuffix(f.detail, "...")
	right := r.Detail == f.detail || f.detail == "" || begins && strings.HasPrefix(r.Detail, detail)
	if r.Outcome != f.outcome || !right || len(r.Detail) > 160 || f.output >= 0 && r.Output != f.output {
		return fmt.Errorf("%v %q, %d tokens; want %v %q, %d", r.Outcome, r.Detail, r.Output, f.outcome, f.detail, f.output)
	}
	if _, ok := r.E2E(); ok != (f.outcome == measure.OK) {
		return fmt.Errorf("%v has a latency: %v", r.Outcome, ok)
	}
	if held := end - r.Due; held > timeout+slack || f.outcome == measure.OK && held > timeout/2 {
		return fmt.Errorf("held for %v at a time-out of %v", held, timeout)
	}
	return nil
}

// slack is how late a busy machine may be.
const slack = 2 * time.Second

// narrow opens a connection that takes little in advance.
func narrow(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		c.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}
	return c, err
}

// certificate makes a server's TLS configuration and the pool that trusts it.
func certificate() (*tls.Config, *x509.CertPool) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	plain := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	signed := must.Get(x509.CreateCertificate(rand.Reader, plain, plain, &key.PublicKey, key))
	read := must.Get(x509.ParseCertificate(signed))
	roots := x509.NewCertPool()
	roots.AddCert(read)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}}, roots
}

// one sends one request for 4 tokens and returns its record.
func one(t *testing.T, c *Client, timeout time.Duration) measure.Record {
	t.Helper()
	c.Model, c.Stream, c.Engine = "m", true, "vllm"
	trial := measure.Trial{Workload: &workload.Workload{Timeout: timeout}, Concurrency: 1, Requests: 1}
	obs, err := c.Run(t.Context(), trial, requests(1, 8, 4, 0))
	if err != nil || len(obs.Records) != 1 {
		t.Fatalf("%d records, %v", len(obs.Records), err)
	}
	return obs.Records[0]
}

package load

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// reset says something and then breaks the connection off.
func reset(pieces ...string) handler {
	return func(c net.Conn, a asked) bool {
		say(pieces...)(c, a)
		time.Sleep(20 * time.Millisecond) // What was said arrives first.
		c.(*net.TCPConn).SetLinger(0)
		return false
	}
}

// stall says something and then nothing any more.
func stall(pieces ...string) handler {
	return func(c net.Conn, a asked) bool {
		say(pieces...)(c, a)
		io.Copy(io.Discard, c)
		return false
	}
}

// whole is an answer with a length.
func whole(status, kind, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, kind, len(body), body)
}

// tokensOf is the chunks of n tokens.
func tokensOf(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(chunked(tokenEvent(" w", 8, i+1)))
	}
	return b.String()
}

const eventStream = "text/event-stream"

// faults are servers that misbehave, with what is to be said of them. Requests
// ask for 4 tokens.
var faults = []struct {
	name    string
	server  handler
	outcome measure.Outcome
	detail  string
	output  int
}{
	{"good", say(streamHead, tokensOf(4), ending(8, 4)), measure.OK, "", 4},
	{"good without [DONE]", say(streamHead, tokensOf(4), chunked(finishEvent()), lastChunk), measure.OK, "", 4},
	{"good without a finish reason", say(streamHead, tokensOf(4), chunked(doneEvent), lastChunk), measure.OK, "", 4},
	{"good in one event per line end", say(streamHead, chunked(strings.ReplaceAll(tokenEvent(" w", 8, 4)+finishEvent()+doneEvent, "\n", "\r\n")), lastChunk), measure.OK, "", 4},
	{"good until the connection closes", say("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + tokenEvent("a", 8, 4) + finishEvent() + doneEvent), measure.OK, "", 4},
	{"good behind an interim answer", say("HTTP/1.1 100 Continue\r\n\r\n", streamHead, tokensOf(4), ending(8, 4)), measure.OK, "", 4},
	{"good, cut behind [DONE]", say(streamHead, tokensOf(4), chunked(finishEvent()), chunked(doneEvent)), measure.OK, "", 4},
	{"good with extensions and trailers", say(streamHead, strings.Replace(tokensOf(4), "\r\n", ";x=y\r\n", 1), chunked(finishEvent()), "0\r\nX: y\r\n\r\n"), measure.OK, "", 4},

	{"good, with a count of none", say(streamHead, chunked(`data: {"choices":[{"text":"a"}]}`+"\n\n"), chunked(`data: {"choices":[{"text":"b"}]}`+"\n\n"), ending(8, 0)), measure.OK, "", 2},

	{"503", say(whole("503 Service Unavailable", "application/json", `{"error":{"message":"queue full"}}`)), measure.HTTPStatus, "503: queue full", 0},
	{"429 without a body", say("HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n"), measure.HTTPStatus, "429", 0},
	{"204", say("HTTP/1.1 204 No Content\r\n\r\n"), measure.HTTPStatus, "204", 0},
	{"307", say("HTTP/1.1 307 Elsewhere\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"), measure.HTTPStatus, "307", 0},
	{"closed at once", say(), measure.Reset, "", 0},
	{"reset at once", reset(), measure.Reset, "", 0},
	{"reset in the stream", reset(streamHead, tokensOf(2)), measure.Reset, "", 2},
	{"silent", stall(), measure.Timeout, "", 0},
	{"silent behind the head", stall(streamHead), measure.Timeout, "", 0},
	{"stalled stream", stall(streamHead, tokensOf(2)), measure.Timeout, "", 2},
	{"cut stream", say(streamHead, tokensOf(2)), measure.Truncated, "", 2},
	{"cut chunk", say(streamHead, tokensOf(2), "ff\r\ndata: {"), measure.Truncated, "", 2},
	{"cut head", say("HTTP/1.1 200 OK\r\nContent-"), measure.Truncated, "", 0},
	{"ended without a finish", say(streamHead, tokensOf(2), lastChunk), measure.Truncated, "", 2},
	{"cut body of a length", say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + tokenEvent("a", 8, 4) + finishEvent()), measure.Truncated, "", 4},
	{"empty stream", say(streamHead, lastChunk), measure.Empty, "", 0},
	{"only [DONE]", say(streamHead, chunked(doneEvent), lastChunk), measure.Empty, "", 0},
	{"only a role", say(streamHead, chunked(`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}`+"\n\n"), chunked(finishEvent()), chunked(doneEvent), lastChunk), measure.Empty, "", 0},
	{"only usage", say(streamHead, ending(8, 4)), measure.Empty, "", 4},
	{"empty body", say(whole("200 OK", "application/json", "")), measure.Empty, "no body", 0},
	{"error event", say(streamHead, tokensOf(2), chunked("event: error\ndata: out of memory\n\n"), lastChunk), measure.StreamError, "out of memory", 2},
	{"error in the stream", say(streamHead, tokensOf(1), chunked(`data: {"error":{"message":"gone","code":500}}`+"\n\n"), chunked(doneEvent), lastChunk), measure.StreamError, "gone", 1},
	{"error as the answer", say(whole("200 OK", "application/json", `{"error":"no"}`)), measure.StreamError, "no", 0},
	{"no stream though asked", say(whole("200 OK", "application/json", `{"choices":[{"text":"a"}]}`)), measure.Malformed, "no stream, though asked for", 0},
	{"malformed event", say(streamHead, tokensOf(1), chunked("data: {\"choices\":[\n\n"), ending(8, 4)), measure.Malformed, "", 1},
	{"text for an event", say(streamHead, chunked("data: hello\n\n"), ending(8, 4)), measure.Malformed, "", 0},
	{"not HTTP", say("SSH-2.0-OpenSSH_9.6\r\n\r\n"), measure.Malformed, "", 0},
	{"no number for a status", say("HTTP/1.1 abc OK\r\n\r\n"), measure.Malformed, "", 0},
	{"bad length", say("HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n"), measure.Malformed, "", 0},
	{"bad chunk size", say(streamHead, "xyz\r\n"), measure.Malformed, "", 0},
	{"chunk without its end", say(streamHead, "3\r\nabcdef\r\n"), measure.Malformed, "", 0},
	{"endless head", say("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 100)+"\r\n", 1000)), measure.Malformed, "", 0},
	{"endless line between chunks", say(streamHead, strings.Repeat("0", 20_000)), measure.Malformed, "", 0},
	{"endless event", say("HTTP/1.1 200 OK\r\nContent-Type: " + eventStream + "\r\n\r\ndata: " + strings.Repeat("x", 2<<20)), measure.Malformed, "event longer than 1 MiB", 0},
	{"too few tokens", say(streamHead, tokensOf(3), ending(8, 3)), measure.WrongLength, "3 tokens for 4", 3},
	{"too many tokens", say(streamHead, tokensOf(5), ending(8, 5)), measure.WrongLength, "5 tokens for 4", 5},
	{"more tokens counted than came", say(streamHead, tokensOf(4), ending(8, 12)), measure.WrongLength, "12 tokens for 4 by the server's count, in 4 events", 12},
	{"compressed", say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b"), measure.Malformed, `malformed answer: content-encoding "gzip", which was not asked for`, 0},
	{"tokens without end", say(streamHead, tokensOf(1500)), measure.WrongLength, "", -1},
}

// TestFaults classifies each misbehaviour, over plain connections, and never
// takes it for a success or a latency.
func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := one(t, &Client{URL: serve(t, f.server)}, 500*time.Millisecond)
			if r.Outcome != f.outcome || f.detail != "" && r.Detail != f.detail || f.output >= 0 && r.Output != f.output {
				t.Errorf("%v %q, %d tokens; want %v %q, %d", r.Outcome, r.Detail, r.Output, f.outcome, f.detail, f.output)
			}
			if _, ok := r.E2E(); ok != (f.outcome == measure.OK) {
				t.Errorf("%v has a latency: %v", r.Outcome, ok)
			}
		})
	}
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

func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if r := one(t, &Client{URL: "http://" + l.Addr().String()}, time.Second); r.Outcome != measure.Refused {
		t.Errorf("%v %q, want refused", r.Outcome, r.Detail)
	}
	if r := one(t, &Client{URL: "http://no-such-host.invalid"}, 2*time.Second); r.Outcome != measure.Refused && r.Outcome != measure.Timeout {
		t.Errorf("unknown host: %v %q, want refused", r.Outcome, r.Detail)
	}
}

// TestDropped: what the client ran out of is its own failure, and says so.
func TestDropped(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.EADDRNOTAVAIL} {
		c := &Client{URL: "http://127.0.0.1:1", dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errno}
		}}
		if r := one(t, c, time.Second); r.Outcome != measure.Dropped {
			t.Errorf("%v: %v, want dropped", errno, r.Outcome)
		}
	}
}

// TestStaleConnection: a server that closes kept connections behind the
// client's back costs no request.
func TestStaleConnection(t *testing.T) {
	url := serve(t, func(c net.Conn, a asked) bool {
		say(streamHead, tokensOf(a.tokens), ending(8, a.tokens))(c, a)
		return false
	})
	var dialled atomic.Int64
	c := &Client{URL: url, Model: "m", Stream: true, Engine: "vllm", dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	r, err := c.Start(t.Context(), measure.Trial{Concurrency: 1, Requests: 20}, requests(20, 8, 4, 0))
	if err != nil {
		t.Fatal(err)
	}
	obs, err := r.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range obs.Records {
		if rec.Outcome != measure.OK {
			t.Errorf("request %d: %v %q", rec.ID, rec.Outcome, rec.Detail)
		}
	}
	if n := r.via.(*connPool).resent; n > resendLimit {
		t.Errorf("%d requests sent again", n)
	}
	if n := dialled.Load(); n < 15 {
		t.Errorf("%d connections, though each was closed behind its answer", n)
	}
}

// TestThrownAway: requests that a server reads and throws away are failures,
// however alike they are to those that meet a connection which had just been closed.
func TestThrownAway(t *testing.T) {
	for name, breaks := range map[string]handler{"reset": reset(), "closed": say()} {
		t.Run(name, func(t *testing.T) {
			var seen, thrown atomic.Int64
			url := serve(t, func(c net.Conn, a asked) bool {
				if seen.Add(1)%5 == 0 {
					thrown.Add(1)
					breaks(c, a)
					return false
				}
				say(streamHead, tokensOf(a.tokens), ending(8, a.tokens))(c, a)
				return true
			})
			c := &Client{URL: url, Model: "m", Stream: true, Engine: "vllm"}
			obs, err := c.Run(t.Context(), measure.Trial{Concurrency: 1, Requests: 60}, requests(60, 8, 4, 0))
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, rec := range obs.Records {
				if rec.Outcome != measure.OK {
					failed++
				}
			}
			if failed != int(thrown.Load())-resendLimit {
				t.Errorf("%d thrown away: %d failed", thrown.Load(), failed)
			}
			if !slices.ContainsFunc(obs.Remarks.Texts(), func(s string) bool { return strings.HasPrefix(s, "connections: 3 requests met one") }) {
				t.Errorf("remarks %q do not say that requests were sent again", obs.Remarks)
			}
		})
	}
}

// TestHungUp tells an open connection from one that the server has left.
func TestHungUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, leave := range []func(c *net.TCPConn){
		func(c *net.TCPConn) { c.Close() },
		func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
		func(c *net.TCPConn) { io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		here, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		there, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer there.Close()
		here.SetDeadline(time.Now().Add(-time.Second))
		if hungUp(here) {
			t.Error("an open connection is of no more use")
		}
		leave(there.(*net.TCPConn))
		for end := time.Now().Add(5 * time.Second); !hungUp(here) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if !hungUp(here) {
			t.Error("a connection that the server left is of use")
		}
	}
}

// TestShorterAnswers: an engine that is not told to go on behind its end gives
// less load than asked for, and the trial says so.
func TestShorterAnswers(t *testing.T) {
	for _, n := range []int{4, 3} {
		url := serve(t, say(streamHead, tokensOf(n), ending(8, n)))
		c := &Client{URL: url, Model: "m", Stream: true}
		trial := measure.Trial{Workload: &workload.Workload{Timeout: time.Second}, Concurrency: 1, Requests: 5}
		obs, err := c.Run(t.Context(), trial, requests(5, 8, 4, 0))
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(obs.Remarks.Texts(), func(s string) bool { return strings.HasPrefix(s, "answers: the server generated 25 % fewer tokens") })
		if said != (n < 4) {
			t.Errorf("%d of 4 tokens: remarks %q", n, obs.Remarks)
		}
	}
}

package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"planner/internal/evidence/must"
	"planner/internal/list"
	"planner/internal/note"
	"planner/sweep/measure"
	"planner/sweep/workload"
)

func TestRefused(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	l.Close()
	if r := one(t, &Client{URL: "http://" + l.Addr().String()}, time.Second); r.Outcome != measure.Refused {
		t.Errorf("%v %q, want refused", r.Outcome, r.Detail)
	}
	if r := one(t, &Client{URL: "http://no-such-host.invalid"}, 2*time.Second); r.Outcome != measure.Refused && r.Outcome != measure.Timeout {
		t.Errorf("unknown host: %v %q, want refused", r.Outcome, r.Detail)
	}
}

// TestDropped: if the client runs out of files or ports, that is reported as its own failure.
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
	obs := observe(t, c, measure.Trial{Concurrency: 1, Requests: 20}, requests(20, 8, 4, 0))
	for _, rec := range obs.Records {
		if rec.Outcome != measure.OK {
			t.Errorf("request %d: %v %q", rec.ID, rec.Outcome, rec.Detail)
		}
	}
	if n := dialled.Load(); n < 15 {
		t.Errorf("%d connections, though each was closed behind its answer", n)
	}
}

// TestThrownAway: requests that a server reads and throws away now and then are all failures,
// however much they look like those that meet a connection which had just been closed.
func TestThrownAway(t *testing.T) {
	conf, roots := certificate()
	for name, breaks := range map[string]handler{"reset": reset(), "closed": say()} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, TLS %v", name, secure), func(t *testing.T) {
				var seen, thrown atomic.Int64
				c := securely(t, secure, conf, roots, func(c net.Conn) {
					answerAll(c, func(c net.Conn, a asked) bool {
						if seen.Add(1)%5 == 0 {
							thrown.Add(1)
							return breaks(c, a)
						}
						say(streamHead, tokensOf(a.tokens), ending(8, a.tokens))(c, a)
						return true
					})
				})
				obs := observe(t, c, measure.Trial{Concurrency: 1, Requests: 60}, requests(60, 8, 4, 0))
				if failed := failures(&obs); failed != int(thrown.Load()) || failed != 12 {
					t.Errorf("%d thrown away: %d failed", thrown.Load(), failed)
				}
			})
		}
	}
}

// TestCrossingClose: requests that leave while the server closes a connection which it has kept for
// some answers are sent again on new ones, which are kept.
func TestCrossingClose(t *testing.T) {
	conf, roots := certificate()
	for _, secure := range []bool{false, true} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("TLS %v, the close arrives first %v", secure, early), func(t *testing.T) {
				var theirs, closing sync.Map // by the client's address
				closes := func(c net.Conn) {
					if s, ok := c.(*tls.Conn); ok {
						theirs.Store(c.RemoteAddr().String(), s.NetConn())
					} else {
						theirs.Store(c.RemoteAddr().String(), c)
					}
					answers := 0
					answerAll(c, func(c net.Conn, a asked) bool {
						if answers++; answers == 5 {
							closing.Store(c.RemoteAddr().String(), true)
						}
						say(streamHead, tokensOf(a.tokens), ending(8, a.tokens))(c, a)
						return true
					})
				}
				c := securely(t, secure, conf, roots, closes)
				var dialled atomic.Int64
				c.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					dialled.Add(1)
					nc, err := new(net.Dialer).DialContext(ctx, network, address)
					if err != nil {
						return nil, err
					}
					return &leaving{nc, func() {
						if _, ok := closing.LoadAndDelete(nc.LocalAddr().String()); ok {
							there, _ := theirs.Load(nc.LocalAddr().String())
							there.(net.Conn).Close()
							if early {
								time.Sleep(5 * time.Millisecond)
							}
						}
					}}, nil
				}
				obs := observe(t, c, measure.Trial{Concurrency: 2, Requests: 100}, requests(100, 8, 4, 0))
				if failed := failures(&obs); failed > 0 {
					t.Errorf("%d of 100 good requests failed: %v", failed, obs.Records)
				}
				if n := dialled.Load(); n > 42 {
					t.Errorf("%d connections for 100 requests, five on each", n)
				}
				if !secure || !early { // net/http itself takes another connection where it knows in time
					checkResent(t, &obs)
				}
			})
		}
	}
}

// leaving is a connection that runs a function before each write.
type leaving struct {
	net.Conn
	ahead func()
}

func (l *leaving) SyscallConn() (syscall.RawConn, error) {
	return l.Conn.(syscall.Conn).SyscallConn()
}

func (l *leaving) Write(b []byte) (int, error) {
	l.ahead()
	return l.Conn.Write(b)
}

// TestClosedBehindTheFirst: requests that meet the close of a connection after its first answer,
// many at once, are sent again on new ones.
func TestClosedBehindTheFirst(t *testing.T) {
	conf, roots := certificate()
	for _, secure := range []bool{false, true} {
		c := securely(t, secure, conf, roots, func(c net.Conn) {
			served := false
			answerAll(c, func(c net.Conn, a asked) bool {
				if !served {
					say(streamHead, tokensOf(a.tokens), ending(8, a.tokens))(c, a)
				}
				again := !served
				served = true
				return again
			})
		})
		obs := observe(t, c, measure.Trial{Concurrency: 24, Requests: 96}, requests(96, 8, 4, 0))
		if failed := failures(&obs); failed > 0 {
			t.Errorf("TLS %v: %d of 96 good requests failed", secure, failed)
		}
		checkResent(t, &obs)
	}
}

// securely runs a server of connections, over TLS where wanted, and returns its client.
func securely(t *testing.T, secure bool, conf *tls.Config, roots *x509.CertPool, serve func(net.Conn)) *Client {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	c := &Client{URL: "http://" + l.Addr().String(), Model: "m", Stream: true, Engine: "vllm", tls: &tls.Config{RootCAs: roots}}
	if secure {
		c.URL = "https://" + l.Addr().String()
		l = tls.NewListener(l, conf)
	}
	t.Cleanup(serveConns(l, serve))
	return c
}

func failures(obs *measure.Observation) int {
	return list.Count(obs.Records, func(r measure.Record) bool { return r.Outcome != measure.OK })
}

func checkResent(t *testing.T, obs *measure.Observation) {
	t.Helper()
	if !strings.Contains(obs.Remarks.String(), "requests met one that the server closed without an answer, and were sent again") {
		t.Errorf("remarks %q do not say that requests were sent again", obs.Remarks)
	}
}

// TestEarlyAnswers: what a server reads of a request after its answer still belongs to that
// request. It runs in virtual time, in which the client goes on whenever the server rests.
func TestEarlyAnswers(t *testing.T) {
	conf, roots := certificate()
	for _, secure := range []bool{false, true} {
		var mu sync.Mutex
		var bodies [][]byte
		serve := func(c net.Conn) {
			defer c.Close()
			r := bufio.NewReaderSize(c, 4<<10)
			a, err := readHead(r)
			if err != nil {
				return
			}
			say(streamHead, tokensOf(4), ending(8, 4))(c, a)
			body := make([]byte, a.length)
			read := 0
			for read < len(body) && err == nil {
				time.Sleep(time.Millisecond)
				var n int
				n, err = r.Read(body[read:min(read+4<<10, len(body))])
				read += n
			}
			mu.Lock()
			defer mu.Unlock()
			bodies = append(bodies, body[:read])
		}
		inBubbleOf(t, secure, conf, roots, serve, func(t *testing.T, c *Client) {
			schedule := requests(64, 20_000, 4, 0)
			schedule[63].Prompt = 500_000 // So few messages are written ahead that their buffers come round again.
			r := must.Get(c.Start(t.Context(), measure.Trial{Concurrency: 6, Requests: len(schedule)}, schedule))
			obs := must.Get(r.Wait())
			if failures(&obs) > 0 {
				t.Errorf("TLS %v: %d failed: %+v", secure, failures(&obs), obs.Records)
			}
			whole := map[string][]byte{}
			for i := range schedule {
				m := r.encoder.blank(i)
				r.encoder.encode(m, &schedule[i], false)
				whole[promptKey(m.body)] = slices.Clone(m.body)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, body := range bodies {
				if !bytes.HasPrefix(whole[promptKey(body)], body) {
					t.Errorf("TLS %v: a body of which %d bytes were read is no request's", secure, len(body))
				}
			}
		})
	}
}

// TestHungUp tells an open connection from one that the server has left.
func TestHungUp(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	for _, leave := range []func(c *net.TCPConn){
		func(c *net.TCPConn) { c.Close() },
		func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
		func(c *net.TCPConn) { io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		here := must.Get(net.Dial("tcp", l.Addr().String()))
		defer here.Close()
		there := must.Get(l.Accept())
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

// TestAnswersOfOthers: a gateway that has another model answer, and a server that sends a placeholder
// ahead of the first token, give figures that are not what they seem, which the trial says.
func TestAnswersOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		models []string
		want   note.Kind
	}{
		"one model":     {"", []string{"m"}, ""},
		"a fallback":    {"", []string{"m", "m", "tiny"}, note.AnswersOfModels},
		"a placeholder": {tokenEvent(" ", 8, 0), []string{"m"}, note.ChunksTooMany},
	} {
		var n atomic.Int64
		url := serve(t, func(conn net.Conn, a asked) bool {
			model := c.models[int(n.Add(1))%len(c.models)]
			answer := strings.ReplaceAll(c.before+tokenEvent("a", 8, 1)+tokenEvent("a", 8, 2), `"model":"m"`, `"model":"`+model+`"`)
			return say(streamHead, chunked(answer), ending(8, 2))(conn, a)
		})
		obs := observe(t, &Client{URL: url, Model: "m", Stream: true}, measure.Trial{Concurrency: 1, Requests: 6}, requests(6, 8, 2, 0))
		for _, kind := range []note.Kind{note.AnswersOfModels, note.ChunksTooMany} {
			if obs.Remarks.Has(kind) != (kind == c.want) {
				t.Errorf("%s: %q", name, obs.Remarks.Texts())
			}
		}
		if c.want == note.AnswersOfModels && !strings.HasSuffix(obs.Remarks.Of(c.want).Texts()[0], ": m (4), tiny (2)") {
			t.Errorf("%s: %q", name, obs.Remarks.Texts())
		}
	}
}

// TestShorterAnswers: an engine that is not told to go on after its end gives less load than asked
// for, and the trial says so; one that says that it gave what was asked for, and did not, gives no
// good answers.
func TestShorterAnswers(t *testing.T) {
	for _, n := range []int{4, 3} {
		url := serve(t, say(streamHead, tokensOf(n), strings.Replace(ending(8, n), `"length"`, `"stop"  `, 1)))
		c := &Client{URL: url, Model: "m", Stream: true}
		trial := measure.Trial{Workload: &workload.Workload{Timeout: time.Second}, Concurrency: 1, Requests: 5}
		obs := observe(t, c, trial, requests(5, 8, 4, 0))
		said := slices.ContainsFunc(obs.Remarks.Texts(), func(s string) bool { return strings.HasPrefix(s, "answers: the server generated 25 % fewer tokens") })
		if said != (n < 4) {
			t.Errorf("%d of 4 tokens: remarks %q", n, obs.Remarks)
		}
		c.URL = serve(t, say(streamHead, tokensOf(n), ending(8, n)))
		obs = observe(t, c, trial, requests(5, 8, 4, 0))
		if m := measure.Reduce(trial, obs); (m.Failures["wrong_length"] == 5) != (n < 4) || n == 4 && m.Failed > 0 {
			t.Errorf("%d of 4 tokens for the length: %v", n, m.Failures)
		}
	}
}
